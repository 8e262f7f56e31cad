"""Networks for tables: of low rank, residual, crossed, wide and deep, of tokens and of codes."""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor, nn

from .configs import Config
from .data import Data
from .networks import _activation, _ending, block_of
from .tables_data import CODES


class Stack(nn.Module):
    """Blocks one behind the other, and scores: what all networks here have."""

    def __init__(self, config: Config, data: Data, blocks: list[nn.Module]) -> None:
        """Take the blocks."""
        super().__init__()
        self.config = config
        self.hidden = nn.ModuleList(blocks)
        self.output = nn.Linear(config.width, data.outputs)
        self.ending = _ending(config)

    def passed(self, values: Tensor, *, skips: bool) -> Tensor:
        """Pass the blocks, with shortcuts where they fit."""
        for number, block in enumerate(self.hidden):
            after: Tensor = block(values)
            fits = skips and after.shape == values.shape
            values = self.config.skip_gain * values + after if fits else after
            if self.config.detach_after == number:
                values = values.detach()
        return values

    def forward(self, values: Tensor) -> Tensor:
        """Score a row."""
        values = self.passed(values, skips=self.config.residual)
        result: Tensor = self.ending(self.output(values))
        return result


def _low_rank(config: Config, data: Data) -> nn.Module:
    """Make each layer of two narrow factors, `code` wide between them."""
    sizes = [int(data.inputs.shape[1]), *[config.width] * (config.depth - 1)]
    return Stack(
        config,
        data,
        [
            block_of(
                config, down=nn.Linear(each, config.code), up=nn.Linear(config.code, config.width)
            )
            for each in sizes
        ],
    )


class Wide(Stack):
    """A deep network with a linear one beside it (Cheng et al. 2016)."""

    def __init__(self, config: Config, data: Data) -> None:
        """Make both."""
        inputs = int(data.inputs.shape[1])
        sizes = [inputs, *[config.width] * (config.depth - 1)]
        super().__init__(
            config, data, [block_of(config, linear=nn.Linear(each, config.width)) for each in sizes]
        )
        self.wide = nn.Linear(inputs, data.outputs)

    def forward(self, values: Tensor) -> Tensor:
        """Score a row."""
        deep = self.output(self.passed(values, skips=self.config.residual))
        result: Tensor = self.ending(deep + self.wide(values))
        return result


class Inner(nn.Module):
    """A norm, a layer, an activation and a layer back: what a shortcut goes around."""

    def __init__(self, config: Config) -> None:
        """Make the parts."""
        super().__init__()
        self.norm = _norm(config)
        self.widen = nn.Linear(config.width, config.width)
        self.activation = _activation(config.activation, config.pace)
        self.dropout = nn.Dropout(config.dropout)
        self.back = nn.Linear(config.width, config.width)

    def forward(self, values: Tensor) -> Tensor:
        """Pass the block."""
        inner = self.dropout(self.activation(self.widen(self.norm(values))))
        result: Tensor = self.back(inner)
        return result


def _norm(config: Config) -> nn.Module:
    if config.norm == "batch":
        return nn.BatchNorm1d(config.width)
    return nn.LayerNorm(config.width) if config.norm == "layer" else nn.Identity()


class Residual(Stack):
    """Norms before layers and shortcuts around them (Gorishniy et al. 2021)."""

    def __init__(self, config: Config, data: Data) -> None:
        """Make what stands before and behind the blocks too."""
        super().__init__(config, data, [Inner(config) for _ in range(config.depth)])
        self.entry = nn.Linear(int(data.inputs.shape[1]), config.width)
        self.norm = _norm(config)
        self.activation = _activation(config.activation, config.pace)

    def forward(self, values: Tensor) -> Tensor:
        """Score a row."""
        values = self.passed(self.entry(values), skips=self.config.residual)
        result: Tensor = self.ending(self.output(self.activation(self.norm(values))))
        return result


