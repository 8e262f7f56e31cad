"""Every setting that differs between two versions: training, evaluation, notes, however nested."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from math import isclose
from typing import Any

from ..comparisons import ConfigChange
from ..snapshots import Evaluation, ModelSnapshot, TrainingConfig

SAME = 1e-9  # of their size: how far two floats may be apart and still be one setting
_TRAINING = ("learning_rate", "batch_size", "epochs", "optimizer", "lr_schedule")


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
                parameter=name, old_value=_text(left), new_value=_text(right),
                impact=_impact(name, left, right),
            )  # fmt: skip


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
