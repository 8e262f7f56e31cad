"""Which of two kindred models came first, as far as what lies beside them says it."""

from __future__ import annotations

import json
from typing import NamedTuple

from difflens.models.anatomy.roles import role

from ..diff import Diff
from ..evidence.records import Evidence

_PARENTS = (
    "general.base_model.0.repo_url",
    "general.base_model.0.name",
    "config.json: _name_or_path",
    "config.json: base_model_name_or_path",
    "base_model",
    "general.source.repo_url",
)


class Direction(NamedTuple):
    """Who came first, and what says so."""

    word: str  # left_to_right, right_to_left
    source: str


def direction(diff: Diff, evidence: Evidence) -> Direction | None:
    """Say which way, in order of trust: the base, the steps, the metadata, the vocabulary."""
    return _by_base(evidence) or _by_steps(evidence) or _by_metadata(diff) or _by_vocabulary(diff)


def _by_base(evidence: Evidence) -> Direction | None:
    if not evidence.base:
        return None
    same = [all(delta.kind == "identical" for delta in side.deltas) for side in evidence.base]
    if same[0] == same[1]:
        return None
    word = "left_to_right" if same[0] else "right_to_left"
    return Direction(word, f"the base is the {'left' if same[0] else 'right'} model, bit for bit")


def _by_steps(evidence: Evidence) -> Direction | None:
    left, right = evidence.left.step, evidence.right.step
    if left is None or right is None or left == right:
        return None
    word = "left_to_right" if left < right else "right_to_left"
    return Direction(word, f"training steps {left} and {right}")


def _by_metadata(diff: Diff) -> Direction | None:
    """Does one side name the other's file or folder as what it was made from?"""
    owners = {"left": diff.left.path, "right": diff.right.path}
    for side, other in (("right", "left"), ("left", "right")):
        own = owners[other].rstrip("/").rpartition("/")[2].rpartition(".")[0] or owners[other]
        for key in _PARENTS:
            parent = _normalized(diff.described[side].get(key, ""))
            if own and parent and parent.rstrip("/").rpartition("/")[2] == own:
                word = "left_to_right" if side == "right" else "right_to_left"
                return Direction(word, f"{key} of the {side} model names the {other} one")
    return None


def _normalized(text: str) -> str:
    try:
        value = json.loads(text)
    except ValueError:
        return text
    return value if isinstance(value, str) else ""


def _by_vocabulary(diff: Diff) -> Direction | None:
    """A vocabulary grows when tokens are added to a model that has been trained."""
    for delta in diff.deltas:
        left, right = delta.pair.left, delta.pair.right
        if delta.kind != "reshaped" or role(delta.name) != "embedding" or not (left and right):
            continue
        if len(left.shape) == len(right.shape) == 2 and left.shape[1] == right.shape[1]:
            word = "left_to_right" if left.shape[0] < right.shape[0] else "right_to_left"
            rows = f"{left.shape[0]} and {right.shape[0]}"
            return Direction(word, f"vocabularies of {rows} rows: they grow, as a rule")
    return None
