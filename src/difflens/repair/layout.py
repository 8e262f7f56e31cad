"""The files of a model: their names and headers, byte for byte, and where each tensor lies."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from pathlib import Path
from typing import NamedTuple

from difflens.core.errors import CorruptFile
from difflens.core.escape import for_terminal
from difflens.core.limits import DEFAULTS
from difflens.core.protocols import TensorSource
from difflens.core.records import TensorInfo
from difflens.models.formats.safetensors import Safetensors, parse_header

from .fields import Fields, number, text

_LONGEST_NAME = 255


class Place(NamedTuple):
    """Where a tensor lies: the number of its file, and its first byte there."""

    info: TensorInfo
    file: int
    offset: int


class Layout(NamedTuple):
    """A safetensors model without its data.

    `headers` has the header of each file by its name; a model that is a single file has one, whose
    name is empty. `beside` holds files that belong to the model as they are: its index.
    """

    headers: tuple[tuple[str, bytes], ...]
    beside: tuple[tuple[str, bytes], ...] = ()

    @property
    def is_folder(self) -> bool:
        """Is the model a folder?"""
        return self.headers[0][0] != ""

    def to_bytes(self) -> bytes:
        """Write the layout."""
        parts = [number(len(self.headers)), number(len(self.beside))]
        for name, data in (*self.headers, *self.beside):
            parts += [text(name.encode()), text(data)]
        return b"".join(parts)

    def digest(self) -> bytes:
        """Return what identifies the layout."""
        return hashlib.blake2b(self.to_bytes(), digest_size=16).digest()

    def places(self, where: str, limits: Mapping[str, int] = DEFAULTS) -> dict[str, Place]:
        """Read the headers: every tensor by name, in the order of the names."""
        found: dict[str, Place] = {}
        for number_, (_, header) in enumerate(self.headers):
            _, entries = parse_header(
                header, where, depth=limits["json_depth"], rank=limits["rank"]
            )
            for name, (dtype, shape, begin, _) in entries:
                if name in found:
                    raise CorruptFile(where, f"tensor '{for_terminal(name)}' is in two files")
                place = Place(TensorInfo(name, dtype, shape), number_, 8 + len(header) + begin)
                found[name] = place
        return dict(sorted(found.items()))

    def sizes(self, places: Mapping[str, Place]) -> list[int]:
        """Return the size of each file."""
        sizes = [8 + len(header) for _, header in self.headers]
        for info, file, _ in places.values():
            sizes[file] += info.size_bytes
        return sizes


def read_layout(fields: Fields) -> Layout:
    """Read a layout that nobody vouches for: no name leads out of a folder."""
    headers, beside = fields.number(100_000), fields.number(100)
    pairs = []
    for _ in range(headers + beside):
        name, data = fields.text(), fields.text()
        try:
            pairs.append((name.decode(), data))
        except UnicodeDecodeError:
            raise fields.damaged("a file has a name that is not UTF-8") from None
    names = [name for name, _ in pairs]
    single = names == [""] and headers == 1
    if not headers or len(set(names)) < len(names) or not (single or all(map(is_plain, names))):
        shown = ", ".join(f"'{for_terminal(name, 40)}'" for name in names[:5])
        raise fields.damaged(f"its files cannot be written side by side: {shown}")
    return Layout(tuple(pairs[:headers]), tuple(pairs[headers:]))


def is_plain(name: str) -> bool:
    """Is this the name of a file in a folder, and nothing else?"""
    bad = "/" in name or "\\" in name or "\0" in name or name.startswith(".")
    return bool(name) and not bad and len(name.encode()) <= _LONGEST_NAME


def layout_of(source: TensorSource, path: Path | None) -> tuple[Layout, bool]:
    """Return the layout of a model, and whether it is the model's own.

    Of a model in another format it is the one that a safetensors file of its tensors would have.
    """
    if isinstance(source, Safetensors):
        return Layout((("", source.header()),)), True
    shards = getattr(source, "shards", None)
    if (
        path is not None
        and shards
        and all(isinstance(each, Safetensors) for each in shards.values())
    ):
        if len(shards) == 1 and path.is_dir() and not _index_of(path):
            return Layout((("", next(iter(shards.values())).header()),)), False
        if all(map(is_plain, shards)):
            headers = tuple((name, each.header()) for name, each in shards.items())
            return Layout(headers, _index_of(path)), True
    layout = getattr(source, "layout", None)
    if isinstance(layout, Layout):
        return layout, True
    return Layout((("", _made(source.tensors)),)), False


def _index_of(path: Path) -> tuple[tuple[str, bytes], ...]:
    """Read the index of a folder, if it has one."""
    from difflens.models.folders.listing import contents, model_folder
    from difflens.storage.local import File

    if path.is_dir():
        path = model_folder(path)
        name = contents(path).index_file
        if name is None:
            return ()
        path /= name
    file = File(path)
    try:
        return ((path.name, file.read(0, file.size)),)
    finally:
        file.close()


def _made(tensors: Mapping[str, TensorInfo]) -> bytes:
    """Write the header of a safetensors file with these tensors."""
    header, end = {}, 0
    for name, info in tensors.items():
        begin, end = end, end + info.size_bytes
        header[name] = {"dtype": info.dtype, "shape": info.shape, "data_offsets": [begin, end]}
    data = json.dumps(header, separators=(",", ":"), ensure_ascii=False).encode()
    return data + b" " * (-len(data) % 8)
