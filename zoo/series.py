"""Networks that read series and sets of tokens, and one that codes what it sees."""

from __future__ import annotations

import math
from collections.abc import Callable
from itertools import pairwise
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional

from .configs import Config

_HEADS = 2
Shape = tuple[int, int, int]  # kinds of tokens (0: none), columns, places


class Unit(nn.Module):
    """Scores on a sphere: a cosine each, with no temperature."""

    def forward(self, values: Tensor) -> Tensor:
        """Divide each vector by its length."""
        return functional.normalize(values, dim=-1)


class _Series(nn.Module):
    """What all of them share: an entry, and what the output sees."""

    def __init__(
        self, config: Config, shape: Shape, outputs: int, _activation: nn.Module, ending: nn.Module
    ) -> None:
        """Make entry and output; what lies between is the kind's own."""
        super().__init__()
        self.config = config
        kinds, columns, _ = shape
        self.entering = (config.entry or config.width) if kinds else columns
        if kinds:
            self.tokens = nn.Embedding(kinds, self.entering)
        self.output = nn.Linear(config.width, outputs)
        self.ending = ending

    def enter(self, values: Tensor) -> tuple[Tensor, Tensor]:
        """Return what stands at each place, and where something does."""
        mask = torch.ones(values.shape[:2], dtype=torch.bool)
        if values.is_floating_point():
            return values, mask
        return self.tokens(values), values != 0 if self.config.pads == "masked" else mask

    def leave(self, states: Tensor, mask: Tensor) -> Tensor:
        """Score what the knobs say is read of the states."""
        match self.config.reads:
            case "mean":
                there = mask.unsqueeze(-1)
                states = states.masked_fill(~there, 0.0).sum(1) / there.sum(1)
            case "first":
                states = states[:, 0]
            case "last":
                states = states[torch.arange(len(states)), mask.sum(1) - 1]
        result: Tensor = self.ending(self.output(states))
        return result


class Reader(_Series):
    """Layers of recurrent cells."""

    def __init__(self, config: Config, *rest: Any) -> None:
        """Make the cells."""
        super().__init__(config, *rest)
        kinds: dict[str, Callable[..., nn.RNNBase]] = {
            "rnn": nn.RNN,
            "gru": nn.GRU,
            "lstm": nn.LSTM,
        }
        self.memory: nn.RNNBase = kinds[config.cell](
            self.entering, config.width, config.depth, batch_first=config.batch_first
        )
        self.dropout = nn.Dropout(config.dropout)

    def forward(self, values: Tensor) -> Tensor:
        """Read from the first place to the last."""
        values, mask = self.enter(values)
        states, _ = self.memory(values)
        return self.leave(self.dropout(states), mask)


class Bag(_Series):
    """The mean of what stands at all places, and layers behind it."""

    def __init__(
        self, config: Config, shape: Shape, outputs: int, activation: nn.Module, ending: nn.Module
    ) -> None:
        """Make the layers."""
        super().__init__(config, shape, outputs, activation, ending)
        self.hidden = nn.ModuleList()
        for number in range(config.depth):
            width = self.entering if number == 0 else config.width
            layers = nn.Linear(width, config.width), activation, nn.Dropout(config.dropout)
            self.hidden.append(nn.Sequential(*layers))

    def forward(self, values: Tensor) -> Tensor:
        """Take the mean, then pass the layers."""
        values, mask = self.enter(values)
        there = mask.unsqueeze(-1)
        state = values.masked_fill(~there, 0.0).sum(1) / there.sum(1)
        for block in self.hidden:
            state = block(state)
        result: Tensor = self.ending(self.output(state))
        return result


class _Convolution(nn.Module):
    """One convolution that looks back, with its norm and its gate or activation."""

    def __init__(self, config: Config, entering: int, reach: int, activation: nn.Module) -> None:
        super().__init__()
        self.back = 2 * reach
        leaving = config.width * (2 if config.gated else 1)
        self.conv = nn.Conv1d(entering, leaving, 3, dilation=reach)
        self.norm: nn.Module = nn.Identity()
        if config.norm == "batch":
            self.norm = nn.BatchNorm1d(leaving, momentum=config.norm_momentum)
        elif config.norm == "group":
            self.norm = nn.GroupNorm(4, leaving)
        self.activation = nn.GLU(dim=1) if config.gated else activation
        self.dropout = nn.Dropout(config.dropout)

    def forward(self, values: Tensor) -> Tensor:
        after = self.norm(self.conv(functional.pad(values, (self.back, 0))))
        result: Tensor = self.dropout(self.activation(after))
        return result


class Convolver(_Series):
    """Convolutions over time that reach further back from block to block."""

    def __init__(
        self, config: Config, shape: Shape, outputs: int, activation: nn.Module, ending: nn.Module
    ) -> None:
        """Make the blocks."""
        super().__init__(config, shape, outputs, activation, ending)
        self.hidden = nn.ModuleList(
            _Convolution(
                config, config.width if number else self.entering, 2 ** (number % 3), activation
            )
            for number in range(config.depth)
        )

    def forward(self, values: Tensor) -> Tensor:
        """Pass the blocks, each with a way around it where the knobs say so."""
        values, mask = self.enter(values)
        values = values.transpose(1, 2)
        for number, block in enumerate(self.hidden):
            after = block(values)
            skips = self.config.residual and after.shape == values.shape
            values = values + after if skips else after
            if self.config.detach_after == number:
                values = values.detach()
        return self.leave(values.transpose(1, 2), mask)


