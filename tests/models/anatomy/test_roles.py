import pytest

from difflens.models.anatomy.roles import block, is_buffer, is_parameter, kind_of, layer, role


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


@pytest.mark.parametrize(
    "name",
    [
        "bn1.running_mean",
        "bn1/moving_variance:0",
        "batch_normalization/moving_mean",
        "h.0.attn.masked_bias",
        "h.0.attn.bias",
        "layers.0.rotary_emb.inv_freq",
        "up_proj.weight_scale",
        "up_proj.weight_scale_2",
        "up_proj.weight_global_scale",
        "up_proj.weight_zero_point",
        "up_proj.qzeros",
        "up_proj.weight.nested_absmax",
        "experts.gate_up_proj_scales",
    ],
)
def test_a_buffer_is_no_parameter_and_has_its_own_kind(name):
    assert is_buffer(name)
    assert not is_parameter(name, "F32")
    assert kind_of(name, (8, 4)).word == "buffer"


@pytest.mark.parametrize("name", ["logit_scale", "scale", "fc.bias", "ls1.gamma", "attn.weight"])
def test_what_an_optimizer_changes_is_no_buffer(name):
    assert not is_buffer(name)


@pytest.mark.parametrize(
    ("name", "shape", "word"),
    [
        ("model.layers.0.mlp.up_proj.weight", (8, 4), "linear"),
        ("conv1.weight", (8, 4, 3, 3), "convolution"),
        ("layer_norm.weight", (8,), "norm"),
        ("h.0.ln_1.weight", (8,), "norm"),
        ("bn1.bias", (8,), "norm"),
        ("fc.bias", (8,), "bias"),
        ("dense/bias", (8,), "bias"),
        ("wte.weight", (100, 8), "embedding"),
        ("token_embd.weight", (100, 8), "embedding"),
        ("bn1.running_mean", (8,), "buffer"),
        ("layers.0.rotary_emb.inv_freq", (8,), "buffer"),
        ("alpha", (), "vector"),
        ("0", (3, 4), "linear"),
    ],
)
def test_the_kind_is_told_by_name_and_shape(name, shape, word):
    assert kind_of(name, shape).word == word


def test_fans_are_those_of_the_layout():
    assert kind_of("fc.weight", (10, 20))[1:] == (20, 10, 0)
    assert kind_of("dense/kernel:0", (20, 10))[1:] == (20, 10, 1)
    assert kind_of("conv.weight", (16, 3, 5, 5))[1:3] == (75, 400)
    assert kind_of("conv2d/kernel", (5, 5, 3, 16))[1:] == (75, 400, 3)
