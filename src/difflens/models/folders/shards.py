"""A folder that is one model: an index with its shards, shards without an index, or one file.

    org/name/model.safetensors.index.json     {"weight_map": {"tensor": "shard"}}
    org/name/model-00001-of-00002.safetensors
    org/name/model-00002-of-00002.safetensors

All headers are read when the folder is opened, in the order of the names of the shards.
"""

import re
from collections.abc import Callable, Iterable, Mapping
from contextlib import ExitStack
from typing import Any, NamedTuple

from difflens.core.addresses import Address, Location
from difflens.core.encodings import encoding_of
from difflens.core.errors import CorruptFile, LimitExceeded, UnknownName
from difflens.core.escape import for_terminal, visible
from difflens.core.once import Call, as_call
from difflens.core.protocols import Encoding, HasAliases, HasRefused, TensorSource
from difflens.core.records import TensorInfo
from difflens.storage import places
from difflens.storage.places import is_file

from .. import strict_json
from ..formats import open_file
from .listing import check_complete, contents, is_plain, listed, model_folder
from .together import open_together

Limits = Mapping[str, int]

_LATEST = "checkpoint"  # the text file in which TensorFlow names its latest checkpoint
_LATEST_PATH = re.compile(r'^model_checkpoint_path: *"([^"\\\n]*)"', re.MULTILINE)
_LATER_PART = re.compile(r"-(?!0*1-of-)[0-9]+-of-[0-9]+\.gguf$")


class Index(NamedTuple):
    """The checked contents of an index."""

    where: str
    weight_map: dict[str, str]
    shards: list[str]
    total_size: float | None


class Sharded:
    """Several files that are one model."""

    def __init__(self, where: str, shards: Mapping[str, TensorSource]) -> None:
        """Merge the contents of the shards; refuse a tensor that is in two of them."""
        self.where = where
        self.format = next(iter(shards.values())).format
        tensors: dict[str, TensorInfo] = {}
        self.tensors: Mapping[str, TensorInfo] = tensors
        self._metadata: dict[str, str] = {}
        self.metadata: Mapping[str, str] = self._metadata
        self.warnings: list[str] = []
        refusing = (shard for shard in shards.values() if isinstance(shard, HasRefused))
        self.refused = sorted({each for shard in refusing for each in shard.refused})
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
            if isinstance(shard, HasAliases):
                self.aliases.update(shard.aliases)
            self._add_metadata(name, shard.metadata)
            self.warnings += [f"{for_terminal(name)}: {warning}" for warning in shard.warnings]

    def read_into(self, name: str, start: int, stop: int, buffer: memoryview) -> int:
        """Fill the buffer with bytes [start, stop) of the tensor and return how many."""
        try:
            shard = self.shards[self.homes[name]]
        except KeyError:
            raise UnknownName("tensor", name, self.tensors) from None
        return shard.read_into(name, start, stop, buffer)

    def encoding(self, name: str) -> Encoding:
        """Return how a tensor is stored, in the words of its shard."""
        return encoding_of(self.shards[self.homes[name]], name)

    def __reduce__(self) -> Call:
        """Put it together from its shards in another process."""
        return as_call(_put_together, self.where, *self.shards.items())

    def confirm(self) -> None:
        """Raise `ChangedWhileReading` if a file is not the one that was opened."""
        for shard in self.shards.values():
            shard.confirm()

    def close(self) -> None:
        """Close the files."""
        for shard in self.shards.values():
            shard.close()

    def _add_metadata(self, shard: str, metadata: Mapping[str, str]) -> None:
        for key, value in metadata.items():
            if self._metadata.setdefault(key, value) != value:
                other, here = for_terminal(self.metadata[key], 40), for_terminal(value, 40)
                text = f"metadata '{for_terminal(key)}' is '{here}' in {for_terminal(shard)}"
                self.warnings.append(f"{text}, '{other}' before it: the first is used")


def _put_together(where: str, *shards: tuple[str, TensorSource]) -> Sharded:
    return Sharded(where, dict(shards))


def open_folder(path: Location, forced: str | None, limits: Limits) -> TensorSource:
    """Open the model in a folder."""
    folder = model_folder(path)
    checkpoint = _open_checkpoint(folder, limits)
    if checkpoint:
        return checkpoint
    files = contents(folder)
    if files.index_file:
        model = open_index(folder / files.index_file, forced, limits)
    else:
        check_complete(folder, files.weights)
        model = _open_shards(folder, files.weights, forced, limits)
    unread = [name for name in files.beside if name not in model.shards]
    if unread:
        read = listed([files.index_file] if files.index_file else files.weights, 1)
        model.warnings.append(f"{read} was read; not read beside it: {listed(unread)}")
    return model


def _open_checkpoint(folder: Location, limits: Limits) -> TensorSource | None:
    """Open a folder that is itself a checkpoint; None if it is not one."""
    if is_file(folder / ".metadata"):
        return open_file(folder / ".metadata", "dcp", limits)
    if is_file(folder / "saved_model.pb"):
        return open_file(folder / "saved_model.pb", "saved_model", limits)
    if is_file(folder / _LATEST):
        index = latest_index(folder / _LATEST, limits)
        if index is None:
            raise CorruptFile(visible(str(folder / _LATEST)), "it names no model_checkpoint_path")
        return open_file(index, "tensorflow", limits)
    return None


def index_of_prefix(path: Location) -> Location | None:
    """Return the index of the TensorFlow checkpoint whose prefix this is; None if it is not one."""
    index = path.parent / f"{path.name}.index"
    return index if path.name and not is_file(path) and is_file(index) else None


