"""`gradients` and `diagnose` have one definition of unhealthy: they agree on every run."""

import json

import numpy as np
import pytest
import torch
from click.testing import CliRunner

import difflens
from difflens import GradientAnalyzer
from difflens.cli import group
from difflens.testing.diagnoses import _course
from difflens.testing.histories import falling, faulty, healthy, recorded
from difflens.training.history.frame import MISSING
from zoo.generate import Job, train
from zoo.parts import PARTS

TUNE = {each.id: each for each in PARTS["tune"].configurations}
# Of plain networks, convolutions, transformers and recurrent ones, by SGD, Adam and AdamW; norms
# of most scatter or swing, and H13 has a frozen layer.
HEALTHY = ("H1", "H2", "H4", "H10", "H13", "H16", "H20", "H22")
ALL_HEALTHY = tuple(each.id for each in PARTS["tune"].controls)
ILL = ("D1", "E1", "V1", "UH2", "W1", "W2", "W4", "S4")
DEPTHS = ("basic", "standard", "comprehensive", "expert")


@pytest.fixture(scope="module")
def run_of(tmp_path_factory):
    folder = tmp_path_factory.mktemp("zoo")

    def trained(name):
        job = Job(name, TUNE[name].config, TUNE[name].seeds[0])
        train(job, folder)
        return folder / "runs" / job.folder

    return trained


def told(found):
    return {
        name: each.health_metrics.overall_health
        for name, each in found.layer_details.items()
        if each.health_metrics.overall_health in ("Warning", "Critical")
    }


def assert_silent(run, depth="comprehensive"):
    assert difflens.diagnose(run).healthy is True
    found = GradientAnalyzer(depth).analyze_run(run)
    assert told(found) == {}
    assert found.optimization_priorities == ()
    assert not any(each.optimization_suggestions for each in found.layer_details.values())


@pytest.mark.parametrize("name", HEALTHY)
def test_gradients_warns_of_no_layer_of_a_run_that_diagnose_calls_healthy(run_of, name):
    assert_silent(run_of(name))


@pytest.mark.slow
@pytest.mark.parametrize("name", ALL_HEALTHY)
def test_gradients_warns_of_no_layer_of_any_healthy_run_of_the_zoo(run_of, name):
    run = run_of(name)
    if difflens.diagnose(run).healthy:
        assert_silent(run)


@pytest.mark.parametrize("name", list(healthy()))
def test_gradients_warns_of_no_layer_of_a_made_healthy_run(name):
    for depth in DEPTHS:
        assert_silent(healthy()[name], depth)


@pytest.mark.parametrize("name", ILL)
def test_gradients_warns_of_the_layers_of_a_run_that_diagnose_calls_ill(run_of, name):
    run = run_of(name)
    found = difflens.diagnose(run)
    warned = told(GradientAnalyzer().analyze_run(run))

    assert found.healthy is False
    assert warned
    named = {
        layer for each in found.findings if each.severity == "critical" for layer in each.layers
    }
    assert {layer for layer in named if warned.get(layer) != "Critical"} == set()


@pytest.mark.parametrize("name", sorted(faulty()))
def test_a_fault_that_diagnose_finds_is_never_passed_over_in_silence(name):
    for depth in DEPTHS:
        found = GradientAnalyzer(depth).analyze_run(faulty()[name])

        assert told(found) or any(f": {name} (" in each for each in found.warnings)


def test_signs_that_are_no_faults_are_kept_as_notes(run_of):
    found = GradientAnalyzer().analyze_run(run_of("H16"))
    notes = [note for each in found.layer_details.values() for note in each.health_metrics.notes]

    assert any(note.startswith("unstable: ") for note in notes)
    assert any("diagnose calls the run healthy" in each for each in found.warnings)


def test_norms_alone_are_judged_by_their_own_rules():
    scattered = np.exp(1.5 * np.random.default_rng(0).standard_normal(200))

    assert told(GradientAnalyzer().analyze_gradients({"fc": scattered})) == {"fc": "Warning"}


def test_a_log_without_weights_is_judged_by_norms(tmp_path):
    log = tmp_path / "log.csv"
    rows = [f"{i},{1 / (i + 1)},1,0" for i in range(200)]
    log.write_text("\n".join(["step,loss,grad_norm/fc1.weight,grad_norm/fc2.weight", *rows]) + "\n")

    assert told(GradientAnalyzer().analyze_run(log)) == {"fc2.weight": "Critical"}


