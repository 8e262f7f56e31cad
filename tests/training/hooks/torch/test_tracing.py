"""What the first pass of a model shows: order, non-linearities, what goes in and out."""

import threading
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from training.hooks.loops import mlp, read, trained

from difflens.training.history import read_history
from difflens.training.hooks.torch.tracing import Tracing

torch: Any = pytest.importorskip("torch")
nn: Any = torch.nn
functional = nn.functional


class Backwards(nn.Module):
    """Registers its layers in another order than they run in, and uses functions between them."""

    def __init__(self, last=None):
        super().__init__()
        self.head = nn.Linear(12, 5)
        self.norm = nn.LayerNorm(16)
        self.middle = nn.Linear(16, 12)
        self.first = nn.Linear(20, 16)
        self.never = nn.Linear(3, 3)
        self.drop = nn.Dropout(0.1)
        self.last = last

    def forward(self, x):
        x = functional.relu(self.norm(self.first(x)))
        x = self.head(torch.sigmoid(self.middle(self.drop(x))))
        return x if self.last is None else self.last(x)


def test_layers_stand_in_the_order_in_which_they_run(tmp_path):
    model = Backwards()
    wanted = trained(model, tmp_path / "run", steps=3)

    frames, info = read(tmp_path / "run")
    names = [layer.name for layer in info.layers]
    assert names[::2] == ["first.weight", "norm.weight", "middle.weight", "head.weight",
                          "never.weight"]  # fmt: skip
    places = [name for name, _ in model.named_parameters()]
    for frame, exact in zip(frames, wanted, strict=True):
        for i, name in enumerate(names[:8]):
            assert frame.layers[0, i] == pytest.approx(exact[0][places.index(name)], rel=1e-5)
            assert frame.layers[6, i] == pytest.approx(exact[6][places.index(name)], rel=1e-5)


def test_functions_count_as_non_linearities(tmp_path):
    trained(Backwards(), tmp_path / "run", steps=1)

    _, info = read(tmp_path / "run")
    behind = {layer.name: layer.activation for layer in info.layers if layer.role == "weight"}
    assert behind == {"first.weight": "ReLU", "norm.weight": "ReLU", "middle.weight": "Sigmoid",
                      "head.weight": "", "never.weight": ""}  # fmt: skip
    assert info.facts["norm_layers"] == 1


def test_the_largest_share_that_is_dropped_is_a_fact(tmp_path):
    dropping = nn.Sequential(nn.Dropout(0.7), nn.Dropout(0.2), nn.Linear(20, 5))
    for name, model, share in (("a", dropping, 0.7), ("b", nn.Linear(20, 5), 0.0)):
        trained(model, tmp_path / name, steps=1)

        assert read(tmp_path / name)[1].facts["dropout"] == share


@pytest.mark.parametrize(
    ("last", "name", "sums"),
    [
        (None, "Linear", False),
        (nn.Softmax(-1), "Softmax", True),
        (lambda x: functional.softmax(x, -1), "Softmax", True),
        (lambda x: torch.log_softmax(x, -1), "LogSoftmax", False),
    ],
)
def test_what_ran_last_is_told_whether_module_or_function(tmp_path, last, name, sums):
    """A softmax in front of the loss is found by it."""
    trained(Backwards(last), tmp_path / "run", steps=1)

    history = read_history(tmp_path / "run")
    assert history.fact("final_module") == name
    output = history.fact("output")
    assert output["rows_sum_to_one"] is sums
    assert output["shape"] == [16, 5]


def test_the_input_is_described(tmp_path):
    data = torch.randn(16, 20)
    data[:, 0] = 7.0
    data[:, 1] *= 1000
    trained(mlp(), tmp_path / "run", steps=1, inputs=data)

    given = read_history(tmp_path / "run").fact("input")
    assert given["dtype"] == "float32"
    assert given["features_std_min"] == 0
    assert given["features_std_max"] == pytest.approx(float(data[:, 1].std()), rel=1e-6)
    assert given["mean"] == pytest.approx(float(data.double().mean()), rel=1e-6)


def test_modules_left_in_eval_mode_are_named(tmp_path):
    model = Backwards()
    model.eval()
    trained(model, tmp_path / "run", steps=2)

    assert read_history(tmp_path / "run").fact("eval_modules") == ["drop"]


