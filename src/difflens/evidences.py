"""Evidence: what was handed in beside the two models, as plain records.

The room `evidence` reads the files; an analysis sees only what stands here. Nothing is
guessed: what was not handed in is None or empty, and the analysis says what it needs.
"""

from __future__ import annotations

from typing import Any

from .records import Record


class Example(Record, frozen=True, gc=False):
    """One line of a per-example evaluation."""

    id: str
    score: float
    metric: str = "score"
    cluster: str | None = None


class Latency(Record, frozen=True, gc=False):
    """One measured latency; samples of one run are not independent of each other."""

    ms: float
    run: str | None = None


class Past(Record, frozen=True, gc=False):
    """The value a metric had in an earlier version."""

    version: str
    metric: str
    value: float
    time: str | None = None


class Log(Record, frozen=True):
    """A training log: for each column its (step, value) points, steps ascending.

    Points that are not finite are in `nonfinite`, by their steps alone; `left_out` are the columns
    that hold no number.
    """

    columns: dict[str, tuple[tuple[float, float], ...]] = {}
    source: str = ""
    nonfinite: dict[str, tuple[float, ...]] = {}
    left_out: tuple[str, ...] = ()


class Gradients(Record, frozen=True):
    """Recorded gradient norms: for each layer its (step, norm) points, steps ascending.

    Norms that are not finite are in `nonfinite`, by their steps alone.
    """

    norms: dict[str, tuple[tuple[float, float], ...]] = {}
    source: str = ""
    nonfinite: dict[str, tuple[float, ...]] = {}


class Optimizer(Record, frozen=True):
    """The state an optimiser saved: its groups, and moments that are read on demand.

    `groups` are the `param_groups` with `params` as indices; `moments[index][key]` is a `Values`
    (see `measure.values`) such as `exp_avg`, or a number such as `step`.
    """

    groups: tuple[dict[str, Any], ...] = ()
    moments: dict[int, dict[str, Any]] = {}
    source: str = ""


class Side(Record, frozen=True):
    """What was handed in about one of the two models."""

    config: dict[str, Any] | None = None
    metrics: dict[str, float] | None = None
    evals: tuple[Example, ...] = ()
    latency: tuple[Latency, ...] = ()
    tokens: dict[str, int] | None = None  # token, as bytes seen as latin-1 text, to row
    special_tokens: dict[str, int] | None = None
    optimizer: Optimizer | None = None
    step: int | None = None
    licence: str | None = None
    log: Log | None = None  # the log saved beside this checkpoint, of its own run


class Trajectory(Record, frozen=True):
    """A row of checkpoints of one run: how far each is from each other, tensor by tensor.

    `distances[name][i][j]` is ‖W_i - W_j‖² of a float parameter that all of them hold in one
    shape, `norms[name][i]` is ‖W_i‖²; inner products of moves follow from these.
    """

    points: tuple[str, ...]
    steps: tuple[float | None, ...]
    distances: dict[str, tuple[tuple[float, ...], ...]]
    norms: dict[str, tuple[float, ...]]
    nonfinite: tuple[int, ...]


class Evidence(Record, frozen=True):
    """All that was handed in beside the two models; `given` says what came from where.

    `base` is the common ancestor as two diffs (base against left, base against right);
    `activations` is what running the models on sample inputs gave.
    """

    given: dict[str, str] = {}
    left: Side = Side()
    right: Side = Side()
    history: tuple[Past, ...] = ()
    log: Log | None = None
    gradients: Gradients | None = None
    runs: tuple[dict[str, Any], ...] = ()
    trajectory: Trajectory | None = None
    base: tuple[Any, Any] | None = None
    activations: Any = None
    hardware: dict[str, float] | None = None  # measured here: bytes and operations a second
