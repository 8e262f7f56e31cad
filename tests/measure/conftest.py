"""What tests of measuring share."""

import threading
from collections.abc import Callable

import pytest


@pytest.fixture
def cut(monkeypatch: pytest.MonkeyPatch) -> Callable[[int, int], None]:
    """Return a way to make steps and chunks small; both in elements."""

    def make(step: int, chunk: int) -> None:
        monkeypatch.setattr("difflens.measure.chunks.STEP", step)
        monkeypatch.setattr("difflens.measure.pairs.CHUNK", chunk)
        # Buffers are as large as a step was when their thread first read: others must not see ours.
        monkeypatch.setattr("difflens.measure.chunks._buffers", threading.local())

    return make
