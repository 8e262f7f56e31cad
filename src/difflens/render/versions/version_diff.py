"""The layout of `version-diff`: metrics, build, settings and weights of two versions."""

from __future__ import annotations

from collections import Counter

from difflens.versions.records.comparisons import (
    ConfigChange,
    LayerChange,
    MetricDelta,
    TensorChanges,
    VersionDiff,
    WeightChangesSummary,
)

from ..document.document import Document, Line, Mood, Name, Part, part, table, unknown
from ..document.numbers import plural, scientific
from ..document.values import interval, moment, moved, share, signed, value

_MOST_NAMES = 8
_BASIS = {
    "elements": "read from both weight files, element by element",
    "hashes": "from fingerprints alone: which tensors changed, not how far",
    "summary": "from percentiles alone: blind to where a weight is",
    "none": "nothing is known of the weights",
}


def version_diff(result: VersionDiff) -> Document:
    """Lay out what changed between two versions."""
    before = result.from_model or result.from_version
    after = result.to_model or result.to_version
    deltas = result.performance_delta.deltas if result.performance_delta else {}
    counted: Counter[str] = Counter(each.change for each in deltas.values())
    return Document(
        title="version-diff",
        opening=f"version-diff: from {before} (left) to {after} (right)",
        verdict=_verdict(result, counted),
        word="Changes" if _changes(result) else "No change",
        mood=_mood(counted),
        parts=(
            *part(
                "Metrics",
                rows=table(
                    (
                        "metric",
                        "left -> right",
                        "difference",
                        "relative",
                        "interval",
                        "margin",
                        "change",
                    ),
                    map(_metric, deltas.values()),
                ),
            ),
            *part("Notes", [Line(each.note, each.metric) for each in deltas.values() if each.note]),
            *part(
                "How it is built",
                [
                    Line(each.description, each.change_type, "~")
                    for each in result.architecture_changes
                ],
            ),
            *part("Settings", [_setting(each) for each in result.config_changes]),
            *part("Metadata", [_setting(each) for each in result.metadata_changes]),
            *part("Beside them", [Line(_fact(fact), name) for name, fact in result.facts.items()]),
            *_weights(result.weight_changes),
            *unknown(
                result.performance_delta.missing if result.performance_delta else (),
                result.weight_changes.missing if result.weight_changes else (),
                result.missing,
            ),
        ),
        tiles=(
            (str(counted["improved"]), "metrics improved"),
            (str(counted["worse"]), "metrics worse"),
            (str(len(result.config_changes)), "settings changed"),
            (_changed_tensors(result), "tensors changed"),
        ),
        warnings=result.warnings,
        footer=f"made {moment(result.timestamp)} UTC",
    )


def _verdict(result: VersionDiff, counted: Counter[str]) -> str:
    words = ("improved", "worse", "changed", "unchanged", "inconclusive", "not_testable")
    metrics = [f"{counted[word]} {word.replace('_', ' ')}" for word in words if counted[word]]
    build = plural(len(result.architecture_changes), "change")
    said = [
        f"metrics: {', '.join(metrics)}" if metrics else "no metric in both",
        f"build: {build}" if result.architecture_changes else "built the same",
        f"settings: {len(result.config_changes)} changed"
        if result.config_changes
        else "same settings",
        f"tensors changed: {_changed_tensors(result)}",
    ]
    return "; ".join(said)


def _changes(result: VersionDiff) -> bool:
    deltas = result.performance_delta.deltas.values() if result.performance_delta else ()
    moves = any(each.difference for each in deltas)
    told = (result.architecture_changes, result.config_changes, result.metadata_changes)
    return moves or any(told) or _changed_tensors(result) not in ("0", "unknown")


def _mood(counted: Counter[str]) -> Mood:
    if counted["worse"]:
        return "bad"
    return "good" if counted["improved"] else "plain"


def _changed_tensors(result: VersionDiff) -> str:
    weights = result.weight_changes
    if weights is None:
        return "unknown"
    if weights.tensors is not None and weights.tensors.changed is not None:
        return value(weights.tensors.changed)
    if weights.basis == "elements":
        return value(sum(each.kind != "identical" for each in weights.layers))
    return "unknown"


def _metric(delta: MetricDelta) -> tuple[str, ...]:
    return (
        Name(delta.metric),
        moved(delta.left, delta.right),
        signed(delta.difference),
        share(delta.relative),
        interval(delta.interval),
        "" if delta.margin is None else value(delta.margin),
        delta.change.replace("_", " "),
    )


def _setting(change: ConfigChange) -> Line:
    sides = ("absent" if side is None else side for side in (change.old_value, change.new_value))
    said = " -> ".join(sides)
    return Line(f"{said} ({change.impact})" if change.impact else said, change.parameter, "~")


def _fact(fact: object) -> str:
    if isinstance(fact, list | tuple):
        return " -> ".join("unknown" if each is None else str(each) for each in fact)
    return str(fact)


def _weights(found: WeightChangesSummary | None) -> list[Part]:
    if found is None:
        return []
    figures = {
        "mean |change|": found.avg_magnitude,
        "largest change": found.max_change,
        "share beyond storage rounding": found.significant_change_ratio,
        "relative L2": found.relative_l2,
        "cosine": found.cosine,
        "distance of the distributions": found.distribution_distance,
    }
    known = [Line(value(figure), name) for name, figure in figures.items() if figure is not None]
    lines = [Line(_BASIS[found.basis]), *known, *_tensors(found.tensors)]
    rows = table(
        ("tensor", "kind", "relative L2", "cosine", "max |change|", "changed"),
        map(_layer, found.layers),
    )
    return part("Weights", lines, rows)


def _tensors(found: TensorChanges | None) -> list[Line]:
    if found is None:
        return []
    kinds: dict[str, tuple[str, ...]] = {
        "added": found.added,
        "removed": found.removed,
        "another shape": found.reshaped,
        "another dtype": found.recast,
        "renamed": tuple(f"{left} -> {right}" for left, right in found.renamed.items()),
    }
    lines = [
        Line(_some(names), f"{len(names)} {kind}", "!") for kind, names in kinds.items() if names
    ]
    if found.identical is not None:
        lines.append(Line(f"{found.identical} tensors have the same bytes"))
    return lines


def _some(names: tuple[str, ...]) -> str:
    rest = len(names) - _MOST_NAMES
    shown = ", ".join(names[:_MOST_NAMES])
    return f"{shown} and {rest} more" if rest > 0 else shown


def _layer(layer: LayerChange) -> tuple[str, ...]:
    changed = layer.changed_fraction
    return (
        Name(layer.name),
        layer.kind,
        scientific(layer.relative_l2),
        value(layer.cosine),
        scientific(layer.max_abs),
        "unknown" if changed is None else f"{100 * changed:.3g}%",
    )
