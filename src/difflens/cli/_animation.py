"""Plays texts one after the other in the same place of a terminal."""

from __future__ import annotations

import time
from collections.abc import Iterable
from typing import TextIO

_HIDE, _SHOW = "\x1b[?25l", "\x1b[?25h"


def play(texts: Iterable[str], stream: TextIO, per_second: float) -> None:
    """Write each text over the one before; whatever happens, the cursor is there again.

    The last one stays on the screen: nothing that was above it is touched.
    """
    pause, lines = 1 / per_second, 0
    stream.write(_HIDE)
    try:
        due = time.monotonic()
        for text in texts:
            up = f"\x1b[{lines}A" if lines else ""
            # Each line is cleared behind its end only: clearing the whole first would flicker.
            stream.write(f"{up}\r" + text.replace("\n", "\x1b[K\n"))
            stream.flush()
            lines = text.count("\n")
            due = max(due + pause, time.monotonic())
            time.sleep(max(0.0, due - time.monotonic()))
    finally:
        stream.write(_SHOW)
        stream.flush()
