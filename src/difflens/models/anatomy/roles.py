"""What a tensor does in its model, by its name; and how its numbers are laid out, by its shape.

A file of weights holds names and shapes alone: it does not say which class a module has.
"""

from __future__ import annotations

import re
from math import prod
from typing import NamedTuple

from difflens.core.dtypes import FLOATS, OPAQUE

# The first match wins: the bias of a norm has the role `norm`, that of attention `bias`.
_ROLES = tuple(
    (role, re.compile("|".join(patterns)))
    for role, *patterns in (
        (
            "head",
            r"(?:^|\.)(?:lm_head|embed_out|classifier|cls|score|qa_outputs|head)\.",
            r"(?:^|\.)(?:vocab_projector|output_projection|proj_out)\.",
            r"^(?:(?:module|model|_orig_mod|base_model)\.)*(?:output|fc)\.",
        ),
        ("norm", r"norm", r"(?:^|[._])(?:ln|bn)_?[a-z0-9]*\."),
        ("bias", r"(?:^|[._])bias$"),
        ("embedding", r"embed", r"(?:^|\.)(?:wte|wpe|token_embd|shared)\."),
        ("attention_q", r"(?:^|[._])(?:q|query|wq)(?:_?proj|_lin)?\."),
        ("attention_k", r"(?:^|[._])(?:k|key|wk)(?:_?proj|_lin)?\."),
        ("attention_v", r"(?:^|[._])(?:v|value|wv)(?:_?proj|_lin)?\."),
        (
            "attention_o",
            r"(?:^|[._])(?:o_proj|out_lin|attn_output)\.",
            r"(?:attn|attention)\.(?:c_proj|proj|dense|output\.dense|wo|o|out_proj|to_out\.0)\.",
        ),
        ("attention", r"attn|attention|qkv"),
        (
            "mlp",
            r"(?:^|[._])(?:mlp|ffn|feed_?forward|densereludense|experts?|moe|intermediate)[._]",
            r"(?:^|[._])(?:fc[0-9]|c_fc|lin[12]|linear[12]|w[123])\.",
            r"(?:^|[._])(?:up|down|gate|gate_up)_proj\.",
            r"output\.dense\.",
        ),
    )
)
# Stored beside the parameters, and not changed by an optimizer: running statistics, masks,
# positions, and the scales of quantised weights.
_BUFFER = re.compile(
    r"(?:^|[._/])(?:running_mean|running_var|moving_mean|moving_variance|num_batches_tracked"
    r"|inv_freq|position_ids|token_type_ids|masked_bias|weight_mask|bias_mask"
    r"|weight_scale(?:_inv|_2)?|(?:weight|input)_global_scale|input_scale|[kv]_scale|scales"
    r"|absmax|quant_map|zero_point|qzeros|g_idx)(?::[0-9]+)?$"
    r"|rotary_emb\."
    r"|\.attn(?:ention)?\.bias$"  # GPT-2 and GPT-NeoX keep their causal mask there
)
MATRICES = frozenset({"linear", "convolution"})
VECTORS = frozenset({"norm", "bias", "vector"})
_NORM = re.compile(r"norm|(?:^|[._/])(?:ln|bn|gn)_?[a-z0-9]*(?:[._/]|$)|(?:^|[._/])(?:gamma|beta)$")
_BIAS = re.compile(r"(?:^|[._/])(?:bias|bias_[a-z]+(?:_l\d+)?|b)$")
_EMBEDDING = re.compile(r"embed|(?:^|[._/])(?:wte|wpe|token_embd|shared)(?:[._/]|$)")
_KERNEL = re.compile(r"(?:^|[._/])(?:\w*_)?kernel(?::\d+)?$")

_BLOCK = re.compile(r"^(?P<stack>(?:[^.]*\.)*?)(?P<index>[0-9]{1,9})(?:\.|$)")


def role(name: str) -> str:
    """Name the part of the model that a tensor belongs to; `other` if the name does not show it.

    >>> role("model.layers.3.self_attn.q_proj.weight"), role("h.0.mlp.c_fc.weight")
    ('attention_q', 'mlp')
    """
    low = name.lower()
    return next((role for role, pattern in _ROLES if pattern.search(low)), "other")


def is_buffer(name: str) -> bool:
    """Is it stored beside the parameters, and not changed by an optimizer?

    >>> is_buffer("bn1.running_mean"), is_buffer("bn1.weight")
    (True, False)
    """
    return bool(_BUFFER.search(name.lower()))


def is_parameter(name: str, *dtypes: str) -> bool:
    """Is it a float that training changes: not a buffer, an integer or a quantisation scale?"""
    floats = all(dtype in FLOATS and dtype not in OPAQUE for dtype in dtypes)
    return floats and not is_buffer(name)


def layer(name: str) -> str:
    """Return the layer of a tensor: its name without the last component.

    >>> layer("model.layers.3.mlp.up_proj.weight")
    'model.layers.3.mlp.up_proj'
    """
    return name.rpartition(".")[0] or name


def block(name: str) -> tuple[str, int] | None:
    """Return the stack of blocks that a tensor is in, and its index there: the first number.

    >>> block("model.layers.3.mlp.experts.7.w1.weight")
    ('model.layers', 3)
    """
    match = _BLOCK.match(name)
    return (match["stack"].rstrip("."), int(match["index"])) if match else None


class Kind(NamedTuple):
    """What a tensor is, its fans, and the axis of its output units; None if it has none."""

    word: str
    fan_in: int | None = None
    fan_out: int | None = None
    unit_axis: int | None = None


def kind_of(name: str, shape: tuple[int, ...]) -> Kind:
    """Classify a tensor by its name and shape.

    A kernel (Keras, Flax) is [..., in, out], any other matrix [out, in, ...] as in PyTorch.

    >>> kind_of("conv1.weight", (64, 3, 7, 7))
    Kind(word='convolution', fan_in=147, fan_out=3136, unit_axis=0)
    >>> kind_of("dense/kernel", (20, 10)).fan_in, kind_of("ln_f.weight", (768,)).word
    (20, 'norm')
    """
    low = name.lower()
    if is_buffer(low):
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
