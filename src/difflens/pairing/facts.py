"""What the metadata of a model says that its tensors' names and shapes do not: its heads."""

from __future__ import annotations

from collections.abc import Mapping

from ..records import Record

_ARCHITECTURE = ("general.architecture", "config.json: model_type")
_HEADS = ("config.json: num_attention_heads", "config.json: n_head", "config.json: num_heads")
_KEY_HEADS = ("config.json: num_key_value_heads", "config.json: n_head_kv")


class Facts(Record, frozen=True):
    """The architecture's name and its numbers of heads; None is unknown."""

    architecture: str | None = None
    heads: int | None = None
    key_heads: int | None = None


def facts(*sides: Mapping[str, str]) -> Facts:
    """Gather what either side says; they are about the same model, or nothing pairs anyway.

    >>> facts({"general.architecture": "llama", "llama.attention.head_count": "8"}).heads
    8
    """
    known = {key: value for side in sides for key, value in side.items()}
    name = _first(known, _ARCHITECTURE)
    if name:
        name = name.strip('"')
    heads = _number(known, (f"{name}.attention.head_count", *_HEADS))
    key_heads = _number(known, (f"{name}.attention.head_count_kv", *_KEY_HEADS))
    return Facts(name, heads, key_heads or heads)


def _first(known: Mapping[str, str], keys: tuple[str, ...]) -> str | None:
    return next((known[key] for key in keys if key in known), None)


def _number(known: Mapping[str, str], keys: tuple[str, ...]) -> int | None:
    text = _first(known, keys) or ""
    return int(text) if text.isascii() and text.isdigit() and len(text) < 10 else None
