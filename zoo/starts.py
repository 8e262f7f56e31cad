"""The weights that a network of the zoo starts from."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from .configs import Config

if TYPE_CHECKING:
    from torch import Tensor, nn


def initialise(model: nn.Module, config: Config) -> None:
    """Set weights as the knobs say; norms and embeddings keep what torch gave them."""
    import torch
    from torch import nn

    with torch.no_grad():
        for module in model.modules():
            if isinstance(module, nn.Linear | nn.Conv1d | nn.Conv2d):
                _weights(module.weight, config)
                if module.bias is not None:
                    module.bias.zero_()
            elif isinstance(module, nn.RNNBase):
                _memory(module, config)
        for number, block in enumerate(getattr(model, "hidden", ())):
            for module in block.modules():
                if (
                    isinstance(module, nn.Linear | nn.Conv1d | nn.Conv2d)
                    and module.bias is not None
                ):
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
    elif config.init == "negative":
        nn.init.kaiming_normal_(weight, nonlinearity="relu")
        weight.copy_(-weight.abs())
    elif config.init == "tiled":  # each row is the first one
        nn.init.kaiming_normal_(weight, nonlinearity="relu")
        weight.copy_(weight[:1].expand_as(weight).clone())
    elif config.init == "fan-channels":  # He's, but the size of the kernel was left out
        nn.init.normal_(weight, std=(2 / weight.shape[1]) ** 0.5)
    elif config.init == "constant":
        weight.fill_(1 / weight[0].numel())
    else:
        weight.zero_()
    weight.mul_(config.init_scale)


def _memory(module: nn.RNNBase, config: Config) -> None:
    import torch
    from torch import nn

    hidden: Any = module.weight_hh_l0
    if isinstance(module, nn.LSTM):
        forget: Any = module.bias_hh_l0
        size = module.hidden_size
        forget[size : 2 * size] += config.memory_bias
    if not isinstance(module, nn.RNN):
        return
    if config.recurrent == "identity":
        hidden.copy_(torch.eye(len(hidden)))
    else:
        nn.init.orthogonal_(hidden)
    hidden.mul_(config.recurrent_scale)
