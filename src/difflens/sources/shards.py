"""A folder that is one model: an index and its shards, shards without one, or a single file.

    org/name/model.safetensors.index.json     {"weight_map": {"tensor": "shard"}}
    org/name/model-00001-of-00002.safetensors
    org/name/model-00002-of-00002.safetensors

All headers are read when the folder is opened, in the order of the shards' names.
"""

import re
from collections.abc import Callable, Iterable, Mapping
from contextlib import ExitStack
from pathlib import Path

from ..errors import CorruptFile, UnknownName
from ..escape import for_terminal, visible
from ..protocols import ModelFile, TensorSource
from ..records import TensorInfo
from . import open_file
from .files import is_file
from .folders import check_complete, contents, listed, model_folder
from .index import Index, read_index

Limits = Mapping[str, int]

_LATER_PART = re.compile(r"-(?!0*1-of-)[0-9]+-of-[0-9]+\.gguf$")


def refused(source: TensorSource) -> list[str]:
    """Name the objects a file holds that were not made."""
    return list(getattr(source, "refused", ()))


class Sharded:
    """Several files, one model."""

    def __init__(self, where: str, shards: Mapping[str, TensorSource]) -> None:
        """Merge what the shards hold; a tensor that two of them hold is refused."""
        self.format = next(iter(shards.values())).format
        tensors: dict[str, TensorInfo] = {}
        self.tensors: Mapping[str, TensorInfo] = tensors
        self._metadata: dict[str, str] = {}
        self.metadata: Mapping[str, str] = self._metadata
        self.warnings: list[str] = []
        self.refused: list[str] = sorted(
            {each for shard in shards.values() for each in refused(shard)}
        )
        self.aliases: dict[str, str] = {}
        self.homes: dict[str, str] = {}
        self.shards = shards
        for name, shard in shards.items():
            for tensor in shard.tensors:
                if tensor in self.homes:
                    both = f"'{for_terminal(self.homes[tensor])}' and '{for_terminal(name)}'"
                    reason = f"tensor '{for_terminal(tensor)}' is in two shards: {both}"
                    raise CorruptFile(where, reason)
                self.homes[tensor] = name
            tensors.update(shard.tensors)
            self.aliases.update(getattr(shard, "aliases", {}))
            self._add_metadata(name, shard.metadata)
            self.warnings += [f"{for_terminal(name)}: {warning}" for warning in shard.warnings]

    def read_into(self, name: str, start: int, stop: int, buffer: memoryview) -> int:
        """Fill the buffer with bytes [start, stop) of the tensor and say how many."""
        try:
            shard = self.shards[self.homes[name]]
        except KeyError:
            raise UnknownName("tensor", name, self.tensors) from None
        return shard.read_into(name, start, stop, buffer)

    def place(self, name: str) -> tuple[ModelFile, int] | None:
        """Say in which file the tensor lies, and at which byte; None where its shard cannot."""
        shard = self.shards[self.homes[name]]
        return shard.place(name) if hasattr(shard, "place") else None

    def confirm(self) -> None:
        """Raise `ChangedWhileReading` if a file is not the one that was opened."""
        for shard in self.shards.values():
            shard.confirm()

    def close(self) -> None:
        """Give the descriptors back."""
        for shard in self.shards.values():
            shard.close()

    def _add_metadata(self, shard: str, metadata: Mapping[str, str]) -> None:
        for key, value in metadata.items():
            if self._metadata.setdefault(key, value) != value:
                other, here = for_terminal(self.metadata[key], 40), for_terminal(value, 40)
                said = f"metadata '{for_terminal(key)}' is '{here}' in {for_terminal(shard)}"
                self.warnings.append(f"{said}, '{other}' before it: the first was kept")


def open_folder(path: Path, forced: str | None, limits: Limits) -> TensorSource:
    """Open the model a folder holds."""
    folder = model_folder(path)
    whole = _whole_folder(folder, limits)
    if whole:
        return whole
    found = contents(folder)
    if found.index_file:
        model = open_index(folder / found.index_file, forced, limits)
    else:
        check_complete(folder, found.weights)
        model = _open_shards(folder, found.weights, forced, limits)
    unread = [name for name in found.beside if name not in model.shards]
    if unread:
        read = listed([found.index_file] if found.index_file else found.weights, 1)
        model.warnings.append(f"{read} was read; not read beside it: {listed(unread)}")
    return model


def _whole_folder(folder: Path, limits: Limits) -> TensorSource | None:
    """Open the formats that are folders themselves; None where it is none of those."""
    if is_file(folder / ".metadata"):
        from .dcp import open_dcp

        return open_dcp(folder, limits)
    if is_file(folder / "saved_model.pb"):
        from .saved_model import open_saved_model

        return open_saved_model(folder, limits)
    if is_file(folder / "checkpoint"):
        from .tensorflow_paths import open_checkpoint

        return open_checkpoint(folder, limits)
    return None


def open_index(path: Path, forced: str | None, limits: Limits) -> Sharded:
    """Open the shards an index names, and hold it to its word."""
    index = read_index(path, limits)
    return _open_shards(
        path.parent, index.shards, forced, limits, lambda model: _compare(index, model)
    )


def _open_shards(
    folder: Path,
    names: Iterable[str],
    forced: str | None,
    limits: Limits,
    check: Callable[[Sharded], None] = lambda _: None,
) -> Sharded:
    """Open them all or none."""
    with ExitStack() as opened:
        shards: dict[str, TensorSource] = {}
        for name in filter(_leads, names):
            shards[name] = open_file(folder / name, forced, limits)
            opened.callback(shards[name].close)
        model = Sharded(visible(str(folder)), shards)
        check(model)
        opened.pop_all()
    return model


def _leads(name: str) -> bool:
    """Is it no later part of a split file, which its first part opens by itself?"""
    return not (name.endswith(".gguf") and _LATER_PART.search(name))


def _compare(index: Index, model: Sharded) -> None:
    """Refuse what the index promises and the shards do not hold; warn of the reverse."""
    for tensor, shard in index.weight_map.items():
        home = model.homes.get(tensor)
        if home != shard:
            place = f"it is in '{for_terminal(home)}'" if home else "no shard holds it"
            said = f"the index puts tensor '{for_terminal(tensor)}' into '{for_terminal(shard)}'"
            raise CorruptFile(index.where, f"{said}, {place}")
    extra = [name for name in model.tensors if name not in index.weight_map]
    if extra:
        model.warnings.append(f"the index lacks tensors the shards hold: {listed(extra)}")
    size = sum(info.size_bytes for info in model.tensors.values())
    if index.total_size not in (None, size):
        said = f"the index gives a total_size of {index.total_size}"
        model.warnings.append(f"{said}, the tensors take {size} bytes")
