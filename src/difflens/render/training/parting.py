"""The layout of `run-diff`: the same, or where two runs part and how the gap grows."""

from __future__ import annotations

from collections.abc import Iterator

from ...runs import Parted, RunDiff
from ..numbers import UNKNOWN, plural, short
from ..versions.document import Document, Line, part

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
        parts=(*part("Where they part", list(map(_line, result.parted))),
               *part("Only on one side", list(_one_sided(result))),
               *part("Last loss", list(_losses(result)))),
        tiles=((str(result.steps), "steps in both"),),
        warnings=result.warnings,
        footer=f"{plural(result.steps, 'step')} in both",
    )  # fmt: skip


def verdict(result: RunDiff) -> str:
    """Say in one sentence whether the runs are the same, and if not, where they part."""
    if not result.differs:
        return f"the same: every number of {plural(result.steps, 'step')}, to the last bit"
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
    text = (f"step {parted.step}: {_where(parted)} {_value(parted.left)} -> "
            f"{_value(parted.right)}")  # fmt: skip
    more = len(parted.layers) - _MOST
    if len(parted.layers) > 1:
        names = ", ".join(parted.layers[:_MOST])
        text += f"; {plural(len(parted.layers), 'layer')}: {names}"
        text += f" and {more} more" if more > 0 else ""
    return Line(text, beyond, "~")


def _one_sided(result: RunDiff) -> Iterator[Line]:
    for side, steps, layers in (
        ("left", result.left_only_steps, result.left_only_layers),
        ("right", result.right_only_steps, result.right_only_layers),
    ):
        if steps:
            yield Line(plural(steps, "step"), side, "-" if side == "left" else "+")
        if layers:
            more = len(layers) - _MOST
            named = ", ".join(layers[:_MOST]) + (f" and {more} more" if more > 0 else "")
            yield Line(f"layers {named}", side, "-" if side == "left" else "+")


def _losses(result: RunDiff) -> Iterator[Line]:
    if result.left_last_loss is not None or result.right_last_loss is not None:
        yield Line(f"{_value(result.left_last_loss)} -> {_value(result.right_last_loss)}")


def _value(value: float | str | None) -> str:
    if value is None:
        return UNKNOWN
    return value if isinstance(value, str) else f"{value:.9g}" if value % 1 else short(value)
