"""How a model is built, read off its tensors and its settings."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import pairwise
from typing import Any

from ..analyses.anatomy.family import family
from ..analyses.anatomy.network import Network, known_of
from ..analyses.anatomy.roles import is_parameter, layer
from ..analyses.anatomy.settings import settings
from ..analyses.anatomy.shapes import shapes
from ..analyses.cost.weights import weights
from ..records import Missing, TensorInfo
from ..snapshots import ArchitectureInfo

_TOLD = {
    "depth": ("layers", "no numbered stack of blocks is among the names"),
    "hidden_size": ("hidden", "neither an embedding nor layers of one width show it"),
    "num_heads": ("heads", "shapes alone do not tell how a projection is cut into heads"),
    "ff_dim": ("ffn", "no feed-forward matrix is among the names"),
    "vocab_size": ("vocab", "no table of words is among the names"),
    "max_seq_length": ("context", "weights do not bound the length of a sequence"),
}


def built(
    infos: Sequence[TensorInfo],
    described: Mapping[str, str],
    config: Mapping[str, Any] | None,
    shared: Sequence[str] = (),
) -> ArchitectureInfo:
    """Count and read; what neither settings nor shapes tell is null, with its reason."""
    network = known_of(settings(config, described), shapes(infos))
    facts: dict[str, Any] = {name: getattr(network, own) for name, (own, _) in _TOLD.items()}
    if facts["hidden_size"] is None:
        facts["hidden_size"] = _width(infos)
    kind = family(network, infos).name
    missing = [
        Missing(name, "--config", why) for name, (_, why) in _TOLD.items() if facts[name] is None
    ]
    if kind == "unknown":
        missing.append(Missing("kind", "--config", "no rule on names and shapes fits"))
    return ArchitectureInfo(
        **facts,
        parameter_count=weights(infos, shared).parameters or sum(each.count for each in infos),
        layer_count=_layers(infos),
        kind=None if kind == "unknown" else kind,
        missing=tuple(missing),
    )


def stated_by(config: Mapping[str, Any]) -> ArchitectureInfo:
    """Read what a config.json alone says."""
    network: Network = known_of(settings(config, {}), shapes(()))
    facts = {name: getattr(network, own) for name, (own, _) in _TOLD.items()}
    return ArchitectureInfo(**facts, kind=network.family)


def _layers(infos: Sequence[TensorInfo]) -> int:
    """Count the layers: names, but for their last part, that hold a weight of two dimensions."""
    return len({
        layer(info.name)
        for info in infos
        if len(info.shape) > 1 and is_parameter(info.name, info.dtype)
    })  # fmt: skip


def _width(infos: Sequence[TensorInfo]) -> int | None:
    """Give the width of a plain stack of matrices, each taking what the one before gives."""
    trained = [info for info in infos if is_parameter(info.name, info.dtype)]
    shapes_of = [info.shape for info in trained if len(info.shape) > 1]
    if any(len(shape) > 2 for shape in shapes_of):
        return None
    for into, out in ((0, 1), (1, 0)):  # weights stand as rows by columns, or transposed
        widths = {(before[into], after[out]) for before, after in pairwise(shapes_of)}
        if len(widths) == 1 and len(set(*widths)) == 1:
            return widths.pop()[0]
    return None
