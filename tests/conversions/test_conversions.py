"""Real conversions: what a converter re-orders, transposes, fuses and shifts is undone."""

from pathlib import Path
from typing import Any

import gguf
import numpy as np
import pytest
from models.small import tensor, write

import difflens
from difflens.diffs import story as pipeline

HEADS, KEY_HEADS, SIZE, HIDDEN, LAYERS, VOCABULARY = 4, 2, 16, 96, 2, 40
WIDTH = HEADS * SIZE


def random(*shape: int, seed: int = 0) -> Any:
    return np.random.default_rng([seed, *shape]).standard_normal(shape).astype(np.float32)


def llama() -> dict[str, Any]:
    """A small Llama as Hugging Face names it."""
    model = {
        "model.embed_tokens.weight": random(VOCABULARY, WIDTH),
        "model.norm.weight": random(WIDTH),
    }
    model["lm_head.weight"] = random(VOCABULARY, WIDTH, seed=1)
    for n in range(LAYERS):
        block = f"model.layers.{n}"
        rows = {"q": WIDTH, "k": KEY_HEADS * SIZE, "v": KEY_HEADS * SIZE, "o": WIDTH}
        model |= {
            f"{block}.self_attn.{p}_proj.weight": random(r, WIDTH, seed=n + ord(p))
            for p, r in rows.items()
        }
        model |= {
            f"{block}.mlp.{p}_proj.weight": random(HIDDEN, WIDTH, seed=n + len(p))
            for p in ("gate", "up")
        }
        model[f"{block}.mlp.down_proj.weight"] = random(WIDTH, HIDDEN, seed=n)
        model[f"{block}.input_layernorm.weight"] = random(WIDTH, seed=n)
        model[f"{block}.post_attention_layernorm.weight"] = random(WIDTH, seed=n + 9)
    return model


NAMES = {
    "model.embed_tokens": "token_embd", "model.norm": "output_norm", "lm_head": "output",
    "self_attn.q_proj": "attn_q", "self_attn.k_proj": "attn_k", "self_attn.v_proj": "attn_v",
    "self_attn.o_proj": "attn_output", "mlp.gate_proj": "ffn_gate", "mlp.up_proj": "ffn_up",
    "mlp.down_proj": "ffn_down", "input_layernorm": "attn_norm",
    "post_attention_layernorm": "ffn_norm",
}  # fmt: skip


def gguf_name(name: str) -> str:
    stem, _, last = name.rpartition(".")
    if stem in NAMES:
        return f"{NAMES[stem]}.{last}"
    _, _, number, part = stem.split(".", 3)
    return f"blk.{number}.{NAMES[part]}.{last}"


