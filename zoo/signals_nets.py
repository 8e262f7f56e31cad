"""Networks for signals and small pictures: convolutions of several kinds, a U, a listener."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional

from .configs import Config
from .data import Data
from .networks import _activation, _ending, _outputs


def _norm(config: Config, width: int, axes: int) -> nn.Module:
    if config.norm == "batch":
        return nn.BatchNorm1d(width) if axes == 1 else nn.BatchNorm2d(width)
    if config.norm == "none":
        return nn.Identity()
    return nn.GroupNorm(1 if config.norm == "layer" else 2, width)


def _conv(axes: int, entering: int, leaving: int, size: int, **how: Any) -> nn.Module:
    kind: Any = nn.Conv1d if axes == 1 else nn.Conv2d
    made: nn.Module = kind(entering, leaving, size, padding="same", **how)
    return made


def _pool(axes: int) -> nn.Module:
    return nn.MaxPool1d(2) if axes == 1 else nn.MaxPool2d(2)


def _block(config: Config, axes: int, entering: int, number: int) -> nn.Sequential:
    """Return a convolution of the model's kind with its norm, activation, pool and dropout."""
    block, width = nn.Sequential(), config.width
    if config.model == "signals-depthwise":
        block.add_module("each", _conv(axes, entering, entering, 3, groups=entering))
        block.add_module("conv", _conv(axes, entering, width, 1))
    elif config.model == "signals-dilated":
        block.add_module("conv", _conv(axes, entering, width, 3, dilation=2 ** (number % 4)))
    else:
        block.add_module("conv", _conv(axes, entering, width, 5 if axes == 1 else 3))
    block.add_module("norm", _norm(config, width, axes))
    block.add_module("activation", _activation(config.activation))
    if number == 0 and config.model in ("signals-conv", "signals-depthwise", "signals-listener"):
        block.add_module("pool", _pool(axes))
    if config.dropout:
        block.add_module("dropout", nn.Dropout(config.dropout))
    return block


class _Residual(nn.Module):
    """Norm, activation, convolution, twice, beside a shortcut (He et al. 2016)."""

    def __init__(self, config: Config, axes: int) -> None:
        super().__init__()
        self.norm = _norm(config, config.width, axes)
        self.conv = _conv(axes, config.width, config.width, 3)
        self.norm2 = _norm(config, config.width, axes)
        self.conv2 = _conv(axes, config.width, config.width, 3)
        self.activation = _activation(config.activation)
        self.gain = config.skip_gain

    def forward(self, values: Tensor) -> Tensor:
        branch = self.conv(self.activation(self.norm(values)))
        branch = self.conv2(self.activation(self.norm2(branch)))
        result: Tensor = self.gain * values + branch
        return result


class _Signals(nn.Module):
    """What all of them share: how data enter, and how hidden blocks are passed."""

    def __init__(self, config: Config, data: Data) -> None:
        super().__init__()
        self.config = config
        self.axes = 1 if data.inputs.ndim == 3 else 2
        self.entering = int(data.inputs.shape[2]) if self.axes == 1 else 1
        self.hidden = nn.ModuleList()
        self.ending = _ending(config)

    def enter(self, values: Tensor) -> Tensor:
        """Put channels in front of places."""
        if self.axes == 1:
            return values.transpose(1, 2)
        side = math.isqrt(values.shape[1])
        return values.reshape(-1, 1, side, side)

    def passed(self, values: Tensor) -> Tensor:
        """Go through the hidden blocks, beside shortcuts where they are asked for."""
        for number, block in enumerate(self.hidden):
            after = block(values)
            skips = self.config.residual and after.shape == values.shape
            values = values + after if skips else after
            if self.config.detach_after == number:
                values = values.detach()
        return values


