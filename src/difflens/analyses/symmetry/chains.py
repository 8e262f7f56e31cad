"""Layers that feed one another: linear ones, or convolutions with their batch norms.

Nothing in a file says which layer feeds which. A chain is assumed only between modules numbered
one after the other beside each other (`fc1, fc2`, `0, 2, 4`, `conv1, conv2`) whose shapes agree.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterator, Mapping
from itertools import pairwise
from typing import NamedTuple

from ...records import TensorInfo
from ..anatomy.roles import is_parameter
from .slots import Group, Slot

_NUMBERED = re.compile(r"^(?P<stem>[A-Za-z_]*?)_?(?P<number>[0-9]{1,6})$")
_NORMS = re.compile(r"^(?:bn|norm|batch_?norm|ln)$", re.IGNORECASE)


class _Module(NamedTuple):
    parent: str
    stem: str
    number: int
    weight: TensorInfo | None  # with two dimensions or more
    vectors: tuple[TensorInfo, ...]


def chains(tensors: Mapping[str, TensorInfo], taken: set[str]) -> Iterator[Group]:
    """Yield a group for every two layers of which the second reads the first."""
    families: dict[tuple[str, str], list[_Module]] = defaultdict(list)
    modules = list(_modules(tensors, taken))
    strangers = _strangers(tensors, modules)
    for module in modules:
        if module.weight:
            families[module.parent, module.stem].append(module)
    for family in families.values():
        ordered = sorted(family, key=lambda module: module.number)
        for first, second in pairwise(ordered):
            group = _link(first, second, modules)
            if group and group.units not in strangers[first.parent]:
                yield group


def _strangers(tensors: Mapping[str, TensorInfo], modules: list[_Module]) -> dict[str, set[int]]:
    """Collect what other matrices beside a chain read: they might read the same units."""
    known = {module.weight.name for module in modules if module.weight}
    reads: dict[str, set[int]] = defaultdict(set)
    for name, info in tensors.items():
        if name not in known and len(info.shape) >= 2:
            reads[name.rpartition(".")[0].rpartition(".")[0]].add(info.shape[1])
    return reads


def _modules(tensors: Mapping[str, TensorInfo], taken: set[str]) -> Iterator[_Module]:
    parts: dict[str, list[TensorInfo]] = defaultdict(list)
    for name, info in tensors.items():
        module, dot, last = name.rpartition(".")
        if name not in taken and "_l" not in last:
            parts[module if dot and not last[-1:].isdigit() else name].append(info)
    for path, infos in parts.items():
        parent, _, own = path.rpartition(".")
        found = _NUMBERED.match(own)
        if found:
            weights = [info for info in infos if len(info.shape) in {2, 4}]
            vectors = tuple(info for info in infos if len(info.shape) == 1)
            weight = weights[0] if len(weights) == 1 and _is_weight(weights[0]) else None
            yield _Module(parent, found["stem"], int(found["number"]), weight, vectors)


def _is_weight(info: TensorInfo) -> bool:
    return is_parameter(info.name, info.dtype)


def _link(first: _Module, second: _Module, modules: list[_Module]) -> Group | None:
    if not (first.weight and second.weight):
        return None
    units, reads = first.weight.shape[0], second.weight.shape[1]
    both = len(first.weight.shape), len(second.weight.shape)
    inner, odd = divmod(reads, units) if units else (0, 1)
    # A flattened feature map gives each channel as many columns as it has pixels.
    if odd or not inner or units < 2 or both == (2, 4) or (inner > 1 and both != (4, 2)):
        return None
    vectors = [*first.vectors, *_between(first, second, modules)]
    if any(info.shape != (units,) for info in vectors):
        return None
    slots = [
        Slot(first.weight.name, "up", units),
        *(Slot(info.name, "bias", units) for info in vectors),
        Slot(second.weight.name, "down", units, 1, 1, inner),
    ]
    return Group(f"{first.weight.name} -> {second.weight.name}", "chain", units, tuple(slots))


def _between(first: _Module, second: _Module, modules: list[_Module]) -> Iterator[TensorInfo]:
    """Yield the vectors of the norm that stands between two layers."""
    for module in modules:
        if module.parent != first.parent or module.weight:
            continue
        alike = module.stem == first.stem and first.number < module.number < second.number
        named = _NORMS.match(module.stem) and module.number == first.number
        if alike or named:
            yield from module.vectors
