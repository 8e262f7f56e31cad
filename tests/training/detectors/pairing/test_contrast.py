from math import log

import numpy as np
import pytest
from training.diagnoses.histories import asked, only

from difflens.testing.histories import falling, noise, recorded


def looks(values, every=20):
    return np.where(np.arange(len(values)) % every == every - 1, values, np.nan)


def pairs(rests_at, batch=48, width=16, held_back=(5.7, 5.9)):
    losses = rests_at * (1 + 0.05 * np.exp(-np.arange(120) / 8)) * noise(120, 3e-4)
    facts = {"output": {"shape": [batch, 2, width], "min": -0.6, "max": 0.7}}
    return recorded(losses, facts=facts, scalars={"val_loss": looks(np.linspace(*held_back, 120))})


@pytest.mark.parametrize("answers", [48, 95])
def test_a_loss_that_rests_at_guessing_among_the_examples_of_a_batch_has_no_contrast(answers):
    found = only("loss-pairing", pairs(log(answers)))

    assert (found.fix.code, found.evidence["answers"]) == ("match_loss", answers)


def test_as_many_classes_are_guessed_among_by_other_faults():
    assert asked("loss-pairing", pairs(log(48), width=48)) == []


def test_a_contrast_that_was_not_found_yet_does_not_get_worse():
    assert asked("loss-pairing", pairs(log(48), held_back=(5.9, 5.8))) == []


def test_a_loss_that_falls_on_tells_them_apart():
    facts = {"output": {"shape": [48, 2, 16], "min": -0.6, "max": 0.7}}
    losses = falling(120, start=log(48), end=1.0, pace=0.05)

    assert asked("loss-pairing", recorded(losses, facts=facts)) == []
