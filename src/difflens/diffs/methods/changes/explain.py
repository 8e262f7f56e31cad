"""What was done to a model: a name for each tensor that moved, the cheapest test first."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from typing import Any, NamedTuple

from difflens.core.records import Delta
from difflens.measure.edits import digits, edits_in
from difflens.measure.precision import unit
from difflens.models.anatomy.places import ranges
from difflens.models.anatomy.roles import block, layer

from ..structure import FINDERS
from .change import Change
from .directions import by_directions, removed
from .drift import by_damage, by_drift, is_noise, settle
from .explained import Explained
from .grids import agree, by_grid
from .order import (
    aligned_rest,
    are_of_one,
    by_alignment,
    by_order,
    exchanged,
    has_same_values,
    transposed_shapes,
)
from .parts import Part, Tensor, tensors
from .values import by_edits, by_scan, cast, is_hidden, wants_edits

_GONE = 0.01  # part of a tensor's elements that are zero now and were not: no training does that
_FURTHER = 2.0  # times the mean move of the others that new zeros moved where they were pruned
_SEVERAL = 2  # elements that must share a factor
_STILL = 0.1  # part of the elements of moved rows that did not move at all
_FAR = 8.0  # units in the last place that an element moves which no small update moved
_ASKED = 2  # matrices that are asked whether their change is noise before the others are


class Found(NamedTuple):
    """The tensors that moved with their names, and what the structure explains."""

    tensors: list[Tensor]
    structural: list[Explained]
    transposed: list[Delta]


def explain(change: Change) -> Found:
    """Name the change of every tensor."""
    structural = [
        record
        for finder in FINDERS
        for record in finder(change.diff, change.evidence, change.answer)
    ]
    claimed = {name for record in structural for name in record.names}
    moved = [each for each in tensors(change) if left_name(each.delta) not in claimed]
    _settle_format(change, moved)
    open_ = [tensor for tensor in moved if not (by_scan(tensor) or by_damage(tensor))]
    rest = [tensor for tensor in open_ if tensor.is_coarser or not by_order(tensor)]
    rest = _with_edits(change, rest)
    rest = [tensor for tensor in rest if not (tensor.is_coarser and by_order(tensor))]
    rest = _with_grids(rest, "quantised")
    drifted = _with_grids(by_directions(change, rest), "dequantised")
    for tensor in drifted:
        _drift(tensor)
    settle(drifted)
    _across(change, moved, drifted)
    for tensor in open_:
        _add_cast(tensor)
    _settle_rounding(moved)
    return Found(moved, structural, _unclaimed(transposed_shapes(change), claimed))


def left_name(delta: Delta) -> str:
    """Return the name on the left, or the name on the right where only the right has it."""
    info = delta.pair.left or delta.pair.right
    return info.name if info else ""


def _settle_format(change: Change, moved: list[Tensor]) -> None:
    """Let short tensors have the format of the model, where theirs holds in many."""
    votes: Counter[str] = Counter()
    for tensor in moved:
        votes[tensor.formats[1]] += tensor.scan.count
    likely, number = max(votes.items(), key=lambda item: item[1], default=("", 0))
    if 2 * number <= votes.total():
        return
    change.likely["format"] = likely
    for tensor in moved:
        if tensor.formats[1] != likely:
            del tensor.formats


_CUT = 0.4, 0.6  # how far values lean to zero, in units in the last place, where they are cut off


def _settle_rounding(moved: list[Tensor]) -> None:
    """Say one way of rounding of the model: that of the tensors which show it."""
    casts = [(each, part) for each in moved for part in each.parts if part.kind == "cast"]
    lossy = [(each, part) for each, part in casts if part.numbers["rounding"]]
    votes: Counter[str] = Counter()
    for tensor, part in lossy:
        if tensor.energy and (len(tensor.parts) == 1 or tensor.edits):
            votes[part.numbers["rounding"]] += tensor.scan.count
    mode = votes.most_common(1)[0][0] if votes else _leaning([each for each, _ in lossy])
    for tensor, part in lossy:
        numbers = part.numbers | {"rounding": mode}
        key = (*part.key[:3], mode, *part.key[4:])
        tensor.parts[tensor.parts.index(part)] = part._replace(key=key, numbers=numbers)
    _join_exact(moved)


def _join_exact(moved: list[Tensor]) -> None:
    """Count tensors that a cast left as they were with those that the same cast moved."""
    casts = [(each, part) for each in moved for part in each.parts if part.kind == "cast"]
    others = {part.key[:3]: part for _, part in casts if not part.numbers.get("lossless")}
    for tensor, part in casts:
        other = others.get(part.key[:3])
        if other is not None and part.numbers.get("lossless"):
            joined = part._replace(key=other.key, numbers=other.numbers)
            tensor.parts[tensor.parts.index(part)] = joined


def _leaning(tensors: list[Tensor]) -> str | None:
    leans = sorted(tensor.lean for tensor in tensors)
    middle = leans[len(leans) // 2] if leans else 1.0
    if _CUT[0] <= middle <= _CUT[1]:
        return "truncated"
    return "nearest" if abs(middle) <= 1 - _CUT[1] - _CUT[0] / 2 else None


def _unclaimed(deltas: Iterable[Delta], claimed: set[str]) -> list[Delta]:
    return [delta for delta in deltas if left_name(delta) not in claimed]


def _with_edits(change: Change, rest: list[Tensor]) -> list[Tensor]:
    """Take a second pass over the tensors of which a sample says that few elements are left."""
    chosen = [tensor for tensor in rest if wants_edits(tensor)]
    kind: Any = edits_in(change.likely.get("format"))
    taken = change.diff.session.measure_whole(kind, [tensor.delta for tensor in chosen])
    named = {
        tensor.name
        for tensor, edits in zip(chosen, taken, strict=True)
        if edits is not None and by_edits(tensor, edits)
    }
    return [tensor for tensor in rest if tensor.name not in named]


def _with_grids(asked: list[Tensor], kind: str) -> list[Tensor]:
    """Name the tensors that lie on a grid on one side only; return the others."""
    rest = [tensor for tensor in asked if not by_grid(tensor, kind)]
    fresh = agree(asked, kind) if len(rest) < len(asked) else []
    return [tensor for tensor in rest if tensor not in fresh]


def _drift(tensor: Tensor) -> None:
    """Name what moved as a whole: zeros that are new, values that did not move, and the rest."""
    scan = tensor.scan
    gained = scan.right_zeros - scan.left_zeros
    if gained > max(1.0, _GONE * scan.count) and _is_pruned(tensor):
        numbers = {"newly_zeroed": gained, "zeros": scan.right_zeros, "elements": scan.count}
        share = min(tensor.energy, gained / scan.count * scan.left_square_sum)
        tensor.parts.append(Part("pruned", ("unstructured",), numbers | _no_pattern(), share))
    elif _is_scattered(tensor):
        numbers = {"elements": tensor.moved, "count": scan.count, "scattered": 1}
        tensor.parts.append(Part("sparse_edit", ("scattered",), numbers, tensor.energy))
        return
    by_drift(tensor)


def _is_pruned(tensor: Tensor) -> bool:
    """Did the new zeros move further than the others? A grid has zeros that moved no further."""
    import numpy as np

    left, right, _ = tensor.sample
    gone, still = (right == 0) & (left != 0), (right != 0) & (left != 0)
    if tensor.is_uncorrelated or not gone.any() or not still.any():
        return False
    moved = np.abs(right[still].astype(np.float64) - left[still])
    return float(np.abs(left[gone]).mean()) > _FURTHER * float(moved.mean())


def _no_pattern() -> dict[str, str]:
    return {"pattern": "unstructured"}


def _is_scattered(tensor: Tensor) -> bool:
    """Did some elements move far and others beside them not at all? Training moves them all."""
    import numpy as np

    if tensor.moved > (1 - _STILL) * tensor.scan.count or not tensor.is_matrix:
        return False
    left, right, _ = tensor.sample
    moved = tensor.expected != right
    moved = moved[moved.any(axis=1)][:, moved.any(axis=0)] if moved.any() else moved
    if not moved.size or moved.mean() > 1 - _STILL:
        return False
    other = tensor.expected != right
    apart = np.abs(right[other].astype(np.float64) - left[other])
    return bool(np.median(apart / unit(right[other], tensor.formats[1])) > _FAR)


def _add_cast(tensor: Tensor) -> None:
    """Name the storage of a tensor that other names explain."""
    if any(part.kind == "cast" for part in tensor.parts):
        return
    recast = tensor.delta.kind == "recast"
    grid = any(part.kind in {"quantised", "palette"} for part in tensor.parts)
    likely = tensor.formats[1] == tensor.change.likely.get("format")
    if not (recast or (tensor.is_coarser and (likely or not grid))):
        return
    spent = 0.0
    for place, part in enumerate(tensor.parts):
        if tensor.is_coarser and part.kind == "low_rank":
            spent += float(part.numbers["rounding"])
            tensor.parts[place] = part._replace(numbers=part.numbers | {"rounding": 0.0})
    tensor.parts.append(cast(tensor, spent))


# What only several tensors together tell.


def _across(change: Change, moved: list[Tensor], drifted: list[Tensor]) -> None:
    for one, other in exchanged(change, [each for each in drifted if _is_drawn(each)]):
        for tensor, partner in ((one, other), (other, one)):
            key = tuple(sorted((left_name(one.delta), left_name(other.delta))))
            numbers = {"with": left_name(partner.delta)}
            tensor.parts = [Part("exchanged", key, numbers, tensor.energy)]
    _single_elements(moved)
    _trained_directions(moved)
    _dead_units(moved)
    _drawn_constants(moved)
    _aligned(change, drifted)
    _consistent(change, moved)
    _noise(drifted)
    _removed_directions(moved)
    _one_product(change, moved)


def _single_elements(moved: list[Tensor]) -> None:
    """Call a scale of one element an edit: one number is always a multiple of another."""
    scaled = [(each, part) for each in moved for part in each.parts if part.kind == "scaled"]
    among = any(part.kind == "trained" for each in moved for part in each.parts)
    for tensor, part in scaled:
        factor = float(part.numbers["c"])
        near = abs(factor) * 2.0 ** -digits(tensor.formats[1])
        alike = [each for each, other in scaled if abs(other.numbers["c"] - factor) <= near]
        if sum(each.scan.count for each in alike) < _SEVERAL:
            edit = Part("sparse_edit", (), {"elements": tensor.scan.count}, tensor.energy)
            trained = Part("trained", (), {}, tensor.energy)
            tensor.parts[tensor.parts.index(part)] = trained if among else edit


def _trained_directions(moved: list[Tensor]) -> None:
    """Beside more matrices that were trained, a low rank is what rounding leaves of training.

    Where no rank has a gap after it, any training beside is enough.
    """
    low = [each for each in moved if any(part.kind == "low_rank" for part in each.parts)]
    trained = [each for each in moved if any(part.kind == "trained" for part in each.parts)]
    sure = any(part.numbers.get("rank") for each in low for part in each.parts)
    if len([each for each in trained if each.is_matrix]) <= (len(low) if sure else 0):
        return
    for tensor in low:
        for place, part in enumerate(tensor.parts):
            if part.kind == "low_rank":
                tensor.parts[place] = Part("trained", (), {}, tensor.energy)


def _dead_units(moved: list[Tensor]) -> None:
    """Beside more tensors that were trained, elements that did not move had no gradient."""
    trained = [each for each in moved if any(part.kind == "trained" for part in each.parts)]
    still = [each for each in moved if any(part.kind in _EDITS for part in each.parts)]
    small = [each for each in still if is_hidden(each)]
    for tensor in still if len(trained) > len(still) else small if trained else ():
        tensor.parts = [
            Part("trained", (), {}, part.energy) if part.kind in _EDITS else part
            for part in tensor.parts
        ]


_EDITS = frozenset({"sparse_edit", "row_edit"})


def _drawn_constants(moved: list[Tensor]) -> None:
    """Where every matrix was drawn anew, vectors of zeros are a part of the initialisation."""
    matrices = [each for each in moved if each.is_matrix]
    if not matrices or not all(
        part.kind == "reinitialised" for each in matrices for part in each.parts[:1]
    ):
        return
    for tensor in moved:
        if len(tensor.shape) < 2 and any(part.kind == "zeroed" for part in tensor.parts):
            tensor.parts = [
                part._replace(kind="reinitialised", numbers={"constant": 0.0})
                if part.kind == "zeroed"
                else part
                for part in tensor.parts
            ]


def _is_drawn(tensor: Tensor) -> bool:
    return any(part.kind in {"reinitialised", "trained"} for part in tensor.parts)


def _aligned(change: Change, drifted: list[Tensor]) -> None:
    drawn = [each for each in drifted if any(part.kind == "reinitialised" for part in each.parts)]
    if not drawn or not (numbers := by_alignment(change, drawn)):
        return
    for tensor in drifted:
        tensor.parts = [Part("permuted", ("noisy",), numbers, tensor.energy)]


def _consistent(change: Change, moved: list[Tensor]) -> None:
    """Say of reordered tensors whether all of them were reordered alike."""
    chosen = [each for each in moved if any(part.kind == "permuted" for part in each.parts)]
    if not chosen or any("noisy" in part.key for each in chosen for part in each.parts):
        return
    found = aligned_rest(change, chosen)
    coarsest = min(digits(tensor.formats[1]) for tensor in chosen)
    rounding = 2.0**-coarsest if any(tensor.is_coarser for tensor in chosen) else 1e-6
    if found is not None and found[1] <= rounding:
        return
    if found is None and (len(change.deltas) == 1 or _may_be_consistent(chosen)):
        return
    for tensor in chosen:
        tensor.parts = [
            part._replace(kind="permuted_inconsistently") if part.kind == "permuted" else part
            for part in tensor.parts
        ]


def _may_be_consistent(chosen: list[Tensor]) -> bool:
    """Are there two matrices at least, so that one can undo the order of the other?"""
    return sum(len(each.shape) > 1 for each in chosen) > 1 and are_of_one(chosen)


def _noise(drifted: list[Tensor]) -> None:
    """Call it noise where the change of every matrix is white."""
    trained = [each for each in drifted if any(part.kind == "trained" for part in each.parts)]
    asked = [each for each in trained if each.is_matrix]
    first = [is_noise(tensor) for tensor in asked[:_ASKED]]
    if True not in first:
        return
    every = [*first, *(is_noise(tensor) for tensor in asked[_ASKED:])]
    white = {each.name for each, found in zip(asked, every, strict=True) if found}
    if not all(found is None or found for found in every):
        trained = [each for each in trained if each.name in white]
    for tensor in trained:
        tensor.parts = [
            part._replace(kind="noise") if part.kind == "trained" else part for part in tensor.parts
        ]


def _removed_directions(moved: list[Tensor]) -> None:
    single = _of_rank_one(moved)
    for tensor in removed(single) if single else ():
        _rename(tensor, "abliterated")


def _of_rank_one(moved: list[Tensor]) -> list[Tensor]:
    return [
        tensor
        for tensor in moved
        if any(part.kind == "low_rank" and part.numbers["rank"] == 1 for part in tensor.parts)
    ]


def _rename(tensor: Tensor, kind: str) -> None:
    tensor.parts = [
        part._replace(kind=kind, key=()) if part.kind == "low_rank" else part
        for part in tensor.parts
    ]


def _one_product(change: Change, moved: list[Tensor]) -> None:
    """Call rank one an edit where it is in one module of some layers: a LoRA goes to all."""
    single = _of_rank_one(moved)
    if not single or len(single) > change.answer["edited_matrices"]:
        return
    if any(part.kind == "low_rank" for each in moved for part in each.parts if each not in single):
        return
    modules = {layer(each.name).rpartition(".")[2] for each in single}
    places = {block(each.name) for each in single}
    whole = {place for delta in change.deltas if (place := block(delta.name))}
    if len(modules) == 1 and (len(single) == 1 or places < whole):
        for tensor in single:
            _rename(tensor, "outer_product")


def layers_of(names: Iterable[str]) -> str:
    """Name the layers of some tensors as ranges."""
    return ranges({place[1] for name in names if (place := block(name))})


__all__ = ["Found", "explain", "has_same_values", "layers_of", "left_name"]