def permuted(array: Any, heads: int) -> Any:
    """What llama.cpp's converter does to query and key rows."""
    return (
        array.reshape(heads, 2, array.shape[0] // heads // 2, -1)
        .swapaxes(1, 2)
        .reshape(array.shape)
    )


def converted(model: dict[str, Any], path: Path, kind: Any, architecture: str = "llama") -> Path:
    writer = gguf.GGUFWriter(path, architecture)
    writer.add_head_count(HEADS)
    writer.add_head_count_kv(KEY_HEADS)
    for name, array in model.items():
        data = array
        if architecture == "llama" and ("q_proj" in name or "k_proj" in name):
            data = permuted(array, HEADS if "q_proj" in name else KEY_HEADS)
        if architecture == "gemma" and "norm" in name:
            data = array + np.float32(1)
        whole = data.ndim == 1 or kind == gguf.GGMLQuantizationType.F32
        kept = gguf.GGMLQuantizationType.F32 if whole else kind
        writer.add_tensor(gguf_name(name), gguf.quants.quantize(data, kept), raw_dtype=kept)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    return path


def hugging_face(model: dict[str, Any], path: Path) -> Path:
    return write(path, {name: tensor(array) for name, array in model.items()})


def test_a_llama_converted_to_gguf_is_the_same_model(tmp_path):
    left = hugging_face(llama(), tmp_path / "hf.safetensors")
    right = converted(llama(), tmp_path / "m.gguf", gguf.GGMLQuantizationType.F32)

    report = difflens.diff(left, right).report()

    assert {row.kind for row in report.tensors} == {"identical"}
    assert not report.verdict.differs
    told = {row.name: row.transform for row in report.tensors if row.transform}
    assert set(told) == {f"blk.{n}.attn_{p}.weight" for n in range(LAYERS) for p in "qk"}
    assert set(told.values()) == {"left rotary rows re-ordered"}


def test_the_other_way_round_it_is_the_same_model_too(tmp_path):
    left = converted(llama(), tmp_path / "m.gguf", gguf.GGMLQuantizationType.F32)
    right = hugging_face(llama(), tmp_path / "hf.safetensors")

    assert not difflens.diff(left, right).report().verdict.differs


@pytest.mark.parametrize("kind", ["F16", "Q8_0", "Q4_0"])
def test_after_pairing_only_the_rounding_of_the_format_is_left(tmp_path, kind):
    quantised = gguf.GGMLQuantizationType[kind]
    model = llama()
    left = hugging_face(model, tmp_path / "hf.safetensors")
    right = converted(model, tmp_path / "m.gguf", quantised)

    found = difflens.diff(left, right)

    for name, array in model.items():
        if array.ndim == 1:
            continue
        data = (
            permuted(array, HEADS if "q_proj" in name else KEY_HEADS)
            if "q_proj" in name or "k_proj" in name
            else array
        )
        error = gguf.quants.dequantize(gguf.quants.quantize(data, quantised), quantised) - data
        expected = np.linalg.norm(error.astype(np.float64)) / np.linalg.norm(
            data.astype(np.float64)
        )
        assert found[gguf_name(name)].relative_l2 == pytest.approx(expected, rel=1e-6)


def test_a_wrong_conversion_is_not_explained_away(tmp_path):
    model = llama()
    left = hugging_face(model, tmp_path / "hf.safetensors")
    model["model.layers.0.self_attn.q_proj.weight"] = model[
        "model.layers.0.self_attn.q_proj.weight"
    ][::-1].copy()
    right = converted(model, tmp_path / "m.gguf", gguf.GGMLQuantizationType.F32)

    report = difflens.diff(left, right).report()

    assert [row.name for row in report.tensors if row.kind != "identical"] == [
        "blk.0.attn_q.weight"
    ]
    assert report.verdict.differs


def test_gemma_norms_are_compared_after_the_one_was_added(tmp_path):
    left = hugging_face(llama(), tmp_path / "hf.safetensors")
    right = converted(llama(), tmp_path / "m.gguf", gguf.GGMLQuantizationType.F32, "gemma")

    report = difflens.diff(left, right).report()

    assert {row.kind for row in report.tensors} == {"identical"}
    assert {row.transform for row in report.tensors if "norm" in row.name} == {"left 1 added"}


def test_metas_own_llama_is_the_same_model_as_hugging_faces(tmp_path):
    roles = {
        "embed_tokens": "tok_embeddings", "lm_head": "output", "self_attn.q_proj": "attention.wq",
        "self_attn.k_proj": "attention.wk", "self_attn.v_proj": "attention.wv",
        "self_attn.o_proj": "attention.wo", "mlp.gate_proj": "feed_forward.w1",
        "mlp.up_proj": "feed_forward.w3", "mlp.down_proj": "feed_forward.w2",
        "input_layernorm": "attention_norm", "post_attention_layernorm": "ffn_norm",
    }  # fmt: skip
    meta = {}
    for name, array in llama().items():
        new = name.removeprefix("model.")
        for old, role in roles.items():
            new = new.replace(old, role)
        heads = {"wq": HEADS, "wk": KEY_HEADS}.get(new.rsplit(".", 2)[-2])
        meta[new] = permuted(array, heads) if heads else array
    (tmp_path / "hf").mkdir()
    hugging_face(llama(), tmp_path / "hf" / "model.safetensors")
    heads = f'"num_attention_heads": {HEADS}, "num_key_value_heads": {KEY_HEADS}'
    (tmp_path / "hf" / "config.json").write_text(f'{{"model_type": "llama", {heads}}}')
    right = hugging_face(meta, tmp_path / "meta.safetensors")

    report = difflens.diff(tmp_path / "hf", right).report()

    assert {row.kind for row in report.tensors} == {"identical"}


def gpt2() -> dict[str, Any]:
    model = {
        "wte.weight": random(VOCABULARY, 12),
        "wpe.weight": random(6, 12),
        "ln_f.weight": random(12),
    }
    for n in range(2):
        model |= {
            f"h.{n}.attn.c_attn.weight": random(12, 36, seed=n),
            f"h.{n}.attn.c_attn.bias": random(36, seed=n),
            f"h.{n}.attn.c_proj.weight": random(12, 12, seed=n),
            f"h.{n}.mlp.c_fc.weight": random(12, 48, seed=n),
            f"h.{n}.mlp.c_proj.weight": random(48, 12, seed=n),
            f"h.{n}.ln_1.weight": random(12, seed=n),
        }
    return model


def test_gpt2_matrices_stored_input_first_are_turned(tmp_path):
    names = {
        "wte": "token_embd", "wpe": "position_embd", "ln_f": "output_norm",
        "attn.c_attn": "attn_qkv", "attn.c_proj": "attn_output", "mlp.c_fc": "ffn_up",
        "mlp.c_proj": "ffn_down", "ln_1": "attn_norm",
    }  # fmt: skip
    other = {}
    for name, array in gpt2().items():
        new = name.replace("h.", "blk.")
        for old, role in sorted(names.items(), key=lambda each: -len(each[0])):
            new = new.replace(old, role)
        other[new] = array.T.copy() if array.ndim == 2 and "blk" in new else array
    left = hugging_face(
        {f"transformer.{name}": array for name, array in gpt2().items()}, tmp_path / "a.safetensors"
    )
    right = hugging_face(other, tmp_path / "b.safetensors")

    report = difflens.diff(left, right).report()

    assert {row.kind for row in report.tensors} == {"identical"}
    assert sum(row.transform == "left transposed" for row in report.tensors) == 8


def test_a_fused_qkv_is_taken_apart(tmp_path):
    timm, hf = (
        {"patch_embed.proj.weight": random(12, 3, 2, 2)},
        {"vit.embeddings.patch_embeddings.projection.weight": random(12, 3, 2, 2)},
    )
    for n in range(2):
        whole, bias = random(36, 12, seed=n), random(36, seed=n)
        timm |= {f"blocks.{n}.attn.qkv.weight": whole, f"blocks.{n}.attn.qkv.bias": bias}
        for place, part in enumerate(("query", "key", "value")):
            stem = f"vit.encoder.layer.{n}.attention.attention.{part}"
            hf |= {
                f"{stem}.weight": whole[12 * place : 12 * place + 12],
                f"{stem}.bias": bias[12 * place : 12 * place + 12],
            }
    left, right = (
        hugging_face(timm, tmp_path / "timm.safetensors"),
        hugging_face(hf, tmp_path / "hf.safetensors"),
    )

    there, back = difflens.diff(left, right).report(), difflens.diff(right, left).report()

    assert (
        {row.kind for row in there.tensors} == {row.kind for row in back.tensors} == {"identical"}
    )
    assert len(there.tensors) == 13


def test_interleaved_heads_of_a_fused_qkv_are_taken_apart(tmp_path):
    heads, size = 3, 4
    neox, llama_like = (
        {"gpt_neox.embed_in.weight": random(20, 12)},
        {"model.embed_tokens.weight": random(20, 12)},
    )
    for n in range(2):
        whole = random(heads, 3, size, 12, seed=n)
        neox[f"gpt_neox.layers.{n}.attention.query_key_value.weight"] = whole.reshape(36, 12)
        neox[f"gpt_neox.layers.{n}.attention.dense.weight"] = random(12, 12, seed=n)
        llama_like[f"model.layers.{n}.self_attn.o_proj.weight"] = random(12, 12, seed=n)
        for place, part in enumerate("qkv"):
            llama_like[f"model.layers.{n}.self_attn.{part}_proj.weight"] = whole[:, place].reshape(
                12, 12
            )
    (tmp_path / "neox").mkdir()
    hugging_face(neox, tmp_path / "neox" / "model.safetensors")
    (tmp_path / "neox" / "config.json").write_text(
        f'{{"model_type": "gpt_neox", "num_attention_heads": {heads}}}'
    )
    right = hugging_face(llama_like, tmp_path / "other.safetensors")

    report = difflens.diff(tmp_path / "neox", right).report()

    assert {row.kind for row in report.tensors} == {"identical"}


def test_stacked_experts_are_one_tensor_for_each_expert(tmp_path):
    hf, stacked = (
        {"model.embed_tokens.weight": random(20, 8), "model.norm.weight": random(8)},
        {"token_embd.weight": random(20, 8), "output_norm.weight": random(8)},
    )
    for old, new, seed in (("w1", "gate", 1), ("w3", "up", 2)):
        experts = random(4, 16, 8, seed=seed)
        stacked[f"blk.0.ffn_{new}_exps.weight"] = experts
        hf |= {
            f"model.layers.0.block_sparse_moe.experts.{e}.{old}.weight": experts[e]
            for e in range(4)
        }
    stacked["blk.0.attn_norm.weight"] = hf["model.layers.0.input_layernorm.weight"] = random(
        8, seed=5
    )
    left, right = (
        hugging_face(hf, tmp_path / "a.safetensors"),
        hugging_face(stacked, tmp_path / "b.safetensors"),
    )

    report = difflens.diff(left, right).report()

    assert {row.kind for row in report.tensors} == {"identical"}
    assert len(report.tensors) == 11


def test_exact_matching_undoes_nothing(tmp_path):
    left = hugging_face(llama(), tmp_path / "hf.safetensors")
    right = converted(llama(), tmp_path / "m.gguf", gguf.GGMLQuantizationType.F32)

    report = pipeline.report(pipeline.diff(left, right, match="exact"))

    assert {row.kind for row in report.tensors} == {"added", "removed"}


def test_a_fused_gate_and_up_is_taken_apart(tmp_path):
    fused, split = {"model.norm.weight": random(8)}, {"output_norm.weight": random(8)}
    for n in range(2):
        both = random(24, 8, seed=n)
        fused[f"model.layers.{n}.mlp.gate_up_proj.weight"] = both
        fused[f"model.layers.{n}.mlp.down_proj.weight"] = random(8, 12, seed=n)
        split[f"blk.{n}.ffn_gate.weight"], split[f"blk.{n}.ffn_up.weight"] = both[:12], both[12:]
        split[f"blk.{n}.ffn_down.weight"] = random(8, 12, seed=n)
    left = hugging_face(fused, tmp_path / "a.safetensors")
    right = hugging_face(split, tmp_path / "b.safetensors")

    there, back = difflens.diff(left, right).report(), difflens.diff(right, left).report()

    assert {row.kind for row in (*there.tensors, *back.tensors)} == {"identical"}
