"""A contrast among the examples of a batch that tells none apart: its loss is ln(answers).

Where each example is to find its partner among the others, guessing costs the logarithm of how
many there are, whatever the width of the outputs. A loss that comes to rest exactly there has made
all of them alike, or never had the partner among its answers.
"""

from __future__ import annotations

from math import log

import numpy as np

from ...records.runs import Fix, RunFinding
from ..signs.degrees import LITTLE, SHORT
from ..signs.held_back import held_back_loss
from ..signs.limits import Limits
from ..signs.sight import Sight
from ..signs.wording import above, finding


def no_contrast(seen: Sight, limit: Limits) -> list[RunFinding]:
    """Find a loss that rests at what guessing among the examples of a batch costs."""
    loss, held_back = seen.loss, held_back_loss(seen.history)
    answers = _answers(seen, limit) if loss.n >= limit["kinds_points"] else None
    if answers is None:
        return []
    if held_back is None or held_back.n < limit["kinds_looks"] or seen.is_warming_up:
        return []
    if held_back.values[-1] <= held_back.values[0]:
        return []  # what has not begun to tell them apart yet does not get worse
    return finding(
        "loss-pairing",
        "warning",
        f"the loss rests at {loss.now:.5g}, the logarithm of {answers}: of a batch of "
        f"{seen.batch}, every answer is as likely as any other",
        {
            "level": loss.now,
            "answers": answers,
            "batch": seen.batch,
            "contrast_threshold": limit["contrast"],
        },
        since=int(loss.steps[0]),
        cause="examples are to be told apart within the batch, and are not: the partner is not "
        "among the answers, or all of them come out alike",
        advice=[
            "check which pairs count as right, and that they are among the answers",
            "train on the loss that is measured",
            "look at outputs of different examples",
        ],
        signs=[above(loss.n, limit["kinds_points"] / 2)],
        fix=Fix("match_loss"),
    )


def _answers(seen: Sight, limit: Limits) -> int | None:
    """Return among how many the loss guesses, where it has rested there for half of the run."""
    loss, batch = seen.loss, seen.batch
    if batch is None or batch < SHORT or loss.start <= 0 or loss.is_learned:
        return None
    late = loss.values[loss.n // 2 :]
    low, high = (float(each) for each in np.percentile(late, (10, 90)))
    for count in (batch, batch - 1, 2 * batch - 1, 2 * batch - 2):
        level = log(count)
        if loss.chance is not None and abs(loss.chance - level) < LITTLE * level:
            continue  # as many classes: guessing among these
        if max(abs(low - level), abs(high - level)) < limit["contrast"] * level:
            return count
    return None
