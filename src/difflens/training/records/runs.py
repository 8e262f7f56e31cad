"""The nouns of training: what a run records of each layer, and what is found wrong with it.

Numbers that come by the thousand (frames) live in the room `history`, as arrays.
"""

from __future__ import annotations

from math import prod
from typing import Any, ClassVar, Literal

from difflens.core.kept import Kept
from difflens.core.record import Record

RUN_SCHEMA = 2  # of what is read here; 2 has frames of steps whose layers were not read

# What a frame holds of every layer, as 32-bit floats, in this order; the rest is optional.
LAYER_FIELDS = (
    "grad_l2",
    "grad_mean_abs",
    "grad_max_abs",
    "grad_nonfinite",
    "grad_zeros",
    "weight_l2",
    "update_l2",
)
DIRECTION_FIELDS = ("grad_mean", "grad_cosine")
ACTIVATION_FIELDS = ("act_mean", "act_std", "act_dead", "act_saturated")
OPTIONAL_FIELDS = DIRECTION_FIELDS + ACTIVATION_FIELDS
# The bits of the NaN that means "not recorded", of 32 and of 64: see `history/frame.py`.
MISSING_BITS, MISSING_SCALAR_BITS = 0x7FC0D1FF, 0x7FF80000000D1FF0
# What a frame holds of its step beside sequence, step and both times; users add their own.
STEP_SCALARS = ("loss", "lr", "loss_scale", "clip_factor")
# Names under which people log what is measured on held-back data, the first found counts.
VALIDATION_LOSSES = ("val_loss", "validation_loss", "eval_loss", "valid_loss", "test_loss")
ACCURACIES = ("accuracy", "train_accuracy", "acc", "train_acc")
VALIDATION_ACCURACIES = ("val_accuracy", "val_acc", "eval_accuracy", "validation_accuracy")


class Layer(Record, frozen=True, omit_defaults=True):
    """One tensor of parameters that is watched, in the order in which the network runs."""

    name: str
    shape: tuple[int, ...] = ()
    kind: str = ""  # the class of its module: Linear, Conv2d, LayerNorm
    role: str = ""  # what it is there: weight, bias, running figures
    depth: int | None = None  # place of its module along the network, from 0 at the input
    dtype: str = ""
    trainable: bool = True
    optimised: bool | None = None  # was it handed to the optimiser? None is unknown
    activation: str = ""  # the class of the non-linearity behind its module, where one is

    @property
    def count(self) -> int:
        """Count the parameters; 0 if the shape is not known."""
        return prod(self.shape) if self.shape else 0


class RunInfo(Record, frozen=True, omit_defaults=True):
    """What stands at the head of a run: its layers, what each frame holds, how it was recorded."""

    name: str = ""
    schema: int = 1  # said where it is more: who reads the first alone must refuse the run
    created: str = ""
    layers: tuple[Layer, ...] = ()
    fields: tuple[str, ...] = LAYER_FIELDS
    scalars: tuple[str, ...] = STEP_SCALARS
    framework: str = ""
    device: str = ""
    every: int | Literal["auto"] = 1
    budget: float | None = None
    rank: int = 0
    ranks: int = 1
    # Which gradient was read; analyses want it unscaled and before clipping.
    gradient: str = "unscaled, before clipping"
    optimizer: dict[str, Any] = {}  # class and settings: {"name": "AdamW", "lr": 1e-3, …}
    # What the recorder saw of the model and the loop, in words and numbers; diagnoses read it.
    facts: dict[str, Any] = {}


class Note(Record, frozen=True, omit_defaults=True):
    """Something that happened to a recording: sampling changed, frames were dropped, it ended."""

    what: str  # begun, resumed, sampling, dropped, quiet, fact, ended
    text: str = ""
    sequence: int = 0
    wall_time: float = 0.0
    data: dict[str, Any] = {}


RunSeverity = Literal["info", "warning", "critical"]


class Fix(Record, frozen=True):
    """A remedy that a program can apply: what to do, with which numbers."""

    code: str
    parameters: dict[str, Any] = {}


class RunFinding(Kept, frozen=True, rename={"advice": "try"}):
    """A fault of a training run: where, since when, what shows it, and what to try."""

    as_logged: ClassVar[frozenset[str]] = frozenset({"evidence"})

    name: str
    severity: RunSeverity
    text: str
    evidence: dict[str, Any]
    layers: tuple[str, ...] = ()
    since_step: int | None = None
    cause: str = ""
    advice: tuple[str, ...] = ()
    confidence: float | None = None
    also: tuple[str, ...] = ()
    fix: Fix | None = None


class Diagnosed(Kept, frozen=True):
    """All that the diagnoses say of a run, the most likely cause first."""

    table_field: ClassVar[str] = "findings"

    run: str
    steps: int
    # True: neither a warning nor a critical finding; None: too little was recorded to tell.
    healthy: bool | None
    findings: tuple[RunFinding, ...] = ()
    first_step: int | None = None
    last_step: int | None = None
    warnings: tuple[str, ...] = ()  # damage, sampling, what could not be judged and why
    frozen: tuple[str, ...] = ()  # layers that never got a gradient because they are not trained
    read_steps: int | None = None  # of the steps, those whose layers were read
    # Diagnoses that could not be judged, with what was not recorded that they need.
    unjudged: dict[str, tuple[str, ...]] = {}


class Parted(Record, frozen=True):
    """The first step at which one number of two runs differs by more than a tolerance."""

    tolerance: float  # of |left - right| beside the larger of the two; 0 is any difference
    step: int
    layer: str  # "" of a scalar
    field: str
    left: float | str | None  # None: only the other run recorded it
    right: float | str | None
    layers: tuple[str, ...] = ()  # all that differ so far at this step, in network order


class RunDiff(Kept, frozen=True):
    """Two runs held side by side, step by step: where they part, and how far."""

    left: str
    right: str
    steps: int  # that both recorded
    left_only_steps: int
    right_only_steps: int
    parted: tuple[Parted, ...]  # by tolerance, ascending; empty where the runs are the same
    left_only_layers: tuple[str, ...] = ()
    right_only_layers: tuple[str, ...] = ()
    left_last_loss: float | str | None = None
    right_last_loss: float | str | None = None
    warnings: tuple[str, ...] = ()
    read_steps: int | None = None  # of the steps, those whose layers both runs read

    @property
    def differs(self) -> bool:
        """Is anything not the same, times aside?"""
        return bool(
            self.parted
            or self.left_only_steps
            or self.right_only_steps
            or self.left_only_layers
            or self.right_only_layers
        )
