"""Gradients that never arrive: all of them are exactly zero, also in the last layer."""

from __future__ import annotations

from ...records.runs import Fix, RunFinding
from ..signs.degrees import HALF
from ..signs.sight import Sight
from ..signs.silence import POINTS, are_rounded_off, is_silent
from ..signs.wording import above, finding

_SCALE = 1024.0  # of a loss whose gradients half precision would lose; divided out again


def is_lost(seen: Sight) -> bool:
    """Are next to all gradients zero, though a few entries pass, and is nothing learned?

    Where they were rounded off from the start, what is learned is learned of what is left.
    """
    return (seen.loss.fall < HALF or are_rounded_off(seen)) and is_silent(seen)


def none_arrives(seen: Sight, layers: list[str]) -> list[RunFinding]:
    """Tell that gradients are exactly zero though steps are taken, those of the last layer too.

    Behind a linear last layer no dead unit does that: its bias would still get a gradient.
    """
    final = str(seen.history.fact("final_module") or "")
    if not is_silent(seen) or final not in ("Linear", "Dense"):
        return []  # dead or symmetric, and told there
    return finding(
        "not-training",
        "critical",
        f"next to all gradients were exactly zero over {seen.points} points, in the last layer too",
        {"points": seen.points, "loss_fall": seen.loss.fall},
        since=int(seen.steps[0]),
        layers=layers,
        cause="nothing comes back from the loss: it underflows (half precision without a loss "
        "scale, a tiny weight), is multiplied by zero, or does not depend on the outputs",
        advice=["look at the loss that backward() is called on", "scale it in half precision"],
        signs=[above(seen.points, POINTS / 2)],
        fix=Fix("scale_loss", {"factor": _SCALE}),
    )
