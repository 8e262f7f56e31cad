"""What lies in a model's folder: weights, their index, and the files beside them."""

import os
import re
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from ..errors import CorruptFile, UnknownFormat, UnreadableFile
from ..escape import for_terminal, visible
from . import readers
from .files import File, is_file, is_folder, unreadable

_INDEX = ".index.json"
_USUAL = ".safetensors"
_FAVOURITE = "model.safetensors"
_PART = re.compile(r"(.*)-([0-9]{1,6})-of-([0-9]{1,6})(\.\w+)", re.DOTALL)
# Weights in formats of other readers; optimizer.pt and training_args.bin are none.
_OTHERS = re.compile(
    r"(pytorch_|tf_|flax_|adapter_|diffusion_pytorch_)?model(?![a-z]).*"
    r"\.(bin|pt|pth|ckpt|h5|keras|msgpack|onnx|gguf|npz|safetensors)",
    re.DOTALL,
)
# What training leaves beside the weights: opened when named, never as a part of the model.
_STATE = re.compile(r"(optimizer|scheduler|scaler|training_args|rng_state|random_states)")
# Which of several formats in one folder is the model.
_PREFERENCE = (
    ".safetensors", ".bin", ".pt", ".pth", ".ckpt", ".gguf", ".onnx", ".keras", ".h5", ".msgpack",
    ".npz",
)  # fmt: skip
_BESIDE = (
    "config.json", "generation_config.json", "quantize_config.json", "quant_config.json",
    "adapter_config.json", "preprocessor_config.json",
    "processor_config.json", "tokenizer.json", "tokenizer_config.json", "tokenizer.model",
    "special_tokens_map.json", "added_tokens.json", "vocab.json", "vocab.txt", "merges.txt",
    "spiece.model", "sentencepiece.bpe.model", "chat_template.jinja", "chat_template.json",
)  # fmt: skip
_COMMIT_BYTES = 256
_LOOK_INTO = 200


class Contents(NamedTuple):
    """Which files of a folder are the model: an index or weights; and what else looks like one."""

    index_file: str | None
    weights: list[str]
    beside: list[str]


def describe_folder_files(path: str | Path) -> dict[str, Path]:
    """Give the configuration and tokenizer files beside the weights, by name."""
    path = Path(path)
    if not is_folder(path):
        return {}
    folder = model_folder(path)
    return {name: folder / name for name in _BESIDE if is_file(folder / name)}


def suffixes(*, strangers: bool = True) -> tuple[str, ...]:
    """Give the endings of model files, as the readers name them."""
    entries = readers(strangers=strangers)
    return tuple(suffix for entry in entries for suffix in entry.options.get("suffixes", ()))


def is_whole(folder: Path) -> bool:
    """Is the folder itself a checkpoint: of torch.distributed, or of TensorFlow?"""
    return any(is_file(folder / name) for name in (".metadata", "saved_model.pb", "checkpoint"))


def model_folder(path: Path) -> Path:
    """Give the folder that holds the files: in a cache of Hugging Face, the snapshot in use."""
    snapshots = path / "snapshots"
    if not (path.name.startswith("models--") or is_folder(path / "refs")):
        return path
    if not is_folder(snapshots):
        return path
    main = path / "refs" / "main"
    names = sorted(name for name in _names(snapshots) if is_folder(snapshots / name))
    if is_file(main):
        return snapshots / _chosen(main, names)
    if len(names) == 1:
        return snapshots / names[0]
    reason = f"refs/main is missing, and of {len(names)} snapshots none is chosen: {listed(names)}"
    raise UnknownFormat(visible(str(path)), reason, hint="name the snapshot's folder")


def contents(folder: Path) -> Contents:
    """Sort the files of a folder into the model and the rest."""
    names = [name for name in _names(folder) if not is_folder(folder / name)]
    # The usual answer first: asking every reader for its endings imports them all.
    known: tuple[str, ...] = (_USUAL,)
    if not any(name.endswith(_USUAL) for name in names):
        known = suffixes(strangers=False)
    if not any(name.endswith(known) for name in names):
        known = suffixes()
    found = [name for name in names if name.endswith(known)]
    weights = _of_one_format([name for name in found if not _STATE.match(name)]) or found
    index = _index(folder, [name for name in names if name.endswith(_INDEX)], weights, known)
    others = [name for name in names if _OTHERS.fullmatch(name)]
    if not index and not weights:
        raise _no_model(folder, others)
    beside = sorted({*found, *others})
    return Contents(index, [_FAVOURITE] if _FAVOURITE in weights else weights, beside)


