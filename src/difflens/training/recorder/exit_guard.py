"""How a recording ends, also with the process: layers are read once more, what waits is written."""

from __future__ import annotations

import atexit
import os
import signal
import threading
from types import FrameType
from typing import Any

from .alarm import warn


class ExitGuard:
    """Ends hook and recorder once: when it is closed, on SIGTERM or with the interpreter."""

    def __init__(self, recorder: Any, hook: Any = None) -> None:
        """Stand by; a signal handler that somebody else has set is left alone."""
        self._recorder, self._hook, self._process = recorder, hook, os.getpid()
        atexit.register(self._at_exit)
        self._has_signal = False
        is_main = threading.current_thread() is threading.main_thread()
        if is_main and signal.getsignal(signal.SIGTERM) is signal.SIG_DFL:
            signal.signal(signal.SIGTERM, self._on_signal)
            self._has_signal = True

    def close(self) -> None:
        """Read the layers once more, remove the hooks, write what waits, end the run."""
        self._read_last()
        closing = [self._recorder.close, self._stand_down]
        if self._hook is not None:
            closing.insert(0, self._hook.close)
        for close in closing:
            try:
                close()
            except Exception as error:  # noqa: BLE001  nothing of ours reaches the loop
                warn(f"leaving the monitor: {type(error).__name__}: {error}")
        self._leave_ranks()

    def _at_exit(self) -> None:
        """Be done before the interpreter is, unless it was closed."""
        if os.getpid() == self._process:
            self._read_last()
            self._recorder.park()
            self._leave_ranks()

    def _on_signal(self, number: int, _frame: FrameType | None) -> None:
        if os.getpid() == self._process:
            self._read_last()
            self._recorder.flush()
        signal.signal(number, signal.SIG_DFL)
        os.kill(os.getpid(), number)

    def _read_last(self) -> None:
        if self._hook is None:
            return
        try:
            self._hook.finish()
        except Exception as error:  # noqa: BLE001  nothing of ours reaches the loop
            self._hook.fail(error)

    def _leave_ranks(self) -> None:
        if self._hook is not None and self._recorder.has_ended:
            self._hook.leave_ranks()

    def _stand_down(self) -> None:
        """Leave no trace in the process."""
        atexit.unregister(self._at_exit)
        is_main = threading.current_thread() is threading.main_thread()
        if self._has_signal and is_main and signal.getsignal(signal.SIGTERM) == self._on_signal:
            signal.signal(signal.SIGTERM, signal.SIG_DFL)
        self._has_signal = False
