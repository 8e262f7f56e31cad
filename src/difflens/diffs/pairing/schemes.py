"""What the families of models call their tensors: one table a naming scheme.

On the left a name without the marks of wrappers and without its last word
(`weight`, `bias`); `N` is the number of a block, `E` that of an expert. On the
right its role, the same word in every scheme.
"""

from __future__ import annotations

from collections.abc import Mapping

from difflens.core.record import Record

_LLAMA = {
    "embed_tokens": "embed",
    "norm": "final_norm",
    "lm_head": "head",
    "layers.N.self_attn.q_proj": "N.attn.q",
    "layers.N.self_attn.k_proj": "N.attn.k",
    "layers.N.self_attn.v_proj": "N.attn.v",
    "layers.N.self_attn.o_proj": "N.attn.o",
    "layers.N.self_attn.qkv_proj": "N.attn.qkv",
    "layers.N.self_attn.q_norm": "N.attn.q_norm",
    "layers.N.self_attn.k_norm": "N.attn.k_norm",
    "layers.N.mlp.gate_proj": "N.ffn.gate",
    "layers.N.mlp.up_proj": "N.ffn.up",
    "layers.N.mlp.down_proj": "N.ffn.down",
    "layers.N.mlp.gate_up_proj": "N.ffn.gate_up",
    "layers.N.input_layernorm": "N.attn_norm",
    "layers.N.post_attention_layernorm": "N.ffn_norm",
    "layers.N.block_sparse_moe.gate": "N.router",
    "layers.N.mlp.gate": "N.router",
    "layers.N.block_sparse_moe.experts.E.w1": "N.ffn.gate.E",
    "layers.N.block_sparse_moe.experts.E.w3": "N.ffn.up.E",
    "layers.N.block_sparse_moe.experts.E.w2": "N.ffn.down.E",
    "layers.N.mlp.experts.E.gate_proj": "N.ffn.gate.E",
    "layers.N.mlp.experts.E.up_proj": "N.ffn.up.E",
    "layers.N.mlp.experts.E.down_proj": "N.ffn.down.E",
}

# From the second generation on, Gemma norms both before and after each half of a block.
_GEMMA2 = _LLAMA | {
    "layers.N.post_attention_layernorm": "N.attn_post_norm",
    "layers.N.pre_feedforward_layernorm": "N.ffn_norm",
    "layers.N.post_feedforward_layernorm": "N.ffn_post_norm",
}

_META = {
    "tok_embeddings": "embed",
    "norm": "final_norm",
    "output": "head",
    "layers.N.attention.wq": "N.attn.q",
    "layers.N.attention.wk": "N.attn.k",
    "layers.N.attention.wv": "N.attn.v",
    "layers.N.attention.wo": "N.attn.o",
    "layers.N.feed_forward.w1": "N.ffn.gate",
    "layers.N.feed_forward.w3": "N.ffn.up",
    "layers.N.feed_forward.w2": "N.ffn.down",
    "layers.N.attention_norm": "N.attn_norm",
    "layers.N.ffn_norm": "N.ffn_norm",
}

_GGUF = {
    "token_embd": "embed",
    "output_norm": "final_norm",
    "output": "head",
    "position_embd": "position",
    "token_types": "token_type",
    "token_embd_norm": "embed_norm",
    "blk.N.attn_q": "N.attn.q",
    "blk.N.attn_k": "N.attn.k",
    "blk.N.attn_v": "N.attn.v",
    "blk.N.attn_output": "N.attn.o",
    "blk.N.attn_qkv": "N.attn.qkv",
    "blk.N.attn_q_norm": "N.attn.q_norm",
    "blk.N.attn_k_norm": "N.attn.k_norm",
    "blk.N.ffn_gate": "N.ffn.gate",
    "blk.N.ffn_up": "N.ffn.up",
    "blk.N.ffn_down": "N.ffn.down",
    "blk.N.attn_norm": "N.attn_norm",
    "blk.N.ffn_norm": "N.ffn_norm",
    "blk.N.post_attention_norm": "N.attn_post_norm",
    "blk.N.post_ffw_norm": "N.ffn_post_norm",
    "blk.N.attn_output_norm": "N.attn_norm",
    "blk.N.layer_output_norm": "N.ffn_norm",
    "blk.N.ffn_gate_inp": "N.router",
    "blk.N.ffn_gate_exps": "N.ffn.gate.*",
    "blk.N.ffn_up_exps": "N.ffn.up.*",
    "blk.N.ffn_down_exps": "N.ffn.down.*",
}

_GPT2 = {
    "wte": "embed",
    "wpe": "position",
    "ln_f": "final_norm",
    "lm_head": "head",
    "h.N.ln_1": "N.attn_norm",
    "h.N.ln_2": "N.ffn_norm",
    "h.N.attn.c_attn": "N.attn.qkv",
    "h.N.attn.c_proj": "N.attn.o",
    "h.N.mlp.c_fc": "N.ffn.up",
    "h.N.mlp.c_proj": "N.ffn.down",
}

_NEOX = {
    "embed_in": "embed",
    "embed_out": "head",
    "final_layer_norm": "final_norm",
    "layers.N.attention.query_key_value": "N.attn.qkv",
    "layers.N.attention.dense": "N.attn.o",
    "layers.N.mlp.dense_h_to_4h": "N.ffn.up",
    "layers.N.mlp.dense_4h_to_h": "N.ffn.down",
    "layers.N.input_layernorm": "N.attn_norm",
    "layers.N.post_attention_layernorm": "N.ffn_norm",
}

