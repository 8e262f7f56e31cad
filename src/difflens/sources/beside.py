"""What lies beside the weights in a model's folder and belongs to the model: its settings."""

from __future__ import annotations

import json
import os
from pathlib import Path

from .folders import describe_folder_files

_LARGEST_SETTINGS = 1_000_000  # bytes; a settings file is read key by key, anything else is hashed
_LARGEST_HASHED = 256_000_000  # bytes; beyond that only the size is compared


def beside(path: str) -> dict[str, str]:
    """Describe the settings and tokenizer files of a folder: key by key, or by size and hash.

    A single file has nothing beside it: what else lies in its folder may be another model's.
    """
    if not os.path.isdir(path):  # noqa: PTH112  a path that is no text must not raise here
        return {}
    found: dict[str, str] = {}
    for name, file in sorted(describe_folder_files(path).items()):
        settings = _settings(file) if name.endswith("config.json") else None
        if settings is None:
            found[name] = _fingerprint(file)
        else:
            found.update({f"{name}: {key}": value for key, value in settings.items()})
    return found


def _settings(file: Path) -> dict[str, str] | None:
    """Read a JSON object's top-level keys; None where it is something else."""
    try:
        if file.stat().st_size > _LARGEST_SETTINGS:
            return None
        parsed = json.loads(file.read_bytes())
    except (OSError, ValueError, RecursionError):
        return None
    if not isinstance(parsed, dict):
        return None
    return {str(key): json.dumps(value, sort_keys=True) for key, value in parsed.items()}


def _fingerprint(file: Path) -> str:
    import hashlib  # 3 ms that most diffs need not pay

    try:
        if file.stat().st_size > _LARGEST_HASHED:
            return f"{file.stat().st_size} bytes"
        with file.open("rb") as stream:
            digest = hashlib.file_digest(stream, "sha256").hexdigest()
        return f"{file.stat().st_size} bytes, sha256 {digest[:16]}"
    except OSError as error:
        return f"unreadable: {error.strerror}"
