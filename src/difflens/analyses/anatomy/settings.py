"""What was written down about one model: a config.json handed in or found, or GGUF's keys."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from ...records import Record

_PREFIX = "config.json: "
_NESTED = ("text_config", "llm_config", "language_config")
_LANGUAGE = ("LMHead", "CausalLM", "ForConditionalGeneration", "MaskedLM")
_LARGEST = 1 << 40


class Settings(Record, frozen=True):
    """Settings by key; those of the language part of a larger model stand beside the rest."""

    config: dict[str, Any]
    keys: dict[str, str]
    where: str = "config"

    @property
    def is_gguf(self) -> bool:
        """Are there GGUF's keys?"""
        return "general.architecture" in self.keys

    @property
    def predicts_words(self) -> bool:
        """Do the settings name a model with a language head?"""
        return any(word in str(each) for each in self.architectures for word in _LANGUAGE)

    @property
    def architectures(self) -> list[Any]:
        """The classes that the settings name."""
        said = self.config.get("architectures")
        return said if isinstance(said, list) else []

    def value(self, key: str) -> Any:
        """Give what a config.json says under a key, whatever it is."""
        return self.config.get(key)

    def number(self, names: tuple[str, ...], gguf: str) -> tuple[int | None, str]:
        """Give a whole number and where it stands; (None, "") where nothing says one."""
        for name in names:
            value = self.config.get(name)
            if type(value) is int and 0 <= value < _LARGEST:
                return value, f"{self.where}: {name}"
        name = self._gguf(gguf)
        value = _whole(self.keys.get(name, ""))
        return (None, "") if value is None else (value, f"GGUF: {name}")

    def mentions(self, names: tuple[str, ...], gguf: str) -> bool:
        """Is there anything under one of the keys, be it no whole number?"""
        return any(self.config.get(name) is not None for name in names) or (
            self._gguf(gguf) in self.keys
        )

    def _gguf(self, key: str) -> str:
        return f"{self.keys.get('general.architecture')}.{key}" if key else ""

    def text(self, names: tuple[str, ...], gguf: str) -> tuple[str | None, str]:
        """Give a word and where it stands."""
        for name in names:
            value = self.config.get(name)
            if isinstance(value, str) and value:
                return value, f"{self.where}: {name}"
        return (self.keys[gguf], f"GGUF: {gguf}") if self.keys.get(gguf) else (None, "")

    def flag(self, name: str) -> bool | None:
        """Give a yes or no; None where nothing is said."""
        value = self.config.get(name)
        return value if isinstance(value, bool) else None


def settings(handed: Mapping[str, Any] | None, described: Mapping[str, str]) -> Settings:
    """Gather the settings of one side; what was handed in wins over what was found.

    >>> settings(None, {"config.json: n_head": "12"}).number(("n_head",), "")
    (12, 'config.json: n_head')
    """
    found = dict(_found(described))
    config = _flat(handed if handed is not None else found)
    keys = {key: text for key, text in described.items() if not key.startswith(_PREFIX)}
    return Settings(config, keys, "config" if handed is not None else "config.json")


def _found(described: Mapping[str, str]) -> list[tuple[str, Any]]:
    parsed = []
    for key, text in described.items():
        if key.startswith(_PREFIX):
            try:
                parsed.append((key.removeprefix(_PREFIX), json.loads(text)))
            except (ValueError, RecursionError):
                continue
    return parsed


def _whole(text: str) -> int | None:
    """Read a whole number, or an array that repeats one for every layer."""
    parts = {part.strip() for part in text.removeprefix("[").removesuffix("]").split(",")}
    only = parts.pop() if len(parts) == 1 else ""
    return int(only) if only.isascii() and only.isdigit() and len(only) < 13 else None


def _flat(config: Mapping[str, Any]) -> dict[str, Any]:
    """Lift the settings of the language part; the outer ones win but for what both have."""
    inner: dict[str, Any] = next(
        (config[key] for key in _NESTED if isinstance(config.get(key), dict)), {}
    )
    return {**inner, **{key: value for key, value in config.items() if key not in _NESTED}}
