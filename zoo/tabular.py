"""Networks for tables and codes: gated, dense, of experts, with embeddings, tied, in pairs."""

from __future__ import annotations

import math
from collections.abc import Callable

import torch
from torch import Tensor, nn

from .configs import Config
from .data import Data
from .picture_sets import LEVELS

Activation = Callable[[], nn.Module]


class Gate(nn.Module):
    """A linear layer times the sigmoid of another (Dauphin et al. 2017), or a highway's gate."""

    def __init__(self, config: Config, entering: int, activation: Activation) -> None:
        """Make the parts."""
        super().__init__()
        self.linear = nn.Linear(entering, config.width)
        self.gate = nn.Linear(entering, config.width)
        self.norm = nn.LayerNorm(config.width) if config.norm == "layer" else nn.Identity()
        self.activation = activation()
        self.carries = config.residual and entering == config.width

    def forward(self, values: Tensor) -> Tensor:
        """Pass one block."""
        opened = self.gate(values).sigmoid()
        after = self.activation(self.norm(self.linear(values)))
        result: Tensor = opened * after
        return result + (1 - opened) * values if self.carries else result


class Gated(nn.Module):
    """Gated layers one behind the other, and scores."""

    def __init__(
        self, config: Config, data: Data, activation: Activation, ending: nn.Module
    ) -> None:
        """Make the blocks."""
        super().__init__()
        inputs = int(data.inputs.shape[1])
        sizes = [inputs, *[config.width] * (config.depth - 1)]
        self.hidden = nn.ModuleList(Gate(config, each, activation) for each in sizes)
        self.output = nn.Linear(config.width, data.outputs)
        self.ending = ending

    def forward(self, values: Tensor) -> Tensor:
        """Score a row."""
        for block in self.hidden:
            values = block(values)
        result: Tensor = self.ending(self.output(values))
        return result


class Dense(nn.Module):
    """Each layer sees the inputs and all that came before it (Huang et al. 2017)."""

    def __init__(
        self, config: Config, data: Data, activation: Activation, ending: nn.Module
    ) -> None:
        """Make the blocks."""
        super().__init__()
        size = int(data.inputs.shape[1])
        self.hidden = nn.ModuleList()
        for _ in range(config.depth):
            block = nn.Sequential()
            block.add_module("linear", nn.Linear(size, config.width))
            block.add_module("activation", activation())
            self.hidden.append(block)
            size += config.width
        self.dropout = nn.Dropout(config.dropout) if config.dropout else nn.Identity()
        self.output = nn.Linear(size, data.outputs)
        self.ending = ending

    def forward(self, values: Tensor) -> Tensor:
        """Score a row."""
        for block in self.hidden:
            values = torch.cat([values, block(values)], 1)
        result: Tensor = self.ending(self.output(self.dropout(values)))
        return result


class Experts(nn.Module):
    """Small networks of which a gate makes a mean (Jacobs et al. 1991)."""

    def __init__(
        self, config: Config, data: Data, activation: Activation, ending: nn.Module
    ) -> None:
        """Make the experts, `depth` of them."""
        super().__init__()
        inputs = int(data.inputs.shape[1])
        self.hidden = nn.ModuleList()
        for _ in range(config.depth):
            expert = nn.Sequential()
            expert.add_module("linear", nn.Linear(inputs, config.width))
            expert.add_module("activation", activation())
            expert.add_module("narrow", nn.Linear(config.width, config.width))
            self.hidden.append(expert)
        self.gate = nn.Linear(inputs, config.depth)
        self.output = nn.Linear(config.width, data.outputs)
        self.ending = ending

    def forward(self, values: Tensor) -> Tensor:
        """Score a row."""
        shares = self.gate(values).softmax(-1)
        each = torch.stack([expert(values) for expert in self.hidden], 1)
        mean = (each * shares[:, :, None]).sum(1)
        result: Tensor = self.ending(self.output(mean.relu()))
        return result


class Entities(nn.Module):
    """Codes looked up in a table for each column, then layers (Guo and Berkhahn 2016)."""

    def __init__(
        self, config: Config, data: Data, activation: Activation, ending: nn.Module
    ) -> None:
        """Make the tables and the layers."""
        super().__init__()
        columns = int(data.inputs.shape[1])
        self.tables = nn.ModuleList(nn.Embedding(LEVELS, 2) for _ in range(columns))
        self.hidden = nn.ModuleList()
        for number in range(config.depth):
            block = nn.Sequential()
            entering = 2 * columns if number == 0 else config.width
            block.add_module("linear", nn.Linear(entering, config.width))
            block.add_module("activation", activation())
            self.hidden.append(block)
        self.output = nn.Linear(config.width, data.outputs)
        self.ending = ending

    def forward(self, values: Tensor) -> Tensor:
        """Score a row of codes."""
        after = torch.cat([table(values[:, i]) for i, table in enumerate(self.tables)], 1)
        for block in self.hidden:
            after = block(after)
        result: Tensor = self.ending(self.output(after))
        return result


