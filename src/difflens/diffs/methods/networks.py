"""The network of one side of a diff, by its settings and its shapes."""

from __future__ import annotations

from typing import Any

from difflens.core.records import TensorInfo
from difflens.models.anatomy.network import Network, network_of, shapes
from difflens.models.anatomy.settings import settings

from ..diff import Diff
from ..evidence.records import Evidence


def network(diff: Diff, evidence: Evidence, side: str) -> Network:
    """Gather what is known of one side's network, once a diff."""
    handed = (evidence.left if side == "left" else evidence.right).config
    # The handed settings are kept with the answer: no other object can come to have their identity.
    known: tuple[Network, Any] = diff.remember(
        ("network", side, id(handed)), lambda: (_network(diff, handed, side), handed)
    )
    return known[0]


def infos(diff: Diff, side: str) -> list[TensorInfo]:
    """List the tensors of one side; only headers are looked at."""
    sides = (pair.left if side == "left" else pair.right for pair in diff.pairs)
    return [info for info in sides if info is not None]


def _network(diff: Diff, handed: dict[str, Any] | None, side: str) -> Network:
    every = infos(diff, side)
    return network_of(settings(handed, diff.described[side]), shapes(every), every)
