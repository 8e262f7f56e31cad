"""The laws of sources: open the own format, leave others alone, and trust no file."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import NamedTuple

from difflens.core.dtypes import BITS
from difflens.core.errors import ChangedWhileReading, DifflensError
from difflens.core.protocols import Opener, TensorSource
from difflens.core.registry import Entry
from difflens.models.formats import HEAD_BYTES, open_model, source
from difflens.storage.local import File

from .laws import deeds, hold, is_described, registered
from .models import Encoded, damaged

# Writes tensors to a file and returns its path; None if the format cannot hold them.
# A format without names is asked for one tensor, called "data".
Sample = Callable[[Path, Mapping[str, Encoded]], Path | None]

# The first bytes of files of other formats.
_FOREIGN = (
    b"PK\x03\x04" + bytes(40),
    b"\x1f\x8b\x08" + bytes(40),
    b"\x89HDF\r\n\x1a\n" + bytes(40),
    b"GGUF\x03" + bytes(40),
    b"\x93NUMPY\x01" + bytes(40),
    b"\x80\x02}q\x00." + bytes(40),
    b"\x7fELF\x02\x01\x01" + bytes(40),
    b"plain words, nothing else",
    b'{"a": 1}',
    bytes(64),
)
_PICKLE = b"cos\nmkdir\n(Vdifflens-marker\ntR." + bytes(4)  # unpickling it would create a folder
_LARGE = 1 << 20


class Case(NamedTuple):
    """A source under test: its entry, the function that writes samples, a folder to write in."""

    entry: Entry
    sample: Sample
    folder: Path

    def path(self, stem: str) -> Path:
        """Return a path with an ending of the format."""
        endings = self.entry.options.get("suffixes") or (".bin",)
        return self.folder / f"{stem}{endings[0]}"

    def write(self, stem: str, data: Encoded) -> Path | None:
        """Write a sample of one tensor."""
        return self.sample(self.path(stem), {"data": data})

    def good(self, stem: str = "good") -> Path:
        """Write the simplest sample: eight numbers of F32, or of the first dtype that works."""
        for dtype in ("F32", *BITS):
            size = BITS[dtype]
            path = self.write(stem, (dtype, (8,), bytes(range(size))))
            if path:
                return path
        raise AssertionError(f"{self.entry.name}: its sample could write no dtype at all")


def check_source(
    opener: Opener, sample: Sample, laws: tuple[Callable[[Case], None], ...] | None = None
) -> None:
    """Check a source against its contract.

    `sample(path, {name: (dtype, shape, bytes)})` writes a file of the format and returns its path,
    or None if the format cannot hold such tensors.
    """
    entry = registered(source, opener)
    for law in laws or LAWS:
        with TemporaryDirectory(prefix="difflens-") as folder:
            law(Case(entry, sample, Path(folder)))


def it_is_described(case: Case) -> None:
    """It has a summary, a `recognise`, and endings that begin with a dot."""
    is_described(case.entry)
    options = case.entry.options
    hold(callable(options.get("recognise")), f"{case.entry.name}: it has no recognise(head, path)")
    for ending in options.get("suffixes", ()):
        hold(ending.startswith("."), f"{case.entry.name}: {ending!r} does not begin with a dot")


def it_opens_what_it_recognises(case: Case) -> None:
    """It alone recognises its sample, by content, and returns a complete source."""
    path = case.good()
    head = path.read_bytes()[:HEAD_BYTES]
    unnamed = Path("unnamed")
    claims = [entry.name for entry in source if entry.options["recognise"](head, unnamed)]
    hold(claims == [case.entry.name], f"{case.entry.name}: its sample is recognised by {claims}")
    model = open_model(path)
    hold(isinstance(model, TensorSource), f"{case.entry.name}: what it opens is not a TensorSource")
    own = model.format == case.entry.name or " in " in model.format  # "FORMAT in gzip"
    hold(own, f"it is {case.entry.name}, and says {model.format!r}")
    for name, info in model.tensors.items():
        hold(name == info.name, f"tensor {name!r} calls itself {info.name!r}")
    texts = [*model.metadata, *model.metadata.values()]
    hold(all(type(text) is str for text in texts), "its metadata holds a value that is not text")
    model.close()


def it_leaves_the_rest_alone(case: Case) -> None:
    """It does not recognise files of other formats."""
    own = case.good().read_bytes()[:4]
    recognise = case.entry.options["recognise"]
    for head in _FOREIGN:
        if head[:4] != own:
            claimed = recognise(head, Path("unnamed"))
            hold(not claimed, f"{case.entry.name}: it claims a file that begins with {head[:8]!r}")


def it_round_trips_every_dtype(case: Case) -> None:
    """Each dtype that its sample can write is read with the same dtype, shape and bytes."""
    written = 0
    for dtype, size in BITS.items():
        for shape in ((8,), (2, 4)):
            data = bytes((7 * at + 1) % 251 for at in range(size))
            path = case.write(f"{dtype}-{len(shape)}", (dtype, shape, data))
            if path is None:
                continue
            written += 1
            model = open_model(path)
            (info,) = model.tensors.values()
            hold((info.dtype, info.shape) == (dtype, shape), f"{dtype} {shape} came back as {info}")
            hold(_read(model, info.name) == data, f"{dtype} {shape}: the bytes are not the same")
            model.close()
    hold(written, f"{case.entry.name}: its sample could write no dtype at all")


def it_reads_any_part(case: Case) -> None:
    """Parts join to the complete tensor at any cut, and the rest of the buffer is unchanged."""
    model = open_model(case.good())
    (name,) = model.tensors
    data = _read(model, name)
    for cut in range(len(data) + 1):
        parts = _part(model, name, 0, cut) + _part(model, name, cut, len(data))
        hold(parts == data, f"cut at byte {cut}, the parts are not the tensor")
    model.close()


def it_reads_no_tensor_to_open(case: Case) -> None:
    """Opening reads a header: its cost does not grow with the weights."""
    path = case.write("large", ("F32", (_LARGE // 4,), bytes(_LARGE)))
    if path is None:
        return
    file = _Counting(path)
    model = case.entry.plugin(file)
    hold(file.count < _LARGE // 2, f"opening read {file.count} bytes of a {file.size} byte file")
    model.close()


def it_tells_a_changed_file(case: Case) -> None:
    """`confirm` raises if the file is not the one that was opened."""
    path = case.good()
    model = open_model(path)
    model.confirm()
    with path.open("ab") as stream:
        stream.write(b"more")
    try:
        model.confirm()
    except ChangedWhileReading:
        return
    finally:
        model.close()
    raise AssertionError(f"{case.entry.name}: the file grew, and confirm() was silent")


def it_gives_descriptors_back(case: Case) -> None:
    """After `close`, and after a refusal, no descriptor is open."""
    path = case.good()
    model = open_model(path)
    model.close()
    for data in damaged(path.read_bytes()).values():
        path.write_bytes(data)
        _refused(path, None)
    left = _descriptors(case.folder)
    hold(not left, f"{case.entry.name}: a descriptor is left open on {left}")


def it_refuses_damage(case: Case) -> None:
    """A broken file gives an error of one line that names it, or a warning."""
    good = case.good().read_bytes()
    for what, data in damaged(good).items():
        path = case.path("damaged")
        path.write_bytes(data)
        for forced in (None, case.entry.name):
            if _warned(path, forced):
                continue
            error = _refused(path, forced)
            hold(error, f"{case.entry.name}: a file that is {what!r} was opened")
            text = str(error)
            hold(path.name in text, f"{what!r}: the error does not name the file: {text}")
            hold(text.isprintable(), f"{what!r}: the error is not one line: {text!r}")


def _warned(path: Path, forced: str | None) -> bool:
    """Was it opened with a warning?"""
    try:
        source = open_model(path, format=forced)
    except DifflensError:
        return False
    source.close()
    return bool(source.warnings)


def it_executes_nothing(case: Case) -> None:
    """Reading imports, starts, connects, maps and writes nothing."""
    paths = [case.good()]
    payload = case.write("payload", ("F32", (len(_PICKLE) // 4,), _PICKLE[: len(_PICKLE) & ~3]))
    paths.extend([payload] if payload else [])
    for number, data in enumerate(damaged(paths[0].read_bytes()).values()):
        broken = case.path(f"broken-{number}")
        broken.write_bytes(data)
        paths.append(broken)
    _open_all(paths)  # our own late imports happen here
    listing = sorted(case.folder.iterdir())
    with deeds() as done:
        _open_all(paths)
    hold(not done, f"{case.entry.name}: while reading it did {done}")
    hold(sorted(case.folder.iterdir()) == listing, f"{case.entry.name}: it left a file behind")


LAWS = (
    it_is_described,
    it_opens_what_it_recognises,
    it_leaves_the_rest_alone,
    it_round_trips_every_dtype,
    it_reads_any_part,
    it_reads_no_tensor_to_open,
    it_tells_a_changed_file,
    it_gives_descriptors_back,
    it_refuses_damage,
    it_executes_nothing,
)


class _Counting(File):
    """A file that counts the bytes read from it."""

    count = 0

    def read_into(self, start: int, buffer: memoryview) -> int:
        self.count += len(buffer)
        return super().read_into(start, buffer)


def _part(model: TensorSource, name: str, start: int, stop: int) -> bytes:
    buffer = bytearray(b"\xaa" * (stop - start + 3))
    got = model.read_into(name, start, stop, memoryview(buffer))
    hold(got == stop - start, f"asked for [{start}, {stop}), read_into said {got} bytes")
    hold(buffer[got:] == b"\xaa" * 3, "read_into wrote beyond what it was asked for")
    return bytes(buffer[:got])


def _read(model: TensorSource, name: str) -> bytes:
    return _part(model, name, 0, model.tensors[name].size_bytes)


def _refused(path: Path, forced: str | None) -> DifflensError | None:
    try:
        open_model(path, format=forced).close()
    except DifflensError as error:
        return error
    return None


def _open_all(paths: list[Path]) -> None:
    for path in paths:
        try:
            model = open_model(path)
        except DifflensError:
            continue
        for name in model.tensors:
            _read(model, name)
        model.close()


def _descriptors(folder: Path) -> list[str]:
    """List the open files of the folder, if the system can tell."""
    known = Path("/proc/self/fd")
    opened = [os.path.realpath(each) for each in known.iterdir()] if known.is_dir() else []
    return [each for each in opened if each.startswith(f"{folder.resolve()}{os.sep}")]
