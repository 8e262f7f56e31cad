"""The flow of gradients: one layer at one step, frames of them, and what a run of them comes to.

Field names are public and never change; newer fields come last.
"""

from __future__ import annotations

from typing import ClassVar, Literal

from difflens.core.errors import SnapshotError
from difflens.core.findings import Interval, Missing
from difflens.core.kept import Kept, Settings, ascending, count, number
from difflens.core.record import Record

FLOW_SCHEMA = 1

# From the least to the most alarming: of several frames in one column the last of these counts.
# `absent` is a layer that was not handed in at all; `none` one that was, without a gradient.
FlowState = Literal[
    "absent", "none", "frozen", "healthy", "zero", "vanishing", "exploding", "non_finite"
]
FLOW_STATES: tuple[FlowState, ...] = (
    "absent",
    "none",
    "frozen",
    "healthy",
    "zero",
    "vanishing",
    "exploding",
    "non_finite",
)
GradientHealth = Literal["Healthy", "MinorIssues", "ProblemsDetected", "Critical", "Unknown"]
FlowScale = Literal["global", "layer", "frame"]

# The words for pictures, whoever draws them.
MARKS = {
    "absent": "·",
    "none": "·",
    "frozen": "-",
    "zero": "0",
    "vanishing": "v",
    "exploding": "!",
    "non_finite": "x",
}
WORDS = {
    "absent": "not recorded",
    "none": "no gradient",
    "frozen": "frozen",
    "healthy": "",
    "zero": "exactly zero",
    "vanishing": "vanishing",
    "exploding": "exploding",
    "non_finite": "NaN or infinite",
}
FIELD_WORDS = {
    "grad_rms": "root mean square of the gradient",
    "grad_l2": "norm of the gradient",
    "grad_mean_abs": "mean |gradient|",
    "grad_max_abs": "max |gradient|",
    "gradient_ratio": "norm of the gradient by norm of the weights",
    "update_ratio": "norm of the update by norm of the weights",
    "update_rms": "root mean square of the update",
    "update_l2": "norm of the update",
    "weight_l2": "norm of the weights",
    "grad_zeros": "number of zeros in the gradient",
    "grad_nonfinite": "values of the gradient that are not finite",
    "act_std": "deviation of the activations",
    "act_dead": "share of dead units",
    "act_saturated": "share of saturated units",
}

LEVELS = 240  # steps of a level: eighths of it are whole, so halves round as they should
FIRST_CODE, LAST_CODE = 16, 65535  # of a value that is drawn; below: no value, and zero


class GradientFlowConfig(Settings, frozen=True, kw_only=True):
    """What the flow is judged by. Thresholds are in the gradient's own units; None is off.

    A layer vanishes where mean |g| is under `vanishing_threshold`, where |g|/|w| is under
    `relative_threshold` times the median of the step's layers (weights are needed), or where
    more than `underflow_share` of its non-zero values are below the least normal number of their
    type. It explodes where max |g| is over `exploding_threshold`. Shares of frames are weighted by
    recency, with a half-life in frames.
    """

    max_frames: int = 0  # 0 keeps all
    vanishing_threshold: float | None = 1e-7
    exploding_threshold: float | None = 1e3
    relative_threshold: float | None = 1e-3
    underflow_share: float = 0.99
    half_life: float = 100.0  # frames
    vanishing_share: float = 0.5  # of late frames, from which a layer counts as affected
    exploding_share: float = 0.1
    several: float = 0.1  # share of layers or parameters affected: ProblemsDetected
    widespread: float = 0.5  # the same: Critical

    def _checked(self) -> None:
        count("max_frames", self.max_frames)
        for field in ("vanishing_threshold", "exploding_threshold", "relative_threshold"):
            number(field, getattr(self, field), 0)
        for field in ("underflow_share", "vanishing_share", "exploding_share", "several"):
            number(field, getattr(self, field), 0, 1)
        number("widespread", self.widespread, self.several, 1)
        number("half_life", self.half_life, 1)
        low, high = self.vanishing_threshold, self.exploding_threshold
        if low is not None and high is not None and low >= high:
            raise SnapshotError(
                f"vanishing_threshold is {low}, not below exploding_threshold, which is {high}"
            )


class LayerGradientInfo(Kept, frozen=True, kw_only=True):
    """One layer at one step. Numbers are over the finite values; `non_finite` counts the rest.

    `flow_intensity` is the place of the gradient's root mean square on a logarithmic scale that
    is the same for all layers and steps of the run. Null where there is no such number.
    """

    says_why: ClassVar[tuple[str, str]] = (
        "a gradient with finite values; for the ratio also weights",
        "nothing was handed in to compute it from",
    )

    name: str
    mean_abs_grad: float | None = None
    max_abs_grad: float | None = None
    grad_norm: float | None = None
    is_vanishing: bool = False
    is_exploding: bool = False
    flow_intensity: float | None = None
    state: FlowState = "none"
    elements: int | None = None
    zeros: int | None = None
    non_finite: int | None = None
    underflow_share: float | None = None  # of the values that are not zero
    weight_norm: float | None = None
    gradient_to_weight: float | None = None
    missing: tuple[Missing, ...] = ()


