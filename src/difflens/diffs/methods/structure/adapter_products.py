"""Two adapters compared by what they add, scale B A: their factors alone can differ for nothing."""

from __future__ import annotations

from math import sqrt
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

from difflens.core.errors import DifflensError
from difflens.core.records import SAME
from difflens.models.adapters import adapter_config, alpha_of, sort_names
from difflens.models.quantised.parts import Unfit

from ...diff import Diff
from ..changes.explained import Explained
from .records import counted, explained, name_of

if TYPE_CHECKING:
    from numpy.typing import NDArray

_LARGEST = 1 << 24  # elements of a factor

Side = Literal["left", "right"]


class Product(NamedTuple):
    """What an adapter adds to one module: scale B A."""

    names: tuple[str, str]
    down: NDArray[Any]
    up: NDArray[Any]
    scale: float


def _products(diff: Diff, side: Side) -> dict[str, Product]:
    """Read the factors of every module, where a side is an adapter alone; empty where not."""
    infos = {info.name: info for each in diff.pairs if (info := getattr(each, side))}
    if not any(".lora_A" in name for name in infos):
        return {}
    modules, _ = sort_names(infos)
    config = adapter_config(diff.described[side])
    found = {}
    for module, matrices in modules.items():
        try:
            pair = matrices.pair(is_turned=False)
            alpha = alpha_of(module, config) if config else None
        except (Unfit, KeyError, DifflensError):
            return {}
        down, up = infos[pair.down], infos[pair.up]
        if matrices.magnitude or max(down.count, up.count) > _LARGEST:
            return {}
        rank = down.shape[0]
        scale = 1.0
        if alpha is not None and config is not None:
            scale = alpha / (rank**0.5 if config.get("use_rslora") else rank)
        factors = [diff.values(side, name).array().astype("f8") for name in (pair.down, pair.up)]
        found[module] = Product(
            (pair.down, pair.up), factors[0].reshape(rank, -1), factors[1].reshape(-1, rank), scale
        )
    return found


def compared_adapters(diff: Diff) -> list[Explained]:
    """Compare what two adapters add, by products of their small factors alone."""
    left, right = _products(diff, "left"), _products(diff, "right")
    common = [module for module in left if module in right]
    fitting = [module for module in common if _fits(left[module], right[module])]
    if not fitting or len(fitting) < len(common):
        return []
    before = sum(_inner(left[module], left[module]) for module in fitting)
    after = sum(_inner(right[module], right[module]) for module in fitting)
    dot = sum(_inner(left[module], right[module]) for module in fitting)
    moved = max(0.0, before - 2 * dot + after)
    if not (before > 0 and after > 0) or all(each.kind in SAME for each in diff.deltas):
        return []
    relative, cosine = sqrt(moved / before), dot / sqrt(before) / sqrt(after)
    names = [name for module in fitting for name in left[module].names]
    changed = {name_of(each) for each in diff.deltas if each.kind not in SAME}
    numbers = {"modules": len(fitting), "relative_l2": relative, "cosine": cosine}
    place = counted(len(fitting), "module")
    if relative < 1e-3:
        text = f"the adapters add the same to {place}, though their factors differ"
    else:
        text = f"what the adapters add to {place} differs by relative L2 {relative:.2g}"
        text += f" (cosine {cosine:.2g})"
    chosen = [name for name in names if name in changed]
    return [explained(diff, "adapter_changed", chosen, text, numbers)]


def _fits(one: Product, other: Product) -> bool:
    return one.down.shape[1] == other.down.shape[1] and one.up.shape[0] == other.up.shape[0]


def _inner(one: Product, other: Product) -> float:
    """Return <B1 A1, B2 A2> = sum((B1^T B2) * (A1 A2^T)), scaled."""
    product = (one.up.T @ other.up) * (one.down @ other.down.T)
    return float(one.scale * other.scale * product.sum())