class Pooled(_Signals):
    """Blocks of convolutions; the output sees the mean of all places."""

    def __init__(self, config: Config, data: Data) -> None:
        """Make the blocks."""
        super().__init__(config, data)
        if config.model == "signals-resnet":
            self.stem = _conv(self.axes, self.entering, config.width, 3)
        for number in range(config.depth):
            entering = config.width if number else self.entering
            self.hidden.append(
                _Residual(config, self.axes)
                if config.model == "signals-resnet"
                else _block(config, self.axes, entering, number)
            )
        self.output = nn.Linear(config.width, _outputs(config, data))

    def forward(self, values: Tensor) -> Tensor:
        """Score a signal or a picture."""
        values = self.enter(values)
        if self.config.model == "signals-resnet":
            values = _pool(self.axes)(self.stem(values))
        values = self.passed(values).flatten(2).mean(-1)
        result: Tensor = self.ending(self.output(values))
        return result


class Painter(_Signals):
    """Convolutions that keep the size of a picture; a score for each of its places."""

    def __init__(self, config: Config, data: Data) -> None:
        """Make the blocks."""
        super().__init__(config, data)
        for number in range(config.depth):
            entering = config.width if number else self.entering
            self.hidden.append(_block(config, self.axes, entering, number))
        self.output = _conv(self.axes, config.width, 1, 1)

    def forward(self, values: Tensor) -> Tensor:
        """Paint a picture anew."""
        result: Tensor = self.ending(self.output(self.passed(self.enter(values))).flatten(1))
        return result


class Ushaped(_Signals):
    """Down to half the size, up again, beside a bridge (Ronneberger et al. 2015)."""

    def __init__(self, config: Config, data: Data) -> None:
        """Make the way down, the blocks below, and the way up."""
        super().__init__(config, data)
        for number in range(config.depth):
            last = number == config.depth - 1
            entering = config.width * (1 + last) if number else self.entering
            self.hidden.append(_block(config, self.axes, entering, number))
        self.output = _conv(self.axes, config.width, 1, 1)

    def forward(self, values: Tensor) -> Tensor:
        """Score each place of a picture."""
        bridge = values = self.enter(values)
        for number, block in enumerate(self.hidden):
            if number == self.config.depth - 1:
                above = functional.interpolate(values, scale_factor=2.0)
                values = block(torch.cat([bridge, above], dim=1))
            else:
                values = block(values)
            if self.config.detach_after == number:
                values = values.detach()
            if number == 0:
                bridge = values
                values = functional.max_pool2d(values, 2)
        result: Tensor = self.ending(self.output(values).flatten(1))
        return result


class Listener(_Signals):
    """A memory that listens to a wave, behind convolutions where there are any."""

    def __init__(self, config: Config, data: Data) -> None:
        """Make convolutions and memory."""
        super().__init__(config, data)
        for number in range(config.depth):
            entering = config.width if number else self.entering
            self.hidden.append(_block(config, self.axes, entering, number))
        size = config.width if config.depth else self.entering, config.width
        if config.cell == "rnn":
            kind = "relu" if config.activation == "relu" else "tanh"
            self.memory: nn.RNNBase = nn.RNN(*size, nonlinearity=kind, batch_first=True)
        elif config.cell == "lstm":
            self.memory = nn.LSTM(*size, batch_first=True)
        else:
            self.memory = nn.GRU(*size, batch_first=True)
        self.output = nn.Linear(config.width, _outputs(config, data))

    def forward(self, values: Tensor) -> Tensor:
        """Listen from the first place to the last."""
        heard = self.passed(self.enter(values)).transpose(1, 2)
        states, _ = self.memory(heard)
        read = states.mean(1) if self.config.reads == "mean" else states[:, -1]
        result: Tensor = self.ending(self.output(read))
        return result


NETWORKS: dict[str, Callable[[Config, Data], nn.Module]] = {
    "signals-conv": Pooled,
    "signals-dilated": Pooled,
    "signals-depthwise": Pooled,
    "signals-resnet": Pooled,
    "signals-painter": Painter,
    "signals-u": Ushaped,
    "signals-listener": Listener,
}
