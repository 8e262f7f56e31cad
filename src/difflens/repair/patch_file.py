"""An open patch: its index, checked, and where its chunks lie."""

from __future__ import annotations

import zlib
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path

from difflens.core.errors import CorruptFile, LimitExceeded
from difflens.core.escape import for_terminal, visible
from difflens.core.limits import check
from difflens.models.formats import open_file
from difflens.models.formats.safetensors import Safetensors

from .container import (
    BASE_LAYOUT,
    FORMAT,
    INDEX,
    REVERSIBLE,
    SMALL,
    STRONG,
    TARGET_LAYOUT,
    VERSION,
    WITH_FILES,
    Head,
    is_own,
)
from .fields import Fields
from .layout import read_layout


class PatchFile:
    """An open patch. Its index is read, and no chunk."""

    def __init__(self, path: str | Path, limits: Mapping[str, int] | None = None) -> None:
        """Read and check the header and the index."""
        self.path, self.where = Path(path), visible(str(path))
        self.limits = check(limits)
        source = open_file(self.path, None, self.limits)
        self.source = source
        try:
            self._read(source)
        except BaseException:
            source.close()
            raise

    def _read(self, source: object) -> None:
        if not isinstance(source, Safetensors) or source.metadata.get("format") != FORMAT:
            raise CorruptFile(
                self.where, "it is not a patch", hint="difflens patch create makes one"
            )
        version = source.metadata.get("version", "")
        if version != VERSION:
            shown = for_terminal(version, 40)
            raise CorruptFile(
                self.where, f"its version is '{shown}', this difflens reads {VERSION}"
            )
        if any(info.dtype != "U8" for info in source.tensors.values()):
            raise CorruptFile(self.where, "the patch holds a tensor that is not of bytes")
        self._tensors = source.tensors
        if INDEX not in self._tensors:
            raise CorruptFile(self.where, "the patch has no index")
        self.size = source.file.size
        data = self.read(INDEX, 0, self._tensors[INDEX].size_bytes)
        outer = Fields(data, self.where)
        packed = outer.text()
        size = outer.number()
        if size > self.limits["json_header"]:
            reason = f"its index takes {size} bytes, the limit is {self.limits['json_header']}"
            raise LimitExceeded(self.where, reason, hint="raise it with --limit json_header=N")
        checks = outer.data(outer.left())
        if len(checks) % 4:
            raise outer.damaged("its checksums are cut")
        self.checks = memoryview(checks).cast("I")
        self._parse(Fields(_unpack(packed, size, outer), self.where))

    def _parse(self, fields: Fields) -> None:
        flags = fields.number(31)
        first, second = (fields.data(32 if flags & STRONG else 0) for _ in range(2))
        base_digest = fields.data(16)
        base = read_layout(fields) if flags & BASE_LAYOUT else None
        target = read_layout(fields) if flags & TARGET_LAYOUT else None
        files = bool(flags & WITH_FILES)
        self.head = Head(bool(flags & REVERSIBLE), first, second, base_digest, base, target, files)
        self.origins = [fields.number() for _ in range(fields.number(fields.left()))]
        self.recipes = [fields.number() for _ in self.origins]
        self.lengths = [fields.number() for _ in range(fields.number(fields.left()))]
        if fields.left():
            raise fields.damaged("bytes follow its end")

    def read(self, name: str, start: int, stop: int) -> bytes:
        """Read bytes of one of its tensors."""
        buffer = bytearray(stop - start)
        self.source.read_into(name, start, stop, memoryview(buffer))
        return bytes(buffer)

    def places(
        self, names: Iterable[str], counts: Iterable[int]
    ) -> Iterator[list[tuple[str, int, int]]]:
        """Yield, for every tensor in order, where its recipe and its chunks are.

        Each place is a tensor of the patch, the first byte there and the end.
        """
        lengths, small = iter(self.lengths), 0
        used: dict[str, int] = {}
        for name, recipe, count in zip(names, self.recipes, counts, strict=True):
            sizes = [recipe, *(next(lengths, -1) for _ in range(count))]
            if -1 in sizes:
                raise self.damaged("its lengths are too few")
            home, at = (name, 0) if is_own(name, sum(sizes)) else (SMALL, small)
            places = []
            for size in sizes:
                places.append((home, at, at + size))
                at += size
            if home == SMALL:
                small = at
            elif at:
                used[home] = at
            yield places
        used |= {SMALL: small} if small else {}
        there = {name: info.size_bytes for name, info in self._tensors.items() if name != INDEX}
        if used != there or next(lengths, None) is not None:
            raise self.damaged("its lengths do not fit its tensors")

    def damaged(self, reason: str) -> CorruptFile:
        """Make the error for a patch that contradicts itself."""
        return CorruptFile(self.where, f"the patch is damaged: {reason}")

    def own_sizes(self) -> dict[str, int]:
        """Return the bytes of the tensors that are listed by name."""
        skipped = (INDEX, SMALL)
        return {
            name: info.size_bytes for name, info in self._tensors.items() if name not in skipped
        }

    def close(self) -> None:
        """Close the file."""
        self.source.close()


def _unpack(packed: bytes, size: int, fields: Fields) -> bytes:
    unpacker = zlib.decompressobj()
    try:
        plain = unpacker.decompress(packed, size + 1)
    except zlib.error as error:
        raise fields.damaged(f"{error}") from error
    if len(plain) != size or not unpacker.eof or unpacker.unused_data:
        raise fields.damaged("it unpacks to another size than it says")
    return plain
