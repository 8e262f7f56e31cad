"""Did anything move by more than its storage rounds?"""

from __future__ import annotations

from ...measure.scan import Scan


def is_rounding_only(scan: Scan) -> bool:
    """Did no element move by more than storage rounding, and none stop being finite?"""
    return scan.over_rounding == 0 and scan.left_nonfinite == scan.right_nonfinite
