from threading import Event, Thread

import pytest

from difflens.measure.resources import MemoryLimit


def test_who_needs_more_than_is_left_waits():
    memory, inside = MemoryLimit(10), Event()

    def second():
        with memory(6):
            inside.set()

    with memory(6):
        thread = Thread(target=second)
        thread.start()
        assert not inside.wait(0.05)
    assert inside.wait(5)
    thread.join()
    assert memory.used == 0


def test_what_is_larger_than_the_limit_goes_alone():
    memory = MemoryLimit(10)

    with memory(50):
        assert memory.used == 50


def test_memory_is_given_back_after_an_error():
    memory = MemoryLimit(10)

    with pytest.raises(ValueError, match="broken"), memory(5):
        raise ValueError("broken")
    assert memory.used == 0
