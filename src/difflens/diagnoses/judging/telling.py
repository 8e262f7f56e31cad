"""What a verdict says beside its findings: damage, gaps, and what could not be judged."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from ...runs import VALIDATION_LOSSES

if TYPE_CHECKING:
    from ...history.history import History


def notes(history: History) -> Iterator[str]:
    """Tell what is wrong with the recording itself."""
    yield from history.damage
    if history.dropped:
        yield f"{history.dropped} frames are missing between those recorded"
    estimated = history.fact("estimated_weights")
    if isinstance(estimated, int) and estimated:
        many = "one large layer" if estimated == 1 else f"{estimated} large layers"
        yield f"weights and updates of {many} are estimates, from a sample of their numbers"
    if not history.frames:
        yield "no frame was recorded: nothing can be judged"


def left_out(history: History) -> Iterator[str]:
    """Tell which diagnoses could not speak, and what they need."""
    if not history.frames:
        return
    from .. import diagnosis

    silent: dict[tuple[str, ...], list[str]] = {}
    for entry in diagnosis:
        lacking = tuple(name for name in entry.options.get("needs", ()) if not _has(history, name))
        if lacking:
            silent.setdefault(lacking, []).append(entry.name)
    for lacking, names in silent.items():
        yield f"{', '.join(lacking)} not recorded: {', '.join(names)} could not be judged"


def _has(history: History, name: str) -> bool:
    course = history.course
    if name in VALIDATION_LOSSES:
        return course.first_scalar(VALIDATION_LOSSES) is not None
    return course.field(name) is not None or course.scalar(name) is not None
