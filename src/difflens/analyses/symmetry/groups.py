"""All symmetry groups of one model, told by names and shapes."""

from __future__ import annotations

from collections.abc import Iterable

from ...records import TensorInfo
from ..anatomy.network import Network
from .chains import chains
from .feedforward import feedforward
from .heads import heads
from .recurrent import recurrent
from .slots import Group


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