class Crossing(nn.Module):
    """A linear layer; what it gives is multiplied with the inputs by the network."""

    def __init__(self, size: int) -> None:
        """Make the layer."""
        super().__init__()
        self.linear = nn.Linear(size, size)

    def forward(self, values: Tensor) -> Tensor:
        """Pass the layer."""
        result: Tensor = self.linear(values)
        return result


class Cross(Stack):
    """Products of columns, one degree more in each layer, then a layer (Wang et al. 2021)."""

    def __init__(self, config: Config, data: Data) -> None:
        """Make the crossings and the layer behind them."""
        size = int(data.inputs.shape[1])
        crossings: list[nn.Module] = [Crossing(size) for _ in range(config.depth)]
        last = block_of(config, linear=nn.Linear(size, config.width))
        super().__init__(config, data, [*crossings, last])

    def forward(self, values: Tensor) -> Tensor:
        """Score a row."""
        first = values
        for number, block in enumerate(self.hidden):
            after = block(values)
            crosses = number < self.config.depth
            values = first * after + self.config.skip_gain * values if crosses else after
            if self.config.detach_after == number:
                values = values.detach()
        result: Tensor = self.ending(self.output(values))
        return result


class Attention(nn.Module):
    """Lets columns look at each other, then a layer for each of them; norms come first."""

    def __init__(self, config: Config) -> None:
        """Make the parts."""
        super().__init__()
        width = config.width
        self.norm, self.inner = _norm(config), Inner(config)
        self.query, self.key = nn.Linear(width, width), nn.Linear(width, width)
        self.value, self.mix = nn.Linear(width, width), nn.Linear(width, width)
        self.scale = config.attention_scale / width**0.5
        self.kept = config.skip_gain if config.residual else 0.0

    def forward(self, values: Tensor) -> Tensor:
        """Pass the block."""
        normed = self.norm(values)
        likeness = self.query(normed) @ self.key(normed).transpose(1, 2) * self.scale
        values = self.kept * values + self.mix(likeness.softmax(-1) @ self.value(normed))
        result: Tensor = self.kept * values + self.inner(values)
        return result


class Tokens(Stack):
    """Each column is a token: a direction of its own times its value (Gorishniy et al. 2021)."""

    def __init__(self, config: Config, data: Data) -> None:
        """Make directions, blocks and the norm behind them."""
        super().__init__(config, data, [Attention(config) for _ in range(config.depth)])
        size = int(data.inputs.shape[1]), config.width
        self.directions = nn.Parameter(torch.randn(size) * 0.5)
        self.places = nn.Parameter(torch.randn(size) * 0.5)
        self.norm = _norm(config)

    def forward(self, values: Tensor) -> Tensor:
        """Score a row."""
        tokens = self.passed(values[:, :, None] * self.directions + self.places, skips=False)
        result: Tensor = self.ending(self.output(self.norm(tokens).mean(1)))
        return result


class Codes(Stack):
    """Codes looked up, and the sum of their products in pairs, then layers (He and Chua 2017)."""

    offsets: Tensor

    def __init__(self, config: Config, data: Data) -> None:
        """Make one lookup table for all columns, and the layers."""
        columns, entry = int(data.inputs.shape[1]), config.entry or config.width
        sizes = [(columns + 1) * entry, *[config.width] * (config.depth - 1)]
        super().__init__(
            config, data, [block_of(config, linear=nn.Linear(each, config.width)) for each in sizes]
        )
        self.lookup = nn.Embedding(columns * CODES, entry)
        self.register_buffer("offsets", torch.arange(columns) * CODES)

    def forward(self, values: Tensor) -> Tensor:
        """Score a row of codes."""
        found = self.lookup(values + self.offsets)
        pairs = (found.sum(1).square() - found.square().sum(1)) / 2
        after = self.passed(torch.cat([found.flatten(1), pairs], 1), skips=self.config.residual)
        result: Tensor = self.ending(self.output(after))
        return result


NETWORKS: dict[str, Callable[[Config, Data], nn.Module]] = {
    "tables-low-rank": _low_rank,
    "tables-wide": Wide,
    "tables-residual": Residual,
    "tables-cross": Cross,
    "tables-tokens": Tokens,
    "tables-codes": Codes,
}
