"""What is put back together, and in which order: units of coupled tensors, the suspicious first.

A tensor is suspicious if an analysis says so, or if it moved much farther than its peers did.
Tensors that were changed together are put back together: layers that changed places, heads or
neurons in another order, tied tensors. Half of such a change would break any model.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable, Iterator
from math import exp, inf, isfinite, log
from statistics import median
from typing import Any, NamedTuple

from difflens.core.errors import DifflensError
from difflens.core.natural_order import natural_key
from difflens.core.records import Delta
from difflens.diffs.analyses import analyse
from difflens.diffs.diff import Diff
from difflens.diffs.methods.anomalies.anomaly import SEVERITIES
from difflens.measure.scan import Scan
from difflens.models.anatomy.roles import block, is_buffer, layer, role
from difflens.stats.samples import robust_deviation

from .changes import Change, Changes

_NUMBER = re.compile("[0-9]+")
_PEERS = 3  # fewer tell nothing
_FAR = 3.5  # robust z from which a tensor moved unlike its peers
_BESIDE = 2.0  # and from which it did so if two of its neighbours are beyond
_FLOOR = 0.25  # of ln: less spread than this among peers is chance

# Kinds of changes that keep what the model computes, if they are complete.
_INNOCENT = frozenset(
    {"permuted", "rotated", "rescaled_channels", "norms_folded", "weight_norm_folded"}
)
# Kinds that are one thing done to several tensors.
_TOGETHER = frozenset({"layers_swapped", "layers_reordered", "layers_duplicated", "exchanged"})
_NAMED = 4  # tensors up to which the words of a change describe each of them
_ORDINARY = frozenset({"trained", "noise", "state_changed", "low_rank", *_INNOCENT})


class Unit(NamedTuple):
    """Tensors that are put back together; `words` say what kind of change it was.

    `score` orders units: how bad what an analysis found is, then how far it moved beyond its peers.
    """

    names: tuple[str, ...]
    score: tuple[float, float]
    words: str = ""
    is_one: bool = False  # one thing was done to all of them: it is not taken apart

    @property
    def stands_out(self) -> bool:
        """Would chance hardly make it so suspicious?"""
        return self.score[0] > 0 or self.score[1] > _FAR


class Suspicion(NamedTuple):
    """How suspicious a tensor is: what was found, how far it moved, and its change in words."""

    severity: float = 0.0
    far: float = 0.0
    words: str = ""


def make_units(diff: Diff, changes: Changes) -> list[Unit]:
    """Group what differs into units, the most suspicious first."""
    names = _names(diff, changes)
    records = _records(diff, names)
    suspicions = _suspicions(diff, changes, names, records)
    groups = [*_together(records), *_tied(changes), *_far_together(suspicions)]
    units: list[Unit] = []
    used: set[str] = set()
    for group in groups:
        members = tuple(name for name in group.names if name not in used)
        if len(members) > 1:
            used.update(members)
            units.append(_scored(group._replace(names=members), suspicions, records))
    for name in changes:
        if name not in used:
            each = suspicions[name]
            units.append(Unit((name,), (each.severity, each.far), each.words))
    return sorted(units, key=lambda unit: (-unit.score[0], -unit.score[1]))


class Deed(NamedTuple):
    """One thing that was done to some tensors."""

    kind: str
    names: frozenset[str]
    words: str


class Group(NamedTuple):
    """Tensors that belong together, and why."""

    names: tuple[str, ...]
    words: str = ""
    is_one: bool = False


def _scored(group: Group, suspicions: dict[str, Suspicion], records: list[Deed]) -> Unit:
    """Judge a group by its worst tensor; a new order or scale throughout is innocent."""
    severity = max(suspicions[name].severity for name in group.names)
    far = max(suspicions[name].far for name in group.names)
    words = group.words or next((w for n in group.names if (w := suspicions[n].words)), "")
    if group.is_one:
        severity = max(severity, float(len(SEVERITIES)) * (far > _FAR))
    elif any(each.kind in _INNOCENT and each.names.issuperset(group.names) for each in records):
        severity, far = 0.0, _FAR
    return Unit(group.names, (severity, far), words, group.is_one)


def _names(diff: Diff, changes: Changes) -> dict[str, str]:
    """Map the names of both sides, as the diff has them, to those of the changes."""
    names = {}
    for pair in diff.pairs:
        both = [info.name for info in (pair.right, pair.left) if info]
        known = next((name for name in both if name in changes), None)
        if known is not None:
            names.update(dict.fromkeys(both, known))
    return names


def _records(diff: Diff, names: dict[str, str]) -> list[Deed]:
    """Ask what was done to which tensors; nothing where that cannot be said."""
    try:
        found = analyse("change_summary", diff).fields.get("changes") or ()
    except DifflensError:
        return []
    return [
        Deed(
            each["kind"],
            frozenset(names[name] for name in each["names"] if name in names),
            each["text"],
        )
        for each in found
    ]


def _together(records: Iterable[Deed]) -> Iterator[Group]:
    for each in records:
        if each.kind in _TOGETHER:
            yield Group(tuple(sorted(each.names, key=natural_key)), each.words, is_one=True)


def _tied(changes: Changes) -> Iterator[Group]:
    """Group tensors that are the same in both models."""
    same = defaultdict(list)
    for name, change in changes.items():
        if change.is_plain and change.bad:
            same[change.digests, change.bad.shape].append(name)
    for members in same.values():
        if len(members) > 1:
            yield Group(tuple(members), "tied", is_one=True)


def _far_together(suspicions: dict[str, Suspicion]) -> Iterator[Group]:
    """Group neighbours that all moved far: they may have been changed with each other in mind."""
    groups = defaultdict(list)
    for name, each in suspicions.items():
        if each.far > _BESIDE:
            groups[_neighbourhood(name)].append(name)
    for members in groups.values():
        if sum(suspicions[name].far > _FAR for name in members) > 1:
            yield Group(tuple(members))


def _neighbourhood(name: str) -> tuple[Any, ...]:
    """Name what is coupled with a tensor: the attention or the MLP of its block, or its block."""
    place = block(name)
    if place is None:
        return (layer(name),)
    part = role(f"{layer(name)}.weight").partition("_")[0]  # a bias is with its weight
    return place, part if part in ("attention", "mlp") else ""


def _suspicions(
    diff: Diff, changes: Changes, names: dict[str, str], records: Iterable[Deed]
) -> dict[str, Suspicion]:
    moves = _moves(diff, names)
    far = _far(diff, names, moves)
    severity: dict[str, float] = defaultdict(float)
    words: dict[str, str] = {}
    try:
        findings = analyse("anomaly_detection", diff).findings
    except DifflensError:
        findings = ()
    for finding in findings:
        if finding.subject in names:
            name = names[finding.subject]
            severity[name] = max(severity[name], float(SEVERITIES.index(finding.severity)))
            words.setdefault(name, finding.text.partition(": ")[2] or finding.text)
    for each in records:
        if each.kind not in _ORDINARY:
            for name in each.names if len(each.names) <= _NAMED else each.names - words.keys():
                words[name] = each.words
    return {
        name: Suspicion(
            severity[name],
            far.get(name, 0.0),
            _structural_text(changes[name]) or words.get(name) or _far_text(moves.get(name)),
        )
        for name in changes
    }


def _structural_text(change: Change) -> str:
    """Describe a change that is not one of values."""
    if change.is_file:
        return "a settings file that differs"
    if change.good is None or change.bad is None:
        return "added" if change.good is None else "removed"
    if change.good.shape != change.bad.shape:
        return "reshaped"
    return "" if change.good.dtype == change.bad.dtype else "recast"


def _far_text(moved: float | None) -> str:
    return "changed" if moved is None else f"moved by {exp(min(moved, 99.0)):.2g} times its norm"


def _moves(diff: Diff, names: dict[str, str]) -> dict[str, float]:
    """Return how far each tensor moved, as a logarithm, where that is known."""
    known = ((delta, _moved(delta)) for delta in diff.deltas if delta.name in names)
    return {names[delta.name]: moved for delta, moved in known if moved is not None}


def _far(diff: Diff, names: dict[str, str], moves: dict[str, float]) -> dict[str, float]:
    """Say of each tensor how far it moved beyond its peers, in robust deviations of a logarithm.

    Peers have the same name but for numbers; where these are few, the same number of dimensions.
    """
    groups: dict[Any, list[str]] = defaultdict(list)
    kinds: dict[str, Any] = {}
    for delta in diff.deltas:
        name = names.get(delta.name, "")
        if name in moves:
            kinds[name] = _rank(delta), is_buffer(name)
            groups[_NUMBER.sub("*", name)].append(name)
            groups[kinds[name]].append(name)
    far = {}
    for name, moved in moves.items():
        alike = [moves[each] for each in groups[_NUMBER.sub("*", name)] if each != name]
        others = alike
        if len(alike) < _PEERS:
            others = [moves[each] for each in groups[kinds[name]] if each != name]
        far[name] = _deviations(moved, [each for each in others if isfinite(each)])
    return far


def _deviations(moved: float, others: list[float]) -> float:
    if not isfinite(moved):
        return inf
    if len(others) < _PEERS:
        return 0.0
    middle = median(others)
    spread = max(_FLOOR, float(robust_deviation(others, middle)))
    return (moved - middle) / spread


def _moved(delta: Delta) -> float | None:
    """Return ln(‖right - left‖ / ‖left‖); infinity where a value became NaN or infinite."""
    scan = delta.measured(Scan)
    if scan is None:
        return None
    if scan.right_nonfinite > scan.left_nonfinite:
        return inf
    relative = scan.relative_l2
    return log(relative) if relative and isfinite(relative) else None


def _rank(delta: Delta) -> int:
    info = delta.pair.right or delta.pair.left
    return min(2, len(info.shape)) if info else 0