def test_a_rise_of_thousands_at_the_end_stands_though_the_loss_has_not_suffered_yet():
    norms = 0.01 * np.exp(0.2 * np.random.default_rng(0).standard_normal(200))
    norms[-10:] *= np.geomspace(1, 1e4, 10)

    assert set(
        told(GradientAnalyzer().analyze_run(recorded(falling(200), grad_l2=norms))).values()
    ) == {"Critical"}


def test_gradients_that_explode_under_adam_are_warned_of_by_both():
    norms = 0.01 * np.exp(0.2 * np.random.default_rng(0).standard_normal(200))
    norms[-10:] *= np.geomspace(1, 1e7, 10)
    history = recorded(falling(200), grad_l2=norms)
    found = GradientAnalyzer().analyze_run(history)

    assert difflens.diagnose(history).healthy is False
    assert set(told(found).values()) == {"Critical"}
    assert not any("diagnose calls the run healthy" in each for each in found.warnings)


def test_layers_at_fault_by_norms_alone_are_not_called_notes():
    norms = 0.01 * np.exp(0.2 * np.random.default_rng(0).standard_normal(200))
    norms[-10:] *= np.geomspace(1, 3e3, 10)
    history = recorded(falling(200), grad_l2=norms)
    found = GradientAnalyzer().analyze_run(history)

    layers = len(told(found))
    assert difflens.diagnose(history).healthy is True
    assert layers > 0
    said = f"diagnose finds no fault in the run: {layers} layers are at fault by gradient norms"
    assert any(each.startswith(said) for each in found.warnings)
    assert not any("notes, no faults" in each for each in found.warnings)


def test_steps_recorded_without_layers_do_not_matter():
    made = healthy()["learning"]

    def thinned(course):
        layers = course._layers.copy()
        layers[:, np.arange(len(course)) % 7 != 0] = MISSING
        return _course(course, layers=layers)

    sparse = made._replace(course=thinned(made.course), recent=thinned(made.recent))
    found = GradientAnalyzer("expert").analyze_run(sparse)

    assert {each.gradient_statistics.samples for each in found.layer_details.values()} == {
        -(-len(made.course) // 7)
    }
    assert told(found) == {}
    assert found.network_level_analysis.depth_profile is not None


def odd_run(folder, kind):
    """Train a network of which one layer is frozen, cut off or not handed to the optimizer."""
    torch.manual_seed(0)
    first, second, last = torch.nn.Linear(4, 8), torch.nn.Linear(8, 8), torch.nn.Linear(8, 1)
    model = torch.nn.ModuleList([first, second, last])
    if kind == "frozen":
        first.requires_grad_(False)
    if kind == "all frozen":
        model.requires_grad_(False)
        last.bias.requires_grad_(True)
    chosen = [*second.parameters(), *last.parameters()]
    given = chosen if kind == "not optimised" else model.parameters()
    optimizer = torch.optim.Adam([each for each in given if each.requires_grad], lr=0.01)
    inputs = torch.randn(32, 4)
    with difflens.monitor(model, optimizer, folder, every=1) as watch:
        for _ in range(30):
            optimizer.zero_grad()
            hidden = torch.tanh(first(inputs))
            hidden = hidden.detach() if kind == "detached" else hidden
            loss = (last(torch.tanh(second(hidden))) - inputs.sum(1, keepdim=True)).square().mean()
            loss.backward()
            optimizer.step()
            watch.step(loss=loss)
    return str(folder)


def assert_frozen_last(run):
    """The layers that are not trained stand last in the table, by that word."""
    lines = CliRunner().invoke(group, ["gradients", run], standalone_mode=False).stdout.splitlines()
    at = lines.index("Layers, worst first:")
    table = [line.split() for line in lines[at + 2 : at + 8]]
    assert [row[0] for row in table if row[-1] == "frozen"] == ["0.weight", "0.bias"]
    assert [row[0] for row in table][-2:] == ["0.weight", "0.bias"]
    assert any("2 frozen" in line and "not known" not in line for line in lines)


@pytest.mark.parametrize("kind", ["frozen", "all frozen", "detached", "not optimised"])
@pytest.mark.parametrize("depth", DEPTHS)
def test_a_frozen_detached_or_unoptimised_layer_does_not_crash_gradients(tmp_path, kind, depth):
    run = odd_run(tmp_path / "run", kind)

    result = CliRunner().invoke(
        group, ["gradients", run, "--depth", depth, "-o", "json"], standalone_mode=False
    )

    assert result.exception is None
    details = json.loads(result.output)["layer_details"]
    assert len(details) == 6
    if kind == "frozen":
        assert details["0.weight"]["health_metrics"]["overall_health"] == "Unknown"
        assert_frozen_last(run)
    assert CliRunner().invoke(group, ["gradients", run], standalone_mode=False).exception is None
