import pytest

from difflens.analyses.anatomy.roles import block, is_parameter, layer, role


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("model.embed_tokens.weight", "embedding"),
        ("transformer.wte.weight", "embedding"),
        ("bert.embeddings.word_embeddings.weight", "embedding"),
        ("model.layers.0.self_attn.q_proj.weight", "attention_q"),
        ("bert.encoder.layer.0.attention.self.key.weight", "attention_k"),
        ("layers.0.attention.wv.weight", "attention_v"),
        ("unet.attn1.to_v.weight", "attention_v"),
        ("blk.0.attn_q.weight", "attention_q"),
        ("model.layers.0.self_attn.o_proj.weight", "attention_o"),
        ("h.0.attn.c_proj.weight", "attention_o"),
        ("bert.encoder.layer.0.attention.output.dense.weight", "attention_o"),
        ("encoder.block.0.layer.0.SelfAttention.o.weight", "attention_o"),
        ("h.0.attn.c_attn.weight", "attention"),
        ("blocks.0.attn.qkv.weight", "attention"),
        ("model.layers.0.mlp.up_proj.weight", "mlp"),
        ("h.0.mlp.c_proj.weight", "mlp"),
        ("layers.0.feed_forward.w2.weight", "mlp"),
        ("blk.0.ffn_up.weight", "mlp"),
        ("encoder.block.0.layer.1.DenseReluDense.wo.weight", "mlp"),
        ("bert.encoder.layer.0.output.dense.weight", "mlp"),
        ("model.layers.0.mlp.experts.3.w1.weight", "mlp"),
        ("model.layers.0.input_layernorm.weight", "norm"),
        ("transformer.ln_f.bias", "norm"),
        ("layer1.0.bn2.weight", "norm"),
        ("lm_head.weight", "head"),
        ("fc.weight", "head"),
        ("module.fc.bias", "head"),
        ("classifier.out_proj.weight", "head"),
        ("model.layers.0.self_attn.q_proj.bias", "bias"),
        ("layer1.0.conv1.weight", "other"),
        ("weight", "other"),
    ],
)
def test_the_name_tells_the_role(name, expected):
    assert role(name) == expected


@pytest.mark.parametrize(
    ("name", "dtype", "expected"),
    [
        ("a.weight", "F32", True),
        ("a.weight", "BF16", True),
        ("a.weight", "I8", False),
        ("a.weight", "F6_E2M3", False),
        ("bn.running_var", "F32", False),
        ("model.layers.0.self_attn.rotary_emb.inv_freq", "F32", False),
        ("h.0.attn.bias", "F32", False),
        ("q_proj.weight_scale", "F32", False),
        ("logit_scale", "F32", True),
    ],
)
def test_buffers_and_integers_are_no_parameters(name, dtype, expected):
    assert is_parameter(name, dtype) is expected


def test_a_layer_is_a_name_without_its_last_part():
    assert layer("a.b.weight") == "a.b"
    assert layer("weight") == "weight"


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("model.layers.12.mlp.up.weight", ("model.layers", 12)),
        ("layer1.0.conv1.weight", ("layer1", 0)),
        ("0.weight", ("", 0)),
        ("h.3", ("h", 3)),
        ("lm_head.weight", None),
        ("conv2d.weight", None),
        ("h." + "9" * 5000 + ".weight", None),
    ],
)
def test_a_block_is_told_by_the_first_number(name, expected):
    assert block(name) == expected
