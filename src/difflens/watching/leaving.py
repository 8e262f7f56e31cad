"""Sees that what waits is kept when the process is told to go."""

from __future__ import annotations

import atexit
import os
import signal
import threading
from collections.abc import Callable
from types import FrameType
from typing import Any


class Leaving:
    """Calls `flush` on SIGTERM and `end` at the interpreter's end; `close` takes that back."""

    def __init__(self, flush: Callable[[], Any], end: Callable[[], Any]) -> None:
        """Stand by; a handler that somebody else has set is left alone."""
        self._flush, self._end, self._process = flush, end, os.getpid()
        atexit.register(self._at_exit)
        self._has_signal = False
        is_main = threading.current_thread() is threading.main_thread()
        if is_main and signal.getsignal(signal.SIGTERM) is signal.SIG_DFL:
            signal.signal(signal.SIGTERM, self._on_signal)
            self._has_signal = True

    def _at_exit(self) -> None:
        if os.getpid() == self._process:
            self._end()

    def _on_signal(self, number: int, _frame: FrameType | None) -> None:
        if os.getpid() == self._process:
            self._flush()
        signal.signal(number, signal.SIG_DFL)
        os.kill(os.getpid(), number)

    def close(self) -> None:
        """Leave no trace."""
        atexit.unregister(self._at_exit)
        is_main = threading.current_thread() is threading.main_thread()
        if self._has_signal and is_main and signal.getsignal(signal.SIGTERM) == self._on_signal:
            signal.signal(signal.SIGTERM, signal.SIG_DFL)
        self._has_signal = False
