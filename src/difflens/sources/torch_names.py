"""Names for what was found in a checkpoint: paths with dots, less the wrapper around the weights.

{"state_dict": {"conv.weight": ...}, "optimizer": {"state": {0: {"exp_avg": ...}}}, "epoch": 3}
conv.weight, optimizer.state.0.exp_avg; metadata: epoch 3, state dict state_dict
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, NamedTuple

from ..errors import LimitExceeded
from ..escape import for_terminal
from .folders import listed
from .torch_tensors import Tensor
from .torch_walk import DEEPEST, Found, Path, value_text

_MOST_CHARACTERS = 1 << 26  # of all names together
_MOST_VALUES = 10_000

# What training scripts call the weights within a checkpoint, and averaged copies of them.
_WRAPPERS = (
    "state_dict", "model_state_dict", "model_state", "model", "module", "net", "network", "weights",
    "params", "generator", "model_weights", "net_state_dict", "student",
)  # fmt: skip
_AVERAGED = ("ema", "model_ema", "state_dict_ema", "ema_state_dict", "params_ema", "teacher")


class Named(NamedTuple):
    """Tensors and metadata by name, what to warn of, and which wrapper was taken off."""

    tensors: dict[str, Tensor]
    metadata: dict[str, str]
    warnings: list[str]


def name_all(found: Found, where: str) -> Named:
    """Give every tensor and value its name."""
    namer = _Namer(where, _wrapper(found.tensors))
    tensors: dict[str, Tensor] = {}
    twice = []
    for path, tensor in found.tensors:
        name = namer.name(path, "tensor")
        if name in tensors:
            twice.append(name)
            name = _another(name, tensors)
        tensors[name] = tensor
    warnings = [f"{namer.name(path, 'it')}: a {kind} was left out" for path, kind in found.unread]
    metadata = _metadata(found.values, namer, warnings)
    if twice:
        warnings.append(f"two tensors have one name, the second was numbered: {listed(twice)}")
    if found.too_deep:
        said = f"{found.too_deep} objects nested deeper than {DEEPEST} levels"
        warnings.append(f"{said} were left out")
    if namer.wrapper:
        metadata.setdefault("state dict", namer.wrapper)
    return Named(tensors, metadata, warnings)


def refusal_warning(refused: list[str]) -> list[str]:
    """Say once what was named and not made."""
    if not refused:
        return []
    count = len(refused)
    kinds = "a kind of object was" if count == 1 else f"{count} kinds of objects were"
    return [f"{kinds} named and not made: {listed(refused)}"]


class _Namer:
    """Writes paths, and counts the characters it has written."""

    def __init__(self, where: str, wrapper: str | None) -> None:
        self.wrapper = wrapper
        self._where = where
        self._left = _MOST_CHARACTERS

    def name(self, path: Path, nameless: str) -> str:
        """Join the keys of a path; what has none is called `nameless`."""
        parts = path.parts()
        if len(parts) > 1 and parts[0] == self.wrapper:
            del parts[0]
        self._left -= sum(map(len, parts))
        if self._left < 0:
            reason = f"its names take more than {_MOST_CHARACTERS} characters"
            raise LimitExceeded(self._where, reason)
        return ".".join(parts) if parts else nameless


def _wrapper(tensors: Iterable[tuple[Path, Tensor]]) -> str | None:
    """Give the one key whose tensors are the model; None where they are at the top, or unclear."""
    tops = set()
    for path, _ in tensors:
        if path.depth < 2:
            if path.key in (*_WRAPPERS, *_AVERAGED):
                return None  # a tensor of that name, no dictionary
            continue
        at = path
        while at.before and at.before.before:
            at = at.before
        tops.add(at.key)
    for names in (_WRAPPERS, _AVERAGED):
        here = [name for name in names if name in tops]
        if here:
            return here[0] if len(here) == 1 else None
    return None


def _another(name: str, taken: dict[str, Any]) -> str:
    number = 2
    while f"{name} ({number})" in taken:
        number += 1
    return f"{name} ({number})"


def _metadata(values: list[tuple[Path, Any]], namer: _Namer, warnings: list[str]) -> dict[str, str]:
    """Write the plain values; there may be a whole vocabulary among them."""
    metadata: dict[str, str] = {}
    for path, value in values[:_MOST_VALUES]:
        metadata.setdefault(namer.name(path, "value"), value_text(value))
    if len(values) > _MOST_VALUES:
        left = len(values) - _MOST_VALUES
        warnings.append(f"of {len(values)} plain values the last {left} were left out")
    return metadata


def about(name: str) -> str:
    """Write a tensor's name for a message."""
    return f"tensor '{for_terminal(name)}'"