def test_a_module_in_eval_mode_later_is_told_later(tmp_path):
    model = Backwards()
    trained(model, tmp_path / "run", steps=130, compute_reference=False,
            between=lambda step: model.train(step < 10))  # fmt: skip

    history = read_history(tmp_path / "run")
    assert history.info.facts["eval_modules"] == []
    assert history.fact("eval_modules") == ["drop"]


def test_a_whole_model_in_eval_mode_is_told_at_that_very_step(tmp_path):
    """A model that a validation left so; single modules are looked at now and again only."""
    model = Backwards()
    trained(model, tmp_path / "run", steps=20, compute_reference=False,
            between=lambda step: model.train(step < 10))  # fmt: skip

    notes = read_history(tmp_path / "run").notes
    told = next(note for note in notes if note.data.get("eval_modules") == ["drop"])
    assert told.sequence in (10, 11)


def test_autocast_is_told(tmp_path):
    with torch.autocast("cpu", torch.bfloat16):
        trained(mlp(), tmp_path / "run", steps=1)

    assert read_history(tmp_path / "run").fact("amp") == "bfloat16"


def test_activations_are_those_of_the_sampled_steps(tmp_path):
    model = mlp()
    with torch.no_grad():
        model[0].bias[:10] = -1e3  # ten units that nothing wakes
        model[2].weight.mul_(1e3)
    trained(model, tmp_path / "run", steps=9, activations=4, rate=0.0)

    frames, info = read(tmp_path / "run")
    from difflens.training.history.frame import is_missing

    dead, saturated = info.fields.index("act_dead"), info.fields.index("act_saturated")
    assert [bool(is_missing(f.layers[dead, :1])[0]) for f in frames] == [
        True, True, True, True, False, True, True, True, False,
    ]  # fmt: skip
    sampled = frames[4].layers
    assert sampled[dead, 0] == pytest.approx(10 / 33, abs=2 / 33)
    assert sampled[saturated, 2] > 0.95
    assert is_missing(sampled[dead, 2:3])[0]  # a tanh cannot die
    assert is_missing(sampled[dead, 1:2])[0]  # a bias has no activations of its own


def passed(values):
    """Return a pass of which these went in and came out."""
    return SimpleNamespace(
        input=lambda: values, input_dtype="float32",
        output=lambda: values, output_shape=[*values.shape],
    )  # fmt: skip


@pytest.mark.parametrize("dtype", [torch.float64, torch.float32, torch.float16, torch.bfloat16])
@pytest.mark.parametrize("shape", [(6,), (6, 4), (6, 3, 4, 4)])
def test_what_goes_in_and_out_is_described_as_torch_would(dtype, shape):
    values = torch.randn(shape, generator=torch.Generator().manual_seed(5)).to(dtype)
    if len(shape) == 4:
        values = values.to(memory_format=torch.channels_last)
    exact = values.double()
    rows = exact.flatten(1) if exact.dim() > 1 else exact[:, None]

    seen = Tracing.seen(passed(values))

    assert seen["input"] == {
        "dtype": "float32",
        "mean": pytest.approx(rows.mean().item()),
        "std": pytest.approx(rows.std().item()),
        "min": rows.min().item(),
        "max": rows.max().item(),
        "features_std_min": pytest.approx(rows.std(0).min().item()),
        "features_std_max": pytest.approx(rows.std(0).max().item()),
    }
    assert (seen["output"]["min"], seen["output"]["max"]) == (exact.min(), exact.max())
    assert not seen["output"]["rows_sum_to_one"]
    assert Tracing.seen(passed(exact.softmax(-1).to(dtype)))["output"]["rows_sum_to_one"]


_TASKS = Path("/proc/self/task")


@pytest.mark.skipif(not _TASKS.exists(), reason="threads are counted by /proc")
def test_describing_them_begins_no_threads_beside_those_of_the_loop():
    """One thread more than processors, and OpenMP lets the loop's sleep at every barrier."""
    begun = []

    def described():
        before = len([*_TASKS.iterdir()])
        Tracing.seen(passed(torch.rand(64, 4096)))
        begun.append(len([*_TASKS.iterdir()]) - before)

    threads = torch.get_num_threads()
    torch.set_num_threads(2)
    try:
        recorder = threading.Thread(target=described)
        recorder.start()
        recorder.join()
    finally:
        torch.set_num_threads(threads)
    assert begun == [0]
