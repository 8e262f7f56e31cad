"""The layout of `run-diff`: the same, or where two runs part and how the gap grows."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Literal

from difflens.training.records.runs import Parted, RunDiff

from ..document.document import Document, Line, part
from ..document.numbers import UNKNOWN, plural, short

_MOST = 5
_WORDS = {0.0: "differ at all"}


def parting(result: RunDiff) -> Document:
    """Lay out a comparison; the verdict says where to look first."""
    return Document(
        title="run-diff",
        opening=f"run-diff {result.left} {result.right}",
        verdict=verdict(result),
        word="Different" if result.differs else "Same",
        mood="plain" if result.differs else "good",
        parts=(
            *part("Where they part", list(map(_line, result.parted))),
            *part("Only on one side", list(_one_sided(result))),
            *part("Last loss", list(_losses(result))),
            *part("Not compared", list(_unread(result))),
        ),
        tiles=((str(result.steps), "steps in both"),),
        warnings=result.warnings,
        footer=f"{plural(result.steps, 'step')} in both",
    )


def verdict(result: RunDiff) -> str:
    """Say in one sentence whether the runs are the same, and if not, where they part."""
    if not result.differs:
        which = "every number that both recorded" if _unread(result) else "every number"
        return f"the same: {which} of {plural(result.steps, 'step')}, to the last bit"
    if not result.steps:
        return "they have no step in common"
    if not result.parted:
        return f"the same in the {plural(result.steps, 'step')} that both recorded"
    first = result.parted[0]
    return f"they part at step {first.step}: {_where(first)}"


def _where(parted: Parted) -> str:
    return f"{parted.field} of {parted.layer}" if parted.layer else parted.field


def _line(parted: Parted) -> Line:
    beyond = _WORDS.get(parted.tolerance, f"differ by more than {parted.tolerance:g}")
    text = f"step {parted.step}: {_where(parted)} {_value(parted.left)} -> {_value(parted.right)}"
    more = len(parted.layers) - _MOST
    if len(parted.layers) > 1:
        names = ", ".join(parted.layers[:_MOST])
        text += f"; {plural(len(parted.layers), 'layer')}: {names}"
        text += f" and {more} more" if more > 0 else ""
    return Line(text, beyond, "~", "parts")


def _one_sided(result: RunDiff) -> Iterator[Line]:
    for side, steps, layers in (
        ("left", result.left_only_steps, result.left_only_layers),
        ("right", result.right_only_steps, result.right_only_layers),
    ):
        sign: Literal["-", "+"] = "-" if side == "left" else "+"
        if steps:
            yield Line(plural(steps, "step"), side, sign, f"{side} only")
        if layers:
            more = len(layers) - _MOST
            named = ", ".join(layers[:_MOST]) + (f" and {more} more" if more > 0 else "")
            yield Line(f"layers {named}", side, sign, f"{side} only")


def _unread(result: RunDiff) -> list[Line]:
    """Say at how many steps layers could not be compared."""
    read = result.steps if result.read_steps is None else result.read_steps
    if read == result.steps:
        return []
    some = f"the layers of {plural(result.steps - read, 'step')}, which one run or both did not"
    return [Line(f"{some} read; every=1 in the monitor reads them all", sign="?")]


def _losses(result: RunDiff) -> Iterator[Line]:
    if result.left_last_loss is not None or result.right_last_loss is not None:
        yield Line(f"{_value(result.left_last_loss)} -> {_value(result.right_last_loss)}")


def _value(value: float | str | None) -> str:
    if value is None:
        return UNKNOWN
    return value if isinstance(value, str) else f"{value:.9g}" if value % 1 else short(value)
