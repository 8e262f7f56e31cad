"""The zoo in Keras and JAX: its starts, its gate, and what is said of a few short runs."""

from __future__ import annotations

import json
from dataclasses import replace

import numpy as np
import pytest

from zoo.configs import Config
from zoo.data import load
from zoo.elsewhere import __main__ as program
from zoo.elsewhere.chosen import (
    CONTROL_NAMES,
    FAULT_NAMES,
    FRAMEWORKS,
    MORE_SEEDS,
    SEEDS,
    Group,
    controls,
    faults,
    groups,
    refuse_unknown,
)
from zoo.elsewhere.runs import labels_of, pattern_of, train_all
from zoo.elsewhere.start import starts
from zoo.labels import at_fault
from zoo.replay import replay

SHORT = {"D1": 40, "L1": 40, "H8": 120}  # steps: both faults show within the first twenty


class TestWhatIsChosen:
    def test_twelve_faults_and_six_controls_at_least_and_all_of_them_can_be_trained(self):
        assert len(set(FAULT_NAMES)) >= 12
        assert len(set(CONTROL_NAMES)) >= 6
        for each in (*faults(), *controls()):
            refuse_unknown(each.config)
        for fault in faults():
            refuse_unknown(fault.parent.config)

    def test_the_classes_are_spread(self):
        assert len({fault.name for fault in faults()}) >= 10

    @pytest.mark.parametrize("changes", [{"norm": "batch"}, {"optimised": "all-but-0"}])
    def test_a_knob_that_these_loops_do_not_have_is_refused(self, changes):
        with pytest.raises(ValueError, match=next(iter(changes))):
            refuse_unknown(replace(Config(), **changes))

    def test_a_fault_brings_its_parent(self):
        names = [each.name for each in groups("jax", ["V1", "H8"])]

        assert names == ["V1", "parent-deep12", "H8"]


class TestTheStart:
    def test_it_has_the_spread_that_the_knobs_ask_for(self):
        config = Config(depth=2, width=400, hidden_bias=-8.0, init_scale=3.0)
        first, second, output = starts(config, load(config, 0), 0)

        assert first.kernel.shape == (64, 400)
        assert output.kernel.shape == (400, 10)
        assert second.kernel.std() == pytest.approx(3 * (2 / 400) ** 0.5, rel=0.02)
        assert (first.bias == -8).all()
        assert (output.bias == 0).all()

    def test_it_is_a_matter_of_the_seed_alone(self):
        data = load(Config(), 0)
        one, same, other = (starts(Config(), data, seed)[0].kernel for seed in (1, 1, 2))

        assert np.array_equal(one, same)
        assert not np.array_equal(one, other)


class TestTheGate:
    def test_a_fault_whose_parent_fails_is_dropped_and_one_that_works_heals(self):
        labels = labels_of("jax", outcomes(V1=0.1, S1=0.99, parent_sgd=0.99, parent_deep12=0.5))

        found = {each.config: (each.heals, each.dropped) for each in labels}
        assert found == {"V1": (False, True), "S1": (True, False)}

    def test_four_of_five_seeds_of_a_parent_suffice(self):
        kept = outcomes(V1=0.1, parent_deep12=0.99)
        kept[next(name for name in kept if "parent" in name)]["val_accuracy"] = 0.2

        assert not any(each.dropped for each in labels_of("jax", kept))

    def test_a_control_that_misses_its_target_is_dropped(self):
        assert [each.dropped for each in labels_of("jax", outcomes(H1=0.2))] == [True] * 3

    def test_layers_are_named_as_the_framework_names_them(self):
        names = ("sequential_3/hidden_4/kernel", "sequential_3/output/bias")

        assert at_fault(names, (pattern_of("keras-jax", "hidden.[0-5].*"),)) == [True, False]
        assert at_fault(names, (pattern_of("keras-torch", "hidden.*"),)) == [True, False]
        assert at_fault(("hidden.4.kernel",), (pattern_of("jax", "hidden.[0-5].*"),)) == [True]


def outcomes(**measured):
    """Return what trainings came to: all seeds of a name alike."""
    known = {each.name.replace("-", "_"): each for each in groups("jax")}
    found = {}
    for name, value in measured.items():
        group = known[name]
        for seed in (*SEEDS, *MORE_SEEDS) if name.startswith("parent") else SEEDS:
            found[group.folder(seed)] = {"val_accuracy": value, "losses": [1.0], "val_losses": {}}
    return found


SLOW = [pytest.mark.slow]  # its halves, Keras and JAX, are trained with each other's partner


@pytest.mark.parametrize(
    "framework",
    [pytest.param(each, marks=SLOW if each == "keras-jax" else []) for each in FRAMEWORKS],
)
def test_two_faults_are_named_and_a_control_stays_silent(framework, tmp_path):
    chosen = {each.id: each for each in (*faults(), *controls())}
    short = [
        Group(framework, name, replace(chosen[name].config, steps=steps), (0,))
        for name, steps in SHORT.items()
    ]
    train_all(framework, short, tmp_path, processes=1)
    said = {each.name: replay(tmp_path / each.folder(0)).alarms for each in short}

    assert said["D1"][0].names == {"dead"}
    assert at_fault(said["D1"][0].layers[:1], (pattern_of(framework, "hidden.*"),)) == [True]
    assert said["L1"][0].names == {"loss-pairing"}
    assert said["H8"] == ()


@pytest.mark.slow
def test_the_whole_of_it_is_as_right_as_in_torch(tmp_path, capsys):
    program.main(["--folder", str(tmp_path / "runs"), "--json", str(tmp_path / "r.json")])
    figures = json.loads((tmp_path / "r.json").read_text())

    assert "dropped by the gate" in capsys.readouterr().out
    for framework in FRAMEWORKS:
        score = figures[framework]["score"]
        assert score["recall"]["n"] >= 33, framework
        assert score["recall"]["value"] >= 0.95, framework
        assert score["false_alarms"]["value"] <= 0.05, framework
        assert score["right_first"]["value"] >= 0.85, framework
