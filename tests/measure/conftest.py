"""What tests of measuring share."""

from collections.abc import Callable

import pytest


@pytest.fixture
def cut(monkeypatch: pytest.MonkeyPatch) -> Callable[[int, int], None]:
    """Return a way to make steps and chunks small; both in elements."""

    def make(step: int, chunk: int) -> None:
        monkeypatch.setattr("difflens.measure.chunks.STEP", step)
        monkeypatch.setattr("difflens.measure.pairs.CHUNK", chunk)

    return make
