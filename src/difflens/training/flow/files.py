"""The files of a recorded flow, written complete or not at all: JSON and CSV.

    {"schema": 1, "what": "difflens.flow", "config": {…}, "frames_recorded": n, "first_step": …,
     "last_step": …, "layers": [LayerFlow, …], "frames": [{"step": …, "layers": [{…}, …]}, …]}

No number in JSON is NaN or infinite: what could not be computed is null, its state says why, and
`non_finite` counts the values. A bare list of frames, as the first animator wrote it, is read too.
CSV has one line per frame and layer, the same seven columns first.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from csv import writer
from math import isfinite
from pathlib import Path
from typing import Annotated, Any

import msgspec
import numpy as np

from difflens.core.errors import OutputError, RunError, SnapshotError
from difflens.core.escape import for_csv
from difflens.core.whole_file import whole_file

from ..records.flow import FLOW_SCHEMA, FLOW_STATES, FlowState, GradientFlowConfig, LayerFlow
from .states import NOTHING, Reading


def write(path: str | Path, pieces: Iterable[bytes]) -> None:
    """Write pieces to a temporary file beside the target, then rename it; folders are made."""
    try:
        Path(os.path.realpath(path)).parent.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise OutputError((error.strerror or str(error)).lower(), where=str(path)) from error
    with whole_file(path) as file:
        file.writelines(pieces)


def read(path: str | Path) -> bytes:
    """Read a file."""
    try:
        return Path(path).read_bytes()
    except OSError as error:
        raise RunError(path, (error.strerror or str(error)).lower()) from error


WHAT = "difflens.flow"


Count = Annotated[int, msgspec.Meta(ge=0, le=2**62)]


class LayerEntry(msgspec.Struct):
    """One layer of a frame, as it lies in the file; what is not known there is ignored."""

    name: str
    mean_abs_grad: float | None
    max_abs_grad: float | None
    grad_norm: float | None
    is_vanishing: bool = False
    is_exploding: bool = False
    flow_intensity: float | None = None
    state: FlowState | None = None
    elements: Count | None = None
    zeros: Count | None = None
    non_finite: Count | None = None
    underflow_share: float | None = None
    weight_norm: float | None = None

    def numbers(self) -> Reading:
        """Return what a block holds of it."""
        return Reading(
            _nan(self.mean_abs_grad),
            _nan(self.max_abs_grad),
            _nan(self.grad_norm),
            _nan(self.elements),
            _nan(self.zeros),
            float(self.non_finite or 0),
            _nan(self.underflow_share),
            _nan(self.weight_norm),
        )

    def told_state(self) -> int:
        """Return the code of its state; the first animator told it by two flags alone."""
        if self.state is not None:
            return FLOW_STATES.index(self.state)
        if self.grad_norm is None:
            return FLOW_STATES.index("non_finite")  # what that animator wrote as null
        flagged = "exploding" if self.is_exploding else "vanishing" if self.is_vanishing else ""
        return FLOW_STATES.index(flagged or "healthy")


class FrameEntry(msgspec.Struct):
    """One frame, as it lies in the file."""

    step: Count
    layers: list[LayerEntry]
    first_step: Count | None = None
    frames: Count = 1


class Envelope(msgspec.Struct):
    """The whole file."""

    frames: list[FrameEntry]
    config: GradientFlowConfig
    schema: int = FLOW_SCHEMA
    what: str = WHAT
    frames_recorded: Count | None = None
    first_step: Count | None = None
    last_step: Count | None = None
    layers: list[LayerFlow] | None = None


def decoded(path: str | Path, data: bytes) -> Envelope:
    """Read a file, or say what is wrong with it."""
    try:
        if data.lstrip()[:1] == b"[":
            frames = msgspec.json.decode(data, type=list[FrameEntry])
            return Envelope(frames, GradientFlowConfig())
        envelope = msgspec.json.decode(data, type=Envelope)
    except (msgspec.MsgspecError, SnapshotError, RecursionError) as error:
        raise RunError(path, f"it is no recorded flow: {error}") from error
    if envelope.schema > FLOW_SCHEMA:
        reason = f"its schema is {envelope.schema}, this difflens knows {FLOW_SCHEMA}"
        raise RunError(path, reason, hint="use a newer difflens")
    return envelope


def encoded(
    head: dict[str, Any], frames: Iterable[dict[str, Any]], further: dict[str, Any]
) -> Iterator[bytes]:
    """Write it piece by piece, one frame per line, so that a long run needs no second copy."""
    start = msgspec.json.encode({"schema": FLOW_SCHEMA, "what": WHAT, **head})
    yield start[:-1] + b',\n"frames": ['
    between = b"\n"
    for frame in frames:
        yield between + msgspec.json.encode(frame)
        between = b",\n"
    rest = msgspec.json.encode(further)[1:-1]
    yield b"\n]" + (b",\n" + rest if rest else b"") + b"}\n"


def layer_entry(
    name: str, numbers: Sequence[float], state: int, intensity: float | None
) -> dict[str, Any]:
    """Return one layer of a frame as plain data, the seven fields of a layer first."""
    read = Reading(*numbers)
    counted, odd = isfinite(read.elements), FLOW_STATES[state] == "non_finite"
    return {
        "name": name,
        "mean_abs_grad": known(read.mean_abs),
        "max_abs_grad": known(read.max_abs),
        "grad_norm": known(read.norm),
        "is_vanishing": FLOW_STATES[state] == "vanishing",
        "is_exploding": FLOW_STATES[state] == "exploding",
        "flow_intensity": intensity,
        "state": FLOW_STATES[state],
        "elements": int(read.elements) if counted else None,
        "zeros": int(read.zeros) if counted and isfinite(read.zeros) else None,
        # A norm may be all that says so: how many values were not finite is not known then.
        "non_finite": int(read.non_finite) or (None if odd else 0),
        "underflow_share": known(read.underflow),
        "weight_norm": known(read.weight_norm),
    }


def known(value: float) -> float | None:
    """Return the number, or None if there is none."""
    return float(value) if isfinite(value) else None


def _nan(value: float | None) -> float:
    return float("nan") if value is None else float(value)


def empty_block(layers: int) -> Any:
    """Return a block in which no layer has a gradient."""
    return np.tile(np.array(NOTHING)[:, None], (1, layers))


COLUMNS = tuple(
    """
    step layer mean_abs_grad max_abs_grad grad_norm is_vanishing is_exploding flow_intensity
    state elements zeros non_finite underflow_share weight_norm first_step frames
""".split()
)


def table(frames: Iterable[Mapping[str, Any]]) -> Iterator[bytes]:
    """Yield the header, then the lines of one frame at a time; floats read back as they were."""
    yield ",".join(COLUMNS).encode() + b"\n"
    for frame in frames:
        lines = _Lines()
        write = writer(lines, lineterminator="\r\n").writerow
        for layer in frame["layers"]:
            row = {**frame, **layer, "layer": for_csv(layer["name"])}
            write([_cell(row[column]) for column in COLUMNS])
        yield "".join(lines).encode("utf-8", "backslashreplace")


class _Lines(list[str]):
    r"""Collects lines ending in \n; csv quotes a lone \r in a name only if \r ends lines too."""

    def write(self, line: str) -> None:
        self.append(f"{line[:-2]}\n")


def _cell(value: Any) -> str:
    if value is None:
        return ""
    if isinstance(value, bool):
        return "1" if value else "0"
    return repr(value) if isinstance(value, float) else str(value)
