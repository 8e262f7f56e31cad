"""Applies a patch: to files, which appear complete or not at all, or to arrays in memory."""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

from difflens.core.buffers import ThreadBuffers
from difflens.core.errors import CorruptFile, OutputError, PatchError
from difflens.core.records import TensorInfo
from difflens.core.whole_file import umask, whole_file
from difflens.engines.threads import Threads
from difflens.measure.codec import crc32c
from difflens.models.opening import MemorySource, Module, flatten

from .chunks import Content, chunks_of, digest
from .layout import Layout, Place
from .patch_file import PatchFile
from .patched import Patched, Step, plan, reversed_steps


class _Task(NamedTuple):
    info: TensorInfo
    number: int
    start: int
    stop: int


def write_model(
    patched: Patched, layout: Layout, path: Path, *, threads: int | None, digests: bool
) -> None:
    """Write the model that a patch makes; the path is absent or complete, whatever happens."""
    places = layout.places(patched.patch.where, patched.patch.limits)
    patched.check_first_chunks()
    with _outputs(layout, path, patched.patch.limits) as files:
        for file, size in zip(files, layout.sizes(places), strict=True):
            os.ftruncate(file, size)
        for number, offset, data in layout.pieces():
            _write(files[number], memoryview(data), offset)
        run(patched, files, places, threads=threads, digests=digests)
        patched.confirm()


def run(
    patched: Patched,
    files: list[int],
    places: Mapping[str, Place],
    *,
    threads: int | None,
    digests: bool,
) -> None:
    """Make all chunks, write them where there are files, and compare the digest of the result."""
    content, head, buffers = Content(), patched.patch.head, ThreadBuffers()
    wanted = head.base if patched.backwards else head.target
    digests = digests and bool(wanted)
    for info in patched.tensors.values():
        content.declare(info)

    def work(task: _Task) -> tuple[TensorInfo, bytes]:
        out = buffers.get("out", task.stop - task.start)
        patched.read_chunk(task.info.name, task.number, out)
        if files:
            _, file, offset = places[task.info.name]
            _write(files[file], out, offset + task.start)
        return task.info, digest(out) if digests else b""

    engine = Threads(threads)
    try:
        for info, chunk in engine.map(work, _tasks(patched.tensors)):
            content.add(info, chunk)
    finally:
        engine.close()
    if digests and content.digest() != wanted:
        raise patched.patch.damaged("the result is not the model it should be")


def _tasks(tensors: Mapping[str, TensorInfo]) -> Iterator[_Task]:
    for info in tensors.values():
        for number, (start, stop) in enumerate(chunks_of(info)):
            yield _Task(info, number, start, stop)


def _write(file: int, data: memoryview, offset: int) -> None:
    while data:
        done = os.pwrite(file, data, offset)
        data, offset = data[done:], offset + done


@contextmanager
def _outputs(layout: Layout, path: Path, limits: dict[str, int]) -> Iterator[list[int]]:
    """Open the files to write: beside the path, which they replace once they are complete."""
    if not layout.is_folder:
        with whole_file(path) as file:
            yield [file.fileno()]
            if layout.frame and not layout.frame.is_read_so(Path(file.name), limits):
                raise CorruptFile(str(path), f"the patch makes a damaged {layout.frame.form} file")
        return
    if os.path.lexists(path) and not (path.is_dir() and not os.listdir(path)):  # noqa: PTH208
        raise OutputError("it exists, and the patch makes a folder", where=str(path))
    temporary: Path | None = None
    files: list[int] = []
    try:
        temporary = Path(tempfile.mkdtemp(dir=path.resolve().parent, prefix="."))
        files.extend(
            os.open(temporary / name, os.O_RDWR | os.O_CREAT | os.O_EXCL, 0o666)
            for name in layout.names()
        )
        yield files
        for name, data in layout.beside:
            number = os.open(temporary / name, os.O_RDWR | os.O_CREAT | os.O_EXCL, 0o666)
            files.append(number)
            _write(number, memoryview(data), 0)
        for number in files:
            os.fsync(number)
        temporary.chmod(0o777 & ~umask())
        temporary.replace(path.resolve())
        temporary = None
    except OSError as error:
        raise OutputError((error.strerror or str(error)).lower(), where=str(path)) from error
    finally:
        for number in files:
            os.close(number)
        if temporary is not None:
            shutil.rmtree(temporary, ignore_errors=True)


def apply_in_memory(
    model: Mapping[str, Any] | Module, patch: PatchFile, *, backwards: bool
) -> None:
    """Change arrays or parameters in place; a wrong base is refused before any is touched."""
    arrays = model.state_dict() if isinstance(model, Module) else model
    source = MemorySource(arrays)
    steps = _steps_in_memory(patch, source.tensors, backwards=backwards)
    patched = Patched(patch, source, steps, backwards=backwards)
    for step in steps.values():
        _check(patched, step)
    for name, array in flatten(arrays):
        if any(chunk.after is not None for chunk in steps[name].chunks):
            _change(patched, steps[name], array)


def _steps_in_memory(
    patch: PatchFile, tensors: Mapping[str, TensorInfo], *, backwards: bool
) -> dict[str, Step]:
    """Plan for models of which both have the same tensors."""
    target = patch.head.target_layout
    others = dict(tensors)
    if target is not None:
        there = {name: place.info for name, place in target.places(patch.where).items()}
        if {name: info.size_bytes for name, info in there.items()} != {
            name: info.size_bytes for name, info in tensors.items()
        }:
            reason = "it adds, removes or reshapes tensors"
            raise PatchError(patch.where, reason, hint="apply it to a file, with a path to write")
    steps = plan(patch, others, others)
    if any(step.origin is None or step.origin.name != name for name, step in steps.items()):
        raise PatchError(patch.where, "it renames tensors", hint="apply it to a file")
    return reversed_steps(patch, steps, others) if backwards else steps


def _check(patched: Patched, step: Step) -> None:
    """Compare the checksums of a tensor, and try its chunks, before anything is changed."""
    for number, (start, stop) in enumerate(chunks_of(step.info)):
        patched.read_chunk(step.info.name, number, memoryview(bytearray(stop - start)))


def _change(patched: Patched, step: Step, array: Any) -> None:
    import numpy as np

    data = bytearray(step.info.size_bytes)
    for number, (start, stop) in enumerate(chunks_of(step.info)):
        patched.read_chunk(step.info.name, number, memoryview(data)[start:stop])
    if hasattr(array, "detach"):
        import sys

        torch: Any = sys.modules[type(array).__module__.partition(".")[0]]
        flat = torch.frombuffer(data, dtype=array.dtype).reshape(array.shape)
        array.detach().copy_(flat)
        return
    if not isinstance(array, np.ndarray) or not array.flags.writeable:
        raise PatchError(step.info.name, "it is no array that can be written to")
    array[...] = np.frombuffer(data, array.dtype).reshape(array.shape)


__all__ = ["apply_in_memory", "crc32c", "plan", "reversed_steps", "run", "write_model"]
