"""Modules that act otherwise in training than in use: which were in the wrong mode at a step."""

from __future__ import annotations

from typing import Any

_OFTEN, _SELDOM = 4, 64  # steps looked at in a row at first, and then one in so many


class Modes:
    """Notices batch norms and dropouts that are in eval mode while the optimizer steps."""

    def __init__(self, root: Any) -> None:
        """Find the modules that a mode matters to."""
        self._modules = [(name, each) for name, each in root.named_modules() if _matters(each)]
        self._looks = 0
        self._told: set[str] = set()
        self.found: set[str] = set()

    def look(self) -> None:
        """Look at the modes, at the first steps and then now and again."""
        self._looks += 1
        if self._modules and (self._looks <= _OFTEN or self._looks % _SELDOM == 0):
            self.found |= {name for name, module in self._modules if not module.training}

    def news(self) -> list[str] | None:
        """Give the names, where there are some that were not told yet."""
        if self.found == self._told:
            return None
        self._told = set(self.found)
        return sorted(self.found)

    def close(self) -> None:
        """Let go of the modules."""
        self._modules = []


def _matters(module: Any) -> bool:
    kind = type(module).__name__
    if "Dropout" in kind:
        return bool(getattr(module, "p", 0))
    return "BatchNorm" in kind and getattr(module, "track_running_stats", True)
