"""Frames that are made many at a time are those that are made one by one."""

import numpy as np
import pytest

from difflens.training.hooks.torch.clipping import Between, Clipping, one
from difflens.training.hooks.torch.frames import Frames, TorchReading
from difflens.training.hooks.torch.readers import GRADIENT, WEIGHTS

LAYERS = 5


class Device:
    """A reader of a device, which answers what was promised."""

    always_counts = True

    def answer(self, promise):
        return promise


class Alone:
    """One process."""

    merges, writes = False, True


def frames():
    made = Frames(
        np.arange(1.0, LAYERS + 1),
        Clipping(lambda: None),
        blank=np.float32("nan"),
        ranks=Alone(),
        shares=np.ones(LAYERS, bool),
        is_sharded=np.zeros(LAYERS, bool),
        has_activations=False,
    )
    made.arrange([3, 1, 0, 2, 4])
    return made


def reading(step, factor=one, places=range(LAYERS), moved=True):
    numbers = np.random.default_rng(step).random((2, len(places), 6))
    reader, places = Device(), list(places)
    begun = [(GRADIENT, reader, (places, numbers[0])), (WEIGHTS, reader, (places, numbers[1]))]
    return TorchReading(step, 1.0, 2.0, {"loss": float(step)}, begun, factor, None, {}, moved)


CLIPPED = Between(0.3, 0.0, 1.0)


@pytest.mark.parametrize(
    "readings",
    [
        [reading(0), reading(1), reading(2)],
        [reading(0), reading(1, lambda: CLIPPED), reading(2)],
        [reading(0), reading(1, places=[0, 2])],
        [reading(0), reading(1, moved=False)],
    ],
    ids=["whole", "clipped", "in part", "not stepped"],
)
def test_frames_made_together_are_those_made_alone(readings):
    together = frames().make_all(readings)
    alone = [frames().make(each) for each in readings]

    for (told, made), (told_alone, made_alone) in zip(together, alone, strict=True):
        assert told == told_alone
        np.testing.assert_array_equal(made, made_alone)  # to the last digit: runs are compared


def test_frames_of_a_device_are_made_in_one_go(monkeypatch):
    made = frames()
    monkeypatch.setattr(made, "make", None)

    assert len(made.make_all([reading(step) for step in range(4)])) == 4
