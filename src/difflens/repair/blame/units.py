"""What is put back together, and in which order: units of coupled tensors, the suspicious first.

A tensor is suspicious if an analysis says so, or if it moved much farther than its peers did.
Tensors that were changed together are put back together: layers that changed places, heads or
neurons in another order, tied tensors. Half of such a change would break any model.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable, Iterator
from math import inf, isfinite, log
from statistics import median
from typing import Any, NamedTuple

from difflens.core.errors import DifflensError
from difflens.core.records import Delta
from difflens.diffs.analyses import analyse
from difflens.diffs.diff import Diff
from difflens.diffs.methods.anomalies.anomaly import SEVERITIES
from difflens.measure.scan import Scan
from difflens.models.anatomy.roles import block, is_buffer, layer, role
from difflens.stats.samples import robust_deviation

from .changes import Changes

_NUMBER = re.compile("[0-9]+")
_PEERS = 3  # fewer tell nothing
_FAR = 3.5  # robust z from which a tensor moved unlike its peers
_FLOOR = 0.1  # of ln: less spread than this among peers is chance
_RARE = 0.25  # part of the tensors that a change of a kind may concern and still be suspicious

# Kinds of changes that keep what the model computes: suspicious only after all others.
_INNOCENT = frozenset({"permuted", "rotated", "norms_folded", "weight_norm_folded", "adapter_merged"})
# Kinds that are one thing done to several tensors.
_TOGETHER = frozenset({"layers_swapped", "layers_reordered", "layers_duplicated", "exchanged"})
_ORDINARY = frozenset({"trained", "noise", "state_changed", "cast"})


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
    records = _records(diff)
    suspicions = _suspicions(diff, changes, names, records)
    grouped = [*_of_records(records, names), *_tied(changes)]
    grouped += _far_together(suspicions, {name for group in grouped for name in group.names})
    units, used = [], set()
    for group in grouped:
        members = tuple(name for name in group.names if name not in used)
        if len(members) > 1:
            used.update(members)
            units.append(_scored(members, suspicions, group))
    for name in changes:
        if name not in used:
            each = suspicions[name]
            units.append(Unit((name,), (each.severity, each.far), each.words))
    return sorted(units, key=lambda unit: (-unit.score[0], -unit.score[1]))


class Group(NamedTuple):
    """Tensors that belong together, and why."""

    names: tuple[str, ...]
    words: str = ""
    is_innocent: bool = False
    is_one: bool = False


def _scored(members: tuple[str, ...], suspicions: dict[str, Suspicion], group: Group) -> Unit:
    if group.is_innocent:
        return Unit(members, (0.0, 0.0), group.words)
    severity = max(suspicions[name].severity for name in members)
    far = max(suspicions[name].far for name in members)
    words = group.words or next((w for n in members if (w := suspicions[n].words)), "")
    if group.is_one:
        severity = max(severity, float(len(SEVERITIES)))
    return Unit(members, (severity, far), words, group.is_one)


def _names(diff: Diff, changes: Changes) -> dict[str, str]:
    """Map the names of both sides, as the diff has them, to those of the changes."""
    names = {}
    for pair in diff.pairs:
        both = [info.name for info in (pair.right, pair.left) if info]
        known = next((name for name in both if name in changes), None)
        if known is not None:
            names.update(dict.fromkeys(both, known))
    return names


def _records(diff: Diff) -> list[dict[str, Any]]:
    """Ask what was done to which tensors; nothing where that cannot be said."""
    try:
        return list(analyse("change_summary", diff).fields.get("changes") or ())
    except DifflensError:
        return []


def _of_records(records: Iterable[dict[str, Any]], names: dict[str, str]) -> Iterator[Group]:
    for record in records:
        members = tuple(dict.fromkeys(names[name] for name in record["names"] if name in names))
        kind = record["kind"]
        if kind in _INNOCENT:
            yield Group(members, record["text"], is_innocent=True)
        elif kind in _TOGETHER:
            yield Group(members, record["text"], is_one=True)


def _tied(changes: Changes) -> Iterator[Group]:
    """Group tensors that are the same in both models."""
    same = defaultdict(list)
    for name, change in changes.items():
        if change.is_plain and change.bad:
            same[change.digests, change.bad.shape].append(name)
    for members in same.values():
        if len(members) > 1:
            yield Group(tuple(members), "tied", is_one=True)


def _far_together(suspicions: dict[str, Suspicion], used: set[str]) -> Iterator[Group]:
    """Group neighbours that all moved far: they may have been changed with each other in mind."""
    groups = defaultdict(list)
    for name, each in suspicions.items():
        if name not in used and each.far > _FAR:
            groups[_neighbourhood(name)].append(name)
    for members in groups.values():
        if len(members) > 1:
            yield Group(tuple(members))


def _neighbourhood(name: str) -> tuple[Any, ...]:
    """Name what is coupled with a tensor: the attention of a block, its MLP, or its module."""
    place = block(name)
    if place is None:
        return (layer(name),)
    part = role(f"{layer(name)}.weight").partition("_")[0]  # a bias is with its weight
    return place, part if part in ("attention", "mlp") else layer(name)


def _suspicions(
    diff: Diff, changes: Changes, names: dict[str, str], records: Iterable[dict[str, Any]]
) -> dict[str, Suspicion]:
    far = _far(diff, names)
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
            words.setdefault(name, finding.text)
    for record in records:
        members = {names[name] for name in record["names"] if name in names}
        if len(members) <= max(1, _RARE * len(changes)) and record["kind"] not in (
            _INNOCENT | _ORDINARY
        ):
            for name in members:
                severity[name] = max(severity[name], 2.0)
        for name in members:
            if record["kind"] != "trained" or name not in words:
                words[name] = record["text"]
    return {
        name: Suspicion(severity[name], far.get(name, 0.0), words.get(name, _plain(changes, name)))
        for name in changes
    }


def _plain(changes: Changes, name: str) -> str:
    change = changes[name]
    if change.is_file:
        return "a settings file that differs"
    if change.good is None or change.bad is None:
        return "added" if change.good is None else "removed"
    if change.good.shape != change.bad.shape:
        return "reshaped"
    return "recast" if change.good.dtype != change.bad.dtype else "changed"


def _far(diff: Diff, names: dict[str, str]) -> dict[str, float]:
    """Say of each tensor how far it moved beyond its peers, in robust deviations of a logarithm.

    Peers have the same name but for numbers, else the same rank and kind, else any name.
    """
    moves: dict[str, float] = {}
    for delta in diff.deltas:
        moved = _moved(delta)
        if delta.name in names and moved is not None:
            moves[names[delta.name]] = moved
    groups: dict[Any, list[str]] = defaultdict(list)
    ranks = {names[d.name]: _rank(d) for d in diff.deltas if d.name in names}
    for name in moves:
        groups[_NUMBER.sub("*", name)].append(name)
        groups[ranks[name], is_buffer(name)].append(name)
        groups[None].append(name)
    far = {}
    for name, moved in moves.items():
        scores = []
        for key in (_NUMBER.sub("*", name), (ranks[name], is_buffer(name)), None):
            others = [moves[each] for each in groups[key] if each != name]
            if len(others) >= _PEERS:
                scores.append(_deviations(moved, [each for each in others if isfinite(each)]))
        far[name] = min(scores[:2], default=0.0)
    return far


def _deviations(moved: float, others: list[float]) -> float:
    if not others:
        return 0.0
    if not isfinite(moved):
        return inf
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
