"""Networks for graphs, sets, codes, fields, motions, ratings and pairs, and one of experts."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace

import torch
from torch import Tensor, nn

from .configs import Config
from .data import Data
from .networks import _blocks, _ending, _outputs
from .structures_data import ITEMS, NODES, STATE, USERS

_TIME = 0.15  # by which a state moves along what the field says
_WAVES = 16  # that a place is told by


class _Stack(nn.Module):
    """Hidden blocks one behind the other, and scores."""

    def __init__(self, config: Config, entering: int, outputs: int) -> None:
        """Make the blocks."""
        super().__init__()
        self.config = config
        self.hidden = _blocks(config, entering)
        self.output = nn.Linear(config.width, outputs)
        self.ending = _ending(config)

    def inner(self, values: Tensor) -> Tensor:
        """Pass all hidden blocks."""
        for number in range(len(self.hidden)):
            values = self.passed(number, values, values)
        return values

    def passed(self, number: int, values: Tensor, seen: Tensor) -> Tensor:
        """Pass one block, which sees `seen` in the place of the values."""
        after: Tensor = self.hidden[number](seen.flatten(0, -2)).unflatten(0, seen.shape[:-1])
        if self.config.residual and after.shape == values.shape:
            after = values + after
        return after.detach() if self.config.detach_after == number else after

    def scored(self, values: Tensor) -> Tensor:
        """Return the scores."""
        result: Tensor = self.ending(self.output(values))
        return result


class Graph(_Stack):
    """Rounds in which nodes see the mean of their neighbours (Kipf and Welling 2017)."""

    def __init__(self, config: Config, data: Data) -> None:
        """Make the rounds."""
        super().__init__(config, int(data.inputs.shape[2]) - NODES, _outputs(config, data))

    def forward(self, values: Tensor) -> Tensor:
        """Score a graph."""
        links = (values[..., :NODES] != 0).to(values.dtype) + torch.eye(NODES)
        links, nodes = links / links.sum(-1, keepdim=True), values[..., NODES:]
        for number in range(len(self.hidden)):
            nodes = self.passed(number, nodes, links @ nodes)
        return self.scored(nodes.mean(1))


class Pool(_Stack):
    """Points that a softmax weighs into one (Ilse et al. 2018)."""

    def __init__(self, config: Config, data: Data) -> None:
        """Make the layers and what weighs."""
        super().__init__(config, int(data.inputs.shape[2]), _outputs(config, data))
        self.attend = nn.Linear(config.width, 1)

    def forward(self, values: Tensor) -> Tensor:
        """Score a set."""
        points = self.inner(values)
        shares = self.attend(points).softmax(1)
        return self.scored((shares * points).sum(1))


class Hourglass(_Stack):
    """Layers of which the middle one is narrow."""

    def __init__(self, config: Config, data: Data) -> None:
        """Make the layers."""
        super().__init__(replace(config, depth=0), 1, _outputs(config, data))
        self.config = config
        size = int(data.inputs.shape[1])
        for number in range(config.depth):
            width = config.code if number == config.depth // 2 else config.width
            self.hidden.append(_blocks(replace(config, depth=1, width=width), size)[0])
            size = width

    def forward(self, values: Tensor) -> Tensor:
        """Return the signal."""
        return self.scored(self.inner(values))


class Field(_Stack):
    """Layers that see waves of the coordinates (Tancik et al. 2020)."""

    def __init__(self, config: Config, data: Data) -> None:
        """Make the waves, which are the same for all seeds, and the layers."""
        size = int(data.inputs.shape[1])
        super().__init__(config, 2 * _WAVES, _outputs(config, data))
        drawn = torch.randn(size, _WAVES, generator=torch.Generator().manual_seed(3))
        self.paces: Tensor
        self.register_buffer("paces", drawn * math.pi / 2)

    def forward(self, values: Tensor) -> Tensor:
        """Return the height at each place."""
        phases = values @ self.paces
        return self.scored(self.inner(torch.cat([phases.sin(), phases.cos()], -1)))


class Motion(_Stack):
    """Where a state goes next, asked again and again of what it says itself."""

    def __init__(self, config: Config, data: Data) -> None:
        """Make the layers."""
        super().__init__(config, STATE, STATE)
        self.ahead = int(data.targets.shape[1]) // STATE

    def forward(self, values: Tensor) -> Tensor:
        """Return the states to come, one behind the other."""
        course = []
        for _ in range(self.ahead):
            values = values + _TIME * self.scored(self.inner(values))
            course.append(values)
        return torch.cat(course, 1)


class Ratings(_Stack):
    """Codes of users and items, side by side and multiplied (He et al. 2017)."""

    def __init__(self, config: Config, data: Data) -> None:
        """Make the tables and the layers."""
        size = config.entry or config.width
        super().__init__(config, 3 * size, _outputs(config, data))
        self.users, self.items = nn.Embedding(USERS, size), nn.Embedding(ITEMS, size)

    def forward(self, values: Tensor) -> Tensor:
        """Return the rating of each pair."""
        user, item = self.users(values[:, 0]), self.items(values[:, 1])
        return self.scored(self.inner(torch.cat([user, item, user * item], 1)))


class Siamese(_Stack):
    """One encoder for two pictures; how far they are apart is scored (Koch et al. 2015)."""

    def __init__(self, config: Config, data: Data) -> None:
        """Make the encoder."""
        super().__init__(config, int(data.inputs.shape[2]), _outputs(config, data))

    def forward(self, values: Tensor) -> Tensor:
        """Score a pair."""
        codes = self.inner(values)
        return self.scored((codes[:, 0] - codes[:, 1]).abs())


class Heads(nn.Module):
    """Experts that a gate weighs, and a head for each of two tasks (Ma et al. 2018)."""

    def __init__(self, config: Config, data: Data) -> None:
        """Make the experts, `depth` of them."""
        super().__init__()
        size, alone = int(data.inputs.shape[1]), replace(config, depth=1)
        self.hidden = nn.ModuleList(_blocks(alone, size)[0] for _ in range(config.depth))
        self.gate = nn.Linear(size, config.depth)
        self.output = nn.Linear(config.width, 1)
        self.other = nn.Linear(config.width, 1)
        self.ending = _ending(config)
        self.cut = config.detach_after

    def forward(self, values: Tensor) -> Tensor:
        """Return both answers."""
        said = [expert(values) for expert in self.hidden]
        if self.cut is not None:
            said[self.cut] = said[self.cut].detach()
        shares = self.gate(values).softmax(-1)
        mean = (torch.stack(said, 1) * shares[:, :, None]).sum(1)
        result: Tensor = self.ending(torch.cat([self.output(mean), self.other(mean)], 1))
        return result


NETWORKS: dict[str, Callable[[Config, Data], nn.Module]] = {
    "structures-graph": Graph,
    "structures-pool": Pool,
    "structures-hourglass": Hourglass,
    "structures-field": Field,
    "structures-motion": Motion,
    "structures-ratings": Ratings,
    "structures-siamese": Siamese,
    "structures-heads": Heads,
}
