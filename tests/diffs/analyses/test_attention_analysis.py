import json

import numpy as np
import pytest
from diffs.methods.attention.heads import (
    HEADS,
    KNOWN,
    LAYOUTS,
    SIZE,
    WIDTH,
    ask,
    circuits,
    llama,
    parts,
)
from scipy.stats import ortho_group

from difflens.core.policy import Policy
from difflens.diffs.evidence.records import Evidence, Side

NAME = "attention_analysis"


def cosine(left, right):
    return float((left * right).sum() / np.linalg.norm(left) / np.linalg.norm(right))


def edited(layers, change):
    copies = [{part: value.copy() for part, value in layer.items()} for layer in layers]
    change(copies)
    return copies


def rotated(layers):
    turn = ortho_group.rvs(SIZE, random_state=0)
    layers[0]["q"][:SIZE] = turn @ layers[0]["q"][:SIZE]
    layers[0]["k"][:SIZE] = turn @ layers[0]["k"][:SIZE]


def test_rotating_queries_and_keys_of_a_head_together_moves_no_circuit():
    """G14."""
    layers = parts()

    envelope = ask(NAME, llama(layers), llama(edited(layers, rotated)))

    row = envelope.fields["per_head"][0]
    assert row["qk_cosine"] == pytest.approx(1, abs=1e-10)
    assert row["ov_cosine"] == pytest.approx(1, abs=1e-10)
    assert row["raw_relative_l2"] > 0.5
    assert envelope.findings == ()


def test_a_rotation_of_a_wide_head_moves_its_slices_further_than_their_own_length():
    """G14: raw relative L2 above 1 for q and k alone."""
    size = 64
    random = np.random.default_rng(0)
    q, k = random.normal(size=(2, size, 128))
    turn = ortho_group.rvs(size, random_state=0)
    zero, tiny = np.zeros((size, 128)), 1e-9 * random.normal(size=(128, size))
    left = {"q": q, "k": k, "v": zero, "o": tiny}
    right = {"q": turn @ q, "k": turn @ k, "v": zero, "o": tiny}

    row = ask(NAME, llama([left]), llama([right]), policy=Policy({NAME: {"heads": 1}})).fields[
        "per_head"
    ][0]

    assert row["raw_relative_l2"] > 1
    assert row["qk_cosine"] == pytest.approx(1, abs=1e-10)


@pytest.mark.parametrize("kv_heads", [HEADS, 2, 1])
@pytest.mark.parametrize("layout", LAYOUTS)
def test_every_layout_gives_the_circuits_multiplied_out(layout, kv_heads):
    left, right = parts(0, kv_heads), parts(1, kv_heads)
    store = LAYOUTS[layout]

    fields = ask(NAME, store(left), store(right)).fields

    assert fields["kv_heads"] == {"left": kv_heads, "right": kv_heads}
    for row in fields["per_head"]:
        before = circuits(left[row["layer"]], row["head"])
        after = circuits(right[row["layer"]], row["head"])
        for kind, one, other in zip(("qk", "ov"), before, after, strict=True):
            values = np.linalg.svd(one, compute_uv=False)[:SIZE]
            share = values / values.sum()
            assert row[f"{kind}_cosine"] == pytest.approx(cosine(one, other), abs=1e-12)
            assert row[f"{kind}_norm_left"] == pytest.approx(np.linalg.norm(one))
            assert row[f"{kind}_norm_right"] == pytest.approx(np.linalg.norm(other))
            stable = (values**2).sum() / values[0] ** 2
            assert row[f"{kind}_stable_rank_left"] == pytest.approx(stable)
            effective = np.exp(-(share * np.log(share)).sum())
            assert row[f"{kind}_effective_rank_left"] == pytest.approx(effective, rel=1e-6)


def test_a_fused_model_against_its_split_conversion_has_moved_no_head():
    layers = parts()

    fields = ask(NAME, LAYOUTS["timm"](layers), llama(layers)).fields

    assert fields["whole_matrices"]  # how it is paired is the pairing's matter
    if fields["circuit_cosine"]:
        assert fields["circuit_cosine"]["qk"]["min"] == pytest.approx(1)


def test_independent_heads_have_a_cosine_near_zero():
    random = np.random.default_rng(0)

    def model(seed):
        draw = np.random.default_rng(seed).normal
        return llama([{part: draw(size=(256, 256)) for part in "qkvo"}])

    known = Evidence(left=Side(config={"num_attention_heads": 4}))
    fields = ask(NAME, model(random.integers(99)), model(100), known).fields

    assert abs(fields["circuit_cosine"]["qk"]["mean"]) < 0.01
    assert abs(fields["circuit_cosine"]["ov"]["mean"]) < 0.01


@pytest.mark.parametrize("kv_heads", [HEADS, 2])
def test_heads_that_were_re_ordered_within_what_groups_allow_are_found(kv_heads):
    layers = parts(0, kv_heads)
    group = HEADS // kv_heads
    groups = np.roll(np.arange(kv_heads), 1)
    order = np.concatenate(
        [np.arange(place * group, (place + 1) * group)[::-1] for place in groups]
    )

    def reorder(copies):
        heads = (order[:, None] * SIZE + np.arange(SIZE)).ravel()
        shared = (groups[:, None] * SIZE + np.arange(SIZE)).ravel()
        copies[1]["q"], copies[1]["o"] = layers[1]["q"][heads], layers[1]["o"][:, heads]
        copies[1]["k"], copies[1]["v"] = layers[1]["k"][shared], layers[1]["v"][shared]

    fields = ask(NAME, llama(layers), llama(edited(layers, reorder))).fields

    found = {row["head"]: row["left_head"] for row in fields["reordered_heads"]}
    assert found == {at: int(was) for at, was in enumerate(order) if at != was}
    assert {row["layer"] for row in fields["reordered_heads"]} == {1}


