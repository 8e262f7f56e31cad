import pytest

from difflens.models.anatomy.places import listed, short, where


def in_layers(*indices, part="mlp.up_proj"):
    return [f"model.layers.{i}.{part}.weight" for i in indices]


@pytest.mark.parametrize(
    ("names", "said"),
    [
        (in_layers(3), "mlp.up_proj of layer 3"),
        (in_layers(*range(32)), "mlp.up_proj of layers 0-31"),
        (in_layers(0, 1, 2, 7), "mlp.up_proj of layers 0-2 and 7"),
        (in_layers(0, 2, 4, 6, 8), "mlp.up_proj of layers 0 to 8 (5 of them)"),
        (
            in_layers(0, 1) + in_layers(0, 1, part="mlp.down_proj"),
            "mlp.down_proj and mlp.up_proj of layers 0-1",
        ),
        (
            [name for part in "qkvo" for name in in_layers(0, 1, part=f"self_attn.{part}_proj")],
            "attention of layers 0-1",
        ),
        ([*in_layers(0, 1), "lm_head.weight"], "mlp.up_proj of layers 0-1 and lm_head"),
        (["a.weight", "b.weight", "c.weight"], "3 others"),
        (
            ["encoder.layers.0.fc1.weight", "decoder.layers.0.fc1.weight"],
            "fc1 of decoder.layers 0 and encoder.layers 0",
        ),
        ([f"layers.0.experts.{i}.w1.weight" for i in range(8)], "experts.*.w1 of layer 0"),
        (["0.weight", "2.weight"], "weight of layers 0 and 2"),
        ([f"layer{i}.0.conv1.weight" for i in range(4)], "conv1 of 4 blocks"),
    ],
)
def test_places_are_said_in_few_words(names, said):
    assert where(names) == said


def test_a_name_too_long_for_a_sentence_loses_its_middle():
    name = "a" * 500 + "z"

    assert len(short(name)) <= 60
    assert short(name).startswith("aaa")
    assert short(name).endswith("z")


def test_names_that_are_not_shown_are_counted():
    assert listed(["a", "b"], 5) == "a, b and 3 more"
    assert listed(["a", "b"], 2) == "a, b"
