"""What is odd about the weights a network starts from, beyond the scale of its layers."""

from __future__ import annotations

import copy
from fnmatch import fnmatch
from typing import Any

from torch import nn, no_grad

from .configs import Config

_ADAPTED = {"": (), "up": (".up",), "both": (".up", ".down")}
_NORMS = (nn.BatchNorm1d, nn.BatchNorm2d, nn.GroupNorm, nn.LayerNorm)


def settle(model: nn.Module, config: Config) -> None:
    """Scale embeddings, set norms and gates, and make units alike, where a knob asks for it."""
    with no_grad():
        for name, module in model.named_modules():
            if isinstance(module, nn.Embedding):
                module.weight.mul_(config.entry_scale)
            elif name.endswith(_ADAPTED[config.adapters]):
                nn.init.zeros_(module.get_parameter("weight"))
            elif isinstance(module, _NORMS):
                _set_norm(module, config)
            elif config.gate_bias:
                _set_gates(name, module, config)
        if config.alike:
            for name, each in model.named_parameters():
                if fnmatch(name, config.alike):
                    each.fill_(1.0 / each[0].numel() if each.ndim > 1 else 0.0)
        _copy(model, config)
    if config.activation == "sine":
        from .tabular import spread_out

        spread_out(model, config.pace)


def _set_norm(module: Any, config: Config) -> None:
    if isinstance(module, nn.BatchNorm1d | nn.BatchNorm2d):
        module.momentum = config.norm_momentum
    if module.weight is not None:
        module.weight.mul_(config.norm_scale)
    if config.norm_eps != Config.norm_eps:
        module.eps = config.norm_eps


def _set_gates(name: str, module: nn.Module, config: Config) -> None:
    if name.endswith("gate") and isinstance(module, nn.Linear):
        module.bias.add_(config.gate_bias)
    elif isinstance(module, nn.GRU):  # far above zero a state is kept, and no input enters it
        size = module.hidden_size
        for layer in range(module.num_layers):
            getattr(module, f"bias_hh_l{layer}")[size : 2 * size] += config.gate_bias
    elif isinstance(module, nn.Conv1d) and config.gated and module.bias is not None:
        module.bias[len(module.bias) // 2 :] += config.gate_bias


def _copy(model: nn.Module, config: Config) -> None:
    """Copy layers or units, where a knob asks for it."""
    if config.copied:
        _copy_first(model)
    if config.widened > 1:
        _widen(model, config.widened)
    if config.same_layers:
        _start_alike(model)


def _copy_first(model: Any) -> None:
    """Make all hidden blocks copies of the first, and let the gate prefer none."""
    first = model.hidden[0]
    for each in model.hidden:
        each.load_state_dict(copy.deepcopy(first.state_dict()))
    model.gate.weight.zero_()


def _widen(model: Any, times: int) -> None:
    """Make each hidden unit one of several copies; together they do what one of them did."""
    layers = [*(block.linear for block in model.hidden), model.output]
    for number, layer in enumerate(layers):
        if number:
            columns = layer.weight[:, ::times].repeat_interleave(times, 1)
            layer.weight.copy_(columns / times**0.5)
        if layer is not model.output:
            layer.weight.copy_(layer.weight[::times].repeat_interleave(times, 0))


def _start_alike(model: Any) -> None:
    """Draw the weights of all hidden layers from one seed: those of one shape are the same."""
    first: dict[Any, Any] = {}
    for block in model.hidden:
        block.linear.weight.copy_(first.setdefault(block.linear.weight.shape, block.linear.weight))
