"""The state beside the weights in words: a line for each part, a clause for the verdict."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from difflens.core.state import StatePart

_SIDES = ("left", "right")
_ALWAYS_SHOWN = ("step", "lr", "epoch")  # in this order


def number_text(value: float | str | None) -> str:
    """Write a number of a run for people.

    >>> number_text(2000.0), number_text(7.93578e-05), number_text("(0.9, 0.999)")
    ('2,000', '7.936e-05', '(0.9, 0.999)')
    """
    if value is None:
        return "unknown"
    if isinstance(value, str):
        return value
    return f"{value:,.0f}" if value.is_integer() and abs(value) < 1e15 else f"{value:.4g}"


def part_text(part: StatePart) -> str:
    """Describe a part in words: what it holds, its numbers, whether it differs."""
    values = part.values_changed
    said = [_contents(part), *_moved_numbers(part), *_distance(part)]
    sides = [side for side in _SIDES if part.tensors[side]]
    if len(sides) == 1:
        said.append(f"only on the {sides[0]}")
    elif part.differs and part.changed:
        said.append(f"{part.changed:,} of {max(part.tensors.values()):,} tensors differ")
    elif part.differs:
        said.append("other tensors")
    elif not part.moved and part.changed is not None:
        said.append("unchanged")
    elif len(said) < 2 or not any(said[1:]):
        said.append(f"{values} plain value{' differs' if values == 1 else 's differ'}")
    return ", ".join(filter(None, said))


def _contents(part: StatePart) -> str:
    """Count its tensors: moments by slot where all parameters have each."""
    counts = set(part.slots.values())
    if part.slots and "" not in part.slots:
        moments = f"{len(part.slots)} x {counts.pop():,}" if len(counts) == 1 else ""
        number = moments or f"{sum(part.slots.values()):,}"
        word = "moment" if number in {"1", "1 x 1"} else "moments"
        return f"{number} {word} ({', '.join(part.slots)})"
    left, right = (part.tensors[side] for side in _SIDES)
    count = right or left
    if part.kind == "counters" or not count:
        return ""
    if left and right and left != right:
        return f"{left:,} -> {right:,} tensors"
    return f"{count:,} tensor{'' if count == 1 else 's'}"


def _moved_numbers(part: StatePart) -> Iterator[str]:
    ordered = dict.fromkeys([*_ALWAYS_SHOWN, *part.numbers])
    for name in filter(part.numbers.__contains__, ordered):
        left, right = part.numbers[name]
        if left != right:
            absent = "none" if None in part.numbers[name] else ""
            sides = [absent if each is None else number_text(each) for each in (left, right)]
            yield f"{name} {' -> '.join(sides)}"
        elif name in _ALWAYS_SHOWN:
            yield f"{name} {number_text(left)}"


def _distance(part: StatePart) -> Iterator[str]:
    known = [value for value in part.from_weights.values() if value is not None]
    if known:
        shown = dict.fromkeys(f"{value:.1e}" if value else "0" for value in known)
        yield f"relative L2 {' -> '.join(shown)} from the weights"


def state_sentence(parts: Iterable[StatePart]) -> str:
    """Say which state differs, for a verdict over weights that do not; empty if none does."""
    differing = [each for each in parts if each.differs]
    if not differing:
        return ""
    one_sided = {side for each in differing for side in _SIDES if not each.tensors[side]}
    names = [_WORDS.get(each.kind, each.kind) for each in differing]
    numbers = [
        f"{name} {number_text(left)} -> {number_text(right)}"
        for each in differing
        for name, (left, right) in each.numbers.items()
        if name == "step" and left != right and None not in (left, right)
    ]
    said, is_one = " and ".join(dict.fromkeys(names)), len(set(names)) == 1
    if len(one_sided) == 1 and not any(all(each.tensors.values()) for each in differing):
        side = "right" if one_sided == {"left"} else "left"
        return f"{said} {'is' if is_one else 'are'} only on the {side}"
    said += " differs" if is_one else " differ"
    return f"{said}: {numbers[0]}" if numbers else said


_WORDS = {
    "optimizer": "the optimizer state",
    "ema": "the averaged weights",
    "scheduler": "the scheduler's state",
    "scaler": "the gradient scaler's state",
    "random": "the random state",
    "callbacks": "the callbacks' state",
    "loops": "the loops' state",
    "counters": "the counters",
}
