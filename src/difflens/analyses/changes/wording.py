"""The main clause of a change that one tag explains as a whole."""

from __future__ import annotations

from collections.abc import Iterable

from ..anatomy.places import ranges, together, where
from ..anatomy.roles import block, layer
from .change import Change, Numbers
from .quantised import is_on_the_right, schemes

_NAMED = 4  # modules named in a sentence before they are only counted
_SHOWN = 2


def clause(change: Change, tag: str, numbers: Numbers) -> str | None:
    """Say it in few words; None for a tag that has no clause of its own."""
    words = {
        "permuted": _permuted,
        "quantised": _quantised,
        "pruned": _pruned,
        "averaged": _averaged,
        "row_edit": _row_edit,
        "low_rank": _low_rank,
    }.get(tag)
    return words(change, numbers) if words else None


def _permuted(change: Change, numbers: Numbers) -> str:
    names = [each.name for each in change.measured]
    share = f"{100 * numbers['moved']:.3g} %"
    if numbers["relative_l2_after"] == 0:
        place = f"; all in {where(names)}" if len(names) < len(change.deltas) else ""
        rows = f"{share} of the rows out of place{place}"
        return f"{_part(change)} reordered, no value changed ({rows})"
    after = f"{numbers['relative_l2_after']:.2g}"
    return f"{share} of the units of {where(names)} reordered: in order, relative L2 is {after}"


def _quantised(change: Change, numbers: Numbers) -> str:
    found = [name for name, _ in schemes(change).most_common()]
    shown = " and ".join(found[:_SHOWN]) or "a grid"
    more = f" and {len(found) - _SHOWN} more" if len(found) > _SHOWN else ""
    verb = "quantised to" if is_on_the_right(change) else "of a grid before:"
    return (
        f"weights {verb} {shown}{more}: {int(numbers['tensors'])} of {_tensors(change)}"
        f" (SQNR {numbers['sqnr_db']:.1f} dB)"
    )


def _pruned(change: Change, numbers: Numbers) -> str:
    keeps = {"2:4": numbers.get("two_of_four"), "4:8": numbers.get("four_of_eight")}
    kind = next((f" ({name})" for name, share in keeps.items() if share == 1), "")
    number = len(change.measured)
    of = f"{number} of {_tensors(change)}" if number < len(change.deltas) else _tensors(change)
    share = f"{100 * numbers['newly_zeroed']:.3g} %"
    return f"{share} of the weights of {of} pruned{kind}, the rest of them bit-equal"


def _averaged(change: Change, numbers: Numbers) -> str:
    if "coefficient" in numbers:
        text = f"base + {numbers['coefficient']:.4g} x (left - base), an average of base and left"
        return text + _rest(change)
    weights = [value for name, value in numbers.items() if name.startswith("weight_")]
    said = " + ".join(f"{weight:.4g} x model {i + 1}" for i, weight in enumerate(weights))
    return f"the average of {len(weights)} models: {said}"


def _row_edit(change: Change, numbers: Numbers) -> str:
    names = [each.name for each in change.measured]
    if "rank" in numbers:
        return f"one outer product added to {_places(change, names)}, as an edit of facts does"
    rows = int(numbers["rows_changed"])
    what = f"{rows} row" if rows == 1 else f"{rows} rows"
    return f"{what} of {int(numbers['rows'])} rewritten in {_places(change, names)}"


def _low_rank(change: Change, numbers: Numbers) -> str:
    low, high = int(numbers["least_rank"]), int(numbers["rank"])
    place = _places(change, [each.name for each in change.measured])
    if low == high:
        return f"a rank-{high} LoRA merged into {place}"
    return f"low-rank changes (rank {low} to {high}) of {place}"


def _places(change: Change, names: Iterable[str]) -> str:
    """Name modules and layers: `q_proj and v_proj of all 32 layers`."""
    chosen = list(names)
    places = {place for name in chosen if (place := block(name))}
    stacks = {stack for stack, _ in places}
    modules = sorted({layer(name).rpartition(".")[2] for name in chosen})
    if len(stacks) != 1 or len(modules) > _NAMED or not all(block(name) for name in chosen):
        return where(chosen)
    (stack,) = stacks
    whole = {place for delta in change.deltas if (place := block(delta.name)) and place[0] == stack}
    number = len(places)
    layers = f"layers {ranges({index for _, index in places})}"
    if number == 1:
        layers = f"layer {next(iter(places))[1]}"
    elif places == whole:
        layers = f"all {number} layers"
    return f"{together(modules)} of {layers}"


def _rest(change: Change) -> str:
    names = [each.name for each in change.measured]
    return f" (all in {where(names)})" if len(names) < len(change.deltas) else ""


def _part(change: Change) -> str:
    number, whole = len(change.measured), len(change.deltas)
    if number < whole:
        return f"{number} of {_tensors(change)}"
    return f"all {whole} tensors" if whole > 1 else "the only tensor"


def _tensors(change: Change) -> str:
    whole = len(change.deltas)
    return f"{whole} tensor" if whole == 1 else f"{whole} tensors"
