"""The attention of every layer, read once: both sides' heads and their circuits."""

from __future__ import annotations

from typing import NamedTuple

from ...diffs import Diff
from ...evidences import Evidence
from ...measure.blas import one_thread_each
from ...records import Delta
from ..anatomy.network import Network, network
from .reading import Layer, Reader
from .sites import sites

SIDES = ("left", "right")
_WEIGHTS = ("q", "k", "v", "o", "qkv")


class Attention(NamedTuple):
    """All layers with attention, and where the number of heads comes from on each side."""

    layers: tuple[Layer, ...]
    heads: dict[str, int | None]
    basis: dict[str, str]
    networks: dict[str, Network]
    parts: dict[str, list[Delta]]


def attention(diff: Diff, evidence: Evidence, heads: int | None) -> Attention:
    """Read the heads of every layer, once a diff; `heads` is the user's word on their number."""
    with one_thread_each():  # many small products: threads would wait for each other
        made: tuple[Attention, Evidence] = diff.remember(
            ("attention", id(evidence), heads),
            lambda: (_attention(diff, evidence, heads), evidence),
        )
    return made[0]


def parts(diff: Diff) -> dict[str, list[Delta]]:
    """Give the pairs of every part of attention (q, k, v, o, qkv), told by name."""
    paired = {delta.pair.right.name: delta for delta in diff.deltas
              if delta.pair.right and delta.pair.left}  # fmt: skip
    found: dict[str, list[Delta]] = {}
    for site in sites(delta.pair.right for delta in diff.deltas if delta.pair.right):
        for part, info in site.tensors.items():
            if part in _WEIGHTS and info.name in paired:
                found.setdefault(part, []).append(paired[info.name])
    return found


def _attention(diff: Diff, evidence: Evidence, said: int | None) -> Attention:
    networks = {side: network(diff, evidence, side) for side in SIDES}
    counts, basis = _heads(networks, said)
    by_right = {delta.pair.right.name: delta for delta in diff.deltas if delta.pair.right}
    left = {
        site.tensors["o"].name: site
        for site in sites(delta.pair.left for delta in diff.deltas if delta.pair.left)
    }
    reader = Reader(diff, networks, by_right)
    layers: list[Layer] = []
    for right in sites(delta.pair.right for delta in diff.deltas if delta.pair.right):
        paired = by_right[right.tensors["o"].name].pair.left
        before = left.get(paired.name) if paired else None
        if before is not None:
            layers.append(reader.layer(len(layers), before, right, counts))
    return Attention(tuple(layers), counts, basis, networks, parts(diff))


def _heads(
    networks: dict[str, Network], said: int | None
) -> tuple[dict[str, int | None], dict[str, str]]:
    """Say how many heads each side has: told by the user, its settings, or the other side's."""
    if said:
        return dict.fromkeys(SIDES, said), dict.fromkeys(SIDES, "policy: heads")
    counts = {side: networks[side].heads for side in SIDES}
    basis = {side: networks[side].basis.get("heads", "") for side in SIDES}
    for side, other in (SIDES, SIDES[::-1]):
        if counts[side] is None and counts[other] is not None:
            counts[side], basis[side] = counts[other], f"the {other} side's {basis[other]}"
    return counts, basis
