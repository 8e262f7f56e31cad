"""What a tensor of weights is, told by its name and shape: what may be asked of it depends on it.

A layer that knows its module's class would know better; a file of weights has names alone.
"""

from __future__ import annotations

import re
from math import prod
from typing import NamedTuple

MATRICES = frozenset({"linear", "convolution"})
VECTORS = frozenset({"norm", "bias", "vector"})

_NORM = re.compile(r"norm|(?:^|[._/])(?:ln|bn|gn)_?[a-z0-9]*(?:[._/]|$)|(?:^|[._/])(?:gamma|beta)$")
_BIAS = re.compile(r"(?:^|[._/])(?:bias|bias_[a-z]+(?:_l\d+)?|b)$")
_EMBEDDING = re.compile(r"embed|(?:^|[._/])(?:wte|wpe|token_embd|shared)(?:[._/]|$)")
_KERNEL = re.compile(r"(?:^|[._/])(?:\w*_)?kernel(?::\d+)?$")
# Stored beside the parameters, moved by no optimiser: nothing is asked of them but to be finite.
_BUFFER = re.compile(
    r"(?:^|[._/])(?:running_mean|running_var|num_batches_tracked|inv_freq|position_ids"
    r"|token_type_ids|masked_bias|weight_mask|bias_mask|moving_mean|moving_variance"
    r"|weight_scale(?:_inv)?|input_scale|[kv]_scale|scales|absmax|quant_map)$"
    r"|rotary_emb\.|\.attn(?:ention)?\.bias$"
)


class Kind(NamedTuple):
    """What a tensor is, its fans, and the axis of its output units; None where it has none."""

    word: str
    fan_in: int | None = None
    fan_out: int | None = None
    unit_axis: int | None = None


def kind_of(name: str, shape: tuple[int, ...]) -> Kind:
    """Tell what a tensor is.

    A kernel (Keras, Flax) is [..., in, out], everything else [out, in, ...] as in PyTorch.

    >>> kind_of("conv1.weight", (64, 3, 7, 7))
    Kind(word='convolution', fan_in=147, fan_out=3136, unit_axis=0)
    >>> kind_of("dense/kernel", (20, 10)).fan_in, kind_of("ln_f.weight", (768,)).word
    (20, 'norm')
    """
    low = name.lower()
    if _BUFFER.search(low):
        return Kind("buffer")
    if len(shape) < 2:
        return Kind("norm" if _NORM.search(low) else "bias" if _BIAS.search(low) else "vector")
    if _EMBEDDING.search(low):
        return Kind("embedding", unit_axis=0)
    word = "linear" if len(shape) == 2 else "convolution"
    if _KERNEL.search(low):
        window = prod(shape[:-2])
        return Kind(word, shape[-2] * window, shape[-1] * window, len(shape) - 1)
    window = prod(shape[2:])
    return Kind(word, shape[1] * window, shape[0] * window, 0)
