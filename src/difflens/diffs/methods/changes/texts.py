"""The words for one thing that was done to a model."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from difflens.core.records import SAME
from difflens.models.anatomy.places import listed, ranges, short, together, where
from difflens.models.anatomy.roles import block, layer, role

from .change import Change
from .energy import is_float
from .explained import Explained

_NAMED = 4  # modules named in a sentence before they are only counted
_ALL = 0.9995  # part of a change that is all of it
_MANY = 0.05  # part of the elements of some tensors that is more than an edit of a few
_SHOWN = 2  # names in brackets before "and n more"


def text_of(change: Change, record: Explained) -> str:
    """Say in few words what was done, and where."""
    return _WORDS[record.kind](change, record)


def tensors(number: int) -> str:
    """Write a number of tensors."""
    return f"{number} tensor" if number == 1 else f"{number} tensors"


def percent(share: float) -> str:
    """Write a part of a whole with three digits."""
    return f"{100 * share:.3g} %"


def part(number: int, whole: int) -> str:
    """Say how many of the tensors: `3 of 25 tensors`, `all 25 tensors`."""
    if number < whole:
        return f"{number} of {tensors(whole)}"
    return f"all {whole} tensors" if whole > 1 else "the only tensor"


def of_all(number: int, whole: int, verb: str, rest: str) -> str:
    """Say what was done to some of the tensors, or to every one of them."""
    if number < whole:
        verb = verb if number == 1 else {"is": "are", "was": "were"}[verb]
        return f"{number} of {tensors(whole)} {verb} {rest}"
    if whole > 1:
        return f"every one of {whole} tensors {verb} {rest}"
    return f"the tensor {verb} {rest}"


def place(record: Explained) -> str:
    """Say where, in brackets, if it is not everywhere."""
    few = len(record.names) < record.of
    return f" (all in {where(record.names)})" if few else ""


def named_places(change: Change, names: Iterable[str]) -> str:
    """Name modules and layers: `q_proj and v_proj of all 32 layers`."""
    chosen = list(names)
    places = {found for name in chosen if (found := block(name))}
    stacks = {stack for stack, _ in places}
    modules = sorted({layer(name).rpartition(".")[2] for name in chosen})
    if len(stacks) != 1 or len(modules) > _NAMED or not all(block(name) for name in chosen):
        return where(chosen)
    (stack,) = stacks
    whole = {
        found
        for delta in change.deltas
        if (info := delta.pair.left or delta.pair.right)
        and (found := block(info.name))
        and found[0] == stack
    }
    number = len(places)
    layers = f"layers {ranges({index for _, index in places})}"
    if number == 1:
        layers = f"layer {next(iter(places))[1]}"
    elif places == whole:
        layers = f"all {number} layers"
    return f"{together(modules)} of {layers}"


def subject(record: Explained) -> str:
    """Name one tensor, or say how many of how many and where."""
    if len(record.names) == 1:
        return short(record.names[0])
    few = len(record.names) < record.of
    inside = f" in {where(record.names)}" if few else ""
    return f"{part(len(record.names), record.of)}{inside}"


def _cast(_change: Change, record: Explained) -> str:
    numbers = record.numbers
    before, to, after = numbers["from"], numbers["to"], numbers["stored"]
    if "undone" in numbers:
        many = part(len(record.names), record.of)
        return f"the left is the right cast from {after} to {before}: {many}, rounded"
    if numbers["lossless"]:
        how = "no value moved"
    elif numbers["rounding"] == "truncated":
        how = "cut off, not rounded to nearest"
    elif (record.share or 0.0) >= _ALL:
        how = "nothing moved by more than storage rounding"
    else:
        how = "rounded to nearest" if numbers["rounding"] else "rounded"
    what = f"cast from {before} to {to}"
    if to != after:
        what = f"rounded to {to} and stored in {after}"
    return f"{what}: {part(len(record.names), record.of)}, {how}"


def _scaled(_change: Change, record: Explained) -> str:
    factor = f"multiplied by {record.numbers['c']:.6g}"
    return of_all(len(record.names), record.of, "was", factor) + place(record)


def _flipped(_change: Change, record: Explained) -> str:
    rest = "multiplied by -1: every sign flipped"
    if len(record.names) == 1 < record.of:
        return f"{short(record.names[0])} was {rest}"
    return of_all(len(record.names), record.of, "was", rest) + place(record)


def _pruned(_change: Change, record: Explained) -> str:
    numbers = record.numbers
    pattern = numbers["pattern"]
    kind = "" if pattern == "unstructured" else f" ({pattern})"
    number = tensors(record.of)
    if len(record.names) < record.of:
        number = f"{len(record.names)} of {number}"
    share = percent(numbers["newly_zeroed"])
    return f"{share} of the weights of {number} pruned{kind}"


def _zeroed(_change: Change, record: Explained) -> str:
    if len(record.names) == 1:
        return f"{short(record.names[0])} is all zeros now"
    more = len(record.names) - 1
    return f"{short(record.names[0])} and {more} more are all zeros now"


def _sparse(_change: Change, record: Explained) -> str:
    elements = record.numbers["elements"]
    if record.numbers.get("scattered") or (
        len(record.names) > 1 and record.numbers["fraction"] > _MANY
    ):
        share = percent(record.numbers["fraction"])
        return (
            f"{share} of the elements of {subject(record)} moved and those between them did not:"
            " no plain training; a merge by TIES or DARE leaves this, and --base would tell"
        )
    what = "1 element" if elements == 1 else f"{elements} elements"
    if len(record.names) == 1:
        return f"{what} of {short(record.names[0])} changed"
    fraction = record.numbers["fraction"]
    few = f"only {100 * fraction:.2g} % of their elements" if fraction < 1 else ""
    return f"{part(len(record.names), record.of)} changed{_inside(record)}{_notes(record, few)}"


def _inside(record: Explained) -> str:
    return f", all in {where(record.names)}" if len(record.names) < record.of else ""


def _rows(change: Change, record: Explained) -> str:
    rows = record.numbers["rows"]
    what = f"{rows} row" if rows == 1 else f"{rows} rows"
    return (
        f"{what} of {record.numbers['of_rows']} rewritten in {named_places(change, record.names)}"
    )


def _low_rank(change: Change, record: Explained) -> str:
    rank, place_ = record.numbers["rank"], named_places(change, record.names)
    if rank is None:
        least = record.numbers["least_rank"]
        return f"a LoRA of rank {least} or more merged into {place_} (rounding hides the rest)"
    return f"a rank-{rank} LoRA merged into {place_}"


def _outer(change: Change, record: Explained) -> str:
    where_ = named_places(change, record.names)
    return f"one outer product added to {where_}, as an edit of facts does"


def _abliterated(change: Change, record: Explained) -> str:
    return (
        f"one direction projected out of {tensors(len(record.names))} (abliteration) in"
        f" {named_places(change, record.names)}"
    )


def _distance(record: Explained) -> str:
    value = record.numbers.get("relative_l2")
    return f"relative L2 {value:.1e}" if value else ""


def _notes(record: Explained, *more: str) -> str:
    notes = [note for note in (*more, _distance(record)) if note]
    return f" ({', '.join(notes)})" if notes else ""


def _trained(change: Change, record: Explained) -> str:
    names = record.names
    note = ""
    if "fraction" in record.numbers:
        share = percent(record.numbers["fraction"])
        note = f"{share} of the elements, by single units in the last place"
    if is_full(change, record):
        return f"full fine-tune: {part(len(names), record.of)} changed{_notes(record, note)}"
    text = f"{part(len(names), record.of)} changed"
    if len(names) == 1 < record.of:
        text += f": {short(names[0])}"
    elif len(names) < record.of:
        what = "biases in" if all(name.endswith("bias") for name in names) else "in"
        text += f", all {what} {where(names)}"
    return text + _notes(record, note)


def is_full(change: Change, record: Explained) -> bool:
    """Did (nearly) all float parameters of both models really move?"""
    if record.kind != "trained":
        return False
    if all(role(name) == "head" for name in record.names):
        return False
    floats = sum(is_float(delta) for delta in change.deltas if delta.kind != "tied")
    limit = change.answer["full_fraction"]
    return len(record.names) > 1 and len(record.names) >= limit * floats


def _noise(_change: Change, record: Explained) -> str:
    return f"noise without structure added to {subject(record)}{_notes(record)}"


def _drawn(_change: Change, record: Explained) -> str:
    constant = record.numbers.get("constant")
    if constant is not None:
        return f"{subject(record)} reset to {constant:g}"
    return f"{subject(record)} re-initialised: no correlation with before{_notes(record)}"


def _corrupted(_change: Change, record: Explained) -> str:
    numbers = record.numbers
    if numbers["byte_swapped"]:
        return f"{subject(record)} corrupted: the bytes of every value are in reverse order"
    if numbers["nonfinite"]:
        what = "value" if numbers["nonfinite"] == 1 else "values"
        return f"{subject(record)} corrupted: {numbers['nonfinite']} NaN/Inf {what} appeared"
    return f"{subject(record)} corrupted: values up to {numbers['largest']:.2g}"


def _permuted(_change: Change, record: Explained) -> str:
    share = percent(record.numbers["moved"])
    if record.numbers["relative_l2_after"] == 0:
        inside = f"; all in {where(record.names)}" if len(record.names) < record.of else ""
        rows = f"{share} of the rows out of place{inside}"
        return f"{part(len(record.names), record.of)} reordered, no value changed ({rows})"
    after = f"{record.numbers['relative_l2_after']:.2g}"
    return (
        f"{share} of the units of {where(record.names)} reordered: in order, relative L2 is {after}"
    )


def _inconsistent(_change: Change, record: Explained) -> str:
    share = percent(record.numbers["moved"])
    return (
        f"{part(len(record.names), record.of)} reordered, but not consistently, so that the outputs"
        f" differ ({share} of the rows out of place{_in(record)})"
    )


def _in(record: Explained) -> str:
    return f"; all in {where(record.names)}" if len(record.names) < record.of else ""


def _transposed(_change: Change, record: Explained) -> str:
    return f"{subject(record)} transposed"


def _exchanged(_change: Change, record: Explained) -> str:
    return f"{' and '.join(short(name) for name in record.names[:2])} exchanged"


def _quantised(_change: Change, record: Explained) -> str:
    numbers = record.numbers
    verb = "quantised to" if record.kind != "dequantised" else "of a grid before:"
    found = f"weights {verb} {_grid(numbers)}: {len(record.names)} of {tensors(record.of)}"
    db = numbers.get("sqnr_db")
    return found + (f" (SQNR {db:.1f} dB)" if db is not None else "")


def _grid(numbers: dict[str, Any]) -> str:
    if "colours" in numbers:
        return f"a palette of {numbers['colours']} values"
    if "bits" not in numbers or " " in numbers["scheme"]:  # as the file says it
        return str(numbers["scheme"])
    group = numbers["group"]
    shared = f"groups of {group}" if isinstance(group, int) else group
    scheme = "" if str(numbers["scheme"]).startswith("int") else f" ({numbers['scheme']})"
    return f"{numbers['bits']:g} bits by {shared}{scheme}"


def _shapes(verb: str) -> Callable[[Change, Explained], str]:
    def text(change: Change, record: Explained) -> str:
        sides = {_left(delta): delta for delta in change.deltas if delta.kind not in SAME}
        shown = []
        for name in record.names[:_SHOWN]:
            pair = sides[name].pair
            left, right = pair.left, pair.right
            if verb == "reshaped" and left and right:
                shown.append(f"{short(name)}: {list(left.shape)} -> {list(right.shape)}")
            else:
                shown.append(short(name))
        return f"{tensors(len(record.names))} {verb} ({listed(shown, len(record.names))})"

    return text


def _left(delta: Any) -> str:
    info = delta.pair.left or delta.pair.right
    return str(info.name)


def _state(_change: Change, record: Explained) -> str:
    shown = listed([short(name) for name in record.names[:_SHOWN]], len(record.names))
    are = "that is no weight" if len(record.names) == 1 else "that are no weights"
    return f"{tensors(len(record.names))} {are} changed ({shown})"


_WORDS: dict[str, Callable[[Change, Explained], str]] = {
    "cast": _cast,
    "scaled": _scaled,
    "sign_flipped": _flipped,
    "pruned": _pruned,
    "zeroed": _zeroed,
    "sparse_edit": _sparse,
    "row_edit": _rows,
    "low_rank": _low_rank,
    "outer_product": _outer,
    "abliterated": _abliterated,
    "trained": _trained,
    "noise": _noise,
    "reinitialised": _drawn,
    "corrupted": _corrupted,
    "permuted": _permuted,
    "permuted_inconsistently": _inconsistent,
    "transposed": _transposed,
    "exchanged": _exchanged,
    "quantised": _quantised,
    "dequantised": _quantised,
    "palette": _quantised,
    "reshaped": _shapes("reshaped"),
    "tensors_added": _shapes("added"),
    "tensors_removed": _shapes("removed"),
    "state_changed": _state,
}