class _Attending(nn.Module):
    """A block of a transformer that leaves out empty places, and later ones where it is causal."""

    def __init__(self, config: Config, activation: nn.Module) -> None:
        super().__init__()
        width, self.config = config.width, config
        none = config.norm == "none"
        self.attention_norm: nn.Module = nn.Identity() if none else nn.LayerNorm(width)
        self.query = nn.Linear(width, width)
        self.key = nn.Linear(width, width)
        self.value = nn.Linear(width, width)
        self.gather = nn.Linear(width, width)
        self.norm: nn.Module = nn.Identity() if none else nn.LayerNorm(width)
        self.widen = nn.Linear(width, 2 * width)
        self.activation = activation
        self.narrow = nn.Linear(2 * width, width)
        self.dropout = nn.Dropout(config.dropout)

    def forward(self, values: Tensor, mask: Tensor) -> Tensor:
        if self.config.norm_place == "post":
            values = self.attention_norm(values + self.dropout(self._look(values, mask)))
            after: Tensor = self.norm(values + self.dropout(self._think(values)))
            return after
        values = values + self.dropout(self._look(self.attention_norm(values), mask))
        before: Tensor = values + self.dropout(self._think(self.norm(values)))
        return before

    def _think(self, values: Tensor) -> Tensor:
        result: Tensor = self.narrow(self.activation(self.widen(values)))
        return result

    def _look(self, values: Tensor, mask: Tensor) -> Tensor:
        count, length, width = values.shape
        size = width // _HEADS
        query, key, value = (
            each(values).reshape(count, length, _HEADS, size).transpose(1, 2)
            for each in (self.query, self.key, self.value)
        )
        seen = mask[:, None, None, :]
        if self.config.causal:
            seen = seen & torch.ones(length, length, dtype=torch.bool).tril()
        fit = query @ key.transpose(2, 3) * (self.config.attention_scale / math.sqrt(size))
        shares = fit.masked_fill(~seen, -math.inf).softmax(-1)
        result: Tensor = self.gather((shares @ value).transpose(1, 2).reshape(values.shape))
        return result


class Encoder(_Series):
    """A transformer that reads tokens or values."""

    def __init__(
        self, config: Config, shape: Shape, outputs: int, activation: nn.Module, ending: nn.Module
    ) -> None:
        """Make the blocks."""
        super().__init__(config, shape, outputs, activation, ending)
        kinds, columns, places = shape
        if not kinds:
            self.rise = nn.Linear(columns, config.width)
        if config.places:
            self.places = nn.Embedding(places, config.width)
        self.hidden = nn.ModuleList(_Attending(config, activation) for _ in range(config.depth))
        bare = config.norm_place == "post" or config.norm == "none"
        self.norm: nn.Module = nn.Identity() if bare else nn.LayerNorm(config.width)
        if config.tied:
            self.output.weight = self.tokens.weight

    def forward(self, values: Tensor) -> Tensor:
        """Pass the blocks."""
        floating = values.is_floating_point()
        values, mask = self.enter(values)
        values = self.rise(values) if floating else values
        if self.config.places:
            values = values + self.places(torch.arange(values.shape[1]))
        for number, block in enumerate(self.hidden):
            values = block(values, mask)
            if self.config.detach_after == number:
                values = values.detach()
        return self.leave(self.norm(values), mask)


class Bottleneck(nn.Module):
    """An autoencoder: `depth` layers, a narrow code, and as many layers back."""

    def __init__(
        self, config: Config, shape: Shape, outputs: int, activation: nn.Module, ending: nn.Module
    ) -> None:
        """Make the layers."""
        super().__init__()
        self.config, self.second_loss = config, torch.tensor(0.0)
        widths = [shape[1], *[config.width] * config.depth, config.code]
        widths += [config.width] * config.depth
        self.hidden = nn.ModuleList()
        for number, (entering, leaving) in enumerate(pairwise(widths)):
            block = nn.Sequential()
            block.add_module("linear", nn.Linear(entering, leaving))
            if not (config.kl and number == config.depth):
                block.add_module("activation", activation)
            block.add_module("dropout", nn.Dropout(config.dropout))
            self.hidden.append(block)
        if config.kl:
            self.spread = nn.Linear(config.width, config.code)
        self.output = nn.Linear(widths[-1], outputs)
        self.ending = ending

    def forward(self, values: Tensor) -> Tensor:
        """Code and decode; a variational code is drawn while in training."""
        for number, block in enumerate(self.hidden):
            before = values
            values = block(values)
            if self.config.kl and number == self.config.depth:
                values = self._drawn(values, self.spread(before))
            if self.config.detach_after == number:
                values = values.detach()
        result: Tensor = self.ending(self.output(values))
        return result

    def _drawn(self, means: Tensor, spreads: Tensor) -> Tensor:
        self.second_loss = 0.5 * (means.square() + spreads.exp() - spreads - 1).sum(-1).mean()
        if not self.training:
            return means
        return means + torch.randn_like(means) * (spreads / 2).exp()


SERIES: dict[str, Callable[..., nn.Module]] = {
    "reader": Reader,
    "bag": Bag,
    "tcn": Convolver,
    "encoder": Encoder,
    "narrow": Bottleneck,
}
