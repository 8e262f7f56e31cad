"""Frames that are made many at a time are those that are made one by one."""

import numpy as np
import pytest

from difflens.hooks.torch_blocks import GRADIENT, WEIGHTS
from difflens.hooks.torch_clipping import Between, Clipping, one
from difflens.hooks.torch_frames import Frames, Raw

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


def raw(step, factor=one, places=range(LAYERS), moved=True):
    numbers = np.random.default_rng(step).random((2, len(places), 6))
    reader, places = Device(), list(places)
    begun = [(GRADIENT, reader, (places, numbers[0])), (WEIGHTS, reader, (places, numbers[1]))]
    return Raw(step, {"loss": float(step)}, begun, factor, None, {}, moved)


CLIPPED = Between(0.3, 0.0, 1.0)


@pytest.mark.parametrize(
    "raws",
    [
        [raw(0), raw(1), raw(2)],
        [raw(0), raw(1, lambda: CLIPPED), raw(2)],
        [raw(0), raw(1, places=[0, 2])],
        [raw(0), raw(1, moved=False)],
    ],
    ids=["whole", "clipped", "in part", "not stepped"],
)
def test_frames_made_together_are_those_made_alone(raws):
    together = frames().make_all(raws)
    alone = [frames().make(each) for each in raws]

    for (told, made), (told_alone, made_alone) in zip(together, alone, strict=True):
        assert told == told_alone
        np.testing.assert_allclose(made, made_alone, rtol=3e-7)  # the last digit of a division


def test_frames_of_a_device_are_made_in_one_go(monkeypatch):
    made = frames()
    monkeypatch.setattr(made, "make", None)

    assert len(made.make_all([raw(step) for step in range(4)])) == 4
