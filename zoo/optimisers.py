"""Which optimiser trains, and which parameters it is given."""

from __future__ import annotations

import copy
import warnings
from fnmatch import fnmatch
from typing import TYPE_CHECKING, Any

from .configs import Config

if TYPE_CHECKING:
    from torch import nn
    from torch.optim import Optimizer


def optimiser_of(model: nn.Module, config: Config) -> Optimizer:
    """Make the optimiser that the knobs name."""
    with warnings.catch_warnings():  # torch says so where parameters are handed over twice
        warnings.filterwarnings("ignore", message=".*duplicate parameters")
        return _made(model, config)


def _made(model: nn.Module, config: Config) -> Optimizer:
    import torch

    parameters: Any = _grouped(_chosen(model, config), config)
    lr, decay, made = config.lr, config.weight_decay, torch.optim
    match config.optimiser:
        case "sgd" | "nesterov" as name:
            nesterov = name == "nesterov"
            return made.SGD(parameters, lr, config.momentum, weight_decay=decay, nesterov=nesterov)
        case "rmsprop":
            return made.RMSprop(parameters, lr, momentum=config.momentum, weight_decay=decay)
    kin: dict[str, Any] = {
        "adam": made.Adam, "adamw": made.AdamW, "nadam": made.NAdam, "radam": made.RAdam,
        "adamax": made.Adamax,
    }  # fmt: skip
    others: dict[str, Any] = {
        "adagrad": made.Adagrad, "adadelta": made.Adadelta, "asgd": made.ASGD
    }  # fmt: skip
    if config.optimiser not in kin | others:
        raise ValueError(f"no optimiser {config.optimiser!r}")
    how: dict[str, Any] = {"lr": lr, "weight_decay": decay}
    if config.optimiser in kin:
        how |= {"betas": config.betas, "eps": config.epsilon}
    optimiser: Optimizer = (kin | others)[config.optimiser](parameters, **how)
    return optimiser


def _grouped(chosen: list[tuple[str, nn.Parameter]], config: Config) -> list[Any]:
    """Return the parameters, in groups where some have a rate of their own."""
    if not config.rates:
        return [each for _, each in chosen] * config.doubled
    factors = {
        name: next((factor for one, factor in config.rates if fnmatch(name, one)), 1.0)
        for name, _ in chosen
    }
    return [
        {"params": [each for name, each in chosen if factors[name] == one], "factor": one}
        for one in sorted(set(factors.values()), key=lambda factor: factor != 1.0)
    ]


def _chosen(model: nn.Module, config: Config) -> list[tuple[str, nn.Parameter]]:
    optimised = config.optimised
    if optimised == "copy":  # the model was copied after its optimiser was made
        model = copy.deepcopy(model)
    chosen = list(model.named_parameters())
    if optimised == "last":
        chosen = [(name, each) for name, each in chosen if name.startswith("output.")]
    elif optimised == "biases":
        chosen = [(name, each) for name, each in chosen if "bias" in name]
    elif optimised == "norms":
        chosen = [(name, each) for name, each in chosen if "norm" in name]
    elif optimised.startswith("not-"):
        left_out = optimised.removeprefix("not-")
        chosen = [(name, each) for name, each in chosen if not name.startswith(left_out)]
    elif optimised.startswith("all-but-"):
        left_out = f"hidden.{optimised.removeprefix('all-but-')}."
        chosen = [(name, each) for name, each in chosen if not name.startswith(left_out)]
    if config.left_out:
        chosen = [(name, each) for name, each in chosen if not fnmatch(name, config.left_out)]
    return [(name, each) for name, each in chosen if each.requires_grad]
