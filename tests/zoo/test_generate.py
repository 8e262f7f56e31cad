"""Two or three short runs from knobs to labels: recorded, kept, labelled, mended."""

from __future__ import annotations

import json
import math
from dataclasses import replace
from itertools import combinations

import pytest
from zoo_runs import a_label

from difflens.training.history import read_history
from zoo import generate
from zoo.configs import Config
from zoo.configs.faults import FAULTS
from zoo.fixes import mended
from zoo.generate import Job, jobs_of, train
from zoo.loop import Loop
from zoo.parts import PARTS, Part
from zoo.verdicts import Verdict

SHORT = Config(data="blobs", depth=2, width=8, steps=50)


@pytest.fixture(scope="module")
def trained(tmp_path_factory):
    folder = tmp_path_factory.mktemp("zoo")
    job = Job("short", SHORT, 0)
    return job, folder, train(job, folder)


def test_a_run_is_recorded_at_every_step_with_what_the_diagnoses_read(trained):
    job, folder, outcome = trained
    history = read_history(folder / "runs" / job.folder)

    assert history.frames == 50
    assert history.course.scalar("loss").tolist() == pytest.approx(outcome["losses"], rel=1e-6)
    assert {layer.name for layer in history.info.layers} >= {"hidden.0.linear.weight"}
    for field in ("grad_l2", "update_l2", "act_dead"):
        assert history.course.field(field) is not None
    assert sorted(map(int, outcome["val_losses"])) == [19, 39]


def test_a_run_that_is_there_is_not_trained_again(trained, monkeypatch):
    job, folder, outcome = trained
    monkeypatch.setattr(Loop, "run", lambda *_: pytest.fail("trained again"))

    assert train(job, folder)["losses"] == outcome["losses"]


def test_the_same_seed_gives_the_same_run(trained, tmp_path):
    job, _, outcome = trained

    assert train(replace(job, record=False), tmp_path)["losses"] == outcome["losses"]
    assert train(replace(job, seed=1, record=False), tmp_path)["losses"] != outcome["losses"]


@pytest.mark.parametrize(
    ("changes", "still"),
    [
        ({"calls_step": False}, "output.weight"),
        ({"optimised": "last"}, "hidden.0.linear.weight"),
        ({"detach_after": 0}, "hidden.0.linear.weight"),
        ({"frozen": 1}, "hidden.0.linear.weight"),
        ({"schedule": "early-zero", "steps": 20}, None),
    ],
)
def test_a_switch_of_the_loop_leaves_the_weights_alone_that_it_names(changes, still):
    loop = Loop(replace(SHORT, **{"steps": 5, **changes}), 0)
    before = {name: each.detach().clone() for name, each in loop.model.named_parameters()}
    loop.run(_Nobody())
    moved = {name for name, each in loop.model.named_parameters() if (each != before[name]).any()}

    assert still not in moved
    assert moved or changes == {"calls_step": False}


def test_gradients_that_are_never_zeroed_pile_up():
    sums = {}
    for zero in ("start", "before-backward", "after-step", "never"):
        loop = Loop(replace(SHORT, zero_grad=zero, lr=0.0, steps=4, batch=2000), 0)
        norms = []
        loop.optimiser.register_step_pre_hook(
            lambda *_, loop=loop, norms=norms: norms.append(
                float(loop.model.output.weight.grad.norm())
            )
        )
        loop.run(_Nobody())
        sums[zero] = norms[-1] / norms[0]

    assert sums.pop("never") == pytest.approx(4, rel=1e-4)
    assert list(sums.values()) == pytest.approx([1, 1, 1], rel=1e-4)


def test_no_run_is_in_two_parts():
    """But for parents of blind faults, which are trained for the gate and asked about by nobody."""
    recorded = {part: [job for job in jobs_of(part) if job.record] for part in PARTS}

    for left, right in combinations(recorded.values(), 2):
        assert not {job.name for job in left} & {job.name for job in right}
    for jobs in recorded.values():
        assert len({job.folder for job in jobs}) == len(jobs)


@pytest.mark.parametrize("part", PARTS)
def test_a_part_has_every_seed_of_its_faults_and_of_their_parents(part):
    jobs = {(job.name, job.seed) for job in jobs_of(part)}

    for fault in PARTS[part].faults:
        for seed in fault.seeds:
            assert {(fault.id, seed), (f"parent-{fault.parent_name}", seed)} <= jobs


def test_labels_are_made_of_what_the_runs_came_to(tmp_path, monkeypatch):
    fault = replace(FAULTS[0], parent_name="mlp", changes={"calls_step": False})
    monkeypatch.setattr(generate, "PARTS", {"report": Part((fault,), ())})
    for seed in range(5):
        for name, config, accuracy in (
            (fault.id, fault.config, 0.1 if seed else 0.99),
            ("parent-mlp", fault.parent.config, 0.99),
        ):
            run = tmp_path / "runs" / Job(name, config, seed).folder
            run.mkdir(parents=True)
            outcome = {"val_accuracy": accuracy, "losses": [1.0, 0.5], "val_losses": {}}
            (run / generate.OUTCOME).write_text(json.dumps(outcome))
    labels = generate.write_labels(tmp_path)

    assert [each.seed for each in labels] == [0, 1, 2, 3, 4]
    assert {each.part for each in labels} == {"report"}
    assert not any(each.heals or each.dropped for each in labels)
    assert json.loads((tmp_path / "labels.json").read_text())[0]["class"] == fault.name


def test_what_strikes_out_of_a_clear_sky_is_no_divergence_to_be_foreseen(tmp_path, monkeypatch):
    gone = [1.0] * 40 + [math.nan] * 10
    labels = {}
    for name, changes in (
        ("creeping", {"lr": 5.0}),
        ("sudden", {"switch_step": 40, "switched": (("input_scale", 100.0),)}),
    ):
        fault = replace(FAULTS[0], id=name, parent_name="mlp", changes=changes)
        monkeypatch.setattr(generate, "PARTS", {"report": Part((fault,), ())})
        run = tmp_path / name / "runs" / Job(name, fault.config, 0).folder
        run.mkdir(parents=True)
        outcome = {"val_accuracy": 0.1, "losses": gone, "val_losses": {}}
        (run / generate.OUTCOME).write_text(json.dumps(outcome))
        labels[name] = generate.labels_of(tmp_path / name)[0].divergence_step

    assert labels == {"creeping": 40, "sudden": None}


def test_a_faulty_run_is_mended_when_its_remedy_reaches_the_parents_target(tmp_path, monkeypatch):
    fault = replace(
        FAULTS[0], parent_name="mlp", changes={"calls_step": False, "steps": 60, "lr": 0.01}
    )
    monkeypatch.setattr("zoo.fixes.ALL_FAULTS", (fault,))
    monkeypatch.setattr("zoo.fixes.train_all", _in_this_process)
    label = a_label(config=fault.id)
    works, none = Verdict(fixes=({"code": "call_step", "parameters": {}},)), Verdict()
    healthy = a_label(config=fault.id, healthy=True)
    untold = a_label(config=fault.id, id="untold")
    share, rows = mended([(label, works), (untold, none), (healthy, works)], tmp_path)

    assert (share.hits, share.n) == (1, 2)
    assert [row["mended"] for row in rows] == [True, False]


def _in_this_process(jobs, folder, **_options):
    return {job.folder: train(job, folder) for job in jobs}


class _Nobody:
    def step(self, loss=None, **scalars):
        pass
