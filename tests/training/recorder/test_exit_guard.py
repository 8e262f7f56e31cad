"""What is put in the way of a process that goes, and taken away again."""

import signal
import subprocess
import sys
import threading

import pytest

from difflens.training.recorder.exit_guard import ExitGuard


class Quiet:
    """A recorder with nothing to do."""

    def close(self):
        """Do nothing."""


def test_a_handler_of_somebody_else_is_left_alone():
    def theirs(*_):
        """Do nothing."""

    before = signal.signal(signal.SIGTERM, theirs)
    try:
        ExitGuard(Quiet()).close()
        assert signal.getsignal(signal.SIGTERM) is theirs
    finally:
        signal.signal(signal.SIGTERM, before)


def test_the_default_handler_is_put_back():
    before = signal.signal(signal.SIGTERM, signal.SIG_DFL)
    try:
        guard = ExitGuard(Quiet())
        assert signal.getsignal(signal.SIGTERM) is not signal.SIG_DFL
        guard.close()
        assert signal.getsignal(signal.SIGTERM) is signal.SIG_DFL
    finally:
        signal.signal(signal.SIGTERM, before)


def test_on_a_thread_no_signal_is_touched():
    before, made = signal.getsignal(signal.SIGTERM), []
    thread = threading.Thread(target=lambda: made.append(ExitGuard(Quiet())))
    thread.start()
    thread.join()

    assert signal.getsignal(signal.SIGTERM) is before
    made[0].close()


_BUSY = """
import sys, time
import numpy, torch
from difflens.training.records.runs import LAYER_FIELDS, Layer, RunInfo
from difflens.training.recorder.monitors import PlainMonitor

numbers = torch.ones(100)

def block():
    until = time.monotonic() + 0.05
    while time.monotonic() < until:
        numbers + numbers
    return numpy.zeros((len(LAYER_FIELDS), 1), numpy.float32)

info = RunInfo("run", layers=(Layer("a"),))
watch = PlainMonitor(sys.argv[1], info, diagnose_every=None)
for step in range(400):
    watch.end_step(block, {})
if sys.argv[2] == "closed":
    watch.close()
"""


@pytest.mark.parametrize("how", ["closed", "left open"])
def test_an_interpreter_that_ends_while_the_recorder_is_in_torch_does_not_abort(tmp_path, how):
    """Twenty seconds of work wait; a thread that came back from torch then would end it all."""
    pytest.importorskip("torch")

    command = [sys.executable, "-c", _BUSY, str(tmp_path / "run"), how]
    done = subprocess.run(command, check=False, capture_output=True, text=True)

    assert (done.returncode, done.stderr) == (0, "")
