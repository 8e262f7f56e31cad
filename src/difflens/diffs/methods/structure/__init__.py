"""Changes of structure: functions that look at a diff and list what they explain of it."""

from __future__ import annotations

from collections.abc import Callable

from ...answer import Answer
from ...diff import Diff
from ...evidence.records import Evidence
from ..changes.explained import Explained
from .adapters import adapters
from .batch_norms import folded_batch_norms
from .heads import replaced_heads
from .layers import moved_layers
from .leftovers import leftovers
from .pruning import pruned_structurally
from .rescaling import moved_factors
from .rotation import rotated_stream
from .settings import changed_settings, changed_state, changed_tokens
from .turned_heads import turned_heads
from .vocabulary import resized_vocabulary
from .weight_norms import folded_weight_norms

Finder = Callable[[Diff, Evidence, Answer], list[Explained]]


def _merged_models(diff: Diff, evidence: Evidence, answer: Answer) -> list[Explained]:
    if evidence.base is None and evidence.trajectory is None:
        return []
    from .merges import merged_models  # curves and elements of several models

    return merged_models(diff, evidence, answer)


# What explains more of a model comes first; a tensor belongs to the first that explains it.
_FINDERS: tuple[Finder, ...] = (
    adapters,
    _merged_models,
    folded_batch_norms,  # a norm that is gone is no layer that was removed
    moved_layers,
    resized_vocabulary,
    rotated_stream,
    turned_heads,
    replaced_heads,
    pruned_structurally,
    folded_weight_norms,
    moved_factors,
)


def changes_of_structure(diff: Diff, evidence: Evidence, answer: Answer) -> list[Explained]:
    """List what changed in the structure, then what is on one side only, then the settings."""
    import numpy as np

    records: list[Explained] = []
    covered: set[str] = set()
    with np.errstate(all="ignore"):  # garbage overflows; what is not finite explains nothing
        for finder in _FINDERS:
            found = [
                each for each in finder(diff, evidence, answer) if covered.isdisjoint(each.names)
            ]
            records += found
            covered.update(name for each in found for name in each.names)
        records += leftovers(diff, records)
    for finder in (changed_settings, changed_tokens, changed_state):
        records += finder(diff, evidence, answer)
    return records


FINDERS: tuple[Finder, ...] = (changes_of_structure,)
