"""What two snapshots record differently: settings, architecture, tensors; what that suggests.

Tensors are compared by headers and fingerprints alone. Differences are observed together with a
metric; none of them is shown to be a cause.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from math import isclose
from typing import Any

from .records.comparisons import ArchitectureChange, ConfigChange, TensorChanges
from .records.snapshots import (
    ArchitectureInfo,
    Evaluation,
    ModelSnapshot,
    TensorSummary,
    TrainingConfig,
    WeightsSummary,
)

SAME = 1e-9  # of their size: how far two floats may be apart and still be one setting
_TRAINING = ("learning_rate", "batch_size", "epochs", "optimizer", "lr_schedule")
_TITLES = {"parameter_count": "Parameter Count", "layer_count": "Layer Count"}
FIELDS = tuple(name for name in ArchitectureInfo.__struct_fields__ if name != "missing")


def config_changes(left: TrainingConfig, right: TrainingConfig) -> tuple[ConfigChange, ...]:
    """List the settings of training that were added, removed or changed."""
    before, after = _training(left), _training(right)
    return tuple(_changes(before, after))


def metadata_changes(left: ModelSnapshot, right: ModelSnapshot) -> tuple[ConfigChange, ...]:
    """List what else was recorded differently: the commit, the evaluation, the user's notes."""
    return tuple(_changes(_metadata(left), _metadata(right)))


def _training(config: TrainingConfig) -> dict[str, Any]:
    named = {name: getattr(config, name) for name in _TRAINING}
    nested = {"regularization": config.regularization, **config.settings}
    return dict(_flat({name: value for name, value in named.items() if value is not None} | nested))


def _metadata(snapshot: ModelSnapshot) -> dict[str, Any]:
    evaluation = {
        f"evaluation.{name}": getattr(snapshot.evaluation, name)
        for name in Evaluation.__struct_fields__
    }
    found = {"commit_hash": snapshot.commit_hash, **evaluation}
    return {name: value for name, value in found.items() if value is not None} | {
        f"metadata.{key}": value for key, value in snapshot.metadata.items()
    }


def _flat(settings: Mapping[str, Any], prefix: str = "") -> Iterator[tuple[str, Any]]:
    """Yield nested settings by their path: `optimizer.betas.0`."""
    for key, value in settings.items():
        yield from _flat_value(f"{prefix}{key}", value)


def _flat_value(path: str, value: Any) -> Iterator[tuple[str, Any]]:
    if isinstance(value, Mapping):
        yield from _flat(value, f"{path}.")
    elif isinstance(value, (list, tuple)):
        for place, each in enumerate(value):
            yield from _flat_value(f"{path}.{place}", each)
    else:
        yield path, value


def _changes(before: Mapping[str, Any], after: Mapping[str, Any]) -> Iterator[ConfigChange]:
    for name in dict.fromkeys([*before, *after]):
        left, right = before.get(name), after.get(name)
        if name not in before:
            yield ConfigChange(parameter=name, new_value=_text(right), kind="added")
        elif name not in after:
            yield ConfigChange(parameter=name, old_value=_text(left), kind="removed")
        elif not _is_same(left, right):
            yield ConfigChange(
                parameter=name,
                old_value=_text(left),
                new_value=_text(right),
                impact=_impact(name, left, right),
            )


def _is_same(left: Any, right: Any) -> bool:
    if isinstance(left, bool) or isinstance(right, bool):
        return left is right
    if isinstance(left, (int, float)) and isinstance(right, (int, float)):
        return isclose(left, right, rel_tol=SAME, abs_tol=0.0)
    return bool(left == right)


def _text(value: Any) -> str:
    """Write a value as JSON would, without quotes around text."""
    if value is None or isinstance(value, bool):
        return str(value).lower() if value is not None else "null"
    return repr(value) if isinstance(value, float) else str(value)


def _impact(name: str, left: Any, right: Any) -> str | None:
    """Say what arithmetic alone says; nothing else is known to follow from a setting."""
    if name not in {"learning_rate", "batch_size", "epochs"} or not left:
        return None
    ratio = f"{right / left:.4g}"
    return {
        "learning_rate": f"each step is {ratio} times as long for the same gradient",
        "batch_size": f"the variance of the gradient's noise is {_inverse(left, right)} times",
        "epochs": f"every example is seen {ratio} times as often",
    }[name]


def _inverse(left: float, right: float) -> str:
    return f"{left / right:.4g}" if right else "infinitely many"


Tensors = Mapping[str, TensorSummary]


def tensor_changes(left: WeightsSummary, right: WeightsSummary) -> TensorChanges | None:
    """Compare the tensors of two snapshots; None if one of them lists no tensors."""
    before, after = ({each.name: each for each in side.tensors} for side in (left, right))
    if not before or not after:
        return None
    renamed = _renamed(before, after)
    shared = [name for name in before if name in after]
    told = [name for name in shared if _is_fingerprinted(before[name], after[name])]
    same = [name for name in told if before[name].sha256 == after[name].sha256]
    alike = [name for name in shared if before[name].shape == after[name].shape]
    sets = [{(each.name, each.shape) for each in side.values()} for side in (before, after)]
    return TensorChanges(
        added=tuple(n for n in after if n not in before and n not in set(renamed.values())),
        removed=tuple(n for n in before if n not in after and n not in renamed),
        reshaped=tuple(n for n in shared if before[n].shape != after[n].shape),
        recast=tuple(n for n in alike if before[n].dtype != after[n].dtype),
        renamed=renamed,
        changed=len(told) - len(same) if told or not shared else None,
        identical=len(same) + len(renamed) if told or not shared else None,
        jaccard=len(sets[0] & sets[1]) / len(sets[0] | sets[1]),
    )


