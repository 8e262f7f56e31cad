"""The matrices that stand for the layers of a model: one module of every block."""

from __future__ import annotations

from collections import Counter, defaultdict
from typing import NamedTuple

from ...diffs import Diff
from ...dtypes import FLOATS, OPAQUE
from ...records import TensorInfo
from ..anatomy.network import infos
from ..anatomy.roles import block, is_parameter

# Which modules stand best for a layer, best first: those that read the residual stream.
_PREFERRED = ("up", "fc1", "c_fc", "w1", "w3", "gate", "intermediate", "h_to_4h", "lin1", "down")


class Stack(NamedTuple):
    """One module's matrix in every block of one side, and where its residual dimensions lie."""

    module: str
    tensors: tuple[TensorInfo, ...]
    blocks: tuple[int, ...]
    axis: int
    width: int


def stacks(diff: Diff, module: str | None) -> dict[str, Stack | None]:
    """Choose the module on the right, or take the user's word, and find it on both sides."""
    after = _modules(diff, "right")
    chosen = _chosen(after, module)
    if chosen is None:
        return {"left": None, "right": None}
    pairs = {pair.right.name: pair.left for pair in diff.pairs if pair.left and pair.right}
    renamed = [pairs[info.name] for _, info in after[chosen] if info.name in pairs]
    before = _modules(diff, "left")
    twin = next((_module(info.name) for info in renamed if info), None) or chosen
    found = after[chosen], before.get(twin) or before.get(chosen) or []
    width = _width([info for each in found for _, info in each])
    return {
        "right": _stack(chosen, found[0], width),
        "left": _stack(twin, found[1], width),
    }


def _modules(diff: Diff, side: str) -> dict[str, list[tuple[int, TensorInfo]]]:
    """Group the matrices in blocks by what they are called within their block."""
    found: dict[str, list[tuple[int, TensorInfo]]] = defaultdict(list)
    for info in infos(diff, side):
        place = block(info.name)
        numbers = info.dtype in FLOATS and info.dtype not in OPAQUE and info.dtype != "C64"
        if place and numbers and len(info.shape) == 2 and is_parameter(info.name, info.dtype):
            found[_module(info.name)].append((place[1], info))
    return found


def _module(name: str) -> str:
    place = block(name)
    if place is None:
        return name
    stack, number = place
    return name.removeprefix(f"{stack}." if stack else "").removeprefix(f"{number}").lstrip(".")


def _chosen(modules: dict[str, list[tuple[int, TensorInfo]]], said: str | None) -> str | None:
    if said:
        return next((module for module in sorted(modules) if said in module), None)

    def rank(module: str) -> tuple[int, bool, int, str]:
        shape = modules[module][0][1].shape
        words = [place for place, word in enumerate(_PREFERRED) if word in module]
        return -len(modules[module]), shape[0] == shape[1], min(words, default=99), module

    many = [module for module in modules if len(modules[module]) > 1]
    return min(many, key=rank, default=None)


def _width(tensors: list[TensorInfo]) -> int | None:
    """Find the residual dimension: the side that all have in common, the smaller where both do."""
    sides = Counter(length for info in tensors for length in set(info.shape))
    common = [length for length, times in sides.items() if times == len(tensors)]
    return min(common, default=None)


def _stack(module: str, found: list[tuple[int, TensorInfo]], width: int | None) -> Stack | None:
    if width is None or not found:
        return None
    ordered = sorted(found, key=lambda each: (each[0], each[1].name))
    shape = ordered[0][1].shape
    axis = 1 if shape[1] == width else 0
    tensors = tuple(info for _, info in ordered)
    return Stack(module, tensors, tuple(at for at, _ in ordered), axis, width)
