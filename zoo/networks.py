"""The networks of the zoo, built from the knobs of a configuration."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from .configs import Config
from .data import Data

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
        "transformer": _transformer,
    }
    model = made[config.model](config, data)
    _initialise(model, config)
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
    }
    return kinds[name]()


def _outputs(data: Data) -> int:
    return data.classes or int(data.targets.shape[1])


def _ending(config: Config) -> nn.Module:
    from torch import nn

    return nn.Softmax(dim=-1) if config.softmax else nn.Identity()


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
                block.add_module("activation", _activation(config.activation))
                if number == 0:
                    block.add_module("pool", nn.MaxPool2d(2))
                self.hidden.append(block)
            self.output = nn.Linear(config.width * 16, _outputs(data))
            self.ending = _ending(config)

        def forward(self, values: Tensor) -> Tensor:
            values = values.reshape(-1, 1, 8, 8)
            for number, block in enumerate(self.hidden):
                values = block(values)
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
                self.memory: nn.RNN | nn.GRU = nn.GRU(*size, batch_first=True)
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


def _initialise(model: nn.Module, config: Config) -> None:
    """Set weights as the knobs say; norms and embeddings keep what torch gave them."""
    import torch
    from torch import nn

    with torch.no_grad():
        for module in model.modules():
            if isinstance(module, nn.Linear | nn.Conv2d):
                _weights(module.weight, config)
                if module.bias is not None:
                    module.bias.zero_()
            elif isinstance(module, nn.RNN | nn.GRU):
                _memory(module, config)
        for number, block in enumerate(getattr(model, "hidden", ())):
            for module in block.modules():
                if isinstance(module, nn.Linear | nn.Conv2d) and module.bias is not None:
                    module.bias.fill_(config.hidden_bias)
                    if config.odd_layer == number:
                        module.weight.mul_(config.odd_scale)
                        module.bias.add_(config.odd_bias)
        output = getattr(model, "output", None)
        if config.output_bias and isinstance(output, nn.Linear):
            output.bias[0] = config.output_bias


def _weights(weight: Tensor, config: Config) -> None:
    from torch import nn

    if config.init == "he":
        nn.init.kaiming_normal_(weight, nonlinearity="relu")
    elif config.init == "xavier":
        nn.init.xavier_normal_(weight)
    elif config.init == "orthogonal":
        nn.init.orthogonal_(weight)
    elif config.init == "normal":
        nn.init.normal_(weight)
    else:
        weight.zero_()
    weight.mul_(config.init_scale)


def _memory(module: nn.RNN | nn.GRU, config: Config) -> None:
    import torch
    from torch import nn

    if isinstance(module, nn.GRU):
        return
    hidden: Any = module.weight_hh_l0
    if config.recurrent == "identity":
        hidden.copy_(torch.eye(len(hidden)))
    else:
        nn.init.orthogonal_(hidden)
    hidden.mul_(config.recurrent_scale)
