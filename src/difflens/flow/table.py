"""A recorded flow as CSV: one line a frame and layer, the contract's seven columns first."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from csv import writer
from typing import Any

from ..escape import for_csv

COLUMNS = ("step", "layer", "mean_abs_grad", "max_abs_grad", "grad_norm", "is_vanishing",
           "is_exploding", "flow_intensity", "state", "elements", "zeros", "non_finite",
           "underflow_share", "weight_norm", "first_step", "frames")  # fmt: skip


def table(frames: Iterable[Mapping[str, Any]]) -> Iterator[bytes]:
    """Give the header, then the lines of one frame at a time; floats read back as they were."""
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