_BERT = {
    "embeddings.word_embeddings": "embed",
    "embeddings.position_embeddings": "position",
    "embeddings.token_type_embeddings": "token_type",
    "embeddings.LayerNorm": "embed_norm",
    "encoder.layer.N.attention.self.query": "N.attn.q",
    "encoder.layer.N.attention.self.key": "N.attn.k",
    "encoder.layer.N.attention.self.value": "N.attn.v",
    "encoder.layer.N.attention.output.dense": "N.attn.o",
    "encoder.layer.N.attention.output.LayerNorm": "N.attn_norm",
    "encoder.layer.N.intermediate.dense": "N.ffn.up",
    "encoder.layer.N.output.dense": "N.ffn.down",
    "encoder.layer.N.output.LayerNorm": "N.ffn_norm",
}

_VIT_TIMM = {
    "patch_embed.proj": "patch",
    "cls_token": "class",
    "pos_embed": "position",
    "blocks.N.norm1": "N.attn_norm",
    "blocks.N.norm2": "N.ffn_norm",
    "blocks.N.attn.qkv": "N.attn.qkv",
    "blocks.N.attn.proj": "N.attn.o",
    "blocks.N.mlp.fc1": "N.ffn.up",
    "blocks.N.mlp.fc2": "N.ffn.down",
    "norm": "final_norm",
    "head": "head",
}

_VIT_HF = {
    "embeddings.patch_embeddings.projection": "patch",
    "embeddings.cls_token": "class",
    "embeddings.position_embeddings": "position",
    "encoder.layer.N.attention.attention.query": "N.attn.q",
    "encoder.layer.N.attention.attention.key": "N.attn.k",
    "encoder.layer.N.attention.attention.value": "N.attn.v",
    "encoder.layer.N.attention.output.dense": "N.attn.o",
    "encoder.layer.N.layernorm_before": "N.attn_norm",
    "encoder.layer.N.layernorm_after": "N.ffn_norm",
    "encoder.layer.N.intermediate.dense": "N.ffn.up",
    "encoder.layer.N.output.dense": "N.ffn.down",
    "layernorm": "final_norm",
    "classifier": "head",
}

_VIT_TORCHVISION = {
    "conv_proj": "patch",
    "class_token": "class",
    "encoder.pos_embedding": "position",
    "encoder.layers.encoder_layer_N.ln_1": "N.attn_norm",
    "encoder.layers.encoder_layer_N.ln_2": "N.ffn_norm",
    "encoder.layers.encoder_layer_N.self_attention.in_proj": "N.attn.qkv",
    "encoder.layers.encoder_layer_N.self_attention.out_proj": "N.attn.o",
    "encoder.layers.encoder_layer_N.mlp.0": "N.ffn.up",
    "encoder.layers.encoder_layer_N.mlp.3": "N.ffn.down",
    "encoder.layers.encoder_layer_N.mlp.linear_1": "N.ffn.up",
    "encoder.layers.encoder_layer_N.mlp.linear_2": "N.ffn.down",
    "encoder.ln": "final_norm",
    "heads.head": "head",
}

SCHEMES: dict[str, dict[str, str]] = {
    "llama": _LLAMA,
    "gemma2": _GEMMA2,
    "meta": _META,
    "gguf": _GGUF,
    "gpt2": _GPT2,
    "neox": _NEOX,
    "bert": _BERT,
    "vit": _VIT_HF,
    "timm": _VIT_TIMM,
    "torchvision": _VIT_TORCHVISION,
}

# Where a fused matrix holds q, k and v head by head rather than one after the other.
INTERLEAVED = frozenset({"neox"})
# Where matrices may be stored input first (Conv1D).
INPUT_FIRST = frozenset({"gpt2"})
# Whose query and key rows pair up halves of a head; the others pair up neighbours.
ROTATES_HALVES = frozenset({"llama"})
ROTATES_NEIGHBOURS = frozenset({"gguf", "meta"})


# What the metadata of a model says that its names and shapes do not: its numbers of heads.

_ARCHITECTURE = ("general.architecture", "config.json: model_type")
_HEADS = ("config.json: num_attention_heads", "config.json: n_head", "config.json: num_heads")
_KEY_HEADS = ("config.json: num_key_value_heads", "config.json: n_head_kv")


class Facts(Record, frozen=True):
    """The architecture's name and its numbers of heads; None is unknown."""

    architecture: str | None = None
    heads: int | None = None
    key_heads: int | None = None


def facts(*sides: Mapping[str, str]) -> Facts:
    """Gather what either side says; they are about the same model, or nothing pairs anyway.

    >>> facts({"general.architecture": "llama", "llama.attention.head_count": "8"}).heads
    8
    """
    known = {key: value for side in sides for key, value in side.items()}
    name = _first(known, _ARCHITECTURE)
    if name:
        name = name.strip('"')
    heads = _number(known, (f"{name}.attention.head_count", *_HEADS))
    key_heads = _number(known, (f"{name}.attention.head_count_kv", *_KEY_HEADS))
    return Facts(name, heads, key_heads or heads)


def _first(known: Mapping[str, str], keys: tuple[str, ...]) -> str | None:
    return next((known[key] for key in keys if key in known), None)


def _number(known: Mapping[str, str], keys: tuple[str, ...]) -> int | None:
    text = _first(known, keys) or ""
    return int(text) if text.isascii() and text.isdigit() and len(text) < 10 else None
