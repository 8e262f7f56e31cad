"""One plain sentence about a change, for people who read nothing else."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable

from ...records import Delta
from ..anatomy.places import listed, short, where
from .change import Change, Numbers
from .rounding import is_rounding_only
from .wording import clause

_SHOWN = 2  # names in brackets before "and n more"


def sentence(change: Change, tags: dict[str, Numbers]) -> str:
    """Say what happened, the main thing first."""
    if not change.deltas:
        return "neither model holds a tensor"
    main = [*_main(change, tags), *_nonfinite(change), *_zeroed(change)]
    others = [*_structure(change), *_casts(change, tags), *_still(change, tags)]
    return "; ".join([*main, *others, *_renames(change)])


def _main(change: Change, tags: dict[str, Numbers]) -> list[str]:
    whole = len(change.deltas)
    if "bitwise_identical" in tags:
        return [_of_all(int(tags["bitwise_identical"]["identical"]), whole, "is", "bit-identical")]
    if "dtype_cast" in tags:
        moved = any(each.scan.square_sum for each in change.measured)
        rest = "nothing moved by more than storage rounding" if moved else "no value moved"
        number = len(change.differing)
        return [f"{_dtypes(change.differing)}: {_part(number, whole)}, {rest}"]
    if "uniform_scale" in tags:
        factor = f"multiplied by {tags['uniform_scale']['c']:.6g}"
        text = _of_all(len(change.measured), whole, "was", factor)
        return [text + _places(change, whole)]
    primary = next(iter(tags))
    told = clause(change, primary, tags[primary])
    return [told] if told else _changed(change, tags)


def _changed(change: Change, tags: dict[str, Numbers]) -> list[str]:
    changed = [delta for delta in change.differing if _is_beyond_rounding(delta, change)]
    if not changed:
        return []
    whole, number = len(change.deltas), len(changed)
    text = f"{_part(number, whole)} changed"
    if number == 1 < whole:
        text += f": {short(changed[0].name)}"
    elif number < whole:
        what = "biases in" if "bias_only" in tags else "in"
        text += f", all {what} {where([delta.name for delta in changed])}"
    notes = [*_sparse(tags), *_relative(change, changed)]
    return [text + (f" ({', '.join(notes)})" if notes else "")]


def _is_beyond_rounding(delta: Delta, change: Change) -> bool:
    if delta.kind == "recast":
        scan = change.scans.get(delta.name)
        return scan is not None and not is_rounding_only(scan)
    return delta.kind == "changed"


def _sparse(tags: dict[str, Numbers]) -> list[str]:
    if "sparse_delta" not in tags:
        return []
    return [f"only {100 * tags['sparse_delta']['changed_fraction']:.2g} % of their elements"]


def _relative(change: Change, changed: list[Delta]) -> list[str]:
    scans = [scan for delta in changed if (scan := change.scans.get(delta.name))]
    values = sorted(value for scan in scans if (value := scan.relative_l2))
    if not values:
        return []
    low, high = f"{values[0]:.1e}", f"{values[-1]:.1e}"
    return [f"relative L2 {low}" if low == high else f"relative L2 {low} to {high}"]


def _places(change: Change, whole: int) -> str:
    names = [each.name for each in change.measured]
    return f" (all in {where(names)})" if len(names) < whole else ""


def _structure(change: Change) -> list[str]:
    clauses = []
    for kind, words in (
        ("reshaped", "reshaped"),
        ("added", "added"),
        ("removed", "removed"),
        ("uncompared", "could not be compared"),
        ("tied", "tied to another of its side"),
    ):
        found = [delta for delta in change.deltas if delta.kind == kind]
        if found:
            examples = listed([_described(delta) for delta in found[:_SHOWN]], len(found))
            clauses.append(f"{_tensors(len(found))} {words} ({examples})")
    return clauses


def _described(delta: Delta) -> str:
    left, right = delta.pair.left, delta.pair.right
    if delta.kind == "reshaped" and left and right:
        return f"{short(delta.name)}: {list(left.shape)} -> {list(right.shape)}"
    return short(delta.name)


def _casts(change: Change, tags: dict[str, Numbers]) -> list[str]:
    recast = [delta for delta in change.differing if delta.kind == "recast"]
    if not recast or "dtype_cast" in tags:
        return []
    return [f"{_tensors(len(recast))} {_dtypes(recast)}"]


def _dtypes(deltas: Iterable[Delta]) -> str:
    casts = Counter(
        (delta.pair.left.dtype, delta.pair.right.dtype)
        for delta in deltas
        if delta.pair.left and delta.pair.right
    )
    if len(casts) > _SHOWN:
        return f"cast in {len(casts)} ways"
    return " and ".join(f"cast from {left} to {right}" for left, right in casts)


def _still(change: Change, tags: dict[str, Numbers]) -> list[str]:
    kinds = Counter(delta.kind for delta in change.deltas)
    clauses = []
    if kinds["within_epsilon"]:
        clauses.append(f"{_tensors(kinds['within_epsilon'])} moved by no more than epsilon")
    if kinds["identical"] and "bitwise_identical" not in tags:
        clauses.append("everything else bit-identical")
    return clauses


def _renames(change: Change) -> list[str]:
    rules = Counter(delta.pair.how for delta in change.deltas if delta.pair.renamed)
    if not rules:
        return []
    most = rules.most_common(1)[0][0]
    more = f" and {len(rules) - 1} more" if len(rules) > 1 else ""
    return [f"{_tensors(sum(rules.values()))} renamed ({short(most)}{more})"]


def _nonfinite(change: Change) -> list[str]:
    new = change.new_nonfinite
    if not new:
        return []
    number = sum(new.values())
    worst = max(new, key=lambda name: (new[name], name))
    values = "NaN/Inf value" if number == 1 else "NaN/Inf values"
    place = short(worst) if len(new) == 1 else f"{len(new)} tensors, most in {short(worst)}"
    return [f"{number} {values} appeared in {place}"]


def _zeroed(change: Change) -> list[str]:
    zeroed = change.new_zero
    if not zeroed:
        return []
    more = f" and {len(zeroed) - 1} more are" if len(zeroed) > 1 else " is"
    return [f"{short(zeroed[0])}{more} all zeros now"]


def _of_all(number: int, whole: int, verb: str, rest: str) -> str:
    if number < whole:
        verb = verb if number == 1 else {"is": "are", "was": "were"}[verb]
        return f"{number} of {_tensors(whole)} {verb} {rest}"
    return (
        f"every one of {whole} tensors {verb} {rest}" if whole > 1 else f"the tensor {verb} {rest}"
    )


def _part(number: int, whole: int) -> str:
    if number < whole:
        return f"{number} of {_tensors(whole)}"
    return f"all {whole} tensors" if whole > 1 else "the only tensor"


def _tensors(number: int) -> str:
    return f"{number} tensor" if number == 1 else f"{number} tensors"
