"""The cells of the table: one pair of files each, whether it is right, and what difflens says."""

from __future__ import annotations

import contextlib
import io
import shutil
from collections.abc import Callable, Iterator
from itertools import islice
from pathlib import Path
from typing import NamedTuple

import onnx
import torch
from safetensors.torch import save_file

from . import exports, faults, networks

_TRIES = 12  # places of a fault that are tried before it is said to change nothing
_PLACES = 3  # at which each fault is put, one file each
_AS_PICKLE = ("mlp", "lstm", "gpt2")  # whose left side is a .pt file
_SAME = ("same model", "same within storage rounding")
NOT_APPLICABLE = "-"
SKIPPED = "changes nothing"

Exporter = Callable[[networks.Network, str], onnx.ModelProto]


class Cell(NamedTuple):
    """One conversion: what was done to it, and the answer."""

    model: str
    state: str
    exporter: str
    kind: str
    is_right: bool
    code: int = -1
    last: str = ""
    note: str = ""

    @property
    def passed(self) -> bool | None:
        """Was the answer right? None if there was nothing to ask."""
        if self.note:
            return None
        same = self.code == 0 and self.last.startswith(_SAME)
        return same if self.is_right else self.code == 1 and not self.last.startswith(_SAME)


def ask(left: Path, right: Path) -> tuple[int, str, str]:
    """Run the command as a user does; the exit code, the last line, and all that was printed."""
    from difflens import cli

    printed = io.StringIO()
    with contextlib.redirect_stdout(printed), contextlib.redirect_stderr(printed):
        code = cli._run([str(left), str(right), "--verify-conversion"])  # noqa: SLF001
    lines = [line for line in printed.getvalue().splitlines() if line.strip()]
    return code, lines[-1] if lines else "", printed.getvalue()


class Bench:
    """Makes the files of one network and one exporter, and asks about each."""

    def __init__(self, model: str, state: str, exporter: str, folder: Path) -> None:
        """Make the network; nothing is exported yet."""
        self._key = model, state, exporter
        self._folder = folder / "-".join(self._key)
        self._folder.mkdir(parents=True, exist_ok=True)
        self._network = networks.make(model, state)
        self._function = exports.Function(self._network.inputs)
        self._left = self._save_left(self._network.model.state_dict(), model)

    def _save_left(self, state: dict[str, torch.Tensor], model: str) -> Path:
        copied = {name: each.detach().clone().contiguous() for name, each in state.items()}
        path = self._folder / ("left.pt" if model in _AS_PICKLE else "left.safetensors")
        if path.suffix == ".pt":
            torch.save(copied, path)
        else:
            save_file(copied, path)
        return path

    def _exported(self, kind: str, export: Exporter) -> onnx.ModelProto:
        """Export, or read what an earlier run of this bench has exported here."""
        path = self._folder / f"{kind}.onnx"
        if path.exists():
            return onnx.load(path)
        made = export(self._network, self._key[2])
        exports.save(made, path)
        return made

    def cells(self, only: list[str]) -> Iterator[Cell]:
        """Yield the answers, right conversions first."""
        try:
            model = self._exported(exports.RIGHT, exports.plainly)
            one = self._function.of(model)
        except Exception as error:  # noqa: BLE001  whatever an exporter raises belongs in the table
            yield Cell(*self._key, exports.RIGHT, is_right=True, note=_reason(error))
            return
        for kind, right in self._right(model, only):
            yield right if isinstance(right, Cell) else self._cell(kind, right, is_right=True)
        for kind, wrong in self._wrong(model, one, only):
            if isinstance(wrong, str):
                yield Cell(*self._key, kind, is_right=False, note=wrong)
            else:
                yield self._cell(kind, wrong, is_right=False)

    def _right(
        self, model: onnx.ModelProto, only: list[str]
    ) -> Iterator[tuple[str, onnx.ModelProto | Cell]]:
        yield exports.RIGHT, model
        makers: dict[str, Callable[[], onnx.ModelProto]] = {
            "external data": lambda: model,
            "renamed": lambda: exports.renamed(model),
            "wrapped": lambda: self._exported("wrapped", exports.wrapped),
            "dynamic": lambda: self._exported("dynamic", exports.dynamic),
            "unfolded": lambda: self._exported("unfolded", exports.unfolded),
            "fp16": lambda: self._exported("fp16", exports.halved),
        }
        for kind, make in makers.items():
            if only and kind not in only:
                continue
            if kind == "unfolded" and self._key[2] == "dynamo":
                yield kind, Cell(*self._key, kind, is_right=True, note=NOT_APPLICABLE)
                continue
            try:
                made = make()
            except Exception as error:  # noqa: BLE001  as above
                yield kind, Cell(*self._key, kind, is_right=True, note=_reason(error))
                continue
            yield kind, made

    def _wrong(
        self, model: onnx.ModelProto, one: exports.Array, only: list[str]
    ) -> Iterator[tuple[str, onnx.ModelProto | str]]:
        state = {
            name: each.float().numpy()
            for name, each in self._network.model.state_dict().items()
            if each.is_floating_point()
        }
        weights = faults.Weights(model.graph, state)
        kinds = {
            kind: (faults.put(model, change) for change in fault(weights))
            for kind, fault in faults.FAULTS.items()
        } | {kind: fault(model) for kind, fault in faults.GRAPH_FAULTS.items()}
        for kind, changed in kinds.items():
            if only and kind not in only:
                continue
            tried = list(islice(changed, _TRIES))
            found = (each for each in tried if self._function.differs(one, each))
            chosen = list(islice(found, _PLACES))
            yield from ((kind, each) for each in chosen)
            if not chosen:
                yield kind, SKIPPED if tried else NOT_APPLICABLE

    def _cell(self, kind: str, model: onnx.ModelProto, *, is_right: bool) -> Cell:
        folder = self._folder / kind.replace(" ", "-").replace("%", "percent")
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir()
        path = exports.save(model, folder / "right.onnx", external=kind == "external data")
        code, last, printed = ask(self._left, path)
        cell = Cell(*self._key, kind, is_right, code, last)
        if cell.passed:
            shutil.rmtree(folder)
        else:
            (folder / "printed.txt").write_text(printed)
        return cell


def _reason(error: Exception) -> str:
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    return f"no export: {type(error).__name__}: {lines[0][:120] if lines else ''}"