class GradientFrame(Kept, frozen=True, kw_only=True):
    """One step with its layers, in the order of the network.

    Out of a long run a frame may stand for several: then `first_step` is that of the first.
    """

    step: int
    layers: tuple[LayerGradientInfo, ...] = ()
    first_step: int | None = None
    frames: int = 1
    missing: tuple[Missing, ...] = ()

    def __post_init__(self) -> None:
        """Let a frame that is one step begin where it ends."""
        if self.first_step is None:
            import msgspec

            msgspec.structs.force_setattr(self, "first_step", self.step)
        super().__post_init__()
        ascending((("first_step", self.first_step), ("step", self.step)))


class LayerFlow(Kept, frozen=True, kw_only=True):
    """One layer over all frames ever recorded, those dropped from the window among them.

    Of `frames` in which it was handed in (points, where frames of a long run were merged), so many
    were of each state. Steps of a point are its first for `first_`, its last for `last_`.
    `vanishing` and `exploding` are shares of the frames that had a gradient, with Wilson's
    interval; the `recent_` sums weigh a frame by half for each half-life since.
    """

    says_why: ClassVar[tuple[str, str]] = (
        "a frame in which it happened, or a gradient with finite values",
        "it was never seen",
    )

    name: str
    parameters: int | None = None
    frames: int = 0
    states: dict[str, int]
    vanishing: float | None = None
    vanishing_interval: Interval | None = None
    exploding: float | None = None
    exploding_interval: Interval | None = None
    first_vanishing_step: int | None = None
    last_vanishing_step: int | None = None
    first_exploding_step: int | None = None
    last_exploding_step: int | None = None
    first_non_finite_step: int | None = None
    last_non_finite_step: int | None = None
    peak_norm: float | None = None
    peak_step: int | None = None
    lowest_rms: float | None = None  # above zero
    highest_rms: float | None = None
    recent_frames: float = 0.0
    recent_vanishing: float = 0.0
    recent_exploding: float = 0.0
    recent_zero: float = 0.0
    missing: tuple[Missing, ...] = ()

    def __post_init__(self) -> None:
        """Refuse counts and steps that cannot be."""
        super().__post_init__()
        for field in self.__struct_fields__:
            if field.endswith("_step") or field in {"frames", "parameters"}:
                number(field, getattr(self, field), 0, 2**62)
        for state, seen in self.states.items():
            number(f"states.{state}", seen, 0, 2**62)


class GradientFlowSummary(Kept, frozen=True, kw_only=True):
    """What all recorded frames come to, whatever the window still holds.

    `total_steps` is the number of frames recorded. A layer stands in a list when it was flagged
    in at least one frame; how often and how lately is in `layers`.
    """

    says_why: ClassVar[tuple[str, str]] = ("recorded frames with a gradient", "there is none")

    total_steps: int = 0
    layers_with_vanishing_grads: tuple[str, ...] = ()
    layers_with_exploding_grads: tuple[str, ...] = ()
    overall_health: GradientHealth = "Unknown"
    recommendations: tuple[str, ...] = ()
    layers_with_non_finite_grads: tuple[str, ...] = ()
    layers_without_gradients: tuple[str, ...] = ()
    frozen_layers: tuple[str, ...] = ()
    frames_recorded: int = 0
    frames_retained: int = 0
    first_step: int | None = None
    last_step: int | None = None
    share_of_layers: float | None = None  # affected lately, of those that had a gradient
    share_of_parameters: float | None = None
    reasons: tuple[str, ...] = ()  # what made the health class
    layers: tuple[LayerFlow, ...] = ()
    config: GradientFlowConfig = GradientFlowConfig()
    schema: int = FLOW_SCHEMA
    missing: tuple[Missing, ...] = ()


class FlowPicture(Record, frozen=True):
    """Layers by columns of steps, as a renderer draws them: all numbers are settled.

    Cells lie row after row. `levels` (0 to 240) and `states` (places in `FLOW_STATES`) are a byte
    each; `codes`, `lows` and `highs` two bytes each, little-endian: 0 is no value, 1 is zero, from
    16 to 65535 a value on the logarithmic scale from `code_low` to `code_high` (powers of ten).
    """

    title: str
    field: str
    layers: tuple[str, ...]
    steps: tuple[int, ...]  # of the last frame of each column
    first_steps: tuple[int, ...]
    spans: tuple[int, ...]  # frames in each column
    levels: bytes
    states: bytes
    codes: bytes
    lows: bytes
    highs: bytes
    scale: FlowScale = "global"
    low: float | None = None  # what the lightest and the darkest shade stand for
    high: float | None = None
    code_low: float = 0.0
    code_high: float = 0.0
    all_layers: int = 0  # before rows were left out
    frames: int = 0
    vanishing_threshold: float | None = None
    exploding_threshold: float | None = None

    @property
    def columns(self) -> int:
        """How many columns there are."""
        return len(self.steps)

    def value(self, code: int) -> float | None:
        """Return the number a code stands for; None if there is none."""
        if code < FIRST_CODE:
            return 0.0 if code == 1 else None
        part = (code - FIRST_CODE) / (LAST_CODE - FIRST_CODE)
        return float(10 ** (self.code_low + part * (self.code_high - self.code_low)))


class RunCurves(Record, frozen=True):
    """What is drawn of a run: its losses by name, as steps and finite values, and its layers."""

    losses: dict[str, tuple[tuple[int, ...], tuple[float, ...]]]
    first_nonfinite_loss: int | None = None  # its step
    layers: FlowPicture | None = None
