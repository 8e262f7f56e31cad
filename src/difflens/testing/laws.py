"""How a broken law is told: one sentence, raised."""

from __future__ import annotations

from typing import Any

from ..registry import Entry, Registry


def hold(kept: object, sentence: str) -> None:
    """Raise with the sentence unless the law is kept; `python -O` does not switch it off."""
    if not kept:
        raise AssertionError(sentence)


def registered(registry: Registry[Any], plugin: Any) -> Entry:
    """Give the registry's entry of a plug-in: what is not registered, nobody can use."""
    for entry in registry:
        if entry.plugin is plugin:
            return entry
    known = ", ".join(registry.names())
    raise AssertionError(f"{plugin!r} is no registered {registry.kind}; those are: {known}")


def is_described(entry: Entry) -> None:
    """Hold that the list command has one line to show for it."""
    hold(entry.summary, f"{entry.name}: its docstring is empty, and is what `difflens list` shows")
    hold(len(entry.summary) <= 100, f"{entry.name}: the first line of its docstring is too long")
