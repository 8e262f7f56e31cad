"""What a policy may speak of on the command line: every analysis and diagnosis, and regressions."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from ..evidence.policy import Known


def known() -> Known:
    """Gather every threshold there is."""
    from ..analyses import analysis
    from ..diagnoses import diagnosis
    from ..evidence.policy import Known
    from ..versions.severity import SECTION, THRESHOLDS

    return Known.of((*analysis, *diagnosis)).also(SECTION, THRESHOLDS)
