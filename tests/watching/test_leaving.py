"""What is put in the way of a process that goes, and taken away again."""

import signal
import threading

from difflens.watching.leaving import Leaving


def test_a_handler_of_somebody_else_is_left_alone():
    def theirs(*_):
        """Do nothing."""

    before = signal.signal(signal.SIGTERM, theirs)
    try:
        Leaving(lambda: None).close()
        assert signal.getsignal(signal.SIGTERM) is theirs
    finally:
        signal.signal(signal.SIGTERM, before)


def test_the_default_handler_is_put_back():
    before = signal.signal(signal.SIGTERM, signal.SIG_DFL)
    try:
        leaving = Leaving(lambda: None)
        assert signal.getsignal(signal.SIGTERM) is not signal.SIG_DFL
        leaving.close()
        assert signal.getsignal(signal.SIGTERM) is signal.SIG_DFL
    finally:
        signal.signal(signal.SIGTERM, before)


def test_on_a_thread_no_signal_is_touched():
    before, made = signal.getsignal(signal.SIGTERM), []
    thread = threading.Thread(target=lambda: made.append(Leaving(lambda: None)))
    thread.start()
    thread.join()

    assert signal.getsignal(signal.SIGTERM) is before
    made[0].close()
