"""The networks of the zoo, built from the knobs of a configuration."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING

from .configs import Config
from .data import Data
from .oddities import settle
from .starts import initialise

if TYPE_CHECKING:
    from torch import Tensor, nn


_TABULAR = ("gated", "dense", "experts", "entities", "tied", "variational", "pairs")


def build(config: Config, data: Data) -> nn.Module:
    """Build and initialise a network; torch's seed is the caller's."""
    from . import odd_nets, signals_nets, structures_nets, tables_nets, tokens_nets

    made: dict[str, Callable[[Config, Data], nn.Module]] = {
        "mlp": _mlp,
        "logistic": _mlp,
        "cnn": _cnn,
        "rnn": _recurrent,
        "gru": _recurrent,
        "lstm": _recurrent,
        "transformer": _transformer,
        **dict.fromkeys(("vgg", "bottleneck", "separable", "squeezed", "mixer"), _picture),
        **dict.fromkeys(_TABULAR, _tabular),
        **dict.fromkeys(("reader", "bag", "tcn", "encoder", "narrow"), _series),
        **tables_nets.NETWORKS,
        **signals_nets.NETWORKS,
        **structures_nets.NETWORKS,
        **tokens_nets.NETWORKS,
        **odd_nets.NETWORKS,
    }
    model = made[config.model](config, data)
    initialise(model, config)
    settle(model, config)
    if config.frozen:
        for number, block in enumerate(model.hidden):
            if number < config.frozen:
                block.requires_grad_(requires_grad=False)
    return model


def _activation(name: str, pace: float = 1.0) -> nn.Module:
    from torch import nn

    from .tabular import Sine

    kinds: dict[str, Callable[[], nn.Module]] = {
        "relu": nn.ReLU,
        "tanh": nn.Tanh,
        "sigmoid": nn.Sigmoid,
        "gelu": nn.GELU,
        "leaky_relu": nn.LeakyReLU,
        "silu": nn.SiLU,
        "elu": nn.ELU,
        "softsign": nn.Softsign,
        "mish": nn.Mish,
        "hardtanh": nn.Hardtanh,
        "selu": nn.SELU,
        "relu6": nn.ReLU6,
        "softplus": nn.Softplus,
        "sine": partial(Sine, pace),
    }
    return kinds[name]()


def _outputs(config: Config, data: Data) -> int:
    """Count the scores; a loss of means and spreads asks for two of each."""
    each = 2 if config.loss.startswith("gaussian") else 1
    return each * data.outputs


def _ending(config: Config) -> nn.Module:
    from torch import nn

    from .series import Unit

    if config.softmax:
        return nn.Softmax(dim=-1)
    if config.ending == "unit":
        return Unit()
    return nn.Identity() if config.ending == "none" else _activation(config.ending)


def block_of(config: Config, **parts: nn.Module) -> nn.Sequential:
    """Return layers with what the knobs put behind them."""
    from torch import nn

    if config.norm == "batch":
        parts["norm"] = nn.BatchNorm1d(config.width)
    elif config.norm == "layer":
        parts["norm"] = nn.LayerNorm(config.width)
    parts["activation"] = _activation(config.activation, config.pace)
    if config.dropout:
        parts["dropout"] = nn.Dropout(config.dropout)
    block = nn.Sequential()
    for name, part in parts.items():
        block.add_module(name, part)
    return block


def _blocks(config: Config, inputs: int) -> nn.ModuleList:
    from torch import nn

    widths = [inputs, *[config.width] * config.depth]
    return nn.ModuleList(
        block_of(config, linear=nn.Linear(width, config.width)) for width in widths[: config.depth]
    )


def _mlp(config: Config, data: Data) -> nn.Module:
    from torch import nn

    depth = 0 if config.model == "logistic" else config.depth
    inputs = int(data.inputs.shape[1])

    class Mlp(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.hidden = _blocks(config, inputs) if depth else nn.ModuleList()
            self.output = nn.Linear(config.width if depth else inputs, _outputs(config, data))
            self.ending = _ending(config)

        def forward(self, values: Tensor) -> Tensor:
            for number, block in enumerate(self.hidden):
                after = block(values)
                skips = config.residual and after.shape == values.shape
                values = values + after if skips else after
                if config.detach_after == number:
                    values = values.detach()
            result: Tensor = self.ending(self.output(values))
            return result

    return Mlp()


def _cnn(config: Config, data: Data) -> nn.Module:
    from torch import nn

    class Cnn(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.hidden = nn.ModuleList()
            for number in range(config.depth):
                block = nn.Sequential()
                entering = 1 if number == 0 else config.width
                block.add_module("conv", nn.Conv2d(entering, config.width, 3, padding=1))
                if config.norm == "batch":
                    block.add_module("norm", nn.BatchNorm2d(config.width))
                elif config.norm == "group":
                    block.add_module("norm", nn.GroupNorm(4, config.width))
                block.add_module("activation", _activation(config.activation))
                if number == 0:
                    block.add_module("pool", nn.MaxPool2d(2))
                if config.dropout:
                    block.add_module("dropout", nn.Dropout(config.dropout))
                self.hidden.append(block)
            self.output = nn.Linear(config.width * 16, _outputs(config, data))
            self.ending = _ending(config)

        def forward(self, values: Tensor) -> Tensor:
            values = values.reshape(-1, 1, 8, 8)
            for number, block in enumerate(self.hidden):
                after = block(values)
                skips = config.residual and after.shape == values.shape
                values = values + after if skips else after
                if config.detach_after == number:
                    values = values.detach()
            result: Tensor = self.ending(self.output(values.flatten(1)))
            return result

    return Cnn()


def _recurrent(config: Config, data: Data) -> nn.Module:
    from torch import nn

    class Recurrent(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            size = int(data.inputs.shape[2]), config.width
            if config.model == "gru":
                self.memory: nn.RNNBase = nn.GRU(*size, batch_first=True)
            elif config.model == "lstm":
                self.memory = nn.LSTM(*size, batch_first=True)
            else:
                self.memory = nn.RNN(*size, nonlinearity=config.activation, batch_first=True)
            self.output = nn.Linear(config.width, _outputs(config, data))
            self.ending = _ending(config)

        def forward(self, values: Tensor) -> Tensor:
            states, _ = self.memory(values)
            result: Tensor = self.ending(self.output(states[:, -1]))
            return result

    return Recurrent()


def _transformer(config: Config, data: Data) -> nn.Module:
    from .transformer import Transformer

    return Transformer(config, _outputs(config, data), int(data.inputs.shape[1]), _ending(config))


def _picture(config: Config, data: Data) -> nn.Module:
    from .pictures import Convolutions, Mixer

    kind = Mixer if config.model == "mixer" else Convolutions
    return kind(config, data, partial(_activation, config.activation), _ending(config))


def _tabular(config: Config, data: Data) -> nn.Module:
    from . import tabular

    kind = getattr(tabular, config.model.title())
    made: nn.Module = kind(config, data, partial(_activation, config.activation), _ending(config))
    return made


def _series(config: Config, data: Data) -> nn.Module:
    from .series import SERIES

    tokens = 0
    if data.inputs.dtype.kind == "i":
        tokens = 1 + int(max(data.inputs.max(), data.held_inputs.max()))
    shape = tokens, int(data.inputs.shape[-1]), int(data.inputs.shape[1])
    activation = _activation(config.activation)
    return SERIES[config.model](config, shape, _outputs(config, data), activation, _ending(config))