class Tied(nn.Module):
    """An autoencoder whose way back is the transpose of its way in."""

    def __init__(
        self, config: Config, data: Data, activation: Activation, ending: nn.Module
    ) -> None:
        """Make the way in."""
        super().__init__()
        inputs = int(data.inputs.shape[1])
        halves = [max(config.width // 2**i, 4) for i in range(config.depth)]
        sizes = [inputs, *halves]
        self.hidden = nn.ModuleList(nn.Linear(sizes[i], sizes[i + 1]) for i in range(config.depth))
        self.backs = nn.ParameterList(nn.Parameter(torch.zeros(each)) for each in sizes[:-1])
        self.activation, self.ending = activation(), ending

    def forward(self, values: Tensor) -> Tensor:
        """Return the picture as it is."""
        for layer in self.hidden:
            values = self.activation(layer(values))
        for number in reversed(range(len(self.hidden))):
            weight = self.hidden[number].weight
            values = nn.functional.linear(values, weight.t(), self.backs[number])
            if number:
                values = self.activation(values)
        result: Tensor = self.ending(values)
        return result


class Variational(nn.Module):
    """A variational autoencoder; gives the picture, the mean and the log of the variance."""

    def __init__(
        self, config: Config, data: Data, activation: Activation, ending: nn.Module
    ) -> None:
        """Make both ways."""
        super().__init__()
        inputs, code = int(data.inputs.shape[1]), 6
        self.encode = nn.Linear(inputs, config.width)
        self.centre = nn.Linear(config.width, code)
        self.spread = nn.Linear(config.width, code)
        self.decode = nn.Linear(code, config.width)
        self.output = nn.Linear(config.width, inputs)
        self.activation, self.ending = activation(), ending
        self.limit = config.spread_limit

    def forward(self, values: Tensor) -> Tensor:
        """Return the picture, and what the code was drawn from."""
        inner = self.activation(self.encode(values))
        centre, spread = self.centre(inner), self.spread(inner)
        if self.limit is not None:
            spread = spread.clamp(-self.limit, self.limit)
        noise = torch.randn_like(centre) if self.training else torch.zeros_like(centre)
        code = centre + noise * (spread / 2).exp()
        back = self.output(self.activation(self.decode(code)))
        return torch.cat([self.ending(back), centre, spread], 1)


class Pairs(nn.Module):
    """One encoder for both views of an example; gives two directions of length one."""

    def __init__(
        self, config: Config, data: Data, activation: Activation, ending: nn.Module
    ) -> None:
        """Make the encoder and what projects."""
        super().__init__()
        self.hidden = nn.ModuleList()
        for number in range(config.depth):
            block = nn.Sequential()
            entering = int(data.inputs.shape[2]) if number == 0 else config.width
            block.add_module("linear", nn.Linear(entering, config.width))
            block.add_module("activation", activation())
            self.hidden.append(block)
        self.output = nn.Linear(config.width, 16)
        self.ending = ending

    def forward(self, values: Tensor) -> Tensor:
        """Return the directions of both views."""
        for block in self.hidden:
            values = block(values)
        scores = self.ending(self.output(values))
        return nn.functional.normalize(scores, dim=-1)


class Sine(nn.Module):
    """A wave as activation (Sitzmann et al. 2020); the pace is the knob."""

    def __init__(self, pace: float) -> None:
        """Take the pace."""
        super().__init__()
        self.pace = pace

    def forward(self, values: Tensor) -> Tensor:
        """Return the wave."""
        return torch.sin(self.pace * values)


def spread_out(model: nn.Module, pace: float) -> None:
    """Start a network of waves as its authors do: inner layers even within sqrt(6 / n) / pace."""
    with torch.no_grad():
        for number, each in enumerate(m for m in model.modules() if isinstance(m, nn.Linear)):
            entering = each.weight.shape[1]
            reach = 1 / entering if number == 0 else math.sqrt(6 / entering) / pace
            each.weight.uniform_(-reach, reach)
