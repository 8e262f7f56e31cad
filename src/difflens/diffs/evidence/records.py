"""Evidence: what was handed in beside the two models, as plain records.

The room `evidence` reads the files; an analysis sees only what stands here. Nothing is
guessed: what was not handed in is None or empty, and the analysis says what it needs.
"""

from __future__ import annotations

from typing import Any

from difflens.core.record import Record


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
    """The value a metric had in an earlier version.

    Where it is the mean of n samples, `standard_error` is that of the mean.
    """

    version: str
    metric: str
    value: float
    time: str | None = None
    standard_error: float | None = None
    n: int | None = None


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
    shape, `norms[name][i]` is ‖W_i‖²; inner products of moves follow from these. `diffs` compare
    each point but the last with the last, for those who need values.
    """

    points: tuple[str, ...]
    steps: tuple[float | None, ...]
    distances: dict[str, tuple[tuple[float, ...], ...]]
    norms: dict[str, tuple[float, ...]]
    nonfinite: tuple[int, ...]
    diffs: tuple[Any, ...] = ()


class Behaviour(Record, frozen=True):
    """What one model did with the sample inputs; None is what it did not give, `reasons` says why.

    `losses` are by example, `head_scores` an array by example, layer and head (Michel et al. 2019),
    `ablations` the rise of the loss by example without the head of that (layer, head).
    """

    outputs_shape: tuple[int, ...] | None = None
    outputs_finite: bool | None = None
    losses: tuple[float, ...] | None = None
    head_scores: Any = None
    ablations: dict[tuple[int, int], tuple[float, ...]] | None = None
    reasons: dict[str, str] = {}


class Patterns(Record, frozen=True):
    """How both models attend, as arrays by example, layer and head; means over queries.

    `js` is the Jensen-Shannon divergence over ln 2; `floor` that of left with itself in another
    dtype, `ceiling` that of left on another example; sinks are the mass on the first key, entropies
    are in nats.
    """

    js: Any
    left_sink: Any
    right_sink: Any
    left_entropy: Any
    right_entropy: Any
    floor: Any = None
    ceiling: Any = None


class Activations(Record, frozen=True):
    """What running both models on the same inputs showed; figures by example are tuples.

    `output_error` is ‖R - L‖ / ‖L‖ of the outputs, `layer_output_error` ‖ΔW X‖² / ‖W X‖² of each
    linear layer on left's own inputs, `kl` the mean KL(left ‖ right) of predicted distributions
    in nats, `agreement` how often both predict the same.
    """

    left: Behaviour
    right: Behaviour
    examples: int
    output_error: float | None = None
    layer_output_error: dict[str, float] | None = None
    kl: tuple[float, ...] | None = None
    agreement: tuple[float, ...] | None = None
    correct: tuple[tuple[float, ...], tuple[float, ...]] | None = None
    patterns: Patterns | None = None
    source: str = ""


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
    activations: Activations | None = None
    hardware: dict[str, float] | None = None  # measured here: bytes and operations a second

    def lacking(self, *options: str, instead: str) -> str:
        """Name the options of these that were not given, or what is needed where all were.

        >>> Evidence(log=Log()).lacking("--log", "--gradients", instead="more points")
        '--gradients'
        """
        missing = [option for option in options if not self._has(option)]
        return " or ".join(filter(None, (", ".join(missing[:-1]), *missing[-1:]))) or instead

    def _has(self, option: str) -> bool:
        """Was what an option hands in given? Of a pair, both."""
        first = option.split(maxsplit=1)[0]
        return all(self._has_one(each) for each in first.split("/"))

    def _has_one(self, flag: str) -> bool:
        kind, _, side = flag.removeprefix("--").rpartition("-")
        if side in ("left", "right") and kind:
            held = getattr(self, side)
            return bool(getattr(held, {"eval": "evals", "tokenizer": "tokens"}.get(kind, kind)))
        name = {"checkpoint": "trajectory", "sample": "activations"}.get(flag[2:], flag[2:])
        return getattr(self, name) not in (None, ())
