"""The optimiser of a run, with the parameters it was given and those it was not."""

from __future__ import annotations

import copy
from typing import TYPE_CHECKING

from .configs import Config

if TYPE_CHECKING:
    from torch import nn
    from torch.optim import Optimizer


def optimiser_of(model: nn.Module, config: Config) -> Optimizer:
    """Make the optimiser that the knobs name."""
    import torch

    parameters = _chosen(model, config.optimised)
    lr, decay = config.lr, config.weight_decay
    match config.optimiser:
        case "sgd":
            return torch.optim.SGD(parameters, lr, config.momentum, weight_decay=decay)
        case "adam":
            return torch.optim.Adam(parameters, lr, weight_decay=decay)
        case "adamw":
            return torch.optim.AdamW(parameters, lr, weight_decay=decay)
        case "nadam":
            return torch.optim.NAdam(parameters, lr, weight_decay=decay)
        case "rmsprop":
            return torch.optim.RMSprop(parameters, lr, momentum=config.momentum, weight_decay=decay)
        case "adagrad":
            return torch.optim.Adagrad(parameters, lr, weight_decay=decay)
    raise ValueError(f"no optimiser {config.optimiser!r}")


def _chosen(model: nn.Module, optimised: str) -> list[nn.Parameter]:
    if optimised == "copy":  # the model was copied after its optimiser was made
        model = copy.deepcopy(model)
    chosen = list(model.named_parameters())
    if optimised == "last":
        chosen = [(name, each) for name, each in chosen if name.startswith("output.")]
    elif optimised == "biases":
        chosen = [(name, each) for name, each in chosen if "bias" in name]
    elif optimised.startswith("all-but-"):
        left_out = f"hidden.{optimised.removeprefix('all-but-')}."
        chosen = [(name, each) for name, each in chosen if not name.startswith(left_out)]
    return [each for _, each in chosen if each.requires_grad]
