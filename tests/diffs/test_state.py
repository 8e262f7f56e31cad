"""The state of a training run lies beside the weights of a checkpoint: it is none of them."""

import json

import numpy as np
import pytest

from difflens import diff
from difflens.cli import main
from difflens.core.records import View
from difflens.diffs import story
from difflens.diffs.inspection import inspect
from difflens.render.diffs import renderer


def run(*arguments):
    with pytest.raises(SystemExit) as stopped:
        main([str(each) for each in arguments])
    return stopped.value.code


def network(torch, seed=0):
    torch.manual_seed(seed)
    return torch.nn.Sequential(torch.nn.Linear(8, 16), torch.nn.Tanh(), torch.nn.Linear(16, 4))


def train(torch, path, make, steps, *, ema=False, freeze=False):
    """Train for some steps, and save what training scripts save."""
    net = network(torch)
    optimizer = make(net.parameters())
    scheduler = torch.optim.lr_scheduler.StepLR(optimizer, 2)
    average = torch.optim.swa_utils.AveragedModel(net) if ema else None
    before = {name: each.clone() for name, each in net.state_dict().items()}
    for _ in range(steps):
        net(torch.randn(3, 8)).square().sum().backward()
        optimizer.step()
        optimizer.zero_grad()
        scheduler.step()
        if average:
            average.update_parameters(net)
    checkpoint = {
        "state_dict": before if freeze else net.state_dict(),
        "optimizer": optimizer.state_dict(),
        "scheduler": scheduler.state_dict(),
        "epoch": steps,
    }
    torch.save(checkpoint | ({"ema": average.state_dict()} if average else {}), path)
    return path


OPTIMIZERS = {
    "Adam": (lambda torch: lambda p: torch.optim.Adam(p, 1e-3), "2 x 4 moments (exp_avg, exp"),
    "AdamW": (lambda torch: lambda p: torch.optim.AdamW(p, 1e-3, amsgrad=True), "3 x 4 moments"),
    "SGD": (lambda torch: lambda p: torch.optim.SGD(p, 1e-3, momentum=0.9), "1 x 4 moments (mom"),
    "Adagrad": (lambda torch: lambda p: torch.optim.Adagrad(p, 1e-3), "1 x 4 moments (sum)"),
    "RMSprop": (lambda torch: lambda p: torch.optim.RMSprop(p, 1e-3), "1 x 4 moments (square_avg)"),
    "RAdam": (lambda torch: lambda p: torch.optim.RAdam(p, 1e-3), "2 x 4 moments"),
    "Adafactor": (lambda torch: lambda p: torch.optim.Adafactor(p, 1e-3), "3 x 2 moments"),
}


@pytest.mark.parametrize("name", OPTIMIZERS)
def test_moments_are_not_weights(tmp_path, name):
    torch = pytest.importorskip("torch")
    make, text = OPTIMIZERS[name]
    left, right = (train(torch, tmp_path / f"{n}.pt", make(torch), n) for n in (2, 5))

    found = diff(left, right)

    weights = sum(each.numel() for each in network(torch).parameters())
    assert found.left.parameter_count == found.right.parameter_count == weights
    assert {delta.name for delta in found} == set(network(torch).state_dict())
    optimizer, scheduler = found.state
    assert optimizer.text.startswith(text)
    assert "lr 0.0001 -> 1e-05" in optimizer.text
    assert "step 2 -> 5" in optimizer.text or name == "SGD"
    assert scheduler.text == "epoch 2 -> 5"


def test_the_distance_is_over_weights_alone(tmp_path):
    torch = pytest.importorskip("torch")
    make = OPTIMIZERS["Adam"][0](torch)
    left, right = (train(torch, tmp_path / f"{n}.pt", make, n) for n in (2, 5))
    before, after = (torch.load(each)["state_dict"] for each in (left, right))

    found = diff(left, right).report().totals

    moved = sum(((after[name] - before[name]).double() ** 2).sum() for name in before)
    size = sum((before[name].double() ** 2).sum() for name in before)
    assert found.relative_l2 == pytest.approx(float((moved / size) ** 0.5), rel=1e-6)
    assert found.tensors == 4


