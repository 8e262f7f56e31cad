from threading import Event, Thread

import pytest

from difflens.measure.room import Room


def test_who_needs_more_than_is_left_waits():
    room, inside = Room(10), Event()

    def second():
        with room(6):
            inside.set()

    with room(6):
        thread = Thread(target=second)
        thread.start()
        assert not inside.wait(0.05)
    assert inside.wait(5)
    thread.join()
    assert room.taken == 0


def test_what_is_larger_than_the_limit_goes_alone():
    room = Room(10)

    with room(50):
        assert room.taken == 50


def test_room_is_given_back_after_an_error():
    room = Room(10)

    with pytest.raises(ValueError, match="broken"), room(5):
        raise ValueError("broken")
    assert room.taken == 0
