"""The settings of one model: a config.json, or the keys of GGUF."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from difflens.core.record import Record

_PREFIX = "config.json: "
_NESTED = ("text_config", "llm_config", "language_config")
_LANGUAGE = ("LMHead", "CausalLM", "ForConditionalGeneration", "MaskedLM")
_LARGEST = 1 << 40


class Settings(Record, frozen=True):
    """Settings by key, with those of the language part of a larger model at the top level."""

    config: dict[str, Any]
    keys: dict[str, str]
    where: str = "config"

    @property
    def is_gguf(self) -> bool:
        """Are there keys of GGUF?"""
        return "general.architecture" in self.keys

    @property
    def predicts_words(self) -> bool:
        """Do the settings name a model with a language head?"""
        return any(word in str(each) for each in self.architectures for word in _LANGUAGE)

    @property
    def architectures(self) -> list[Any]:
        """The classes that the settings name."""
        classes = self.config.get("architectures")
        return classes if isinstance(classes, list) else []

    def value(self, key: str) -> Any:
        """Return the value of a key in config.json, of any type."""
        return self.config.get(key)

    def number(self, names: tuple[str, ...], gguf: str) -> tuple[int | None, str]:
        """Return an integer and its origin; (None, "") if there is none."""
        for name in names:
            value = self.config.get(name)
            if type(value) is int and 0 <= value < _LARGEST:
                return value, f"{self.where}: {name}"
        name = self._gguf(gguf)
        value = _integer(self.keys.get(name, ""))
        return (None, "") if value is None else (value, f"GGUF: {name}")

    def mentions(self, names: tuple[str, ...], gguf: str) -> bool:
        """Does one of the keys have a value, of any type?"""
        return any(self.config.get(name) is not None for name in names) or (
            self._gguf(gguf) in self.keys
        )

    def _gguf(self, key: str) -> str:
        return f"{self.keys.get('general.architecture')}.{key}" if key else ""

    def text(self, names: tuple[str, ...], gguf: str) -> tuple[str | None, str]:
        """Return a text and its origin; (None, "") if there is none."""
        for name in names:
            value = self.config.get(name)
            if isinstance(value, str) and value:
                return value, f"{self.where}: {name}"
        return (self.keys[gguf], f"GGUF: {gguf}") if self.keys.get(gguf) else (None, "")

    def flag(self, name: str) -> bool | None:
        """Return a boolean; None if there is none."""
        value = self.config.get(name)
        return value if isinstance(value, bool) else None


def settings(passed: Mapping[str, Any] | None, described: Mapping[str, str]) -> Settings:
    """Collect the settings of one side: those passed, or else those beside the weights.

    >>> settings(None, {"config.json: n_head": "12"}).number(("n_head",), "")
    (12, 'config.json: n_head')
    """
    config = _flat(passed if passed is not None else dict(_parsed(described)))
    keys = {key: text for key, text in described.items() if not key.startswith(_PREFIX)}
    return Settings(config, keys, "config" if passed is not None else "config.json")


def _parsed(described: Mapping[str, str]) -> list[tuple[str, Any]]:
    parsed = []
    for key, text in described.items():
        if key.startswith(_PREFIX):
            try:
                parsed.append((key.removeprefix(_PREFIX), json.loads(text)))
            except (ValueError, RecursionError):
                continue
    return parsed


def _integer(text: str) -> int | None:
    """Read an integer, or an array that repeats one for every layer."""
    parts = {part.strip() for part in text.removeprefix("[").removesuffix("]").split(",")}
    only = parts.pop() if len(parts) == 1 else ""
    return int(only) if only.isascii() and only.isdigit() and len(only) < 13 else None


def _flat(config: Mapping[str, Any]) -> dict[str, Any]:
    """Move the settings of the language part to the top level; keys at the top level win."""
    inner: dict[str, Any] = next(
        (config[key] for key in _NESTED if isinstance(config.get(key), dict)), {}
    )
    return {**inner, **{key: value for key, value in config.items() if key not in _NESTED}}
