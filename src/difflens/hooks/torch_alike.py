"""Which matrices start with units that are all alike: they get the same gradient and stay so."""

from __future__ import annotations

from contextlib import suppress
from typing import Any

from .torch_layers import Watched


def alike_units(watched: list[Watched]) -> list[str]:
    """Name the matrices whose first, middle and last unit start as the same numbers, not zeros.

    Three rows of each are compared, so the cost does not grow with the matrix, and one answer is
    fetched from each device for all of them.
    """
    import torch

    asked: dict[Any, list[tuple[str, Any]]] = {}
    with torch.no_grad():
        for each in watched:
            same = None
            with suppress(Exception):  # a stranger's tensor may refuse anything
                same = _are_alike(each)
            if same is not None:
                asked.setdefault(same.device, []).append((each.name, same))
        return [
            name
            for found in asked.values()
            for (name, _), same in zip(
                found, torch.stack([same for _, same in found]).tolist(), strict=True
            )
            if same
        ]


def _are_alike(each: Watched) -> Any:
    rows = each.parameter
    if each.is_sharded or rows.is_meta or rows.ndim < 2 or len(rows) < 2:
        return None
    first = rows[0]
    same = (first == rows[len(rows) // 2]).all() & (first == rows[-1]).all()
    return same & (first != 0).any()
