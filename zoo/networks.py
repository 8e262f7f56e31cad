"""The networks of the zoo, built from the knobs of a configuration."""

from __future__ import annotations

from typing import TYPE_CHECKING

from .configs import Config
from .data import Data
from .starts import initialise

if TYPE_CHECKING:
    from torch import Tensor, nn


def build(config: Config, data: Data) -> nn.Module:
    """Build and initialise a network; torch's seed is the caller's."""
    made = {
        "mlp": _mlp,
        "logistic": _mlp,
        "cnn": _cnn,
        "rnn": _recurrent,
        "gru": _recurrent,
        "lstm": _recurrent,
        "transformer": _transformer,
    }
    model = made[config.model](config, data)
    initialise(model, config)
    if config.frozen:
        for number, block in enumerate(model.hidden):  # type: ignore[arg-type]
            if number < config.frozen:
                block.requires_grad_(requires_grad=False)
    return model


def _activation(name: str) -> nn.Module:
    from torch import nn

    kinds: dict[str, type[nn.Module]] = {
        "relu": nn.ReLU,
        "tanh": nn.Tanh,
        "sigmoid": nn.Sigmoid,
        "gelu": nn.GELU,
        "leaky_relu": nn.LeakyReLU,
        "silu": nn.SiLU,
        "elu": nn.ELU,
        "softsign": nn.Softsign,
        "mish": nn.Mish,
    }
    return kinds[name]()


def _outputs(data: Data) -> int:
    return data.classes or int(data.targets.shape[1])


def _ending(config: Config) -> nn.Module:
    from torch import nn

    if config.softmax:
        return nn.Softmax(dim=-1)
    return nn.Identity() if config.ending == "none" else _activation(config.ending)


def _blocks(config: Config, inputs: int) -> nn.ModuleList:
    from torch import nn

    blocks = nn.ModuleList()
    for number in range(config.depth):
        width = inputs if number == 0 else config.width
        parts: dict[str, nn.Module] = {"linear": nn.Linear(width, config.width)}
        if config.norm == "batch":
            parts["norm"] = nn.BatchNorm1d(config.width)
        elif config.norm == "layer":
            parts["norm"] = nn.LayerNorm(config.width)
        parts["activation"] = _activation(config.activation)
        if config.dropout:
            parts["dropout"] = nn.Dropout(config.dropout)
        block = nn.Sequential()
        for name, part in parts.items():
            block.add_module(name, part)
        blocks.append(block)
    return blocks


def _mlp(config: Config, data: Data) -> nn.Module:
    from torch import nn

    depth = 0 if config.model == "logistic" else config.depth
    inputs = int(data.inputs.shape[1])

    class Mlp(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.hidden = _blocks(config, inputs) if depth else nn.ModuleList()
            self.output = nn.Linear(config.width if depth else inputs, _outputs(data))
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
            self.output = nn.Linear(config.width * 16, _outputs(data))
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
            self.output = nn.Linear(config.width, _outputs(data))
            self.ending = _ending(config)

        def forward(self, values: Tensor) -> Tensor:
            states, _ = self.memory(values)
            result: Tensor = self.ending(self.output(states[:, -1]))
            return result

    return Recurrent()


def _transformer(config: Config, data: Data) -> nn.Module:
    from .transformer import Transformer

    return Transformer(config, _outputs(data), int(data.inputs.shape[1]), _ending(config))