def latest_index(path: Location, limits: Limits) -> Location | None:
    """Return the index that TensorFlow's file `checkpoint` names, which must be beside it.

    None if the path is no such file, or names none.
    """
    if path.name != _LATEST or not is_file(path):
        return None
    file = places.open_file(path, limits)
    try:
        text = file.read(0, min(file.size, 1 << 20)).decode("utf-8", "replace")
    finally:
        file.close()
    match = _LATEST_PATH.search(text)
    if match is None:
        return None
    name = match.group(1).rpartition("/")[2]  # an absolute path is that of the writer's machine
    index = path.with_name(f"{name}.index") if name and is_plain(path, name) else None
    if index is None or not is_file(index):
        reason = f"it names the checkpoint '{for_terminal(name)}', which is not there"
        raise CorruptFile(visible(str(path)), reason, hint="name the .index file itself")
    return index


def open_index(path: Location, forced: str | None, limits: Limits) -> Sharded:
    """Open the shards of an index, and check them against it."""
    index = read_index(path, limits)
    return _open_shards(
        path.parent, index.shards, forced, limits, lambda model: _compare(index, model)
    )


def _open_shards(
    folder: Location,
    names: Iterable[str],
    forced: str | None,
    limits: Limits,
    check: Callable[[Sharded], None] = lambda _: None,
) -> Sharded:
    """Open all shards, or none of them."""
    names = list(filter(_is_first_part, names))
    sources = open_together(
        lambda path: open_file(path, forced, limits), [folder / name for name in names]
    )
    with ExitStack() as opened:
        for source in sources:
            opened.callback(source.close)
        model = Sharded(visible(str(folder)), dict(zip(names, sources, strict=True)))
        check(model)
        opened.pop_all()
    return model


def _is_first_part(name: str) -> bool:
    """Is it not a later part of a split file, which the first part opens by itself?"""
    return not (name.endswith(".gguf") and _LATER_PART.search(name))


def _compare(index: Index, model: Sharded) -> None:
    """Refuse a tensor that is in the index and not in the shards; warn of the reverse."""
    for tensor, shard in index.weight_map.items():
        home = model.homes.get(tensor)
        if home != shard:
            place = f"it is in '{for_terminal(home)}'" if home else "no shard holds it"
            text = f"the index puts tensor '{for_terminal(tensor)}' into '{for_terminal(shard)}'"
            raise CorruptFile(index.where, f"{text}, {place}")
    extra = [name for name in model.tensors if name not in index.weight_map]
    if extra:
        model.warnings.append(f"the index lacks tensors the shards hold: {listed(extra)}")
    size = sum(info.size_bytes for info in model.tensors.values())
    if index.total_size not in (None, size):
        text = f"the index states a total_size of {index.total_size}"
        model.warnings.append(f"{text}, the tensors take {size} bytes")


def read_index(path: Location, limits: Mapping[str, int]) -> Index:
    """Read an index, and check that all its shards are in its own folder."""
    where = visible(str(path))
    parsed = _parse(path, where, limits)
    weight_map = parsed.get("weight_map") if type(parsed) is dict else None
    if type(weight_map) is not dict:
        kind = "missing" if weight_map is None else f"a {type(weight_map).__name__}"
        raise CorruptFile(where, f"its weight_map is {kind}, expected an object of shard names")
    for tensor, shard in weight_map.items():
        if type(shard) is not str:
            place = f"tensor '{for_terminal(tensor)}' is in {for_terminal(repr(shard), 80)}"
            raise CorruptFile(where, f"{place}, expected the name of a shard")
    shards = sorted(set(weight_map.values()))
    if not shards:
        raise CorruptFile(where, "its weight_map names no shard")
    for shard in shards:
        _check_shard(shard, path, where)
    return Index(where, weight_map, shards, _total_size(parsed))


def _parse(path: Location, where: str, limits: Mapping[str, int]) -> Any:
    file = places.open_file(path, limits)
    try:
        limit = file.limit("json_header")
        if file.size > limit:
            reason = f"index too large: {file.size} bytes, the limit is {limit}"
            raise LimitExceeded(where, reason, hint="raise it with --limit json_header=N")
        data = file.read(0, file.size)
        file.confirm()
    finally:
        file.close()
    # Some writers give total_size as 123.0.
    return strict_json.parse(data, where, depth=limits["json_depth"], floats=True)


def _check_shard(name: str, index: Location, where: str) -> None:
    """Refuse a name that leads out of the folder, whatever file it leads to."""
    shown = for_terminal(name)
    parts = name.split("/")
    is_odd = "\\" in name or "\0" in name or not is_plain(index, name)
    if not name or is_odd or {"", ".", ".."} & set(parts):
        raise CorruptFile(where, f"shard '{shown}' is not the name of a file in this folder")
    if name == index.name:
        raise CorruptFile(where, f"the index names itself as a shard: '{shown}'")
    # A shard may be a link, as in the cache of Hugging Face; a folder on its path may not.
    if len(parts) > 1 and not _is_inside((index.parent / name).parent, index.parent):
        raise CorruptFile(where, f"shard '{shown}' leads out of the folder")


def _is_inside(folder: Location, root: Location) -> bool:
    if isinstance(folder, Address) or isinstance(root, Address):
        return True  # no links, and the name was checked
    try:
        return folder.resolve().is_relative_to(root.resolve())
    except (OSError, RuntimeError, ValueError):  # a loop of links, or not a name
        return False


def _total_size(parsed: dict[str, Any]) -> float | None:
    metadata = parsed.get("metadata")
    total = metadata.get("total_size") if type(metadata) is dict else None
    return total if type(total) in (int, float) else None
