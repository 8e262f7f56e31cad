"""Which model a source is: its size, its element types, and the settings beside its weights."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable
from contextlib import closing

from difflens.core.addresses import Location
from difflens.core.errors import ModelError
from difflens.core.protocols import TensorSource
from difflens.core.records import ModelInfo, TensorInfo
from difflens.storage.places import open_small

from .folders.listing import describe_folder_files
from .folders.together import read_together

# What is shown for a model without a path.
IN_MEMORY = "(in memory)"
ALREADY_OPEN = "(opened before)"
WITHOUT_PATH = frozenset({IN_MEMORY, ALREADY_OPEN})

_LARGEST_SETTINGS = 1_000_000  # bytes; a settings file is read key by key, others are hashed
_LARGEST_HASHED = 256_000_000  # bytes; of a larger file only the size is compared
_STEP = 1 << 20


def describe(path: str, source: TensorSource, state: Iterable[TensorInfo] = ()) -> ModelInfo:
    """Sum up the header; `state` are the tensors beside those of the source."""
    infos = source.tensors.values()
    beside = list(state)
    return ModelInfo(
        path=path,
        format=source.format,
        tensor_count=len(infos),
        parameter_count=sum(info.count for info in infos),
        size_bytes=sum(info.size_bytes for info in infos),
        dtypes=dict(sorted(Counter(info.dtype for info in infos).items())),
        state_tensors=len(beside),
        state_bytes=sum(info.size_bytes for info in beside),
    )


def metadata(place: str | Location | None, source: TensorSource) -> dict[str, str]:
    """Gather the metadata in the file, and the settings in its folder."""
    return {**source.metadata, **({} if place is None else describe_settings(place))}


def describe_settings(path: str | Location) -> dict[str, str]:
    """Describe the settings and tokenizer files of a folder: key by key, or by size and hash.

    The result is empty for a single file: what else lies in its folder may be another model's.
    """
    settings: dict[str, str] = {}
    files = describe_folder_files(path)
    read_together(files.values())
    for name, file in sorted(files.items()):
        settings.update(describe_file(name, file))
    return settings


def describe_file(name: str, file: Location) -> dict[str, str]:
    """Describe one such file: a settings file key by key, any other by size and hash."""
    settings = _settings(file) if name.endswith("config.json") else None
    if settings is None:
        return {name: _fingerprint(file)}
    return {f"{name}: {key}": value for key, value in settings.items()}


def _settings(path: Location) -> dict[str, str] | None:
    """Read the top-level keys of a JSON object; None if the file holds something else."""
    try:
        with closing(open_small(path)) as file:
            if file.size > _LARGEST_SETTINGS:
                return None
            parsed = json.loads(file.read(0, file.size))
    except (ModelError, ValueError, RecursionError):
        return None
    if not isinstance(parsed, dict):
        return None
    return {str(key): json.dumps(value, sort_keys=True) for key, value in parsed.items()}


def _fingerprint(path: Location) -> str:
    import hashlib  # 3 ms that most diffs need not pay

    try:
        with closing(open_small(path)) as file:
            if file.size > _LARGEST_HASHED:
                return f"{file.size} bytes"
            digest = hashlib.sha256()
            for start in range(0, file.size, _STEP):
                digest.update(file.read(start, min(start + _STEP, file.size)))
            return f"{file.size} bytes, sha256 {digest.hexdigest()[:16]}"
    except ModelError as error:
        return f"unreadable: {error.reason}"
