import numpy as np
import pytest

from difflens.core.records import TensorInfo
from difflens.diffs.methods.symmetry.groups import components, groups
from difflens.diffs.methods.symmetry.slots import Slot, by_unit, reordered
from difflens.models.anatomy.network import Network


def found(shapes, network=None):
    infos = [TensorInfo(name, "F32", shape) for name, shape in shapes.items()]
    return groups(infos, network or Network())


def parts(group):
    return {slot.name.rpartition("layers.0.")[2]: (slot.axis, slot.blocks) for slot in group.slots}


@pytest.mark.parametrize(
    ("up", "gate", "down"),
    [
        ("mlp.up_proj", "mlp.gate_proj", "mlp.down_proj"),
        ("block_sparse_moe.experts.3.w3", "block_sparse_moe.experts.3.w1",
         "block_sparse_moe.experts.3.w2"),
        ("mlp.fc1", None, "mlp.fc2"),
        ("mlp.dense_h_to_4h", None, "mlp.dense_4h_to_h"),
        ("intermediate.dense", None, "output.dense"),
    ],
)  # fmt: skip
def test_feed_forward_layers_are_known_by_many_names(up, gate, down):
    shapes = {f"layers.0.{up}.weight": (64, 16), f"layers.0.{down}.weight": (16, 64)}
    shapes |= {f"layers.0.{gate}.weight": (64, 16)} if gate else {}

    (group,) = found(shapes)

    assert group.units == 64
    assert group.slot("down").axis == 1
    assert (group.slot("gate") is None) == (gate is None)


def test_gpt2_stores_its_layers_the_other_way_round():
    shapes = {
        "h.0.mlp.c_fc.weight": (16, 64), "h.0.mlp.c_fc.bias": (64,),
        "h.0.mlp.c_proj.weight": (64, 16), "h.0.mlp.c_proj.bias": (16,),
    }  # fmt: skip

    (group,) = found(shapes)

    assert [(slot.part, slot.axis) for slot in group.slots] == [("up", 1), ("down", 0), ("bias", 0)]


def test_a_fused_gate_is_two_blocks_of_the_same_units():
    (group,) = found({"mlp.gate_up_proj.weight": (128, 16), "mlp.down_proj.weight": (16, 64)})

    assert group.slots[0].blocks == 2
    assert group.units == 64


def test_layers_whose_shapes_disagree_are_no_group():
    assert found({"mlp.up_proj.weight": (64, 16), "mlp.down_proj.weight": (16, 60)}) == []


def test_a_stranger_that_reads_the_hidden_units_rules_the_group_out():
    shapes = {"mlp.fc1.weight": (64, 16), "mlp.fc2.weight": (16, 64), "mlp.probe.weight": (3, 64)}

    assert found(shapes) == []


def test_fused_attention_has_its_heads_in_three_blocks():
    shapes = {"h.0.attn.c_attn.weight": (32, 96), "h.0.attn.c_proj.weight": (32, 32)}

    (group,) = found(shapes, Network(heads=4, kv_heads=4, head_dim=8))

    assert group.slots[0] == Slot("h.0.attn.c_attn.weight", "qkv", 4, 1, 3, 8)
    assert group.slots[1].axis == 0


def test_projections_beside_each_other_are_no_chain():
    shapes = {f"attn.{part}_proj.weight": (16, 16) for part in "qkvo"}

    assert found(shapes) == []


def test_a_layer_that_runs_both_ways_is_left_alone():
    shapes = {
        "rnn.weight_ih_l0": (64, 8), "rnn.weight_hh_l0": (64, 16),
        "rnn.weight_ih_l0_reverse": (64, 8), "rnn.weight_hh_l0_reverse": (64, 16),
    }  # fmt: skip

    assert found(shapes) == []


def test_layers_in_a_row_form_one_component():
    shapes = {"0.weight": (8, 4), "2.weight": (6, 8), "4.weight": (2, 6)}

    chained = found(shapes)

    assert [group.units for group in chained] == [8, 6]
    assert len(components(chained)) == 1


def test_a_flattened_feature_map_gives_each_channel_its_columns():
    shapes = {"0.weight": (8, 3, 3, 3), "3.weight": (10, 8 * 25)}

    (group,) = found(shapes)

    assert group.slot("down").inner == 25


def test_reordering_moves_whole_units():
    slot = Slot("w", "up", units=3, axis=1, blocks=2, inner=2)
    array = np.arange(24.0).reshape(2, 12)
    order = np.array([2, 0, 1])

    moved = by_unit(reordered(array, slot, order), slot)

    assert np.array_equal(moved, by_unit(array, slot)[order])
