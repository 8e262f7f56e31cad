"""Modules that act otherwise in training than in use: which were in the wrong mode at a step."""

from __future__ import annotations

from typing import Any

_OFTEN, _SELDOM = 4, 64  # steps looked at in a row at first, and then one in so many


class Modes:
    """Notices batch norms and dropouts that are in eval mode while the optimizer steps."""

    def __init__(self, root: Any) -> None:
        """Find the modules that a mode matters to."""
        self._modules = [(name, each) for name, each in root.named_modules() if _matters(each)]
        self.are_there = bool(self._modules)
        self._root, self._mode = root, True
        self._looks = 0
        self._found: set[str] = set()
        self.has_news = False

    def look(self) -> None:
        """Look at the modes: at the first steps, now and again, and when the whole has changed."""
        self._looks += 1
        before, self._mode = self._mode, self._root.training
        if self._looks <= _OFTEN or self._looks % _SELDOM == 0 or self._mode is not before:
            now = {name for name, module in self._modules if not module.training}
            self.has_news = self.has_news or not now <= self._found
            self._found |= now

    def news(self) -> list[str]:
        """Give the names of all that were seen so."""
        self.has_news = False
        return sorted(self._found)

    def close(self) -> None:
        """Let go of the modules."""
        self._modules, self._root = [], None


def _matters(module: Any) -> bool:
    kind = type(module).__name__
    if "Dropout" in kind:
        return bool(getattr(module, "p", 0))
    return "BatchNorm" in kind and getattr(module, "track_running_stats", True)
