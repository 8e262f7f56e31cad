"""Every metric known of a snapshot: its value, which way is better, and how much does not matter.

Samples go before single numbers: where a metric was measured over seeds or examples its value is
their mean, so that what is ranked is what is tested.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from math import isclose
from typing import Literal, NamedTuple

import msgspec

from difflens.core.policy import MetricRule, Policy
from difflens.diffs.quality.margins import SECTION, better, default_margin
from difflens.diffs.quality.trials import latency_metric
from difflens.stats.decision import Direction
from difflens.stats.quantiles import quantile

from .records.snapshots import DifferentialDebuggingConfig, ModelSnapshot

ACCURACY, LOSS, LATENCY = "val_accuracy", "val_loss", "inference_latency_ms"
MEMORY, SIZE = "memory_usage_mb", "model_size_mb"
TAIL = 0.95  # the quantile of measured latencies that is compared beside their median
LARGEST = 1e60  # no metric is larger, and its fourth power is still a number
TINY = 1e-30  # what is smaller is zero, and a percent of it has no meaning
_WIDEST = 0.04  # the drop of accuracy that a sensitivity of zero still lets pass
_ROUNDED = 5e-3  # of its size: how far a recorded number may be off its examples' mean


class Kind(NamedTuple):
    """What is fixed of a metric that every snapshot has a field for."""

    direction: Direction
    unit: str = ""
    depends_on: Literal["data", "hardware", "model"] = "data"  # on what its value depends


BUILTIN: dict[str, Kind] = {
    "train_accuracy": Kind("higher"),
    "val_accuracy": Kind("higher"),
    "test_accuracy": Kind("higher"),
    "train_loss": Kind("lower"),
    "val_loss": Kind("lower"),
    "test_loss": Kind("lower"),
    "inference_latency_ms": Kind("lower", "ms", depends_on="hardware"),
    "memory_usage_mb": Kind("lower", "MB", depends_on="hardware"),
    "model_size_mb": Kind("lower", "MB", depends_on="model"),
    "flops": Kind("lower", "FLOP", depends_on="model"),
    "training_time_s": Kind("lower", "s", depends_on="hardware"),
}


class Known(NamedTuple):
    """A metric's value, what it was read from, and what to know of that."""

    value: float
    source: str = "scalars"
    note: str = ""


class Rule(NamedTuple):
    """How a metric is judged; `why` says where its margin comes from."""

    direction: Direction | None
    margin: float | None
    unit: str
    why: str
    threshold: float | None = None

    @property
    def as_written(self) -> MetricRule:
        """It as a policy says it."""
        return MetricRule(self.direction, self.margin, self.threshold)


def known(snapshot: ModelSnapshot) -> dict[str, Known]:
    """List every metric of a snapshot: the built-in ones first, then all others by name."""
    snapshot = drop_huge_samples(snapshot)
    found = {name: Known(value) for name, value in single_numbers(snapshot).items()}
    for metric, (values, source) in _sampled(snapshot).items():
        mean = sum(values) / len(values)
        found[metric] = Known(mean, source, _note(found.get(metric), mean, values, source))
    samples = [each.ms for each in snapshot.latency_samples]
    if samples:
        middle = quantile(samples, 0.5).value
        note = _note(found.get(LATENCY), middle, samples, "latency")
        found[LATENCY] = Known(middle, "latency", note)
        found[latency_metric(TAIL)] = Known(quantile(samples, TAIL).value, "latency")
    return {name: found[name] for name in ordered(found)}


def single_numbers(snapshot: ModelSnapshot) -> dict[str, float]:
    """List the metrics that were recorded as single finite numbers, none of them huge."""
    metrics = snapshot.metrics
    built_in = {name: getattr(metrics, name) for name in BUILTIN}
    found = {name: float(value) for name, value in built_in.items() if value is not None}
    custom = metrics.custom_metrics.items()
    found |= {name: float(value) for name, value in custom if not isinstance(value, str)}
    return {name: value for name, value in found.items() if abs(value) <= LARGEST}


