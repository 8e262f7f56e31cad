"""The files of a model: weights in a folder, their index, settings, files that a model names."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from pathlib import Path, PurePosixPath
from typing import NamedTuple, overload

from difflens.core.addresses import Address, Location, locate
from difflens.core.errors import INCOMPLETE, CorruptFile, ModelError, UnknownFormat, UnreadableFile
from difflens.core.escape import for_terminal, visible
from difflens.core.limits import DEFAULTS
from difflens.core.protocols import ModelFile
from difflens.storage.places import is_file, is_folder, is_link, names, open_file

from ..formats import readers

_INDEX = ".index.json"
_USUAL = ".safetensors"
_FAVOURITE = "model.safetensors"
# Compiled where a folder is opened: a diff of two files needs none of them.
_PART = r"(?s)(.*)-([0-9]{1,6})-of-([0-9]{1,6})(\.\w+)"
# Weights of all formats; optimizer.pt and training_args.bin do not match.
_OTHERS = (
    r"(?s)(pytorch_|tf_|flax_|adapter_|diffusion_pytorch_)?model(?![a-z]).*"
    r"\.(bin|pt|pth|ckpt|h5|keras|msgpack|onnx|gguf|npz|safetensors)"
)
# Training state beside the weights: opened by its name, never as a part of the model.
_STATE = ("optimizer", "scheduler", "scaler", "training_args", "rng_state", "random_states")
# If a folder has several formats, the first of these is the model.
_PREFERENCE = tuple(
    """
    .safetensors .bin .pt .pth .ckpt .gguf .onnx .keras .h5 .msgpack .npz
""".split()
)
BESIDE = tuple(
    """
    config.json generation_config.json quantize_config.json quant_config.json
    adapter_config.json preprocessor_config.json processor_config.json tokenizer.json
    tokenizer_config.json tokenizer.model special_tokens_map.json added_tokens.json
    vocab.json vocab.txt merges.txt spiece.model sentencepiece.bpe.model chat_template.jinja
    chat_template.json
