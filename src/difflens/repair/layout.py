"""The files of a model without its tensors, byte for byte, and where each tensor lies in them."""

from __future__ import annotations

import hashlib
import json
import struct
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import NamedTuple

from difflens.core.errors import CorruptFile, PatchError
from difflens.core.escape import for_terminal
from difflens.core.limits import DEFAULTS
from difflens.core.protocols import TensorSource
from difflens.core.records import TensorInfo
from difflens.models.formats.safetensors import Safetensors, parse_header

from .fields import Fields, number, text
from .frame import Frame, frame_of, read_frame

_LONGEST_NAME = 255
_MOST_FILES, _MOST_BESIDE = 100_000, 1000
Files = tuple[tuple[str, bytes], ...]


class Place(NamedTuple):
    """Where a tensor lies: the number of its file, and its first byte there."""

    info: TensorInfo
    file: int
    offset: int


class Layout(NamedTuple):
    """A model without its data.

    `headers` has the header of each safetensors file by its name; a model that is a single file has
    one, whose name is empty. A file of another format has a `frame` and no header. `beside` holds
    files that belong to the model as they are: its index, its settings. `shared` has the digests of
    those that the other model has too.
    """

    headers: Files
    beside: Files = ()
    shared: Files = ()
    frame: Frame | None = None

    @property
    def is_folder(self) -> bool:
        """Is the model a folder?"""
        return self.frame is None and self.headers[0][0] != ""

    def to_bytes(self) -> bytes:
        """Write the layout."""
        parts = [number(len(each)) for each in (self.headers, self.beside, self.shared)]
        for name, data in (*self.headers, *self.beside, *self.shared):
            parts += [text(name.encode()), text(data)]
        return b"".join(parts) + (self.frame.to_bytes() if self.frame else b"")

    def digest(self) -> bytes:
        """Return what identifies the layout."""
        return hashlib.blake2b(self.to_bytes(), digest_size=16).digest()

    def places(self, where: str, limits: Mapping[str, int] = DEFAULTS) -> dict[str, Place]:
        """Read the headers: every tensor by name, in the order of the names."""
        if self.frame:
            found = {info.name: Place(info, 0, at) for info, at in self.frame.tensors}
            return dict(sorted(found.items()))
        found = {}
        for number_, (_, header) in enumerate(self.headers):
            _, tensors, begins, _ = parse_header(
                header, where, depth=limits["json_depth"], rank=limits["rank"]
            )
            for name, info in tensors.items():
                if name in found:
                    raise CorruptFile(where, f"tensor '{for_terminal(name)}' is in two files")
                found[name] = Place(info, number_, 8 + len(header) + begins[name])
        return dict(sorted(found.items()))

    def names(self) -> list[str]:
        """Return the names of the files that hold tensors; a single file has an empty one."""
        return [""] if self.frame else [name for name, _ in self.headers]

    def sizes(self, places: Mapping[str, Place]) -> list[int]:
        """Return the size of each file that holds tensors."""
        if self.frame:
            return [self.frame.size]
        sizes = [8 + len(header) for _, header in self.headers]
        for info, file, _ in places.values():
            sizes[file] += info.size_bytes
        return sizes

    def pieces(self) -> Iterator[tuple[int, int, bytes]]:
        """Yield what is no tensor: the number of the file, the first byte, the bytes."""
        if self.frame:
            yield from ((0, at, data) for at, data in self.frame.pieces())
        for file, (_, header) in enumerate(self.headers):
            yield file, 0, struct.pack("<Q", len(header)) + header

    def without(self, other: Layout) -> Layout:
        """Replace files beside the model that another one has too by their digests."""
        known = dict(other.beside)
        same = [each for each in self.beside if known.get(each[0]) == each[1]]
        shared = tuple((name, _digest(data)) for name, data in same)
        return self._replace(
            beside=tuple(each for each in self.beside if each not in same), shared=shared
        )

    def completed(self, other: Layout | None, where: str) -> Layout:
        """Put the files back that another model has too."""
        known = dict(other.beside) if other else {}
        for name, wanted in self.shared:
            if _digest(known.get(name, b"")) != wanted:
                shown = for_terminal(name)
                raise PatchError(where, f"it was made for another base: file '{shown}' differs")
        files = {**dict(self.beside), **{name: known[name] for name, _ in self.shared}}
        return self._replace(beside=tuple(sorted(files.items())), shared=())


def read_layout(fields: Fields) -> Layout:
    """Read a layout that nobody vouches for: no name leads out of a folder."""
    counts = fields.number(_MOST_FILES), fields.number(_MOST_BESIDE), fields.number(_MOST_BESIDE)
    pairs = []
    for _ in range(sum(counts)):
        name, data = fields.text(), fields.text()
        try:
            pairs.append((name.decode(), data))
        except UnicodeDecodeError:
            raise fields.damaged("a file has a name that is not UTF-8") from None
    names, headers, stored = [name for name, _ in pairs], counts[0], counts[0] + counts[1]
    if not headers and not names:
        return Layout((), frame=read_frame(fields))
    single = names == [""] and headers == 1
    if not headers or len(set(names)) < len(names) or not (single or all(map(is_plain, names))):
        shown = ", ".join(f"'{for_terminal(name, 40)}'" for name in names[:5])
        raise fields.damaged(f"its files cannot be written side by side: {shown}")
    return Layout(tuple(pairs[:headers]), tuple(pairs[headers:stored]), tuple(pairs[stored:]))


def is_plain(name: str) -> bool:
    """Is this the name of a file in a folder, and nothing else?"""
    bad = "/" in name or "\\" in name or "\0" in name or name.startswith(".")
    return bool(name) and not bad and len(name.encode()) <= _LONGEST_NAME


def layout_of(
    source: TensorSource, path: Path | None, *, with_files: bool = False
) -> tuple[Layout, bool]:
    """Return the layout of a model, and whether it is the model's own.

    Of a model whose format is not written it is the one that a safetensors file of its tensors
    would have.
    """
    if isinstance(source, Safetensors):
        return Layout((("", source.header()),)), True
    shards = getattr(source, "shards", None)
    if (
        path is not None
        and shards
        and all(isinstance(each, Safetensors) for each in shards.values())
    ):
        beside = _index_of(path)
        if with_files and path.is_dir():
            from .side_files import side_files

            beside = tuple(sorted({**dict(beside), **side_files(path, shards)}.items()))
        if len(shards) == 1 and path.is_dir() and not beside:
            return Layout((("", next(iter(shards.values())).header()),)), False
        if all(map(is_plain, shards)):
            headers = tuple((name, each.header()) for name, each in shards.items())
            return Layout(headers, beside), True
    layout = getattr(source, "layout", None)
    if isinstance(layout, Layout):
        return layout, True
    frame = frame_of(source)
    if frame:
        return Layout((), frame=frame), True
    return Layout((("", _made(source.tensors)),)), False


def _index_of(path: Path) -> Files:
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


def _digest(data: bytes) -> bytes:
    return hashlib.blake2b(data, digest_size=16).digest()
