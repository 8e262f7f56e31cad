"""What goes wrong between a batch and the weights: scales, precision, averages, lost bits."""

from __future__ import annotations

import math
from fnmatch import fnmatch
from typing import TYPE_CHECKING, Any

from .configs import Config

if TYPE_CHECKING:
    from torch import Tensor, nn

_LOST_BIT = 2.0**12  # the factor of a weight whose exponent loses a bit


class Mishaps:
    """Does to one network what the knobs say; with their defaults, nothing."""

    def __init__(self, model: nn.Module) -> None:
        """Remember the weights of the start."""
        self._model = model
        self._kept = [each.detach().clone() for each in model.parameters()]

    def told(self, config: Config, loss: Any, step: int) -> Any:
        """Return what backward is called on: the loss with what is added to it, scaled."""
        if config.kl:
            loss = loss + config.kl * self._model.second_loss
        if config.penalty:
            squares = sum(each.square().sum() for each in self._model.parameters())
            loss = loss + config.penalty * squares
        loss = loss * _scale(config, step)
        if config.l1:
            loss = loss + config.l1 * sum(each.abs().sum() for each in self._model.parameters())
        return loss

    def before_step(self, config: Config, step: int) -> None:
        """Do to the gradients what the knobs say, before they are clipped."""
        import torch

        scale = _scale(config, step)
        with torch.no_grad():
            for each in self._model.parameters():
                if each.grad is None:
                    continue
                if config.half:
                    each.grad.copy_(each.grad.half())
                if config.unscaled and scale != 1.0:
                    each.grad.div_(scale)
                if config.grad_noise:
                    each.grad.add_(config.grad_noise * torch.randn_like(each))
                if step == config.burst_step:
                    each.grad.mul_(config.burst_factor)
                if config.clip_each is not None:
                    each.grad.clamp_(-config.clip_each, config.clip_each)

    def after_step(self, config: Config, step: int) -> None:
        """Do to the weights what the knobs say, behind the step."""
        import torch

        with torch.no_grad():
            for (name, each), kept in zip(self._model.named_parameters(), self._kept, strict=True):
                if config.growth:
                    each.mul_(1 + config.growth)
                if config.weights_in == "bfloat16":
                    each.copy_(each.bfloat16().float())
                if config.averaged:
                    kept.lerp_(each, 1 - config.averaged)
                    each.copy_(kept)
                if config.restored and step % config.restored == config.restored - 1:
                    each.copy_(kept)
                if step == config.flip_step and fnmatch(name, config.flip_name):
                    weight = each.view(-1)
                    weight[weight.abs().argmax()] *= _LOST_BIT


def _scale(config: Config, step: int) -> float:
    """Return the scale of the loss at a step."""
    doublings = step // config.scale_period if config.scale_period else 0
    return config.loss_scale * 2.0**doublings


def in_mode(model: nn.Module, config: Config) -> None:
    """Put the network into the mode that the knobs say; norms may be left in another."""
    from torch import nn

    model.train(config.train_mode)
    if config.norms_eval:
        for module in model.modules():
            if isinstance(module, nn.BatchNorm1d | nn.BatchNorm2d):
                module.eval()


def augmented(kind: str, inputs: Tensor) -> Tensor:
    """Change the examples of a batch; whether the label survives depends on the task."""
    import torch

    if kind == "shuffle-time":
        return inputs[:, torch.randperm(inputs.shape[1])]
    if kind == "mix":  # with what is at most as strong: the label is that of the stronger
        share = 0.5 + 0.5 * torch.rand(())
        return share * inputs + (1 - share) * inputs.roll(1, 0)
    if kind == "mirror":
        signs = 1.0 - 2.0 * torch.randint(2, (len(inputs), *[1] * (inputs.ndim - 1)))
        return inputs * signs
    side = math.isqrt(inputs.shape[1])
    pictures = inputs.reshape(-1, side, side)
    draws = torch.randint(0, 4, (len(pictures),)).tolist()
    moved = [
        torch.rot90(picture, draw)
        if kind == "turn"
        else torch.roll(picture, (draw % 2, draw // 2), (0, 1))
        for picture, draw in zip(pictures, draws, strict=True)
    ]
    return torch.stack(moved).reshape(inputs.shape)
