"""Makes the models the bench compares, in a process of its own.

Its own process, because a child's peak memory as the kernel reports it (`ru_maxrss`) starts
from that of the process it was forked from: the bench itself must stay small.
"""

from __future__ import annotations

import json
import shutil
import struct
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import suppress
from functools import partial
from math import prod
from os import fsync, truncate
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO, NamedTuple

from . import changes, decoders

if TYPE_CHECKING:
    import numpy as np

    Bits = np.ndarray[Any, np.dtype[np.unsignedinteger[Any]]]

ROOT = Path(__file__).parents[1]
TENSORS = 16  # of a changed pair, all of one size
SHARDS = 150
WIDTH = {"F64": 8, "F32": 4, "F16": 2, "BF16": 2, "F8_E4M3": 1}
_TORCH = {"F32": "float32", "BF16": "bfloat16"}
_BLOCK = 1 << 22  # random values a tensor repeats: far more than a branch predictor remembers
_SPREAD = {"F8_E4M3": 1.0}  # eight-bit weights are scaled before they are stored
_SPRINKLE = 1 << 20  # bytes from one differing byte of a sparse pair to the next

Tensors = dict[str, tuple[str, list[int]]]  # by name: dtype and shape
Header = dict[str, dict[str, Any]]


class Pair(NamedTuple):
    """Two models, every element changed, and where it was made an equal copy of the left one."""

    left: Path
    right: Path
    equal: Path

    @property
    def size_bytes(self) -> int:
        """Both sides together."""
        return self.left.stat().st_size + self.right.stat().st_size


class Files:
    """The folder of one run; it holds one pair at a time unless they are to be kept."""

    def __init__(self, folder: Path, *, keep: bool) -> None:
        """Work in this folder."""
        self.folder = folder
        self._keep = keep

    def make(self, what: str, *numbers: int) -> Pair:
        """Return a pair by the name of what makes it (`_MAKERS`), made now if it is not there."""
        place = self.folder / "-".join([what, *map(str, numbers)])
        if not place.exists():
            if not self._keep:
                self.clear()
            place.mkdir()
            arguments = [what, str(place), *map(str, numbers)]
            subprocess.run([sys.executable, "-m", "bench.files", *arguments], cwd=ROOT, check=True)
        pair = pair_in(place)
        for path in sorted(place.iterdir()):
            if path.is_file() and not _is_sparse(path):
                _warm(path)
        return pair

    def clear(self) -> None:
        """Remove what was made."""
        for place in self.folder.iterdir():
            if place.is_dir():
                shutil.rmtree(place)


def pair_in(folder: Path) -> Pair:
    """Name the files of a pair."""
    return Pair(*(folder / f"{side}.safetensors" for side in Pair._fields))


def _is_sparse(path: Path) -> bool:
    found = path.stat()
    return found.st_blocks * 512 < found.st_size // 2


def _warm(path: Path) -> None:
    """Bring a file into the page cache."""
    buffer = bytearray(1 << 20)
    with path.open("rb", buffering=0) as file:
        while file.readinto(buffer):
            pass


