"""Memories that fade in time: small recurrent matrices, gates that start shut, empty places."""

from __future__ import annotations

import numpy as np

from ...runs import Fix, RunFinding
from ..signs.harms import Harm
from ..signs.limits import Limits
from ..signs.recurrence import RECURRENT, biased_gates, wrong_memory
from ..signs.sight import Sight
from ..signs.wording import below, finding

_LASTING = 60
# Of an LSTM's forget gate (Jozefowicz et al. 2015, An empirical exploration of recurrent networks).
_FORGET = 1.0


def fading_memory(seen: Sight, limit: Limits, told: Harm) -> list[RunFinding]:
    """Find what is forgotten from step to step of a sequence, where the loss is stuck."""
    memory = wrong_memory(seen.history, lambda gain: gain < limit["recurrent_gain"])
    if seen.loss.n < limit["recurrent_points"]:
        return []
    if memory is None:
        return _gates(seen, told) or _unread(seen, limit, told)
    gain = memory.gain
    return [
        finding(
            "vanishing",
            "critical" if seen.loss.n >= 2 * _LASTING else "warning",
            f"{memory.layers[0]} keeps {gain:.2g} of what it remembers at every step of a sequence "
            f"({gain**10:.1g} after ten); {told.said}",
            {"recurrent_gain": gain, "recurrent_gain_threshold": limit["recurrent_gain"],
             "loss_fall": told.figure},
            since=told.since,
            layers=memory.layers,
            cause="the recurrent matrix is small: what came early is forgotten, and no gradient "
            "comes back from it",
            advice=["initialise the recurrent matrix orthogonally", "use a GRU or an LSTM",
                    "shorten the sequences"],
            signs=[below(gain, limit["recurrent_gain"])],
            fix=memory.fix,
        )
    ]  # fmt: skip


def _gates(seen: Sight, told: Harm) -> list[RunFinding]:
    """Find gates with large first biases beside a loss that is stuck: they are shut, not open."""
    names = biased_gates(seen.history)
    if not names or told.kind != "stuck":
        return []
    return [
        finding(
            "vanishing",
            "critical" if seen.loss.n >= 2 * _LASTING else "warning",
            f"the gates of {names[0]} start far from half open, and {told.said}",
            {"gates": len(names), "loss_fall": told.figure}, since=told.since, layers=names,
            cause="gates that are shut forget at every step of a sequence what they were given",
            advice=["start the biases at zero, that of the forget gate at one"],
            fix=Fix("reinitialise", {"scheme": "orthogonal", "layers": names, **_opened(seen)}),
        )
    ]  # fmt: skip


def _unread(seen: Sight, limit: Limits, told: Harm) -> list[RunFinding]:
    """Find a memory whose input matrix gets next to nothing of what its recurrent one gets.

    Both get the same slopes, the one times inputs and the other times states. So where it counted
    there were inputs and no slope any more, and where slopes come back from there are none: empty
    places were read since. A gradient of exactly zero is no memory's fault: nothing comes in.
    """
    sizes = seen.layers.recent(seen.layers.gradient)
    found = None if sizes is None or told.kind != "stuck" else _first_memory(seen)
    if sizes is None or found is None:
        return []
    columns = list(found)
    part = float(sizes[columns[0]] / sizes[columns[1]]) if sizes[columns[1]] > 0 else 0.0
    if not 0 < part < limit["ratio"]:
        return []
    names = seen.layers.named(columns)
    return [
        finding(
            "vanishing",
            "critical" if seen.loss.n >= 2 * _LASTING else "warning",
            f"{names[0]} gets {part:.1g} of the gradient of {names[1]}: none comes back to where "
            f"inputs were read; {told.said}",
            {"input_by_recurrent": part, "ratio_threshold": limit["ratio"],
             "loss_fall": told.figure},
            since=told.since,
            layers=names,
            cause="what counts lies so many steps back that no gradient reaches it: empty places "
            "behind each sequence are read as if they were part of it",
            advice=["mask or pack the padding, or answer from the last place that is full",
                    "put the padding in front, or shorten the sequences"],
            signs=[below(part, limit["ratio"])],
            fix=Fix("follow_example"),
        )
    ]  # fmt: skip


def _first_memory(seen: Sight) -> tuple[int, int] | None:
    """Give the columns of the input and the recurrent matrix of the memory nearest to the input."""
    columns = [int(i) for i in np.flatnonzero(seen.layers.trained)
               if seen.layers.of(int(i)).kind in RECURRENT]  # fmt: skip
    again = [i for i in columns if _is_recurrent(seen.layers.of(i).name)]
    for i in again:
        name = seen.layers.of(i).name
        alike = name.replace("_hh", "_ih").replace("recurrent_", "")
        beside = [j for j in columns if seen.layers.of(j).name == alike and j != i]
        if beside:
            return beside[0], i
    return None


def _is_recurrent(name: str) -> bool:
    last = name.rpartition(".")[2]
    return "_hh" in last or "recurrent" in last


def _opened(seen: Sight) -> dict[str, float]:
    """Ask for an open forget gate where there is one; those of a GRU start half open."""
    found = any(layer.kind.startswith("LSTM") for layer in seen.history.info.layers)
    return {"forget_bias": _FORGET} if found else {}