def test_equal_weights_with_another_optimizer_state_are_said_to_be_equal(tmp_path, capsys):
    torch = pytest.importorskip("torch")
    make = OPTIMIZERS["Adam"][0](torch)
    left, right = (train(torch, tmp_path / f"{n}.pt", make, n, freeze=True) for n in (2, 5))

    verdict = diff(left, right).report().verdict

    assert (verdict.differs, verdict.word) == (True, "state")
    sentence = "the weights are the same; the optimizer state differs: step 2 -> 5"
    assert verdict.sentence == sentence
    assert run(left, right) == 1
    shown = capsys.readouterr().out
    assert sentence in shown
    assert "* state optimizer: 2 x 4 moments" in shown
    assert "param_groups" not in shown
    assert run(left, right, "--verify-conversion") == 0


def test_a_checkpoint_and_its_weights_alone_are_the_same_model(tmp_path):
    torch = pytest.importorskip("torch")
    left = train(torch, tmp_path / "left.pt", OPTIMIZERS["Adam"][0](torch), 3)
    torch.save(torch.load(left)["state_dict"], tmp_path / "right.pt")

    found = diff(left, tmp_path / "right.pt")

    assert found.report().totals.identical == 4
    assert found.state[0].text.endswith("only on the left")
    assert found.report().verdict.sentence == (
        "the weights are the same; the optimizer state is only on the left"
    )


def test_an_average_is_measured_from_its_weights(tmp_path):
    torch = pytest.importorskip("torch")
    make = OPTIMIZERS["Adam"][0](torch)
    left, right = (train(torch, tmp_path / f"{n}.pt", make, n, ema=True) for n in (2, 5))

    (part,) = (each for each in diff(left, right).state if each.kind == "ema")

    for side, path in (("left", left), ("right", right)):
        saved = torch.load(path)
        net = saved["state_dict"]
        moved = sum(((saved["ema"][f"module.{n}"] - net[n]).double() ** 2).sum() for n in net)
        size = sum((net[n].double() ** 2).sum() for n in net)
        assert part.from_weights[side] == pytest.approx(float((moved / size) ** 0.5), rel=1e-6)
    assert "from the weights" in part.text


def test_sgd_without_momentum_has_numbers_and_no_tensor(tmp_path):
    torch = pytest.importorskip("torch")
    make = lambda parameters: torch.optim.SGD(parameters, 1e-3)  # noqa: E731
    left, right = (train(torch, tmp_path / f"{n}.pt", make, n, freeze=True) for n in (2, 5))

    found = diff(left, right)

    assert "lr 0.0001 -> 1e-05" in found.state[0].text
    assert not found.report().verdict.differs


def test_state_dictionaries_of_lightning_are_summed_up(tmp_path):
    torch = pytest.importorskip("torch")
    make = OPTIMIZERS["Adam"][0](torch)
    for steps in (2, 5):
        saved = torch.load(train(torch, tmp_path / "plain.pt", make, steps))
        torch.save(
            {
                "state_dict": saved["state_dict"],
                "optimizer_states": [saved["optimizer"]],
                "lr_schedulers": [saved["scheduler"]],
                "callbacks": {"Stop{'monitor': 'loss'}": {"best": torch.tensor(1.0 / steps)}},
                "loops": {"fit_loop": {"total": steps}},
                "pytorch-lightning_version": "2.6.6",
                "global_step": steps,
            },
            tmp_path / f"{steps}.ckpt",
        )

    found = diff(tmp_path / "2.ckpt", tmp_path / "5.ckpt")

    assert len(found.pairs) == 4
    texts = {each.kind: each.text for each in found.state}
    assert texts["optimizer"].startswith("2 x 4 moments (exp_avg, exp_avg_sq), step 2 -> 5")
    assert texts["scheduler"] == "epoch 2 -> 5"
    assert texts["callbacks"] == "1 tensor, 1 of 1 tensors differ"
    assert texts["loops"] == "1 plain value differs"


@pytest.mark.filterwarnings("ignore")
def test_the_optimizer_of_keras_is_state(tmp_path):
    keras = pytest.importorskip("keras")
    random = np.random.default_rng(0)
    net = keras.Sequential([keras.Input((4,)), keras.layers.Dense(8), keras.layers.Dense(2)])
    net.compile("adam", "mse")
    for steps in (1, 2):
        net.fit(random.random((8, 4)), random.random((8, 2)), batch_size=8, verbose=0)
        net.save(tmp_path / f"{steps}.keras")

    found = diff(tmp_path / "1.keras", tmp_path / "2.keras")

    assert found.left.parameter_count == net.count_params()
    assert "step 1 -> 2, lr 0.001" in found.state[0].text


