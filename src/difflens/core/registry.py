"""The one way to register anything: a decorator, a lookup and an iterator.

A room's plug-ins are the modules in its folder, then those that installed
packages offer in the room's entry-point group. The name of a
plug-in is its file's stem, so there is no list to edit anywhere.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator
from importlib import import_module
from pathlib import Path
from typing import Any, Generic, NamedTuple, TypeVar

from .errors import DifflensError, UnknownName

Plugin = TypeVar("Plugin", bound=Callable[..., Any])


class Entry(NamedTuple):
    """One plug-in as the registry knows it."""

    name: str
    plugin: Any
    options: dict[str, Any]

    @property
    def summary(self) -> str:
        """The first line of its docstring."""
        return (self.plugin.__doc__ or "").strip().partition("\n")[0]


class Registry(Generic[Plugin]):
    """The plug-ins of one room."""

    def __init__(self, kind: str, room: str, group: str = "") -> None:
        """Name the folder and the entry-point group; nothing is imported before somebody asks."""
        self.kind = kind
        self.room = room
        self.group = group or room
        self._entries: dict[str, Entry] = {}
        self._loaded = False

    def __call__(self, **options: Any) -> Callable[[Plugin], Plugin]:
        """Register what is decorated under the stem of its module; a stranger replaces nobody."""

        def register(plugin: Plugin) -> Plugin:
            home, _, stem = plugin.__module__.rpartition(".")
            name = stem.replace("_", "-")
            taken = self._entries.get(name)
            if taken and home != self.room and taken.plugin.__module__ != plugin.__module__:
                home = taken.plugin.__module__
                raise DifflensError(f"the {self.kind} {name!r} is there already, in {home}")
            self._entries[name] = Entry(name, plugin, options)
            return plugin

        return register

    def __iter__(self) -> Iterator[Entry]:
        """Every plug-in, by name."""
        self._load_all()
        return iter(sorted(self._entries.values()))

    def __getitem__(self, name: str) -> Entry:
        """Return the plug-in of that name; imports its module alone where it is one of ours."""
        name = name.replace("_", "-")
        if not self.is_ours(name):
            self._load_all()
        if name not in self._entries:
            raise UnknownName(self.kind, name, self._entries)
        return self._entries[name]

    def names(self) -> list[str]:
        """List the names, ours and strangers'."""
        return [entry.name for entry in self]

    def is_ours(self, name: str) -> bool:
        """Is there a module of that name in the room's own folder, and a plug-in in it?"""
        if name not in self._entries and name in self._stems():
            import_module(f"{self.room}.{name.replace('-', '_')}")
        return name in self._entries

    def ours(self) -> Iterator[Entry]:
        """Yield the plug-ins of the room's own folder, one import at a time."""
        for stem in self._stems():
            import_module(f"{self.room}.{stem.replace('-', '_')}")
            if stem in self._entries:
                yield self._entries[stem]

    def _stems(self) -> list[str]:
        folder = Path(import_module(self.room).__file__ or "").parent
        return [
            path.stem.replace("_", "-")
            for path in sorted(folder.glob("*.py"))
            if path.stem[0] != "_"
        ]

    def _load_all(self) -> None:
        if self._loaded:
            return
        self._loaded = True
        for stem in self._stems():
            import_module(f"{self.room}.{stem.replace('-', '_')}")
        from importlib.metadata import (
            entry_points,
        )  # costs 20 ms: only when every plug-in is wanted

        for point in entry_points(group=self.group):
            try:
                point.load()
            except Exception as error:  # noqa: BLE001  a stranger's plug-in may fail in any way
                warnings.warn(f"{self.kind} {point.name!r} was left out: {error}", stacklevel=2)
