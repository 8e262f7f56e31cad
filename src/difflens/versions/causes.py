"""What changed together with a metric: observed differences, none of them shown to be a cause."""

from __future__ import annotations

from collections.abc import Iterator

from ..comparisons import ConfigChange
from ..snapshots import ModelSnapshot
from .settings_diff import config_changes, metadata_changes
from .tensors import tensor_changes
from .version_diff import architecture_changes

LABEL = "observed together, not shown to be the cause"
_UNDONE = "hypothesis to test"


def observed(left: ModelSnapshot, right: ModelSnapshot) -> tuple[str, ...]:
    """List every difference between the two snapshots beside their metrics."""
    return tuple(_observed(left, right))


def _observed(left: ModelSnapshot, right: ModelSnapshot) -> Iterator[str]:
    for setting in config_changes(left.training_config, right.training_config):
        yield _told("training", setting)
    for change in architecture_changes(left, right):
        yield f"architecture: {change.description}"
    tensors = tensor_changes(left.weights_summary, right.weights_summary)
    if tensors is not None and tensors.changed:
        yield f"weights: {tensors.changed} tensors changed, {tensors.identical} did not"
    for note in metadata_changes(left, right):
        yield _told("recorded", note)


def _told(what: str, change: ConfigChange) -> str:
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
