import pytest
from hypothesis import given
from hypothesis import strategies as st

from difflens.diffs.pairing.names import core_of, rule, split

MARKS = ["module.", "_orig_mod.", "model.", "base_model.model.", "transformer.", "bert."]


@pytest.mark.parametrize(
    "name",
    [
        "module.layers.0.q_proj.weight",
        "module._orig_mod.model.layers.0.q_proj.weight",
        "base_model.model.model.layers.0.q_proj.base_layer.weight",
        "layers.0._orig_mod.q_proj.weight",
        "layers.0._fsdp_wrapped_module.q_proj.weight",
        "layers.0.q_proj.weight_orig",
        "layers.0.q_proj.parametrizations.weight.original",
    ],
)
def test_wrappers_are_seen_through(name):
    assert core_of(name) == "layers.0.q_proj.weight"


@pytest.mark.parametrize(
    "name",
    ["encoder.layers.0.weight", "modules.0.weight", "model", "model.", "weights", "x.original", ""],
)
def test_what_is_no_wrapper_stays(name):
    assert core_of(name) == name


@given(st.lists(st.sampled_from(MARKS), max_size=4))
def test_prefixes_come_off_in_any_number_and_order(marks):
    assert core_of("".join(marks) + "layers.1.weight") == "layers.1.weight"


@given(st.text(alphabet="model.u_rig", max_size=20))
def test_taking_a_name_apart_agrees_with_its_core(name):
    assert split(name).core == core_of(name)


@pytest.mark.parametrize(
    ("left", "right", "said"),
    [
        ("module.w", "w", "prefix -module."),
        ("w", "model.w", "prefix +model."),
        ("module.w", "model.w", "prefix module. -> model."),
        ("module.model.w", "model.w", "prefix -module."),
        ("base_model.model.model.w", "model.w", "prefix -base_model.model."),
        ("q.base_layer.weight", "q.weight", "suffix -.base_layer"),
        ("q.weight", "q.weight_orig", "suffix +.weight_orig"),
        ("a._orig_mod.w", "a.w", "inside -_orig_mod."),
        ("a._orig_mod.b.w", "a.b._orig_mod.w", "inside moved"),
        (
            "base_model.model.q.base_layer.weight",
            "q.weight",
            "prefix -base_model.model., suffix -.base_layer",
        ),
    ],
)
def test_a_rule_says_which_side_has_the_mark(left, right, said):
    assert rule(left, right, core_of(left)) == said


def test_a_name_made_of_nothing_but_prefixes_takes_no_long_time():
    long = "model." * 100_000 + "w"

    assert rule("module." + long, long, "w") == "prefix -module."


@pytest.mark.parametrize(("part", "name"), [("0", "weight"), ("1", "bias")])
def test_what_torch_packed_is_the_weight_and_the_bias(part, name):
    assert core_of(f"fc._packed_params._packed_params.{part}") == f"fc.{name}"
    assert core_of(f"fc._packed_params.{part}") == f"fc._packed_params.{part}"
