"""Two fingerprints compared: equal hashes prove, sketches estimate."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence

from difflens.core.records import Delta, Kind, Pair, Stats
from difflens.measure.sketch.estimate import Estimate, estimate

from ..pairing.how import CONTENT
from ..pairing.ties import tie_candidates
from .records import Fingerprint, TensorFingerprint

_FEWEST = 16  # numbers; a handful of equal ones may be chance
_ANOTHER_LAYOUT = "in another layout, which a fingerprint cannot undo: that needs both models"


def compare(
    pairs: Iterable[Pair], left: Fingerprint, right: Fingerprint, known: Mapping[Pair, Delta]
) -> Iterator[Delta]:
    """Yield the deltas of pairs, in order; `known` has those whose partner was found by hash."""
    repeated = {id(delta.pair) for delta in known.values() if delta.pair.left and delta.pair.right}
    for pair in pairs:
        if pair not in known:
            yield _compare(pair, left.tensors, right.tensors)
        elif pair.right or id(known[pair].pair) not in repeated:
            yield known[pair]


def _compare(
    pair: Pair, left: Mapping[str, TensorFingerprint], right: Mapping[str, TensorFingerprint]
) -> Delta:
    before = left[pair.left.name] if pair.left else None
    after = right[pair.right.name] if pair.right else None
    if before is None or after is None:
        return _one_sided(pair, before or after)
    if pair.left_recipe or pair.right_recipe or pair.transform:
        return Delta(pair, "uncompared", skipped=_ANOTHER_LAYOUT)
    if before.info.shape != after.info.shape:
        return Delta(pair, "reshaped")
    if before.stats is None or after.stats is None or before.size != after.size:
        return _bytes_only(pair, before, after)
    return _estimated(pair, before, after, (before.stats, after.stats))


def _bytes_only(pair: Pair, before: TensorFingerprint, after: TensorFingerprint) -> Delta:
    """Compare what has no numbers, or numbers of another kind: only hashes are left."""
    if before.root == after.root:
        return Delta(pair, "identical")
    names = " against ".join(dict.fromkeys((before.info.dtype, after.info.dtype)))
    return Delta(pair, "uncompared", skipped=f"{names} is compared as bytes, and they differ")


def _estimated(
    pair: Pair, before: TensorFingerprint, after: TensorFingerprint, sides: tuple[Stats, Stats]
) -> Delta:
    if before.root == after.root:
        return Delta(pair, "identical", (Estimate(before.size, *sides, is_same=True, l2=0.0),))
    is_decoded = before.info.stored or after.info.stored
    kind: Kind = "changed"
    if before.info.dtype != after.info.dtype and not is_decoded:
        kind = "recast"
    measure = estimate(before.size, sides, before.sketch, after.sketch)
    return Delta(pair, kind, (measure,), _why_no_distance(measure))


def _why_no_distance(measure: Estimate) -> str | None:
    if measure.relative_smallest is not None:
        return f"relative_l2 is below {measure.relative_smallest:.0e}: too near to be estimated"
    if measure.left.nonfinite or measure.right.nonfinite:
        return "no distance: values are not finite"
    return "no distance: sums overflow" if measure.is_unknown else None


def _one_sided(pair: Pair, lone: TensorFingerprint | None) -> Delta:
    kind: Kind = "removed" if pair.left else "added"
    if lone is None or lone.stats is None:
        return Delta(pair, kind)
    return Delta(pair, kind, (Estimate(lone.size, lone.stats, lone.stats),))


def find_by_hash(pairs: Sequence[Pair], left: Fingerprint, right: Fingerprint) -> dict[Pair, Delta]:
    """Find tensors under another name, and tied ones, among those without a partner."""
    lone = [each for each in pairs if not (each.left and each.right)]
    if not lone:
        return {}
    return _renamed(lone, left, right) | _ties(pairs, left, right)


def _renamed(lone: list[Pair], left: Fingerprint, right: Fingerprint) -> dict[Pair, Delta]:
    """Pair what has the same hash, where only one tensor on each side has it."""
    before = _by_root(left.tensors[each.left.name] for each in lone if each.left)
    after = _by_root(right.tensors[each.right.name] for each in lone if each.right)
    found: dict[Pair, Delta] = {}
    for root in before.keys() & after.keys():
        delta = _compare(
            Pair(before[root].info, after[root].info, CONTENT), left.tensors, right.tensors
        )
        for each in lone:
            if each.left == before[root].info or each.right == after[root].info:
                found[each] = delta
    return found


def _by_root(tensors: Iterable[TensorFingerprint]) -> dict[str, TensorFingerprint]:
    """Index the tensors whose hash says which one they are."""
    telling = [each for each in tensors if each.size >= _FEWEST and not each.is_constant]
    counts = Counter(each.root for each in telling)
    return {each.root: each for each in telling if counts[each.root] == 1}


def _ties(pairs: Sequence[Pair], left: Fingerprint, right: Fingerprint) -> dict[Pair, Delta]:
    """Find what one side stores once and the other twice: names propose, hashes decide."""
    ties: dict[Pair, Delta] = {}
    for tie in tie_candidates(pairs, left.infos, right.infos):
        lone, twin = pairs[tie.index], tie.embedding.name
        side = (left if tie.side == "left" else right).tensors
        if side[tie.head.name].root == side[twin].root:
            ties.setdefault(lone, Delta(Pair(lone.left, lone.right, f"tied to {twin}"), "tied"))
    return ties


def prove(deltas: Iterable[Delta]) -> frozenset[tuple[str, str]]:
    """Name the pairs whose hashes are equal, left and right: exact figures need not read them."""
    return frozenset(
        (each.pair.left.name, each.pair.right.name)
        for each in deltas
        if each.kind == "identical" and each.pair.left and each.pair.right
    )