def drop_huge_samples(snapshot: ModelSnapshot) -> ModelSnapshot:
    """Leave out samples so large that their squares overflow: no test could be made of them."""
    evals = tuple(each for each in snapshot.evals if abs(each.score) <= LARGEST)
    latency = tuple(each for each in snapshot.latency_samples if each.ms <= LARGEST)
    seeds = {
        name: values
        for name, values in snapshot.replicates.items()
        if all(abs(value) <= LARGEST for value in values)
    }
    kept = len(evals), len(latency), len(seeds)
    if kept == (len(snapshot.evals), len(snapshot.latency_samples), len(snapshot.replicates)):
        return snapshot
    return msgspec.structs.replace(snapshot, evals=evals, latency_samples=latency, replicates=seeds)


def ordered(names: Iterable[str]) -> list[str]:
    """Put the built-in metrics first, in their order, and the others by name."""
    every = set(names)
    return [*(name for name in BUILTIN if name in every), *sorted(every - set(BUILTIN))]


def _sampled(snapshot: ModelSnapshot) -> dict[str, tuple[list[float], str]]:
    """Gather the samples of each metric; seeds go before examples of one checkpoint."""
    found: dict[str, tuple[list[float], str]] = {}
    for example in snapshot.evals:
        found.setdefault(example.metric, ([], "evals"))[0].append(example.score)
    seeds = {name: (list(values), "seeds") for name, values in snapshot.replicates.items()}
    return found | {name: each for name, each in seeds.items() if each[0]}


def _note(recorded: Known | None, value: float, samples: list[float], source: str) -> str:
    """Say where a recorded number cannot be of these samples; one seed may well be off the mean."""
    if recorded is None:
        return ""
    fits = min(samples) <= recorded.value <= max(samples)
    if source == "evals":
        fits = isclose(recorded.value, value, rel_tol=_ROUNDED)
    said = f"recorded as {recorded.value:.6g}, but {len(samples)} samples say {value:.6g}"
    return "" if fits else said


def rules(
    references: Mapping[str, float], config: DifferentialDebuggingConfig, policy: Policy
) -> dict[str, Rule]:
    """Say how each metric is judged; margins that are relative are taken of its reference."""
    return {name: _rule(name, value, config, policy) for name, value in references.items()}


def _rule(name: str, reference: float, config: DifferentialDebuggingConfig, policy: Policy) -> Rule:
    """Take the policy's word, then the configuration's, then what the metric's kind allows."""
    said = [each[name] for each in (policy.metrics, config.metrics) if name in each]
    kind = BUILTIN.get(name)
    way = next((each.direction for each in said if each.direction), None)
    way = way or (kind.direction if kind else better(name, policy).direction)
    unit = kind.unit if kind else "ms" if name.endswith("_ms") else ""
    limit = next((each.threshold for each in said if each.threshold is not None), None)
    margin = next((each.margin for each in said if each.margin is not None), None)
    if margin is not None:
        return Rule(way, margin, unit, "set by the user", limit)
    if way is None:
        return Rule(None, None, unit, "which way is better is not known", limit)
    margin, why = _margin(name, reference, way, config, policy)
    return Rule(way, margin, unit, why, limit)


def _margin(
    name: str, reference: float, way: Direction, config: DifferentialDebuggingConfig, policy: Policy
) -> tuple[float, str]:
    """Choose the default margin, and say where it comes from; a policy goes before a config."""
    points = _WIDEST - _WIDEST * config.regression_sensitivity
    share = policy.threshold(SECTION, "share_margin", points)
    part = policy.threshold(SECTION, "relative_margin", config.performance_delta_threshold / 100)
    margin = default_margin(name, reference, way, share, part)
    if margin == share:
        told = "0.04·(1 - regression_sensitivity)" if share == points else "share_margin"
        return margin, f"{told} = {share:.4g}"
    said = f"performance_delta_threshold, {100 * part:g} % of"
    return margin, f"{said} {abs(reference):.4g}"


def relative(reference: float, value: float) -> float | None:
    """Return (value - reference)/reference where zero means none of it, else None.

    Below zero a ratio has no meaning: a log-likelihood of -2 is not half of one of -4.

    >>> relative(4.0, 5.0), relative(0.0, 1.0), relative(-4.0, -2.0)
    (0.25, None, None)
    """
    return (value - reference) / reference if reference > TINY and value >= 0 else None


def depends_on(name: str) -> Literal["data", "hardware", "model"]:
    """Say what a metric's value depends on beside the weights: two may differ for that alone."""
    kind = BUILTIN.get(name)
    if kind:
        return kind.depends_on
    return "hardware" if name == latency_metric(TAIL) else "data"
