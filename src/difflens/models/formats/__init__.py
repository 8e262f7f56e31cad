"""Model files in: one file a format, and the one door that opens them all."""

from collections.abc import Iterator, Mapping
from os import PathLike

from difflens.core.addresses import Address, Location, locate
from difflens.core.errors import UnknownFormat, UnreadableFile
from difflens.core.escape import visible
from difflens.core.protocols import ModelFile, Opener, TensorSource
from difflens.core.registry import Entry, Registry

source: Registry[Opener] = Registry("format", __name__, "difflens.sources")

HEAD_BYTES = 4096

# Endings that are not the name of their format.
_ENDINGS = {"pt": "pytorch", "pth": "pytorch", "bin": "pytorch", "ckpt": "pytorch", "h5": "hdf5"}


def open_model(
    path: str | PathLike[str] | Address,
    *,
    format: str | None = None,  # noqa: A002  the word of the command line
    limits: Mapping[str, int] | None = None,
) -> TensorSource:
    """Open a model file, an index, or a folder that holds one model.

    The format is recognised by content; `format` forces a reader by name. `limits` raises limits
    of `sources.limits` by name.
    """
    from difflens.core.limits import check
    from difflens.storage.places import is_folder

    from ..folders.shards import index_of_prefix, latest_index, open_folder, open_index

    if not str(path):
        raise UnreadableFile("''", "the path is empty")
    path, limits = locate(path), check(limits)
    if is_folder(path):
        return open_folder(path, format, limits)
    if path.name.endswith(".index.json"):
        return open_index(path, format, limits)
    index = latest_index(path, limits)
    if index is None:
        try:
            return open_file(path, format, limits)
        except UnreadableFile:
            index = index_of_prefix(path)
            if index is None:
                raise
    return open_file(index, "tensorflow", limits)


def open_file(path: Location, forced: str | None, limits: Mapping[str, int]) -> TensorSource:
    """Open one file with the reader that knows it; a failure leaves no descriptor behind."""
    from difflens.storage import places

    from ..refusals import refusal

    file = places.open_file(path, limits)
    try:
        head = file.read(0, min(HEAD_BYTES, file.size))
        error = refusal(head, path, file.size)
        if error:
            raise error
        entry = source[forced] if forced else _reader(head, file)
        return entry.plugin(file)
    except BaseException:
        file.close()
        raise


def readers(*, strangers: bool = True) -> Iterator[Entry]:
    """Yield the readers, our own before strangers: looking for those costs 20 ms."""
    ours = set()
    for entry in source.ours():
        ours.add(entry.name)
        yield entry
    if strangers:
        yield from (entry for entry in source if entry.name not in ours)


def _likely_first(path: Location) -> Iterator[Entry]:
    """Yield every reader, first the one the name's ending speaks for: importing all takes a while.

    Each still decides by content.
    """
    ending = path.suffix.lower().removeprefix(".")
    if source.is_ours(_ENDINGS.get(ending, ending)):
        yield source[_ENDINGS.get(ending, ending)]
    yield from readers()


def _reader(head: bytes, file: ModelFile) -> Entry:
    from ..refusals import looks_like

    for entry in _likely_first(file.path):
        if entry.options["recognise"](head, file.path):
            return entry
    seen = looks_like(head)
    what = f"it looks like {seen}" if seen else f"it begins with {head[:8].hex(' ')}"
    hint = "difflens list formats names the known ones"
    raise UnknownFormat(visible(str(file.path)), f"no reader knows this format: {what}", hint=hint)