def changed_names(left: WeightsSummary, right: WeightsSummary) -> list[str]:
    """List the tensors of one shape and type on both sides whose fingerprints differ."""
    before, after = ({each.name: each for each in side.tensors} for side in (left, right))
    return [
        name
        for name in before
        if name in after
        and _is_fingerprinted(before[name], after[name])
        and before[name].sha256 != after[name].sha256
    ]


def _is_fingerprinted(left: TensorSummary, right: TensorSummary) -> bool:
    """Can their bytes be compared: one shape, one type, both hashed?"""
    alike = left.shape == right.shape and left.dtype == right.dtype
    return alike and left.sha256 is not None and right.sha256 is not None


def _renamed(before: Tensors, after: Tensors) -> dict[str, str]:
    """Match what is on one side only by its bytes, where only one tensor can be meant."""
    gone = _by_content(each for each in before.values() if each.name not in after)
    come = _by_content(each for each in after.values() if each.name not in before)
    return {
        names[0]: come[content][0]
        for content, names in gone.items()
        if len(names) == 1 and len(come.get(content, ())) == 1
    }


def _by_content(tensors: Iterable[TensorSummary]) -> dict[tuple[object, ...], list[str]]:
    found: dict[tuple[object, ...], list[str]] = defaultdict(list)
    for each in tensors:
        if each.sha256 is not None:
            found[each.dtype, each.shape, each.sha256].append(each.name)
    return found


def architecture_changes(left: ModelSnapshot, right: ModelSnapshot) -> Iterator[ArchitectureChange]:
    """Yield every field that differs, then what became of the tensors by name."""
    for field in FIELDS:
        before, after = (getattr(side.architecture, field) for side in (left, right))
        if before == after or (before is None and after is None):
            continue
        yield ArchitectureChange(
            change_type=_TITLES.get(field, field.replace("_", " ").title()),
            description=f"{field} from {_shown(before)} to {_shown(after)}",
            impact=_size_impact(field, before, after),
            field=field,
            left=before,
            right=after,
        )
    changes = tensor_changes(left.weights_summary, right.weights_summary)
    for kind in ("added", "removed", "reshaped", "recast", "renamed"):
        names = list(getattr(changes, kind)) if changes else []
        if names:
            some = ", ".join(names[:3]) + (f" and {len(names) - 3} more" if len(names) > 3 else "")
            yield ArchitectureChange(
                change_type=f"Tensors {kind.title()}",
                description=f"{len(names)} tensors {kind}: {some}",
                field=f"tensors.{kind}",
                right=len(names),
            )


def _shown(value: int | str | None) -> str:
    return "not known" if value is None else str(value)


def _size_impact(field: str, before: int | str | None, after: int | str | None) -> str | None:
    """Say what arithmetic alone says of it."""
    if field != "parameter_count" or not isinstance(before, int) or not isinstance(after, int):
        return None
    return f"{after / before:.4g} times as many weights to hold and to read" if before else None


LABEL = "observed together, not shown to be the cause"
_UNDONE = "hypothesis to test"


def observed(left: ModelSnapshot, right: ModelSnapshot) -> tuple[str, ...]:
    """List every difference between the two snapshots beside their metrics."""
    return tuple(_observed(left, right))


def _observed(left: ModelSnapshot, right: ModelSnapshot) -> Iterator[str]:
    for setting in config_changes(left.training_config, right.training_config):
        yield _sentence("training", setting)
    for change in architecture_changes(left, right):
        yield f"architecture: {change.description}"
    tensors = tensor_changes(left.weights_summary, right.weights_summary)
    if tensors is not None and tensors.changed:
        yield f"weights: {tensors.changed} tensors changed, {tensors.identical} did not"
    for note in metadata_changes(left, right):
        yield _sentence("recorded", note)


def _sentence(what: str, change: ConfigChange) -> str:
    before = "not set" if change.old_value is None else change.old_value
    after = "not set" if change.new_value is None else change.new_value
    return f"{what}: {change.parameter} {before} -> {after}"


def causes(changes: tuple[str, ...]) -> tuple[str, ...]:
    """Label observed changes as what they are."""
    return tuple(f"{each} ({LABEL})" for each in changes)


def fixes(left: ModelSnapshot, right: ModelSnapshot) -> tuple[str, ...]:
    """Propose to undo settings that changed, one at a time, and to measure again."""
    return tuple(
        f"{_UNDONE}: set {change.parameter} back to"
        f" {'what it was' if change.old_value is None else change.old_value} and measure again"
        for change in config_changes(left.training_config, right.training_config)
        if change.kind != "added"
    ) + tuple(
        f"{_UNDONE}: leave out {change.parameter} and measure again"
        for change in config_changes(left.training_config, right.training_config)
        if change.kind == "added"
    )
