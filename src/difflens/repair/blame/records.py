"""What blame answers: the culprits, what mends the bad model, what breaks the good one."""

from __future__ import annotations

from typing import Literal

from difflens.core.record import Record

BlameVerdict = Literal["found", "diffuse", "undecided"]


class Culprit(Record, frozen=True):
    """One thing that is to blame: tensors that were changed together, or some rows of a tensor.

    `change` says what kind of change it was. `repairs` and `breaks` say whether it does so alone:
    the bad model without it passes, the good model with it fails; None where nobody asked.
    """

    tensors: tuple[str, ...]
    change: str
    rows: dict[str, str] = {}
    rank: int = 0
    repairs: bool | None = None
    breaks: bool | None = None


class BlameProof(Record, frozen=True):
    """What was seen on hybrids that were made from nothing but the two models."""

    bad_without_repair_passes: bool | None = None
    good_with_cause_fails: bool | None = None


class Blame(Record, frozen=True):
    """The smallest change that breaks a check.

    `repair` is what to put back so that the bad model passes, `cause` what alone makes the good
    model fail: two answers, which are often the same. `shares` has the part of the damage of each
    group of blocks where it is spread over many. `evaluations` counts runs of the check in all,
    those of the two models too; `hybrids` counts the hybrids among what was evaluated.
    """

    verdict: BlameVerdict
    sentence: str
    culprits: tuple[Culprit, ...] = ()
    repair: tuple[str, ...] = ()
    cause: tuple[str, ...] = ()
    interaction: str = ""
    proof: BlameProof = BlameProof()
    evaluations: int = 0
    hybrids: int = 0
    changed: int = 0
    units: int = 0
    shares: dict[str, float] = {}
    noise: dict[str, float] = {}
    undone_bytes: int = 0
    changed_bytes: int = 0
    repair_patch: str = ""


class Bisection(Record, frozen=True):
    """The first bad one of a row of checkpoints, and what is to blame between it and the last good.

    `evaluations` counts the checkpoints that were evaluated; those of `blame` come on top.
    """

    checkpoints: int
    last_good: str
    first_bad: str
    evaluations: int
    sentence: str
    blame: Blame | None = None
