"""A model whose tensors are encodings: reading by name, with the checks every reader makes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from ...errors import UnknownName
from ...escape import for_terminal
from ...protocols import ModelFile
from ...records import TensorInfo
from .encodings import Encoding

_SHOWN = 3  # names in one warning


class Encoded:
    """An open model file; a format gives it tensors and how each is kept."""

    def __init__(self, file: ModelFile, form: str) -> None:
        """Take over the file."""
        self.format = form
        self.warnings: list[str] = []
        self.refused: list[str] = []
        self.metadata: Mapping[str, str] = {}
        self.tensors: dict[str, TensorInfo] = {}
        self.opened: list[ModelFile] = []  # files within the file, closed with it
        self.file = file
        self._encodings: dict[str, Encoding] = {}

    def warn(self, what: str, names: Sequence[str]) -> None:
        """Say something of several tensors in one line, if there are any."""
        if names:
            shown = ", ".join(f"'{for_terminal(name)}'" for name in names[:_SHOWN])
            more = f" and {len(names) - _SHOWN} more" if len(names) > _SHOWN else ""
            self.warnings.append(f"{what}: {shown}{more}")

    def add(self, info: TensorInfo, encoding: Encoding) -> None:
        """Put a tensor behind the others."""
        self.tensors[info.name] = info
        self._encodings[info.name] = encoding

    def read_into(self, name: str, start: int, stop: int, buffer: memoryview) -> int:
        """Fill the buffer with bytes [start, stop) of the tensor and say how many."""
        try:
            encoding, size = self._encodings[name], self.tensors[name].size_bytes
        except KeyError:
            raise UnknownName("tensor", name, self.tensors) from None
        if not 0 <= start <= stop <= size or stop - start > len(buffer):
            wanted = f"[{start}, {stop}) of {size} bytes into a buffer of {len(buffer)}"
            raise ValueError(f"tensor {name!r}: cannot read {wanted}")
        return encoding.read_into(start, buffer[: stop - start])

    def confirm(self) -> None:
        """Raise `ChangedWhileReading` if the file is not the one that was opened."""
        self.file.confirm()

    def close(self) -> None:
        """Forget what was unpacked, and give the descriptor back."""
        for file in self.opened:
            file.close()
        self._encodings.clear()
        self.file.close()
