"""Watches every hostile test: reading a file starts, connects and writes nothing."""

from collections.abc import Iterator

import pytest
from hostile.watch import WATCH


@pytest.fixture(autouse=True)
def _watched() -> Iterator[None]:
    """Fail the test whose file made the reader do more than read."""
    WATCH.seen.clear()
    WATCH.listening = True
    yield
    WATCH.listening = False
    assert WATCH.seen == []