def _of_one_format(names: list[str]) -> list[str]:
    """Keep the weights of one format: a folder may hold the same model several times over."""
    endings = {Path(name).suffix.lower() for name in names}
    chosen = next((ending for ending in _PREFERENCE if ending in endings), None)
    return [name for name in names if chosen is None or Path(name).suffix.lower() == chosen]


def check_complete(folder: Path, weights: list[str]) -> None:
    """Refuse a set that counts itself, `-00001-of-00003`, and has not all its parts."""
    sets: dict[tuple[str, str, str, int], set[int]] = {}
    for part in filter(None, map(_PART.fullmatch, weights)):
        stem, digits, total, suffix = part.groups()
        sets.setdefault((stem, total, suffix, len(digits)), set()).add(int(digits))
    for (stem, total, suffix, width), numbers in sets.items():
        first = 0 if 0 in numbers else 1
        for number in range(first, first + min(int(total), len(numbers) + 1)):
            if number not in numbers:
                wanted = for_terminal(f"{stem}-{number:0{width}}-of-{total}{suffix}")
                reason = f"shard '{wanted}' is not there, {len(numbers)} of {int(total)} are"
                hint = "the download may be incomplete"
                raise CorruptFile(visible(str(folder)), reason, hint=hint)


def listed(names: list[str], most: int = 5) -> str:
    """Name the first few and count the others.

    >>> listed(["a", "b", "c"], 2)
    "'a', 'b' and 1 more"
    """
    named = ", ".join(f"'{for_terminal(name)}'" for name in names[:most])
    return f"{named} and {len(names) - most} more" if len(names) > most else named


def _names(folder: Path) -> list[str]:
    """List the folder, without the hidden files other programs leave there."""
    try:
        return sorted(name for name in os.listdir(folder) if name[0] != ".")  # noqa: PTH208
    except OSError as error:
        raise unreadable(folder, error) from error


def _chosen(main: Path, names: list[str]) -> str:
    """Read which snapshot refs/main means; only one that is there can be meant."""
    file = File(main)
    try:
        commit = file.read(0, min(file.size, _COMMIT_BYTES)).decode("utf-8", "replace").strip()
    finally:
        file.close()
    if commit not in names:
        reason = f"it names snapshot '{for_terminal(commit, 40)}', which is not there"
        raise UnreadableFile(visible(str(main)), reason, hint="name the snapshot's folder")
    return commit


def _index(
    folder: Path, indexes: list[str], weights: list[str], known: tuple[str, ...]
) -> str | None:
    """Choose the index; one of a format we cannot read counts only where nothing else is there."""
    ours = [name for name in indexes if name.removesuffix(_INDEX).endswith(known)]
    indexes = ours or ([] if weights else indexes)
    if not indexes:
        return None
    if _FAVOURITE + _INDEX in indexes:
        return _FAVOURITE + _INDEX
    if len(indexes) == 1:
        return indexes[0]
    reason = f"there are {len(indexes)} indexes, one is wanted: {listed(indexes)}"
    raise UnknownFormat(visible(str(folder)), reason, hint="name the index file itself")


def _no_model(folder: Path, others: list[str]) -> UnknownFormat:
    where = visible(str(folder))
    if others:
        reason = f"no reader knows the models of this folder: {listed(others)}"
        return UnknownFormat(where, reason, hint="difflens list formats names the known ones")
    below = any(name.endswith((*suffixes(), _INDEX)) for name in _some_below(folder))
    hint = "its sub-folders hold models: compare them with -r" if below else ""
    return UnknownFormat(where, "there is no model in this folder", hint=hint)


def _some_below(folder: Path) -> Iterator[str]:
    """Yield names from the first sub-folders only: the folder may be the root of a disk."""
    for seen, (_, _, names) in enumerate(os.walk(folder)):
        yield from names
        if seen >= _LOOK_INTO:
            return