""".split()
)
_COMMIT_BYTES = 256
_LOOK_INTO = 20


class Contents(NamedTuple):
    """The files that are the model, an index or weights, and others that look like weights."""

    index_file: str | None
    weights: list[str]
    beside: list[str]


@overload
def describe_folder_files(path: Path) -> dict[str, Path]: ...
@overload
def describe_folder_files(path: str | Location) -> dict[str, Location]: ...


def describe_folder_files(path: str | Location) -> Mapping[str, Location]:
    """Find the configuration and tokenizer files beside the weights, by name."""
    path = locate(path)
    if not is_folder(path):
        return {}
    return files_called(BESIDE, model_folder(path))


def files_called(wanted: Iterable[str], folder: Location) -> dict[str, Location]:
    """Find the files in a folder that have these names, in their order, by one listing.

    There are none if the folder cannot be listed, as on most web servers.
    """
    try:
        present = set(names(folder))
    except ModelError:
        return {}
    return {name: folder / name for name in wanted if name in present and is_file(folder / name)}


def suffixes(*, strangers: bool = True) -> tuple[str, ...]:
    """List the endings of model files that the readers register."""
    entries = readers(strangers=strangers)
    return tuple(suffix for entry in entries for suffix in entry.options.get("suffixes", ()))


def is_checkpoint(folder: Location) -> bool:
    """Is the folder itself a checkpoint of torch.distributed or TensorFlow?"""
    return any(is_file(folder / name) for name in (".metadata", "saved_model.pb", "checkpoint"))


@overload
def model_folder(path: Path) -> Path: ...
@overload
def model_folder(path: Location) -> Location: ...


def model_folder(path: Location) -> Location:
    """Return the folder that holds the files: in a cache of Hugging Face, the current snapshot."""
    if isinstance(path, Address):
        return path  # the layout of that cache is one of disks
    snapshots = path / "snapshots"
    if not (path.name.startswith("models--") or is_folder(path / "refs")):
        return path
    if not is_folder(snapshots):
        return path
    main = path / "refs" / "main"
    commits = [name for name in names(snapshots) if is_folder(snapshots / name)]
    if is_file(main):
        return snapshots / _chosen(main, commits)
    if len(commits) == 1:
        return snapshots / commits[0]
    count = len(commits)
    reason = f"refs/main is missing, so none of {count} snapshots is current: {listed(commits)}"
    raise UnknownFormat(visible(str(path)), reason, hint="pass the folder of the snapshot")


def contents(folder: Location) -> Contents:
    """Find the model among the files of a folder."""
    files = [name for name in names(folder) if not is_folder(folder / name)]
    # The usual case first: asking every reader for its endings imports all of them.
    known: tuple[str, ...] = (_USUAL,)
    if not any(name.endswith(_USUAL) for name in files):
        known = suffixes(strangers=False)
    if not any(name.endswith(known) for name in files):
        known = suffixes()
    models = [name for name in files if name.endswith(known)]
    weights = _of_one_format([name for name in models if not name.startswith(_STATE)]) or models
    index = _index(folder, [name for name in files if name.endswith(_INDEX)], weights, known)
    others = [name for name in files if re.fullmatch(_OTHERS, name)]
    if not index and not weights:
        raise _no_model(folder, others)
    beside = sorted({*models, *others})
    return Contents(index, [_FAVOURITE] if _FAVOURITE in weights else weights, beside)


def _of_one_format(names: list[str]) -> list[str]:
    """Choose the weights of one format: a folder may hold the same model in several."""
    endings = {Path(name).suffix.lower() for name in names}
    chosen = next((ending for ending in _PREFERENCE if ending in endings), None)
    return [name for name in names if chosen is None or Path(name).suffix.lower() == chosen]


def check_complete(folder: Location, weights: list[str]) -> None:
    """Refuse a numbered set, such as `-00001-of-00003`, that is not complete."""
    sets: dict[tuple[str, str, str, int], set[int]] = {}
    for part in filter(None, (re.fullmatch(_PART, name) for name in weights)):
        stem, digits, total, suffix = part.groups()
        sets.setdefault((stem, total, suffix, len(digits)), set()).add(int(digits))
    for (stem, total, suffix, width), numbers in sets.items():
        first = 0 if 0 in numbers else 1
        for number in range(first, first + min(int(total), len(numbers) + 1)):
            if number not in numbers:
                wanted = for_terminal(f"{stem}-{number:0{width}}-of-{total}{suffix}")
                reason = f"shard '{wanted}' is missing, {len(numbers)} of {int(total)} are present"
                raise CorruptFile(visible(str(folder)), reason, hint=INCOMPLETE)


def listed(names: list[str], most: int = 5) -> str:
    """Write the first few names, and the number of the others.

    >>> listed(["a", "b", "c"], 2)
    "'a', 'b' and 1 more"
    """
    shown = ", ".join(f"'{for_terminal(name)}'" for name in names[:most])
    return f"{shown} and {len(names) - most} more" if len(names) > most else shown


def _chosen(main: Path, names: list[str]) -> str:
    """Read the name of the current snapshot from refs/main; refuse one that does not exist."""
    file = open_file(main)
    try:
        commit = file.read(0, min(file.size, _COMMIT_BYTES)).decode("utf-8", "replace").strip()
    finally:
        file.close()
    if commit not in names:
        reason = f"it names snapshot '{for_terminal(commit, 40)}', which does not exist"
        raise UnreadableFile(visible(str(main)), reason, hint="pass the folder of the snapshot")
    return commit


def _index(
    folder: Location, indexes: list[str], weights: list[str], known: tuple[str, ...]
) -> str | None:
    """Choose the index; one of an unknown format counts only if there is nothing else."""
    ours = [name for name in indexes if name.removesuffix(_INDEX).endswith(known)]
    indexes = ours or ([] if weights else indexes)
    if not indexes:
        return None
    if _FAVOURITE + _INDEX in indexes:
        return _FAVOURITE + _INDEX
    if len(indexes) == 1:
        return indexes[0]
    reason = f"there are {len(indexes)} indexes, expected one: {listed(indexes)}"
    raise UnknownFormat(visible(str(folder)), reason, hint="pass the path of the index")


def _no_model(folder: Location, others: list[str]) -> UnknownFormat:
    where = visible(str(folder))
    if others:
        reason = f"no reader knows the models of this folder: {listed(others)}"
        return UnknownFormat(where, reason, hint="run: difflens list formats")
    below = any(name.endswith((*suffixes(), _INDEX)) for name in _some_below(folder))
    hint = "its sub-folders hold models; compare them with -r" if below else ""
    return UnknownFormat(where, "there is no model in this folder", hint=hint)


def _some_below(folder: Location) -> Iterator[str]:
    """Yield names from the first sub-folders only: the folder may be the root of a disk."""
    with suppress(ModelError):
        for seen, (_, _, files) in enumerate(_walk(folder)):
            yield from files
            if seen >= _LOOK_INTO:
                return


def model_files(folder: str | Location) -> list[str]:
    """List the models below a folder by relative name, sorted.

    A folder with an index, or one that is itself a checkpoint, is one model; its name is `.` if it
    is the folder itself. Links to folders are not followed; hidden files and folders are skipped.
    """
    return sorted(_models(locate(folder), suffixes()))


def _models(folder: Location, known: tuple[str, ...]) -> Iterator[str]:
    for place, folders, files in _walk(folder):
        here = folder / place if place else folder
        if any(name.endswith(_INDEX) for name in files) or is_checkpoint(here):
            yield place or "."
            folders[:] = [] if is_checkpoint(here) else folders
            continue
        yield from (_joined(place, name) for name in files if name.endswith(known))


def _walk(folder: Location) -> Iterator[tuple[str, list[str], list[str]]]:
    """Yield each folder below by relative name, with its folders and files, as `os.walk` does."""
    waiting = [""]
    while waiting:
        place = waiting.pop()
        here = folder / place if place else folder
        every = names(here)
        folders = [name for name in every if is_folder(here / name)]
        others = set(folders)
        yield place, folders, [name for name in every if name not in others]
        waiting += [_joined(place, name) for name in folders if not is_link(here / name)]


def _joined(place: str, name: str) -> str:
    return f"{place}/{name}" if place else name


# A name inside a file is not trusted. It must be a relative path, and its target, after every link,
# must be in the folder of the model; or, in a cache of Hugging Face, where each file is a link, in
# the `blobs` of the same `models--` folder. At an address there are no links, but the server might
# read more into a name than we do: there it must be plain.

_NOT_PLAIN = re.compile(r"[\x00-\x1f\x7f%?#:;\\]")


def neighbour(file: ModelFile, location: str) -> ModelFile:
    """Open a file that a model names, after checking where the name leads."""
    where = visible(str(file.path))
    named = f"'{for_terminal(location)}'"
    parts = PurePosixPath(location).parts
    if not location or not parts or "\0" in location or "\\" in location:
        raise CorruptFile(where, f"it names the file {named}, expected a relative path")
    if location[0] == "/" or location[1:2] == ":" or ".." in parts:
        raise CorruptFile(where, f"it names the file {named}, which is outside its folder")
    location = "/".join(parts)
    if not is_plain(file.path, location):
        raise CorruptFile(where, f"it names the file {named}, expected a plain name at an address")
    return open_file(_target(file.path, location, where), limits_of(file))


def is_plain(owner: Location, name: str) -> bool:
    """Can a server read no more into a name than we do? At a path on this machine, always."""
    if not isinstance(owner, Address):
        return True
    parts = name.split("/")
    return not _NOT_PLAIN.search(name) and not {"", ".", ".."} & set(parts)


def limits_of(file: ModelFile) -> Mapping[str, int]:
    """Return the limits of an open file, for the files that it names."""
    return {name: file.limit(name) for name in DEFAULTS}


def _target(path: Location, location: str, where: str) -> Location:
    """Return where a relative name leads, after every link; refuse one that leads outside."""
    if isinstance(path, Address):
        return path.parent / location
    folder = _folder(path, location)
    target = os.path.realpath(folder / location)
    if not any(_is_inside(target, home) for home in _homes(folder)):
        reason = f"it names the file '{for_terminal(location)}', which leads outside its folder"
        raise CorruptFile(where, f"{reason} by a link")
    return Path(target)


def _folder(path: Path, location: str) -> Path:
    """Return the folder of the model: that of the path, or of the target of a link."""
    folder = path.parent
    if path.is_symlink() and not os.path.lexists(folder / location):
        return Path(os.path.realpath(path)).parent
    return folder


def _homes(folder: Path) -> list[str]:
    """List the folders in which a neighbour is allowed."""
    real = Path(os.path.realpath(folder))
    homes = [str(real)]
    for parent in real.parents:
        if parent.name.startswith("models--"):
            homes.append(str(parent / "blobs"))
            break
    return homes


def _is_inside(target: str, home: str) -> bool:
    return target.startswith(home.rstrip(os.sep) + os.sep)
