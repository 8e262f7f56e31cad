"""What is odd about the weights a network starts from, beyond the scale of its layers."""

from __future__ import annotations

import copy
from fnmatch import fnmatch
from typing import Any

from torch import nn, no_grad

from .configs import Config

_NORMS = (nn.BatchNorm1d, nn.BatchNorm2d, nn.GroupNorm, nn.LayerNorm)


def settle(model: nn.Module, config: Config) -> None:
    """Scale embeddings, set norms and gates, and make units alike, where a knob asks for it."""
    with no_grad():
        for name, module in model.named_modules():
            if isinstance(module, nn.Embedding):
                module.weight.mul_(config.entry_scale)
            elif isinstance(module, _NORMS):
                _set_norm(module, config)
            elif config.gate_bias:
                _set_gates(name, module, config)
        if config.alike:
            for name, each in model.named_parameters():
                if fnmatch(name, config.alike):
                    each.fill_(1.0 / each[0].numel() if each.ndim > 1 else 0.0)
        if config.copied:
            _copy_first(model)
    if config.activation == "sine":
        from .tabular import spread_out

        spread_out(model, config.pace)


def _set_norm(module: Any, config: Config) -> None:
    if isinstance(module, nn.BatchNorm1d | nn.BatchNorm2d):
        module.momentum = config.norm_momentum
    if module.weight is not None:
        module.weight.mul_(config.norm_scale)


def _set_gates(name: str, module: nn.Module, config: Config) -> None:
    if name.endswith("gate") and isinstance(module, nn.Linear):
        module.bias.add_(config.gate_bias)
    elif isinstance(module, nn.GRU):  # far above zero a state is kept, and no input enters it
        size = module.hidden_size
        for layer in range(module.num_layers):
            getattr(module, f"bias_hh_l{layer}")[size : 2 * size] += config.gate_bias
    elif isinstance(module, nn.Conv1d) and config.gated and module.bias is not None:
        module.bias[len(module.bias) // 2 :] += config.gate_bias


def _copy_first(model: Any) -> None:
    """Make all hidden blocks copies of the first, and let the gate prefer none."""
    first = model.hidden[0]
    for each in model.hidden:
        each.load_state_dict(copy.deepcopy(first.state_dict()))
    model.gate.weight.zero_()
