import pytest

from difflens.core.records import TensorInfo
from difflens.diffs.methods.attention.heads import placed, sites


@pytest.mark.parametrize(
    ("name", "place"),
    [
        ("model.layers.3.self_attn.q_proj.weight", ("model.layers.3.self_attn", "q")),
        ("blk.3.attn_q.weight", ("blk.3", "q")),
        ("blk.3.attn_output.weight", ("blk.3", "o")),
        ("blk.3.attn_qkv.bias", ("blk.3", "qkv.bias")),
        ("layers.0.attention.wo.weight", ("layers.0.attention", "o")),
        ("h.0.attn.c_attn.weight", ("h.0.attn", "qkv")),
        ("h.0.attn.c_attn.weight[k]", ("h.0.attn", "k")),
        ("h.0.attn.c_proj.weight", ("h.0.attn", "o")),
        ("h.0.mlp.c_proj.weight", None),
        ("encoder.layer.1.attention.self.key.weight", ("encoder.layer.1.attention", "k")),
        ("encoder.layer.1.attention.output.dense.weight", ("encoder.layer.1.attention", "o")),
        ("encoder.layer.1.output.dense.weight", None),
        ("encoder.layer.1.attention.attention.value.weight", ("encoder.layer.1.attention", "v")),
        ("blocks.2.attn.proj.weight", ("blocks.2.attn", "o")),
        ("encoder.layers.encoder_layer_0.self_attention.in_proj_weight",
         ("encoder.layers.encoder_layer_0.self_attention", "qkv")),
        ("layers.0.self_attn.out_proj.weight", ("layers.0.self_attn", "o")),
        ("transformer.layer.0.attention.out_lin.weight", ("transformer.layer.0.attention", "o")),
        ("decoder.block.0.layer.0.SelfAttention.o.weight",
         ("decoder.block.0.layer.0.SelfAttention", "o")),
        ("backbone.layers.0.mixer.in_proj.weight", None),
        ("model.norm.weight", None),
        ("scale", None),
    ],
)  # fmt: skip
def test_a_part_of_attention_is_known_by_its_name(name, place):
    assert placed(name) == place


def test_sites_come_in_order_of_depth_and_only_whole_ones():
    names = [f"model.layers.{layer}.self_attn.{part}_proj.weight"
             for layer in (10, 2) for part in "qkvo"]  # fmt: skip
    names.append("model.layers.3.self_attn.q_proj.weight")

    found = sites(TensorInfo(name, "BF16", (4, 4)) for name in names)

    assert [site.name for site in found] == [
        "model.layers.2.self_attn",
        "model.layers.10.self_attn",
    ]


def test_only_a_norm_that_stands_before_the_attention_belongs_to_it():
    names = [f"encoder.layer.0.attention.self.{part}.weight" for part in ("query", "key", "value")]
    names += ["encoder.layer.0.attention.output.dense.weight"]
    after = TensorInfo("encoder.layer.0.attention.output.LayerNorm.weight", "F32", (4,))
    before = TensorInfo("encoder.layer.0.layernorm_before.weight", "F32", (4,))

    plain = [TensorInfo(name, "F32", (4, 4)) for name in names]

    assert "gain" not in sites([*plain, after])[0].tensors
    assert sites([*plain, before])[0].tensors["gain"] == before


def test_what_is_no_matrix_of_floats_is_no_part():
    infos = [TensorInfo(f"layers.0.self_attn.{part}_proj.weight", "I32", (4, 4)) for part in "qkvo"]

    assert sites(infos) == []
