"""What tests of the command share."""

from pathlib import Path

import pytest
from cli.command import InProcess


@pytest.fixture
def difflens(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> InProcess:
    """Return the command, in an empty folder and without the user's wishes about colours."""
    monkeypatch.chdir(tmp_path)
    for name in ("NO_COLOR", "FORCE_COLOR"):
        monkeypatch.delenv(name, raising=False)
    return InProcess(capsys)
