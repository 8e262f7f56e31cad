"""Blame in memory: what was planted is found and proved, and the models stay as they were."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from repair.blame.hybrid_models import fine_tuned, resembles

import difflens
from difflens.core.errors import BlameError

UP, DOWN, Q = "layers.3.up_proj.weight", "layers.1.down_proj.weight", "layers.5.q_proj.weight"


def test_one_damaged_tensor_is_found_in_four_evaluations():
    good, bad = fine_tuned()
    bad[UP] = -bad[UP]

    result = difflens.blame(good, bad, resembles(good, UP))

    assert (result.verdict, result.repair, result.cause) == ("found", (UP,), (UP,))
    assert (result.evaluations, result.hybrids, result.changed) == (4, 2, 37)
    assert result.proof == difflens.BlameProof(True, True)
    assert result.undone_bytes == 1024
    assert "sign" in result.culprits[0].change


@given(st.sampled_from(sorted(fine_tuned()[0])), st.integers(0, 3))
@settings(max_examples=8, deadline=None)
def test_a_fault_that_nothing_shows_is_found_as_well(name, seed):
    good, bad = fine_tuned(seed=seed)
    value = float(bad[name].flat[0])

    result = difflens.blame(good, bad, lambda hybrid: float(hybrid[name].flat[0]) != value)

    assert result.repair == (name,)
    assert result.evaluations <= 2 * np.log2(37) + 4


def test_two_faults_that_each_break_it_are_both_put_back():
    good, bad = fine_tuned()
    bad[UP], bad[DOWN] = -bad[UP], bad[DOWN] * -2

    result = difflens.blame(good, bad, resembles(good, UP, DOWN))

    assert result.verdict == "found"
    assert result.repair == (DOWN, UP)
    assert len(result.cause) == 1
    assert result.interaction == "each of them breaks it alone: all must be put back"
    assert result.evaluations <= 8


def test_three_faults_that_break_it_only_together_are_one_cause():
    good, bad = fine_tuned()
    names = (DOWN, UP, Q)
    for name in names:
        bad[name] = -bad[name]

    def check(hybrid):
        return any(float(np.sum(hybrid[name] * good[name])) > 0 for name in names)

    result = difflens.blame(good, bad, check)

    assert result.verdict == "found"
    assert set(result.cause) == set(names)
    assert len(result.repair) == 1
    assert "only together" in result.interaction
    assert result.evaluations <= 12


def test_damaged_rows_are_told_from_the_rest_of_their_tensor():
    good, bad = fine_tuned()
    bad[UP][2:4] *= -3

    result = difflens.blame(good, bad, lambda each: np.sum(each[UP][2:4] * good[UP][2:4]) > 0)

    assert result.culprits[0].rows == {UP: "rows 2-3"}
    assert (result.verdict, result.undone_bytes) == ("found", 128)


def test_damaged_columns_are_too():
    good, bad = fine_tuned()
    bad[UP][:, 5] = 40

    result = difflens.blame(good, bad, lambda each: bool(each[UP].max() < 30))

    assert result.culprits[0].rows == {UP: "column 5"}


def test_layers_that_changed_places_are_one_culprit():
    good, bad = fine_tuned(8)
    for name in [name for name in good if name.startswith("layers.2.")]:
        other = name.replace("layers.2.", "layers.6.")
        bad[name], bad[other] = bad[other], bad[name]

    result = difflens.blame(
        good, bad, resembles(good, "layers.2.q_proj.weight", "layers.6.up_proj.weight")
    )

    assert result.verdict == "found"
    assert {name.split(".")[1] for name in result.repair} == {"2", "6"}
    assert len(result.culprits) == 1
    assert "exchanged" in result.culprits[0].change
    assert result.evaluations <= 6


def test_neurons_in_another_order_are_put_back_together_or_not_at_all():
    good, bad = fine_tuned()
    order = np.random.default_rng(1).permutation(16)
    bad["layers.2.up_proj.weight"] = bad["layers.2.up_proj.weight"][order]
    bad["layers.2.down_proj.weight"] = bad["layers.2.down_proj.weight"][:, order]
    bad[Q] = -bad[Q]
    product = good["layers.2.down_proj.weight"] @ good["layers.2.up_proj.weight"]

    def check(hybrid):
        now = hybrid["layers.2.down_proj.weight"] @ hybrid["layers.2.up_proj.weight"]
        return np.allclose(now, product, atol=1) and np.sum(hybrid[Q] * good[Q]) > 0

    result = difflens.blame(good, bad, check)

    assert (result.verdict, result.repair) == ("found", (Q,))


def test_a_damage_that_is_spread_gets_shares_and_no_name():
    good, bad = fine_tuned()
    random = np.random.default_rng(2)
    bad = {name: value + random.normal(size=value.shape) for name, value in bad.items()}

    def check(hybrid):
        return -sum(float(np.abs(hybrid[name] - good[name]).mean()) for name in good)

    result = difflens.blame(good, bad, check, threshold="auto")

    assert (result.verdict, result.culprits) == ("diffuse", ())
    assert sum(result.shares.values()) == pytest.approx(1)
    assert result.shares["embed"] == pytest.approx(1 / 37, abs=0.02)
    assert result.shares["layers.0"] == pytest.approx(6 / 37, abs=0.05)


def test_tied_tensors_are_put_back_together():
    good, bad = fine_tuned()
    bad["embed.weight"] = -bad["embed.weight"]
    good["head.weight"], bad["head.weight"] = good["embed.weight"], bad["embed.weight"].copy()

    result = difflens.blame(good, bad, resembles(good, "embed.weight", "head.weight"))

    assert result.repair == ("embed.weight", "head.weight")
    assert len(result.culprits) == 1


def test_a_tensor_that_came_or_went_can_be_to_blame():
    good, bad = fine_tuned()
    bad["extra.weight"] = np.ones((2, 2), "f4")
    del bad[UP]

    added = difflens.blame(good, bad, lambda each: "extra.weight" not in each)
    removed = difflens.blame(good, bad, lambda each: UP in each)

    assert (added.repair, added.culprits[0].change) == (("extra.weight",), "added")
    assert (removed.repair, removed.culprits[0].change) == ((UP,), "removed")


def test_a_check_that_spoils_what_it_gets_spoils_no_model():
    good, bad = fine_tuned()
    bad[UP] = -bad[UP]
    before = [{name: value.copy() for name, value in model.items()} for model in (good, bad)]
    point = good[UP].copy()

    def check(hybrid):
        passes = float(np.sum(hybrid[UP] * point)) > 0
        for value in hybrid.values():
            value[...] = np.nan
        return passes

    assert difflens.blame(good, bad, check).repair == (UP,)
    for model, copy in zip((good, bad), before, strict=True):
        assert all(np.array_equal(model[name], value) for name, value in copy.items())


def test_the_same_set_is_never_evaluated_twice():
    good, bad = fine_tuned()
    bad[UP], bad[DOWN] = -bad[UP], -bad[DOWN]
    seen = []
    rule = resembles(good, UP, DOWN)

    def check(hybrid):
        seen.append(b"".join(value.tobytes() for value in hybrid.values()))
        return rule(hybrid)

    result = difflens.blame(good, bad, check, jobs=3)

    assert len(seen) == len(set(seen)) == result.evaluations


def test_a_number_has_a_threshold_and_a_direction():
    good, bad = fine_tuned()
    bad[UP] = bad[UP] * 5

    def loss(hybrid):
        return float(np.abs(hybrid[UP]).max())

    halfway = difflens.blame(good, bad, loss, threshold="auto")
    named = difflens.blame(good, bad, loss, threshold=4.0, lower_is_better=True)

    assert halfway.repair == named.repair == (UP,)
    with pytest.raises(BlameError, match=r"GOOD gives .* it fails too"):
        difflens.blame(good, bad, loss, threshold=0.1, lower_is_better=True)
    with pytest.raises(BlameError, match=r"BAD gives .* it passes too"):
        difflens.blame(good, bad, loss, threshold=1e9, lower_is_better=True)
    with pytest.raises(BlameError, match="returned a number: pass a threshold"):
        difflens.blame(good, bad, loss)


def test_a_budget_ends_the_search_undecided():
    good, bad = fine_tuned()

    result = difflens.blame(good, bad, lambda each: bool((each[Q] == good[Q]).all()), budget=4)

    assert (result.verdict, result.evaluations) == ("undecided", 4)
    assert "the budget ended" in result.sentence


def test_a_noisy_number_is_blamed_right_or_not_at_all():
    wrong = undecided = 0
    good, bad = fine_tuned()
    bad[UP] = -bad[UP]
    for seed in range(25):
        random = np.random.default_rng(seed)

        def check(hybrid, random=random):
            return float(np.sum(hybrid[UP] * good[UP]) > 0) + random.normal() / 2.5

        result = difflens.blame(good, bad, check, threshold="auto")
        undecided += result.verdict == "undecided"
        wrong += result.verdict == "diffuse" or (
            result.verdict == "found" and result.repair != (UP,)
        )

    assert wrong <= 2
    assert undecided <= 6


def test_noise_without_a_difference_is_undecided():
    good, bad = fine_tuned()
    random = np.random.default_rng(0)

    result = difflens.blame(good, bad, lambda _: float(random.normal()), threshold="auto")

    assert result.verdict == "undecided"


def test_a_flaky_test_is_repeated():
    good, bad = fine_tuned()
    bad[UP] = -bad[UP]
    random = np.random.default_rng(3)
    rule = resembles(good, UP)

    result = difflens.blame(
        good, bad, lambda each: rule(each) ^ bool(random.random() < 0.08), noisy=True
    )

    assert (result.verdict, result.repair) == ("found", (UP,))
    assert result.noise["separation"] > 1


def test_torch_tensors_stay_torch_tensors():
    torch = pytest.importorskip("torch")
    arrays = fine_tuned()
    good, bad = ({n: torch.tensor(v).bfloat16() for n, v in each.items()} for each in arrays)
    bad[UP] = -bad[UP]

    def check(hybrid):
        assert all(value.dtype == torch.bfloat16 for value in hybrid.values())
        return bool((hybrid[UP] * good[UP]).sum() > 0)

    assert difflens.blame(good, bad, check).repair == (UP,)


def test_models_that_cannot_be_blamed_are_refused():
    good, bad = fine_tuned()
    with pytest.raises(BlameError, match="no tensor in common"):
        difflens.blame({"a": np.ones(3, "f4")}, {"b": np.ones((2, 2), "f4")}, bool)
    with pytest.raises(BlameError, match="there is nothing to blame"):
        difflens.blame(good, dict(good), lambda _: True)
    with pytest.raises(BlameError, match="fails on GOOD too"):
        difflens.blame(good, bad, lambda _: False)
    with pytest.raises(BlameError, match="passes on BAD too"):
        difflens.blame(good, bad, lambda _: True)
    with pytest.raises(BlameError, match="cannot judge one of the two models"):
        difflens.blame(good, bad, lambda _: None)
    with pytest.raises(BlameError, match="the check returned a str"):
        difflens.blame(good, bad, lambda _: "yes")
    with pytest.raises(BlameError, match="a command needs models that are files"):
        difflens.blame(good, bad, ["true"])


def test_bisect_finds_the_first_bad_one_and_blames_it():
    good, moved = fine_tuned()
    row = [{n: v + i * (moved[n] - v) for n, v in good.items()} for i in range(7)]
    for each in row[4:]:
        each[UP] = -each[UP]
    runs = []
    rule = resembles(good, UP)

    def check(hybrid):
        runs.append(1)
        return rule(hybrid)

    result = difflens.bisect(row, check)

    assert (result.last_good, result.first_bad) == ("checkpoint 3", "checkpoint 4")
    assert result.evaluations <= 2 + 3
    assert result.blame is not None
    assert result.blame.repair == (UP,)
    assert len(runs) == result.evaluations + result.blame.evaluations