def test_biases_and_the_norm_before_are_part_of_the_circuit():
    layers = parts()
    random = np.random.default_rng(5)
    gain, shift, bias = random.normal(size=(3, WIDTH))
    block = "model.layers.0"
    left = llama(layers) | {
        f"{block}.input_layernorm.weight": gain,
        f"{block}.input_layernorm.bias": shift,
        f"{block}.self_attn.q_proj.bias": bias,
    }
    right = left | {f"{block}.self_attn.q_proj.bias": -bias}

    rows = ask(NAME, left, right).fields["per_head"]

    def folded(matrix, added):
        return np.concatenate([matrix * gain, (matrix @ shift + added)[:, None]], axis=1)

    key = folded(layers[0]["k"], 0)[:SIZE]
    before = folded(layers[0]["q"], bias)[:SIZE].T @ key
    after = folded(layers[0]["q"], -bias)[:SIZE].T @ key
    assert rows[0]["qk_cosine"] == pytest.approx(cosine(before, after), abs=1e-12)
    assert rows[0]["qk_norm_left"] == pytest.approx(np.linalg.norm(before))
    assert rows[HEADS]["qk_cosine"] == 1


def test_without_a_number_of_heads_only_whole_matrices_are_told():
    layers = parts()

    envelope = ask(NAME, llama(layers), llama(parts(1)), Evidence())

    assert envelope.status == "partial"
    assert envelope.fields["head_count"] is None
    assert envelope.fields["per_head"] is None
    assert envelope.fields["whole_matrices"]["q"]["relative_l2"] > 1
    assert {each.needs for each in envelope.missing} == {
        "--config-left/--config-right, or `heads` in [attention_analysis] of --policy"
    }


def test_the_user_may_say_how_many_heads_there_are():
    envelope = ask(NAME, llama(parts()), llama(parts(1)), Evidence(),
                   Policy({NAME: {"heads": HEADS}}))  # fmt: skip

    assert envelope.fields["head_count"] == {"left": HEADS, "right": HEADS}
    assert envelope.policy["heads"] == {"value": HEADS, "source": "user"}


def test_a_number_of_heads_that_does_not_divide_is_refused():
    wrong = Evidence(left=Side(config={"num_attention_heads": 5}))

    envelope = ask(NAME, llama(parts()), llama(parts(1)), wrong)

    assert envelope.fields["per_head"] is None
    assert "do not divide among 5 heads" in envelope.missing[0].why


def test_a_model_against_itself_has_cosines_of_exactly_one_and_no_finding():
    envelope = ask(NAME, llama(parts()), llama(parts()))

    rows = envelope.fields["per_head"]
    assert {row["qk_cosine"] for row in rows} | {row["ov_cosine"] for row in rows} == {1.0}
    assert {row["raw_relative_l2"] for row in rows} == {0.0}
    assert envelope.findings == ()


def test_sides_may_be_swapped():
    left, right = llama(parts()), llama(parts(1))

    there, back = (ask(NAME, *pair).fields["per_head"] for pair in ((left, right), (right, left)))

    for one, other in zip(there, back, strict=True):
        assert one["qk_cosine"] == pytest.approx(other["qk_cosine"])
        assert one["ov_norm_left"] == other["ov_norm_right"]


def test_scaling_both_sides_by_a_power_of_two_moves_no_scale_free_figure():
    left, right = llama(parts()), llama(parts(1))
    double = [{name: value * 4 for name, value in model.items()} for model in (left, right)]

    plain, scaled = ask(NAME, left, right).fields, ask(NAME, *double).fields

    for name in ("circuit_cosine", "qk_rank", "ov_rank", "heads_moved"):
        assert scaled[name] == plain[name]


def test_a_head_that_is_not_finite_has_null_figures_and_the_others_keep_theirs():
    layers = parts()

    def burn(copies):
        copies[0]["q"][0, 0] = np.nan

    envelope = ask(NAME, llama(layers), llama(edited(layers, burn)))

    rows = envelope.fields["per_head"]
    assert rows[0]["qk_cosine"] is None
    assert rows[1]["qk_cosine"] == pytest.approx(1)
    json.dumps(envelope.to_dict(), allow_nan=False)


def test_moved_heads_are_findings_with_the_number_compared():
    layers = parts()

    def replace(copies):
        copies[1]["v"][SIZE : 2 * SIZE] = np.random.default_rng(9).normal(size=(SIZE, WIDTH))

    envelope = ask(NAME, llama(layers), llama(edited(layers, replace)))

    (finding,) = envelope.findings
    assert finding.subject == "model.layers.1.self_attn.o_proj.weight"
    assert finding.text.startswith("head 1 of layer 1: circuit cosine")
    assert finding.evidence["heads_compared"] == 2 * HEADS


def test_different_numbers_of_key_heads_are_told_side_by_side_and_not_compared():
    envelope = ask(NAME, llama(parts(0, HEADS)), llama(parts(0, 2)))

    assert envelope.fields["kv_heads"] == {"left": HEADS, "right": 2}
    assert envelope.fields["circuit_cosine"] is None
    assert envelope.fields["per_head"][0]["qk_norm_right"] > 0


def test_headers_alone_are_not_enough():
    assert ask(NAME, llama(parts()), llama(parts()), KNOWN, shape_only=True).status == (
        "not_enough_information"
    )


def test_a_model_without_attention_is_not_its_matter():
    model = {"fc1.weight": np.ones((3, 3))}

    assert ask(NAME, model, model).status == "not_applicable"
