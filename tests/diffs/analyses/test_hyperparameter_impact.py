import json

import numpy as np
import pytest
from diffs.analyses.optimizers import adam_state
from diffs.analyses.small import decoder
from simulation import near, replicates

from difflens.core.policy import Policy
from difflens.diffs.analyses import ask
from difflens.diffs.evidence.records import Evidence, Side
from difflens.diffs.story import diff

MODEL = decoder(layers=1)
PAIR = diff(MODEL, MODEL)


def impact(runs=(), policy=None, **sides):
    evidence = Evidence(runs=tuple(runs), **sides)
    return ask("hyperparameter_impact", PAIR, evidence,
               Policy({"hyperparameter_impact": policy or {}}))  # fmt: skip


def runs_of(random, effect=2.0, noise=1.0):
    return [
        {"lr": lr, "batch": batch, "seed": seed,
         "loss": effect * np.log(lr) + random.normal(0, noise)}
        for lr in (1e-4, 3e-4, 1e-3, 3e-3) for batch in (16, 32, 64) for seed in range(3)
    ]  # fmt: skip


def grouped(random, means, each=5, name="optimizer"):
    return [
        {name: level, "seed": seed, "accuracy": mean + random.normal(0, 0.1)}
        for level, mean in means.items()
        for seed in range(each)
    ]


def test_two_configurations_are_compared_and_no_impact_is_invented():
    envelope = impact(left=Side(config={"lr": 0.1, "batch": 16, "layers": 2}),
                      right=Side(config={"lr": 0.2, "batch": 32, "layers": 2}))  # fmt: skip

    assert envelope.fields["changed"] == [
        {"name": "batch", "left": 16, "right": 32},
        {"name": "lr", "left": 0.1, "right": 0.2},
    ]
    assert envelope.fields["impact"] is None
    (missing,) = [each for each in envelope.missing if each.field == "impact"]
    assert "26 runs of each setting" in missing.needs
    assert missing.why.startswith("2 settings differ at once")


def test_settings_of_optimisers_are_compared_too():
    sides = [Side(optimizer=adam_state([(np.ones(2), np.ones(2))], lr=rate)) for rate in (0.1, 0.4)]

    changed = impact(left=sides[0], right=sides[1]).fields["changed"]

    assert changed == [{"name": "optimizer.lr", "left": 0.1, "right": 0.4}]


def test_weights_alone_tell_no_setting():
    envelope = impact()

    assert envelope.status == "not_enough_information"
    assert set(envelope.fields.values()) == {None}


@replicates
def test_the_slope_is_covered_and_what_does_not_matter_covers_zero(repeats):
    random = np.random.default_rng(0)
    slopes = batches = 0
    for _ in range(repeats):
        ends = impact(runs_of(random)).fields["interval"]
        slopes += ends["lr"][0] <= 2 <= ends["lr"][1]
        batches += ends["batch"][0] <= 0 <= ends["batch"][1]

    assert near(slopes / repeats, 0.95, repeats, slack=0.01)
    assert near(batches / repeats, 0.95, repeats, slack=0.01)


def test_a_factor_with_two_levels_is_compared_by_seed():
    random = np.random.default_rng(1)
    luck = random.normal(0, 1, 6)
    runs = [
        {"optimizer": name, "seed": seed, "accuracy": gain + luck[seed] + random.normal(0, 0.01)}
        for name, gain in (("adam", 0.0), ("sgd", 0.1))
        for seed in range(6)
    ]

    fields = impact(runs).fields

    assert fields["design"]["method"] == "paired by seed"
    low, high = fields["interval"]["optimizer: adam -> sgd"]
    assert 0 < low <= 0.1 <= high


def test_without_seeds_levels_are_compared_as_groups():
    runs = grouped(np.random.default_rng(2), {"adam": 0.0, "sgd": 0.5, "lion": 0.0})
    bare = [{name: value for name, value in run.items() if name != "seed"} for run in runs]

    fields = impact(bare).fields

    assert fields["design"]["method"] == "Welch"
    assert fields["design"]["p_all_levels"] < 1e-3
    assert fields["significance"]["optimizer: adam -> sgd"] < 1e-2
    assert fields["significance"]["optimizer: adam -> lion"] > 0.05


def test_one_run_a_level_tells_nothing():
    runs = [{"optimizer": name, "accuracy": value} for name, value in (("adam", 0.5), ("sgd", 0.6))]

    envelope = impact(runs)

    assert envelope.fields["impact"] is None
    assert "two seeds at least" in {each.field: each.why for each in envelope.missing}["impact"]


def test_factors_that_move_together_cannot_be_told_apart():
    random = np.random.default_rng(3)
    runs = [{"lr": lr, "batch": 16_000 * lr, "loss": random.normal()}
            for lr in (1e-3, 2e-3, 4e-3) for _ in range(4)]  # fmt: skip

    envelope = impact(runs)

    assert envelope.fields["impact"] is None
    assert "cannot be told apart" in {each.field: each.why for each in envelope.missing}["impact"]


def test_the_outcome_must_be_told_where_several_columns_may_be_it():
    random = np.random.default_rng(4)
    runs = [run | {"accuracy": random.random()} for run in runs_of(random)]

    asked, told = impact(runs), impact(runs, {"outcome": "loss"})

    assert "accuracy" in {each.field: each.why for each in asked.missing}["impact"]
    assert set(told.fields["impact"]) == {"lr", "batch"}


def test_a_scale_is_what_was_declared():
    runs = runs_of(np.random.default_rng(5), noise=0.01)

    logs, plain = impact(runs).fields, impact(runs, {"log_scales": []}).fields

    assert logs["impact"]["lr"] == pytest.approx(2, abs=0.02)
    assert plain["design"]["scales"] == {"lr": "linear", "batch": "linear"}
    assert plain["impact"]["lr"] > 100


def test_levels_in_words_enter_the_model_beside_numbers():
    random = np.random.default_rng(6)
    runs = [run | {"optimizer": name, "loss": run["loss"] + 3 * (name == "sgd")}
            for run in runs_of(random, noise=0.1) for name in ("adam", "sgd")]  # fmt: skip

    fields = impact(runs).fields

    assert fields["impact"]["optimizer=sgd"] == pytest.approx(3, abs=0.1)
    assert fields["impact"]["lr"] == pytest.approx(2, abs=0.1)


def test_incomplete_runs_and_labels_are_left_out():
    runs = runs_of(np.random.default_rng(7), noise=0.1)
    odd = [
        {"lr": 1e-3, "batch": 16, "seed": 9, "loss": None},
        {"lr": None, "batch": 8, "loss": 1.0},
    ]
    named = [run | {"run_id": f"r{at}"} for at, run in enumerate(runs + odd)]

    fields = impact(named).fields

    assert fields["design"]["runs"] == len(runs)
    assert set(fields["impact"]) == {"lr", "batch"}
    json.dumps(fields, allow_nan=False)