ADAM = {
    "w": np.ones((3, 2), np.float32),
    "optimizer": {"state": {"0": {"exp_avg": np.ones((3, 2), np.float32), "step": np.ones(())}}},
}


def moved(tree, name="exp_avg", by=1.0):
    state = {**ADAM["optimizer"]["state"]["0"]}
    state[name] = (state[name] + by).astype(state[name].dtype)
    return {**tree, "optimizer": {"state": {"0": state}}}


@pytest.mark.parametrize("output", ["cli", "json", "yaml", "markdown", "html", "full-json"])
def test_every_output_says_what_became_of_the_state(output):
    report = story.report(story.diff(ADAM, moved(ADAM, "step")))

    text = renderer[output].plugin(report, View())

    assert "step 1 -&gt; 2" in text or "step 1 -> 2" in text or "step 1 -\\> 2" in text


def test_json_has_the_numbers_of_both_sides():
    report = story.report(story.diff(ADAM, moved(ADAM, "step")))

    (row,) = json.loads(renderer["json"].plugin(report, View()))

    name, part = row["StateChanged"]
    assert (name, part["numbers"]["step"]) == ("optimizer", [1.0, 2.0])


def test_the_summary_names_a_change_of_the_state_and_no_change_of_weights():
    answer = diff(ADAM, moved(ADAM, "step")).analyse("change_summary")

    (record,) = answer.fields["changes"]
    assert (record["kind"], record["names"], record["share"]) == ("state_changed", [], None)
    assert "beside the weights: optimizer (" in answer.fields["sentence"]
    assert "step 1 -> 2" in answer.fields["sentence"]


def test_the_summary_is_silent_on_a_state_that_stayed():
    assert diff(ADAM, ADAM).analyse("change_summary").fields["changes"] == []


def test_state_that_stayed_is_no_difference_and_is_not_listed():
    report = story.report(story.diff(ADAM, ADAM))

    assert not report.verdict.differs
    assert report.state[0].text.endswith("unchanged")
    assert "state" not in renderer["cli"].plugin(report, View())
    assert "unchanged" in renderer["cli"].plugin(report, View(verbose=True))


def test_who_asks_for_the_state_by_name_gets_its_tensors():
    found = story.diff(ADAM, moved(ADAM), path="optimizer")

    assert [delta.name for delta in found.changed] == ["optimizer.state.0.exp_avg"]


def test_who_leaves_the_optimizer_out_hears_nothing_of_it():
    report = story.report(story.diff(ADAM, moved(ADAM), ignore="^optimizer"))

    assert not report.verdict.differs
    assert not report.state


def test_headers_alone_count_the_state_and_compare_none_of_it():
    report = story.report(story.diff(ADAM, moved(ADAM), shape_only=True))

    assert report.state[0].changed is None
    assert not report.verdict.differs


def test_an_optimizer_of_another_name_is_compared_by_what_it_keeps():
    other = {"w": ADAM["w"], "optimizer_state_dict": ADAM["optimizer"]}

    report = story.report(story.diff(ADAM, other))

    assert not report.verdict.differs


@pytest.mark.parametrize("name", ["health", "memory_analysis", "inference_speed_estimate"])
def test_figures_of_the_weights_are_those_of_the_weights_alone(name):
    weights = {"w": ADAM["w"]}
    if name == "health":
        from difflens import WeightAnalyzer

        found, alone = (
            WeightAnalyzer().analyze_weight_distribution(each) for each in (ADAM, weights)
        )
        assert found.overall_statistics == alone.overall_statistics
        return
    found, alone = (diff(each, each).analyse(name).fields for each in (ADAM, weights))
    assert found == alone


def test_show_counts_weights_and_sums_up_the_state(tmp_path, capsys):
    torch = pytest.importorskip("torch")
    path = train(torch, tmp_path / "a.pt", OPTIMIZERS["Adam"][0](torch), 3)

    assert run("show", path) == 0

    shown = capsys.readouterr().out
    assert "4 tensors (4 F32), 212 parameters" in shown
    assert "  optimizer: 2 x 4 moments (exp_avg, exp_avg_sq), step 3, lr 0.0001" in shown
    assert "exp_avg " not in shown
    assert len(inspect(path).tensors) == 16


def test_only_moments_of_small_values_in_a_file_that_is_no_checkpoint_are_tensors():
    state = {"state": {"0": {"exp_avg": np.ones(3), "exp_avg_sq": np.ones(3)}}}

    assert len(story.diff(state, state).pairs) == 2
