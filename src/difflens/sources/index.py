"""The index of a sharded model: which tensor is in which shard."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

from ..errors import CorruptFile, LimitExceeded
from ..escape import for_terminal, visible
from . import strict_json
from .files import File


class Index(NamedTuple):
    """What an index says, checked."""

    where: str
    weight_map: dict[str, str]
    shards: list[str]
    total_size: float | None


def read_index(path: Path, limits: Mapping[str, int]) -> Index:
    """Read an index and check that it names shards of its own folder alone."""
    where = visible(str(path))
    found = _parse(path, where, limits)
    weight_map = found.get("weight_map") if type(found) is dict else None
    if type(weight_map) is not dict:
        kind = "missing" if weight_map is None else f"a {type(weight_map).__name__}"
        raise CorruptFile(where, f"its weight_map is {kind}, an object of shard names is wanted")
    for tensor, shard in weight_map.items():
        if type(shard) is not str:
            said = f"tensor '{for_terminal(tensor)}' is in {for_terminal(repr(shard), 80)}"
            raise CorruptFile(where, f"{said}, the name of a shard is wanted")
    shards = sorted(set(weight_map.values()))
    if not shards:
        raise CorruptFile(where, "its weight_map names no shard")
    for shard in shards:
        _check_shard(shard, path, where)
    return Index(where, weight_map, shards, _total_size(found))


def _parse(path: Path, where: str, limits: Mapping[str, int]) -> Any:
    file = File(path, limits)
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


def _check_shard(name: str, index: Path, where: str) -> None:
    """Refuse a name that leads out of the folder, whatever lies there."""
    shown = for_terminal(name)
    parts = name.split("/")
    if not name or "\\" in name or "\0" in name or {"", ".", ".."} & set(parts):
        raise CorruptFile(where, f"shard '{shown}' is no name of a file in this folder")
    if name == index.name:
        raise CorruptFile(where, f"the index names itself as a shard: '{shown}'")
    # A shard may be a link, as in the cache of Hugging Face; a folder on the way to it may not.
    if len(parts) > 1 and not _is_inside((index.parent / name).parent, index.parent):
        raise CorruptFile(where, f"shard '{shown}' leads out of the folder")


def _is_inside(folder: Path, root: Path) -> bool:
    try:
        return folder.resolve().is_relative_to(root.resolve())
    except (OSError, RuntimeError, ValueError):  # a loop of links, or no name at all
        return False


def _total_size(found: dict[str, Any]) -> float | None:
    metadata = found.get("metadata")
    total = metadata.get("total_size") if type(metadata) is dict else None
    return total if type(total) in (int, float) else None
