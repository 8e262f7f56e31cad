"""What a tensor does in its model, told by its name."""

from __future__ import annotations

import re

from ..dtypes import FLOATS, OPAQUE

# The first that finds a match wins; `bias` comes before the parts that have one.
_ROLES = tuple(
    (role, re.compile(pattern))
    for role, pattern in (
        (
            "head",
            r"(?:^|\.)(?:lm_head|embed_out|classifier|cls|score|qa_outputs|vocab_projector"
            r"|output_projection|proj_out|head)(?:\.|$)"
            r"|^(?:model\.)?(?:output|fc)\.",
        ),
        ("norm", r"norm|(?:^|[._])(?:ln|bn)(?:_?[a-z0-9]*)?(?:\.|$)"),
        ("bias", r"(?:^|[._])bias$"),
        ("embedding", r"embed|(?:^|\.)(?:wte|wpe|token_embd|shared)(?:\.|$)"),
        ("attention_q", r"(?:^|[._])(?:q|query|wq)(?:_?proj|_lin)?\.|attn_q\."),
        ("attention_k", r"(?:^|[._])(?:k|key|wk)(?:_?proj|_lin)?\.|attn_k\."),
        ("attention_v", r"(?:^|[._])(?:v|value|wv)(?:_?proj|_lin)?\.|attn_v\."),
        ("attention_o", r"(?:^|[._])(?:o_proj|out_proj|wo|out_lin|attn_output)\."
                        r"|(?:attn|attention)\.(?:c_proj|proj|dense|output\.dense)\."),
        ("attention", r"attn|attention|qkv"),
        ("mlp", r"(?:^|[._])(?:mlp|ffn|feed_forward|feedforward|experts?|moe|fc\d|c_fc|lin[12]"
                r"|w[123]|up_proj|down_proj|gate_proj|gate_up_proj|intermediate|linear[12])(?:[._]|$)"
                r"|output\.dense\."),
    )
)  # fmt: skip
_BUFFERS = re.compile(
    r"(?:^|\.)(?:running_mean|running_var|num_batches_tracked|inv_freq|rotary_emb\..*|position_ids"
    r"|token_type_ids|masked_bias|.*(?:_mask|zero_point|qzeros|g_idx|_scales?|scales|weight_scale_inv"
    r"|absmax|quant_map))$"
    r"|(?:^|\.)(?:attn|attention)\.bias$(?<!dense\.bias)"
)

_BLOCK = re.compile(r"^(?P<stack>(?:[^.]*\.)*?)(?P<index>[0-9]{1,9})(?:\.|$)")


def role(name: str) -> str:
    """Say what part a tensor plays; `other` where the name tells nothing.

    >>> role("model.layers.3.self_attn.q_proj.weight"), role("h.0.mlp.c_fc.weight")
    ('attention_q', 'mlp')
    """
    return next((role for role, pattern in _ROLES if pattern.search(name)), "other")


def is_parameter(name: str, *dtypes: str) -> bool:
    """Is it a float that training moves: no buffer, no integer, no quantisation scale?"""
    floats = all(dtype in FLOATS and dtype not in OPAQUE for dtype in dtypes)
    return floats and not _BUFFERS.search(name)


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
