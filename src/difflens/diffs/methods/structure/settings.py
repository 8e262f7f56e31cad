"""Changes beside the weights: settings that the function depends on, tokens, and training state."""

from __future__ import annotations

from difflens.core.escape import for_terminal
from difflens.core.records import MetadataChange
from difflens.models.anatomy.places import listed

from ...answer import Answer
from ...diff import Diff
from ...evidence.records import Evidence
from ..changes.explained import Explained
from ..representations import readable

_SHOWN = 3
_LONGEST = 40  # characters of a token
_UNREADABLE = "cannot be compared"


def changed_settings(diff: Diff, evidence: Evidence, answer: Answer) -> list[Explained]:  # noqa: ARG001
    """List the settings that differ and change what the model computes; tensors tell the rest."""
    changes = _of_kind(diff, "config")
    if not changes:
        return []
    keys = [each.key.partition(": ")[2] or each.key for each in changes]
    values = {key: [each.left, each.right] for key, each in zip(keys, changes, strict=True)}
    shown = [each.text.removeprefix("config.json ") for each in changes[:_SHOWN]]
    text = f"settings changed: {listed(shown, len(changes))}"
    numbers = {"keys": keys, "values": values}
    return [Explained("config_changed", [], len(diff.pairs), "config", None, numbers, text)]


def changed_tokens(diff: Diff, evidence: Evidence, answer: Answer) -> list[Explained]:  # noqa: ARG001
    """List what differs between the two tokenizers: tokens by name, ids, merges, rules."""
    changes = _of_kind(diff, "tokenizer")
    lines = [each.text for each in changes]
    keys = [each.key.partition(": ")[2] or each.key for each in changes]
    if not changes:
        lines, keys = _handed_tokens(evidence)
    if not lines:
        return []
    text = f"tokenizer changed: {listed(lines[:_SHOWN], len(lines))}"
    numbers = {"keys": keys}
    return [Explained("tokens_changed", [], len(diff.pairs), "tokenizer", None, numbers, text)]


def changed_state(diff: Diff, evidence: Evidence, answer: Answer) -> list[Explained]:  # noqa: ARG001
    """List the optimizers, schedulers and averages beside the weights that differ."""
    parts = [part for part in diff.state if part.moved]
    if not parts:
        return []
    shown = [f"{part.name} ({part.text})" for part in parts[:_SHOWN]]
    text = f"beside the weights: {listed(shown, len(parts))}"
    numbers = {part.name: {"kind": part.kind, **part.numbers} for part in parts}
    return [Explained("state_changed", [], len(diff.pairs), "state", None, numbers, text)]


def _of_kind(diff: Diff, kind: str) -> list[MetadataChange]:
    """Return the changes of one kind; a file that could not be read has shown no change."""
    found = [each for each in diff.metadata if each.kind == kind]
    return [each for each in found if each.text and _UNREADABLE not in each.text]


def _handed_tokens(evidence: Evidence) -> tuple[list[str], list[str]]:
    """Compare the tokens that were handed in beside the models."""
    left, right = evidence.left.tokens, evidence.right.tokens
    if left is None or right is None:
        return [], []
    lines, keys = [], []
    for key, one, other in (("tokens added", right, left), ("tokens removed", left, right)):
        tokens = sorted((token for token in one if token not in other), key=one.__getitem__)
        if tokens:
            shown = [for_terminal(readable(each), _LONGEST) for each in tokens[:_SHOWN]]
            names = listed(shown, len(tokens))
            lines.append(f"{len(tokens):,} {key} ({names})")
            keys.append(key)
    moved = sum(token in right and right[token] != row for token, row in left.items())
    if moved:
        lines.append(f"{moved:,} ids moved")
        keys.append("ids moved")
    return lines, keys
