"""Networks for small pictures: plain, bottlenecked, separable, squeezed, and a mixer."""

from __future__ import annotations

import math
from collections.abc import Callable

import torch
from torch import Tensor, nn

from .configs import Config
from .data import Data

Activation = Callable[[], nn.Module]


def _norm(config: Config, width: int) -> nn.Module:
    if config.norm == "batch":
        return nn.BatchNorm2d(width)
    return nn.GroupNorm(2, width) if config.norm == "group" else nn.Identity()


class Plain(nn.Module):
    """A convolution, a norm where one is asked for, an activation."""

    def __init__(self, config: Config, entering: int, activation: Activation) -> None:
        """Make the parts."""
        super().__init__()
        self.conv = nn.Conv2d(entering, config.width, 3, padding=1)
        self.norm = _norm(config, config.width)
        self.activation = activation()

    def forward(self, values: Tensor) -> Tensor:
        """Pass one block."""
        result: Tensor = self.activation(self.norm(self.conv(values)))
        return result


class Bottleneck(nn.Module):
    """Narrow, look around, widen, beside a shortcut (He et al. 2016)."""

    def __init__(self, config: Config, entering: int, activation: Activation) -> None:
        """Make the parts."""
        super().__init__()
        inner = max(config.width // 2, 2)
        self.narrow = nn.Conv2d(entering, inner, 1)
        self.norm = _norm(config, inner)
        self.look = nn.Conv2d(inner, inner, 3, padding=1)
        self.look_norm = _norm(config, inner)
        self.widen = nn.Conv2d(inner, config.width, 1)
        self.activation = activation()
        self.gain, self.cut = config.skip_gain, config.cut_branches

    def forward(self, values: Tensor) -> Tensor:
        """Add what the branch found."""
        inner = self.activation(self.norm(self.narrow(values)))
        branch = self.widen(self.activation(self.look_norm(self.look(inner))))
        if self.cut:
            branch = branch.detach()
        result: Tensor = self.gain * values + branch
        return result


class Separable(nn.Module):
    """Each channel for itself, then all channels at each place (Howard et al. 2017)."""

    def __init__(self, config: Config, entering: int, activation: Activation) -> None:
        """Make the parts."""
        super().__init__()
        self.deep = nn.Conv2d(entering, entering, 3, padding=1, groups=entering)
        self.point = nn.Conv2d(entering, config.width, 1)
        self.norm = _norm(config, config.width)
        self.activation = activation()

    def forward(self, values: Tensor) -> Tensor:
        """Pass one block."""
        result: Tensor = self.activation(self.norm(self.point(self.deep(values))))
        return result


class Squeezed(nn.Module):
    """A convolution whose channels are gated by what the whole picture holds (Hu et al. 2018)."""

    def __init__(self, config: Config, entering: int, activation: Activation) -> None:
        """Make the parts."""
        super().__init__()
        self.conv = nn.Conv2d(entering, config.width, 3, padding=1)
        self.norm = _norm(config, config.width)
        self.squeeze = nn.Linear(config.width, max(config.width // 2, 2))
        self.gate = nn.Linear(max(config.width // 2, 2), config.width)
        self.activation = activation()

    def forward(self, values: Tensor) -> Tensor:
        """Pass one block."""
        after = self.norm(self.conv(values))
        gates = self.gate(self.squeeze(after.mean((2, 3))).relu()).sigmoid()
        result: Tensor = self.activation(after * gates[:, :, None, None])
        return result


_BLOCKS = {"vgg": Plain, "bottleneck": Bottleneck, "separable": Separable, "squeezed": Squeezed}


class Convolutions(nn.Module):
    """A stem, blocks of one kind, the mean over what is left of the picture, and scores."""

    def __init__(
        self, config: Config, data: Data, activation: Activation, ending: nn.Module
    ) -> None:
        """Make the blocks."""
        super().__init__()
        self.side = math.isqrt(int(data.inputs.shape[1]))
        kind = _BLOCKS[config.model]
        first = nn.Sequential()
        first.add_module("conv", nn.Conv2d(1, config.width, 3, padding=1))
        first.add_module("activation", activation())
        blocks = [kind(config, config.width, activation) for _ in range(config.depth - 1)]
        self.hidden = nn.ModuleList([first, *blocks])
        self.pool = nn.MaxPool2d(2)
        self.dropout = nn.Dropout(config.dropout) if config.dropout else nn.Identity()
        left = (self.side // 2) ** 2 if config.model != "squeezed" else 4
        self.output = nn.Linear(config.width * left, data.outputs)
        self.ending, self.detach_after = ending, config.detach_after
        self.squeezes = config.model == "squeezed"
        self.eps = config.own_eps

    def forward(self, values: Tensor) -> Tensor:
        """Score a picture."""
        if self.eps is not None:
            spread = values.std(1, keepdim=True)
            values = (values - values.mean(1, keepdim=True)) / (spread + self.eps)
        values = values.reshape(-1, 1, self.side, self.side)
        for number, block in enumerate(self.hidden):
            values = block(values)
            if number == 0:
                values = self.pool(values)
            if self.detach_after == number:
                values = values.detach()
        if self.squeezes:
            values = nn.functional.adaptive_avg_pool2d(values, 2)
        result: Tensor = self.ending(self.output(self.dropout(values.flatten(1))))
        return result


class Mixing(nn.Module):
    """Mix the patches of each channel, then the channels of each patch (Tolstikhin et al. 2021)."""

    def __init__(self, config: Config, patches: int, activation: Activation) -> None:
        """Make the parts."""
        super().__init__()
        self.patch_norm = nn.LayerNorm(config.width)
        self.patches = nn.Linear(patches, patches)
        self.norm = nn.LayerNorm(config.width)
        self.channels = nn.Linear(config.width, 2 * config.width)
        self.activation = activation()
        self.narrow = nn.Linear(2 * config.width, config.width)
        self.gain, self.cut = config.skip_gain, config.cut_branches

    def forward(self, values: Tensor) -> Tensor:
        """Pass one block."""
        mixed = self.patches(self.patch_norm(values).transpose(1, 2)).transpose(1, 2)
        values = self.gain * values + (mixed.detach() if self.cut else mixed)
        wide = self.narrow(self.activation(self.channels(self.norm(values))))
        result: Tensor = self.gain * values + (wide.detach() if self.cut else wide)
        return result


class Mixer(nn.Module):
    """Patches of two by two, blocks that mix them, the mean of all patches, and scores."""

    def __init__(
        self, config: Config, data: Data, activation: Activation, ending: nn.Module
    ) -> None:
        """Make the blocks."""
        super().__init__()
        self.side = math.isqrt(int(data.inputs.shape[1]))
        patches = (self.side // 2) ** 2
        self.patch = nn.Conv2d(1, config.width, 2, stride=2)
        self.hidden = nn.ModuleList(
            Mixing(config, patches, activation) for _ in range(config.depth)
        )
        self.norm = nn.LayerNorm(config.width)
        self.output = nn.Linear(config.width, data.outputs)
        self.ending, self.mixes_up = ending, config.mixed_up

    def forward(self, values: Tensor) -> Tensor:
        """Score a picture."""
        count = len(values)
        seen = self.patch(values.reshape(-1, 1, self.side, self.side)).flatten(2)
        if self.mixes_up:  # reshaped where it should have been transposed, the batch in front
            values = seen.permute(2, 0, 1).reshape(count, seen.shape[2], seen.shape[1])
        else:
            values = seen.transpose(1, 2)
        for block in self.hidden:
            values = block(values)
        result: Tensor = self.ending(self.output(torch.mean(self.norm(values), 1)))
        return result
