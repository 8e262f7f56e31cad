"""The plain values inside a torch checkpoint, by key: what lies beside its tensors, typed."""

from __future__ import annotations

from typing import Any

from difflens.core.errors import CorruptFile, UnknownFormat
from difflens.core.escape import visible
from difflens.core.protocols import ModelFile

from ..containers.pickle_nodes import Dict
from ..formats.pytorch import Archive
from ..formats.pytorch import recognise as is_zip
from ..formats.pytorch_legacy import recognise as is_legacy
from ..formats.pytorch_legacy import root as legacy_root

_MOST = 1_000_000  # values that are copied out
_HEAD = 4096


def root(file: ModelFile) -> Any:
    """Read the pickle of a checkpoint: nodes of `pickle_nodes`, nothing made or called."""
    head = file.read(0, min(_HEAD, file.size))
    if is_zip(head, file.path):
        return Archive(file).root()[0]
    if is_legacy(head, file.path):
        return legacy_root(file)
    raise UnknownFormat(visible(str(file.path)), "no file that torch.save wrote")


def plain_copy(node: Any, where: str) -> Any:
    """Copy dictionaries, lists, numbers and texts; anything else, tensors too, becomes None.

    What holds itself, or repeats itself without end, is refused.
    """
    return _Copier(where).copy(node, 8)


class _Copier:
    """Counts what it copies."""

    def __init__(self, where: str) -> None:
        self._where = where
        self._left = _MOST

    def copy(self, node: Any, levels: int) -> Any:
        """Copy down to so many levels."""
        self._left -= 1
        if self._left < 0 or not levels:
            raise CorruptFile(self._where, "its groups repeat themselves too often, or too deep")
        if type(node) is Dict:
            pairs = zip(node.flat[::2], node.flat[1::2], strict=True)
            return {
                key: self.copy(value, levels - 1) for key, value in pairs if type(key) in (str, int)
            }
        if type(node) in (list, tuple):
            return [self.copy(each, levels - 1) for each in node]
        return node if type(node) in (bool, int, float, str) else None
