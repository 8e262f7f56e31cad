"""All symmetry groups of one model, told by names and shapes."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from itertools import pairwise
from typing import NamedTuple

from difflens.core.records import TensorInfo
from difflens.models.anatomy.network import Network
from difflens.models.anatomy.roles import is_parameter, layer, role

from .slots import Group, Slot, feedforward


def groups(infos: Iterable[TensorInfo], network: Network) -> list[Group]:
    """List the groups; a tensor read as part of a layer is not also taken for a chain."""
    tensors = {info.name: info for info in infos}
    found = [*feedforward(tensors), *heads(tensors, network), *recurrent(tensors)]
    taken = {name for group in found for name in group.names}
    return [*found, *chains(tensors, taken)]


def components(found: Iterable[Group]) -> list[list[Group]]:
    """Put groups that share a tensor together: their orders depend on each other."""
    parts: list[list[Group]] = []
    for group in found:
        touching = [part for part in parts if any(group.names & each.names for each in part)]
        joined = [each for part in touching for each in part]
        parts = [part for part in parts if part not in touching]
        parts.append([*joined, group])
    return parts


# Rows of an LSTM's matrices are blocked by gate; a unit is one row of every block.

_HIDDEN = re.compile(r"^(?P<prefix>(?:.*\.)?)weight_hh_l(?P<layer>[0-9]{1,4})$")


def recurrent(tensors: Mapping[str, TensorInfo]) -> Iterator[Group]:
    """Yield a group for every layer that runs one way and whose reader is known.

    Layers that run both ways hand two halves to the next one; those are left alone.
    """
    for name, info in tensors.items():
        found = _HIDDEN.match(name)
        if not found or f"{name}_reverse" in tensors or len(info.shape) != 2:
            continue
        prefix, index = found["prefix"], int(found["layer"])
        units = info.shape[1]
        gates, odd = divmod(info.shape[0], units) if units else (0, 1)
        inputs = tensors.get(f"{prefix}weight_ih_l{index}")
        projected = f"{prefix}weight_hr_l{index}" in tensors
        if odd or not gates or projected or not inputs or len(inputs.shape) != 2:
            continue
        slots = [
            Slot(inputs.name, "up", units, 0, gates),
            Slot(name, "recurrent", units, 0, gates),
            Slot(name, "recurrent", units, 1),
            *_biases(tensors, prefix, index, units, gates),
            *_readers(tensors, prefix, index, units),
        ]
        if inputs.shape[0] == units * gates:
            yield Group(f"{prefix}l{index}", "recurrent", units, tuple(slots))


def _biases(
    tensors: Mapping[str, TensorInfo], prefix: str, index: int, units: int, gates: int
) -> Iterator[Slot]:
    for kind in ("ih", "hh"):
        bias = tensors.get(f"{prefix}bias_{kind}_l{index}")
        if bias and bias.shape == (units * gates,):
            yield Slot(bias.name, "bias", units, 0, gates)


def _readers(
    tensors: Mapping[str, TensorInfo], prefix: str, index: int, units: int
) -> Iterator[Slot]:
    """Yield who reads the layer's output: the next layer, else the one matrix that fits."""
    following = tensors.get(f"{prefix}weight_ih_l{index + 1}")
    if following:
        yield Slot(following.name, "down", units, 1)
        return
    fitting = [
        info
        for name, info in tensors.items()
        if "weight_" not in name and len(info.shape) == 2 and info.shape[1] == units
    ]
    if len(fitting) == 1:
        yield Slot(fitting[0].name, "down", units, 1)


_FUSED = re.compile(r"(?:^|\.)(?:qkv|c_attn|in_proj|Wqkv)\.(weight|bias)$|in_proj_(weight|bias)$")
_INTERLEAVED = re.compile(r"query_key_value\.(weight|bias)$")  # q, k, v of a head side by side
_PARTS = {"attention_q": "q", "attention_k": "k", "attention_v": "v", "attention_o": "o"}


def heads(tensors: Mapping[str, TensorInfo], network: Network) -> Iterator[Group]:
    """Yield a group for every attention whose heads are known and whose shapes agree."""
    count, size = network.heads, network.head_dim
    if not (count and size and network.kv_heads and count % network.kv_heads == 0):
        return
    modules: dict[str, dict[str, TensorInfo]] = defaultdict(dict)
    for name, info in tensors.items():
        part = _part(name)
        if part:
            modules[_module(name)][part] = info
    for module, parts in modules.items():
        slots = _slots(parts, count, network.kv_heads, size)
        if slots:
            yield Group(module, "heads", count, tuple(slots))


def _module(name: str) -> str:
    above = layer(layer(name))
    return above if role(name) != "attention" or "in_proj_" not in name else layer(name)


def _part(name: str) -> str | None:
    if _FUSED.search(name):
        return "qkv bias" if name.endswith("bias") else "qkv"
    if _INTERLEAVED.search(name):
        return "interleaved bias" if name.endswith("bias") else "interleaved"
    part = _PARTS.get(role(f"{layer(name)}.weight"))
    if part is None:
        return None
    if name.endswith(".weight"):
        return part
    return f"{part} bias" if name.endswith(".bias") and part != "o" else None


def _slots(parts: Mapping[str, TensorInfo], count: int, kv: int, size: int) -> list[Slot]:
    """Lay the heads out; empty if a tensor is missing or has another shape."""
    out = parts.get("o")
    fused, mixed = parts.get("qkv"), parts.get("interleaved")
    if out is None or len(out.shape) != 2:
        return []
    if {"q", "k", "v"} <= set(parts):
        units = {"q": count, "k": kv, "v": kv}
        slots = [
            Slot(info.name, part, units[part[0]], 0, 1, size)
            for part, info in parts.items()
            if part[0] in units and part in {"q", "k", "v", "q bias", "k bias", "v bias"}
        ]
    elif fused and kv == count and len(fused.shape) == 2:
        # GPT-2 stores [in, out]: there the heads lie along the columns.
        axis = int(fused.shape[1] == 3 * count * size and fused.shape[0] != 3 * count * size)
        slots = [Slot(fused.name, "qkv", count, axis, 3, size)]
        bias = parts.get("qkv bias")
        slots += [Slot(bias.name, "qkv bias", count, 0, 3, size)] if bias else []
        return _fits([*slots, Slot(out.name, "o", count, 1 - axis, 1, size)], parts)
    elif mixed and kv == count:
        slots = [Slot(mixed.name, "interleaved", count, 0, 1, 3 * size)]
        bias = parts.get("interleaved bias")
        slots += [Slot(bias.name, "interleaved bias", count, 0, 1, 3 * size)] if bias else []
    else:
        return []
    return _fits([*slots, Slot(out.name, "o", count, 1, 1, size)], parts)


def _fits(slots: list[Slot], parts: Mapping[str, TensorInfo]) -> list[Slot]:
    shapes = {info.name: info.shape for info in parts.values()}
    return slots if all(shapes[each.name][each.axis] == each.length for each in slots) else []


# Nothing in a file says which layer feeds which. A chain is assumed only between modules numbered
# one after the other beside each other (`fc1, fc2`, `0, 2, 4`, `conv1, conv2`) whose shapes agree.

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
