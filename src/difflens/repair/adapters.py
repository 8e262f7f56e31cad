"""The matrices of an adapter that was merged into a model: recipes that need no recovering."""

from __future__ import annotations

from collections.abc import Iterator
from math import prod
from typing import Any

from difflens.core.errors import PatchError
from difflens.core.protocols import TensorSource
from difflens.core.records import TensorInfo
from difflens.models.adapters import (
    BaseNames,
    ModuleMatrices,
    adapter_config,
    alpha_of,
    is_adapter,
    sort_names,
)
from difflens.models.describe import metadata
from difflens.models.quantised.parts import Unfit

from .chunks import kind_of, read_range
from .recipes import FACTORS, MOST_FACTORS, MOST_RANK, Summed, summed


class Adapter:
    """An open adapter; it does not have to be the right one, which only costs bytes."""

    def __init__(self, source: TensorSource, base: TensorSource, where: str) -> None:
        """Look up which weight of the base each pair of matrices belongs to."""
        config = adapter_config(metadata(where, source))
        if not is_adapter(source):
            raise PatchError(where, "it is not an adapter: it has no LoRA matrices alone")
        if config is None or type(config.get("lora_alpha")) not in (int, float):
            raise PatchError(where, "there is no lora_alpha in an adapter_config.json beside it")
        self._source, self._config = source, config
        self._modules: dict[str, ModuleMatrices] = {}
        names = BaseNames(base.tensors)
        for module, matrices in sort_names(source.tensors)[0].items():
            home = names.find(f"{module}.weight") or names.find(module)
            if home is not None:
                self._modules[home] = matrices

    def recipes(self, info: TensorInfo) -> Iterator[Summed]:
        """Yield the recipes of a weight: the product added as it is, and rounded before that."""
        matrices = self._modules.get(info.name)
        if matrices is None or matrices.magnitude:
            return
        try:
            pair = matrices.pair(is_turned=bool(self._config.get("fan_in_fan_out")))
            factor = alpha_of(matrices.module, self._config)
        except Unfit:
            return
        up, down = self._source.tensors[pair.up], self._source.tensors[pair.down]
        rank, rows, columns = (
            down.shape[0] if down.shape else 0,
            info.shape[0],
            prod(info.shape[1:]),
        )
        sides = (prod(up.shape[:1]), prod(down.shape[1:]))
        fits = sides == ((columns, rows) if pair.is_turned else (rows, columns))
        fits = fits and prod(up.shape[1:]) == rank and up.dtype == down.dtype in FACTORS
        if not fits or not 0 < rank <= MOST_RANK or rank * max(rows, columns) > MOST_FACTORS:
            return
        left, right = self._words(up, rank, pair.is_turned), self._words(down, -1, pair.is_turned)
        if pair.is_turned:
            left, right = right, left
        factor /= rank**0.5 if self._config.get("use_rslora") else rank
        for rounded in (True, False):
            yield summed(info, (left, right), up.dtype, factor=factor, rounded=rounded)

    def _words(self, info: TensorInfo, across: int, is_turned: bool) -> Any:
        import numpy as np

        memory = memoryview(bytearray(info.size_bytes))
        read_range(self._source, info.name, 0, info.size_bytes, memory)
        words = np.frombuffer(memory, f"<u{kind_of(info.dtype)[0]}")
        words = words.reshape(-1, across) if across > 0 else words.reshape(info.shape[0], -1)
        return words.T if is_turned else words
