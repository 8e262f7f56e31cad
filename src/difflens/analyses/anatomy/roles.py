"""What a tensor does in its model, told by its name."""

from __future__ import annotations

import re

from ...dtypes import FLOATS, OPAQUE

# The first that finds a match wins: a norm's bias is the norm's, an attention's is a bias.
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
# Stored beside the parameters, moved by no optimiser.
_BUFFERS = frozenset({
    "running_mean", "running_var", "num_batches_tracked", "inv_freq", "position_ids",
    "token_type_ids", "masked_bias", "weight_mask", "bias_mask", "zero_point", "qzeros", "g_idx",
    "scales", "weight_scale", "weight_scale_inv", "input_scale", "k_scale", "v_scale", "absmax",
    "quant_map",
})  # fmt: skip
_MASKS = (".attn.bias", ".attention.bias")  # GPT-2 and GPT-NeoX keep their causal mask there

_BLOCK = re.compile(r"^(?P<stack>(?:[^.]*\.)*?)(?P<index>[0-9]{1,9})(?:\.|$)")


def role(name: str) -> str:
    """Say what part a tensor plays; `other` where the name tells nothing.

    >>> role("model.layers.3.self_attn.q_proj.weight"), role("h.0.mlp.c_fc.weight")
    ('attention_q', 'mlp')
    """
    low = name.lower()
    return next((role for role, pattern in _ROLES if pattern.search(low)), "other")


def is_parameter(name: str, *dtypes: str) -> bool:
    """Is it a float that training moves: no buffer, no integer, no quantisation scale?"""
    floats = all(dtype in FLOATS and dtype not in OPAQUE for dtype in dtypes)
    buffer = name.rpartition(".")[2] in _BUFFERS or name.endswith(_MASKS) or "rotary_emb." in name
    return floats and not buffer


def layer(name: str) -> str:
    """Give the layer a tensor belongs to: its name without the last component.

    >>> layer("model.layers.3.mlp.up_proj.weight")
    'model.layers.3.mlp.up_proj'
    """
    return name.rpartition(".")[0] or name


def block(name: str) -> tuple[str, int] | None:
    """Give the stack of blocks a tensor is in and its place there, by the first number.

    >>> block("model.layers.3.mlp.experts.7.w1.weight")
    ('model.layers', 3)
    """
    found = _BLOCK.match(name)
    return (found["stack"].rstrip("."), int(found["index"])) if found else None
