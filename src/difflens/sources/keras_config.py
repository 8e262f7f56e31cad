"""What a Keras config says of code and files: named, never made, opened or run."""

from __future__ import annotations

from typing import Any

from ..errors import DifflensError
from . import strict_json

LARGEST = 1 << 20  # bytes of a config that are looked through
_DEEPEST = 256
_CODE = {"Lambda", "__lambda__"}
_FOLDERS = {"TFSMLayer"}
_LOOKUPS = {"StringLookup", "IntegerLookup", "TextVectorization"}


def look_through(text: str, warnings: list[str]) -> list[str]:
    """Name the layers that would run code or open files, each kind once."""
    if len(text) >= LARGEST:
        warnings.append("the Keras config is too long to look through for code")
        return []
    try:
        data = text.encode("utf-8", "surrogatepass")
        config = strict_json.parse(data, "the Keras config", depth=_DEEPEST, floats=True)
    except DifflensError as error:
        warnings.append(f"the Keras config was not looked through for code: {error.reason}")
        return []
    found: dict[str, None] = {}
    stack = [config]
    while stack:
        node = stack.pop()
        if isinstance(node, dict):
            kind = _kind(node)
            if kind:
                found[kind] = None
        stack.extend(node.values() if isinstance(node, dict) else node)
        stack = [each for each in stack if isinstance(each, dict | list)]
    return sorted(found)


def _kind(node: dict[str, Any]) -> str | None:
    """Say what this part of a config would do."""
    name, config = node.get("class_name"), node.get("config")
    if not isinstance(name, str):
        return None
    if name in _CODE:
        return "Lambda layer with code"
    if name in _FOLDERS:
        return f"{name} with a folder of code"
    if name in _LOOKUPS and isinstance(config, dict) and isinstance(config.get("vocabulary"), str):
        return f"{name} with a vocabulary file"
    return None