def _changed(left_dtype: str, folder: Path, size: int, right_dtype: str = "") -> None:
    """Write a pair of one dtype (or two), and a copy of its left side."""
    right_dtype = right_dtype or left_dtype
    count = max(1, size // TENSORS // WIDTH[left_dtype])
    names = [f"model.layers.{i}.mlp.down_proj.weight" for i in range(TENSORS)]
    pair = pair_in(folder)
    with (
        pair.left.open("wb") as left,
        pair.right.open("wb") as right,
        pair.equal.open("wb") as same,
    ):
        for file, dtype in ((left, left_dtype), (right, right_dtype), (same, left_dtype)):
            _write_header(file, _flat(dict.fromkeys(names, (dtype, [count]))))
        for seed in range(TENSORS):
            before, after = _blocks(seed, min(count, _BLOCK), left_dtype, right_dtype)
            for start in range(0, count, _BLOCK):
                length = min(_BLOCK, count - start)
                left.write(before[:length].data)
                right.write(after[:length].data)
                same.write(before[:length].data)
        for file in (left, right, same):  # writing back must not go on while others are timed
            file.flush()
            fsync(file.fileno())


def _blocks(seed: int, count: int, left_dtype: str, right_dtype: str) -> tuple[Bits, Bits]:
    """Return the bits of both sides: of one dtype, the lowest bit of every element is flipped.

    That changes the value of every finite number: zero becomes the least subnormal one.
    """
    import numpy as np

    random = np.random.default_rng(seed).standard_normal(count, dtype=np.float32)
    values = random * np.float32(_SPREAD.get(left_dtype, 0.02))
    values.view(np.uint32)[:] |= 1  # so that no value survives the way to a narrower dtype
    before, after = _encoded(values, left_dtype), _encoded(values, right_dtype)
    if left_dtype == right_dtype:
        after = before ^ before.dtype.type(1)
        if (before == after).any():
            raise AssertionError("an element is the same on both sides")
    return before, after


def _encoded(values: np.ndarray[Any, np.dtype[np.float32]], dtype: str) -> Bits:
    import ml_dtypes
    import numpy as np

    kinds: dict[str, Any] = {
        "F64": np.float64,
        "F32": np.float32,
        "F16": np.float16,
        "BF16": ml_dtypes.bfloat16,
        "F8_E4M3": ml_dtypes.float8_e4m3fn,
    }
    return values.astype(kinds[dtype]).view(f"u{WIDTH[dtype]}")


def _mixed(folder: Path, size: int) -> None:
    """Write an F32 model, and the same cast to BF16."""
    _changed("F32", folder, size, "BF16")


def _large(folder: Path, size: int) -> None:
    """Write a sparse pair, half of it one tensor, with a differing byte in every mebibyte."""
    header = _flat(_large_tensors(size))
    pair = pair_in(folder)
    for path, mark in ((pair.left, b"\x3c"), (pair.right, b"\x3d")):
        with path.open("wb") as file:
            begin = _write_header(file, header)
            truncate(path, begin + _end(header))
            for at in range(begin, begin + _end(header), _SPRINKLE):
                file.seek(at)
                file.write(mark)
            file.flush()
            fsync(file.fileno())


def _large_full(folder: Path, size: int) -> None:
    """Write the same pair with random bytes everywhere."""
    import numpy as np

    header = _flat(_large_tensors(size))
    pair = pair_in(folder)
    with pair.left.open("wb") as left, pair.right.open("wb") as right:
        for file in (left, right):
            _write_header(file, header)
        before, after = _blocks(0, _BLOCK, "F32", "F32")
        bytes_before, bytes_after = before.view(np.uint8), after.view(np.uint8)
        for start in range(0, _end(header), len(bytes_before)):
            length = min(len(bytes_before), _end(header) - start)
            left.write(bytes_before[:length].data)
            right.write(bytes_after[:length].data)
        for file in (left, right):
            file.flush()
            fsync(file.fileno())


def _large_tensors(size: int) -> Tensors:
    others = {f"model.layers.{i}.weight": ("BF16", [size // 2 // 16 // 2]) for i in range(16)}
    return {"model.embed_tokens.weight": ("F32", [size // 2 // 4]), **others}


def _row(folder: Path, size: int) -> None:
    """Write a pair of embeddings, BF16, that differ in one row."""
    pair, width = pair_in(folder), 1024
    rows = max(2, size // width // WIDTH["BF16"])
    header = _flat({"model.embed_tokens.weight": ("BF16", [rows, width])})
    before, after = _blocks(0, min(rows * width, _BLOCK), "BF16", "BF16")
    for path in (pair.left, pair.right):
        with path.open("wb") as file:
            begin, rest = _write_header(file, header), rows * width
            while rest:
                count = min(rest, len(before))
                file.write(before[:count].data)
                rest -= count
            if path is pair.right:
                file.seek(begin + rows // 2 * width * WIDTH["BF16"])
                start = rows // 2 * width % len(before)
                file.write(after[start : start + width].data)


def _sharded(folder: Path, tensors: int, size: int, shards: int = SHARDS) -> None:
    """Write two sharded models of sparse files; one tensor in a hundred changed its dtype."""
    pair = pair_in(folder)
    names = [f"model.layers.{i // 512}.mlp.experts.{i % 512}.weight" for i in range(tensors)]
    shape = [size // tensors // 2 // 2000, 2000]
    for model, other in ((pair.left, "BF16"), (pair.right, "F16")):
        model.mkdir()
        weight_map: dict[str, str] = {}
        for shard, part in enumerate(_parts(names, shards), 1):
            path = model / f"model-{shard:05}-of-{shards:05}.safetensors"
            kinds = {name: (other if name.endswith("99.weight") else "BF16") for name in part}
            header = _flat({name: (dtype, shape) for name, dtype in kinds.items()})
            with path.open("wb") as file:
                begin = _write_header(file, header)
            truncate(path, begin + _end(header))
            weight_map.update(dict.fromkeys(part, path.name))
        total = tensors * prod(shape) * 2
        index = {"metadata": {"total_size": total}, "weight_map": weight_map}
        (model / "model.safetensors.index.json").write_text(json.dumps(index))


def _decoder(kind: str, folder: Path, narrow: int) -> None:
    """Write a pair of decoders, the right one fine-tuned."""
    tensors = decoders.DECODERS[kind](narrow)
    pair = pair_in(folder)
    with pair.left.open("wb") as left, pair.right.open("wb") as right:
        for file in (left, right):
            _write_header(file, _flat(tensors))
        decoders.write(tensors, left, right)
        for file in (left, right):
            file.flush()
            fsync(file.fileno())
    decoders.folders(pair.left, pair.right)


def _one_change(kind: str, folder: Path, narrow: int) -> None:
    """Write a pair of decoders, the right one changed in one simple way."""
    pair = pair_in(folder)
    with pair.left.open("wb") as left, pair.right.open("wb") as right:
        for file, tensors in zip((left, right), changes.tensors(kind, narrow), strict=True):
            _write_header(file, _flat(tensors))
        changes.write(kind, narrow, left, right)
        for file in (left, right):
            file.flush()
            fsync(file.fileno())


def _many(folder: Path, tensors: int) -> None:
    """Write a pair of tensors of one byte each."""
    pair = pair_in(folder)
    header = _flat({f"t{i:07}": ("U8", [1]) for i in range(tensors)})
    for path, value in ((pair.left, b"\1"), (pair.right, b"\2")):
        with path.open("wb") as file:
            _write_header(file, header)
            file.write(value * tensors)


def _parts(names: list[str], count: int) -> Iterator[list[str]]:
    for i in range(count):
        yield names[i * len(names) // count : (i + 1) * len(names) // count]


def _flat(tensors: Tensors) -> Header:
    """Lay tensors out one after the other."""
    width = {**WIDTH, "U8": 1}
    header: Header = {}
    begin = 0
    for name, (dtype, shape) in tensors.items():
        end = begin + prod(shape) * width[dtype]
        header[name] = {"dtype": dtype, "shape": shape, "data_offsets": [begin, end]}
        begin = end
    return header


def _end(header: Header) -> int:
    return int(next(reversed(header.values()))["data_offsets"][1]) if header else 0


def _write_header(file: BinaryIO, header: Header) -> int:
    """Write a header padded to eight bytes, and say where the data begins."""
    text = json.dumps(header, separators=(",", ":")).encode()
    text += b" " * (-len(text) % 8)
    file.write(struct.pack("<Q", len(text)) + text)
    return 8 + len(text)


def _pytorch(dtype: str, folder: Path, size: int) -> None:
    """Write a changed pair, and beside it the same tensors as torch saves them."""
    import torch

    _changed(dtype, folder, size)
    pair = pair_in(folder)
    for path in (pair.left, pair.right):
        tensors = {
            name: torch.frombuffer(bytearray(data), dtype=getattr(torch, _TORCH[dtype]))
            for name, data in _stored(path)
        }
        torch.save(tensors, path.with_suffix(".pt"))


def _gguf(kind: str, folder: Path, size: int) -> None:
    """Write a changed pair, and beside it GGUF files of as many bytes when they are decoded."""
    import gguf
    import numpy as np

    dtype = "F16" if kind == "F16" else "F32"
    _changed(dtype, folder, size)
    pair = pair_in(folder)
    for seed, path in enumerate((pair.left, pair.right)):
        writer = gguf.GGUFWriter(path.with_suffix(".gguf"), "llama")
        for number, (name, data) in enumerate(_stored(path)):
            if kind == "F16":
                writer.add_tensor(name, np.frombuffer(data, np.float16))
                continue
            count = len(data) // 4 // 256  # blocks of 256 values in 144 bytes
            blocks = np.random.default_rng([seed, number]).integers(
                0, 256, (max(1, count), 144), np.uint8
            )
            blocks[:, :4] = np.frombuffer(np.array([0.01, 0.01], np.float16).tobytes(), np.uint8)
            writer.add_tensor(name, blocks, raw_dtype=gguf.GGMLQuantizationType.Q4_K)
        writer.write_header_to_file()
        writer.write_kv_data_to_file()
        writer.write_tensors_to_file()
        writer.close()


def _stored(path: Path) -> Iterator[tuple[str, bytes]]:
    """Yield the tensors of one of our own files."""
    with path.open("rb") as file:
        (length,) = struct.unpack("<Q", file.read(8))
        header = json.loads(file.read(length))
        for name, entry in header.items():
            begin, end = entry["data_offsets"]
            file.seek(8 + length + begin)
            yield name, file.read(end - begin)


_MAKERS: dict[str, Callable[..., None]] = {
    **{dtype: partial(_changed, dtype) for dtype in WIDTH},
    **{f"pytorch_{dtype}": partial(_pytorch, dtype) for dtype in _TORCH},
    **{f"gguf_{kind}": partial(_gguf, kind) for kind in ("F16", "Q4_K")},
    "mixed": _mixed,
    "large": _large,
    "large_full": _large_full,
    "row": _row,
    "sharded": _sharded,
    "many": _many,
    **{f"change_{kind}": partial(_one_change, kind) for kind in changes.CHANGES},
    **{kind: partial(_decoder, kind) for kind in decoders.DECODERS},
}


if __name__ == "__main__":
    with suppress(KeyboardInterrupt):  # the bench itself says so, and removes what is half done
        _MAKERS[sys.argv[1]](Path(sys.argv[2]), *map(int, sys.argv[3:]))
        sys.exit(0)
    sys.exit(130)
