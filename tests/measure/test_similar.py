"""Leftovers matched by similar content: what is alike pairs, what chance makes alike does not."""

import re
from importlib.util import find_spec
from pathlib import Path

import numpy as np
import pytest
from cli.command import InProcess

import difflens
from difflens.core.records import Pair
from difflens.diffs import story as pipeline
from difflens.diffs.pairing import similar as subject
from difflens.diffs.pairing.similar import match_similar
from difflens.measure.spectrum import DeltaSpectrum
from difflens.models.opening import InMemory, MemorySource

SHAPES = [(64, 64), (96, 40), (128, 16, 3), (32, 1, 48), (200, 3), (8, 96), (12, 12), (512,), (64,)]


def random(*shape, seed=0):
    return np.random.default_rng([seed, *shape]).standard_normal(shape).astype("f4")


def noisy(array, sigma=0.3, seed=9):
    return (array + sigma * array.std() * random(*array.shape, seed=seed)).astype("f4")


def paired(left, right):
    """Name what was paired, with how; kinds of the rest do not matter."""
    deltas = pipeline.diff(left, right).deltas
    return {
        delta.pair.left.name: (delta.pair.right.name, delta.kind, delta.pair.how)
        for delta in deltas
        if delta.pair.left and delta.pair.right
    }


@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_noise_of_three_tenths_of_sigma_under_another_name_pairs(shape):
    model = {f"a{n}": random(*shape, seed=n) for n in range(4)}
    renamed = {f"b{n}": noisy(array, seed=n + 10) for n, array in enumerate(model.values())}

    found = paired(model, renamed)

    assert {left: right for left, (right, _, _) in found.items()} == {
        f"a{n}": f"b{n}" for n in range(4)
    }
    assert {kind for _, kind, _ in found.values()} == {"changed"}
    assert all(how.startswith("content: correlation 0.9") for _, _, how in found.values())
    assert all("next best" in how for _, _, how in found.values())


@pytest.mark.long
@pytest.mark.parametrize("shape", SHAPES, ids=str)
@pytest.mark.parametrize("draw", ["normal", "positive", "near one", "heavy", "sparse", "constant"])
def test_independent_tensors_of_one_shape_never_pair(shape, draw):
    make = {
        "normal": lambda x: x,
        "positive": np.abs,
        "near one": lambda x: 1 + 0.01 * x,
        "heavy": lambda x: x**9,
        "sparse": lambda x: x * (np.abs(x) > 2.5),
        "constant": np.ones_like,
    }[draw]
    left = {f"a{n}": make(random(*shape, seed=n)) for n in range(20)}
    right = {f"b{n}": make(random(*shape, seed=n + 20)) for n in range(20)}

    assert {how for _, _, how in paired(left, right).values()} <= {"content"}
    assert not any(kind == "changed" for _, kind, _ in paired(left, right).values())


@pytest.mark.parametrize("shape", [(64, 64), (128, 40), (256,)], ids=str)
def test_the_pattern_of_gates_that_all_models_share_is_no_likeness(shape):
    """Forget gates begin at 1 in every LSTM, and all columns of an embedding share a mean."""
    gates = np.repeat(np.array([0, 1, 0, 0], "f4"), shape[0] // 4)
    left, right = (
        0.05 * random(*shape, seed=seed) + gates.reshape(-1, *[1] * (len(shape) - 1))
        for seed in (1, 2)
    )

    assert paired({"a": left}, {"b": right}) == {}


@pytest.mark.parametrize("axis", [0, 1])
def test_an_order_that_all_models_share_along_one_axis_is_no_likeness(axis):
    """Positions, pixels and tokens come in one order, but in a basis of each model's own."""
    waves = np.stack([np.cos(np.pi * k * np.arange(96) / 96) for k in range(1, 4)], axis=1)
    left, right = (waves @ random(3, 96, seed=seed) for seed in (1, 2))
    if axis:
        left, right = left.T, right.T

    assert paired({"a": left.astype("f4")}, {"b": right.astype("f4")}) == {}


def test_what_two_tensors_could_equally_be_stays_unpaired():
    array = random(64, 64)

    assert paired({"a": array}, {"b": noisy(array, seed=1), "c": noisy(array, seed=2)}) == {}
    assert paired({"b": noisy(array, seed=1), "c": noisy(array, seed=2)}, {"a": array}) == {}


def test_a_copy_comes_before_what_is_similar():
    array = random(64, 64)

    found = paired({"a": array}, {"b": noisy(array, 0.01), "c": array})

    assert found == {"a": ("c", "identical", "content")}


def test_the_nearer_of_two_relatives_is_the_one():
    array = random(64, 64)

    found = paired({"a": array}, {"b": noisy(array, 0.1), "c": noisy(array, 1.0)})

    assert found["a"][0] == "b"


@pytest.mark.parametrize("shape", [(64, 64), (96, 40), (12, 12)], ids=str)
def test_a_similar_matrix_is_found_in_its_transpose(shape):
    array = random(*shape)

    diff = pipeline.diff({"w": array}, {"onnx::MatMul_1": noisy(array, 0.1).T.copy()})

    (delta,) = diff.deltas
    assert (delta.kind, delta.pair.transform) == ("changed", "left transposed")
    assert delta.cosine == pytest.approx(0.995, abs=2e-3)


def test_measures_of_a_pass_of_their_own_see_a_transposed_pair_in_one_layout():
    array = random(64, 64)
    moved = array + np.outer(random(64, seed=1), random(64, seed=2)) * np.float32(0.2)

    diff = pipeline.diff({"w": array}, {"onnx::MatMul_1": moved.T.copy()})

    ((delta, spectrum),) = diff.measured(DeltaSpectrum)
    assert delta.kind == "changed"
    assert spectrum.figures()["delta_stable_rank"] == pytest.approx(1.0, abs=1e-3)


def test_another_dtype_under_another_name_is_a_cast():
    array = random(64, 64)

    (found,) = paired({"a": array}, {"b": array.astype("f2")}).values()

    assert found[:2] == ("b", "recast")


def test_dimensions_of_1_do_not_matter():
    array = random(32, 48)

    (delta,) = pipeline.diff({"a": array}, {"b": noisy(array).reshape(32, 1, 48)}).deltas

    assert (delta.kind, delta.pair.transform) == ("changed", "right [32, 1, 48] seen as [32, 48]")


def test_a_similar_pair_is_a_difference_and_its_rename_is_told_with_the_margin():
    array = random(64, 64)

    report = difflens.diff({"a": array}, {"b": noisy(array)}).report()

    assert report.verdict.differs
    assert (report.totals.changed, report.totals.renamed_beyond_prefix) == (1, 1)
    assert report.tensors[0].how == "content: correlation 0.952, no other candidate"


def test_epsilon_holds_for_similar_pairs_too():
    array = random(64, 64)

    (delta,) = pipeline.diff({"a": array}, {"b": array + np.float32(1e-4)}, epsilon=1e-3).deltas

    assert delta.kind == "within_epsilon"


def test_a_guess_from_numbers_never_makes_a_conversion_right():
    array = random(64, 64)

    diff = pipeline.diff({"a": array}, {"b": array.astype("f2")})

    assert pipeline.report(diff, verify_conversion=True).verdict.differs


def trained(seed, steps=300):
    """Train a small network on data that is the same for every seed."""
    torch = pytest.importorskip("torch")
    torch.manual_seed(0)
    inputs = torch.randn(256, 24) @ torch.randn(24, 24)
    target = torch.sin(inputs @ torch.randn(24, 24) / 5) + 2
    torch.manual_seed(seed)
    layers = [torch.nn.Linear(24, 64), torch.nn.Tanh(), torch.nn.Linear(64, 64), torch.nn.Tanh()]
    network = torch.nn.Sequential(*layers, torch.nn.LayerNorm(64), torch.nn.Linear(64, 24))
    optimizer = torch.optim.Adam(network.parameters(), 3e-3)
    for _ in range(steps):
        optimizer.zero_grad()
        torch.nn.functional.mse_loss(network(inputs), target).backward()
        optimizer.step()
    return {name: value.detach().numpy().copy() for name, value in network.state_dict().items()}


def renamed(model):
    return {f"t{n}": array for n, array in enumerate(model.values())}


def test_networks_trained_from_other_seeds_do_not_pair():
    models = [trained(seed) for seed in (1, 2, 3)]

    assert paired(models[0], renamed(models[1])) == {}
    assert paired(models[1], renamed(models[2])) == {}


def test_a_network_trained_on_pairs_with_itself_where_its_layers_are_still_alike():
    before, after = trained(1, steps=300), trained(1, steps=400)

    found = paired(before, renamed(after))

    expected = {name: f"t{n}" for n, name in enumerate(before)}
    pairs = {name: right for name, (right, _, _) in found.items()}
    assert pairs.items() <= expected.items()
    assert {"2.weight", "2.bias", "4.weight"} <= pairs.keys()


def silero(name):
    if find_spec("silero_vad") is None:
        pytest.skip("silero_vad is not installed")
    return Path(find_spec("silero_vad").origin).parent / "data" / name


def test_sileros_convolutions_and_lstm_pair_with_their_onnx_counterparts():
    found = paired(silero("silero_vad_16k.safetensors"), silero("silero_vad_16k_op15.onnx"))

    weights = {name: right for name, (right, kind, _) in found.items() if kind == "changed"}
    encoder = {
        f"conv{n + 1}.{part}": f"model.encoder.{n}.reparam_conv.{part}"
        for n in range(4)
        for part in ("weight", "bias")
    }
    parts = ("weight_ih", "weight_hh", "bias_ih", "bias_hh")
    lstm = {f"lstm_cell.{part}": f"model.decoder.rnn.{part}" for part in parts}
    last = {f"final_conv.{part}": f"model.decoder.decoder.2.{part}" for part in ("weight", "bias")}
    assert weights == encoder | lstm | last
    by_graph = {"conv1.weight", "conv3.weight", "final_conv.bias"}  # alone of their shapes
    assert {name for name in weights if found[name][2] == "graph"} == by_graph
    for name in weights.keys() - by_graph:
        assert re.match(r"content: correlation 0\.[79]\d+, (next best|no other)", found[name][2])


def test_lineage_of_silero_and_its_onnx_file_is_derived(capsys):
    left, right = silero("silero_vad_16k.safetensors"), silero("silero_vad_16k_op15.onnx")

    assert "lineage: verdict=derived" in InProcess(capsys)(left, right, "--lineage").out


def test_unrelated_layers_of_silero_do_not_pair():
    """Each tensor is held against all others of its shape, its own counterpart taken away."""
    names = ["silero_vad_16k.safetensors", "silero_vad_16k_op15.onnx"]
    left, right = (pipeline.diff(silero(name), silero(name)) for name in names)
    own = paired(*(silero(name) for name in names))
    for alone, (counterpart, _, _) in own.items():
        rest = {
            pair.right.name: right.values("right", pair.right.name).array()
            for pair in right.pairs
            if pair.right.name != counterpart and pair.right.dtype == "F32"
        }
        found = paired({alone: left.values("left", alone).array()}, rest)
        twins = {"lstm_cell.bias_ih", "lstm_cell.bias_hh"}  # 0.95 alike, all four of them
        assert found == {} or alone in twins


def lone(names, side, source):
    return [Pair(*((source.tensors[each], None)[:: 1 if side == "left" else -1])) for each in names]


def test_work_is_bounded_in_bytes_and_in_candidates(monkeypatch):
    read = []
    kept = InMemory.read_into
    monkeypatch.setattr(
        InMemory,
        "read_into",
        lambda self, start, view: read.append(len(view)) or kept(self, start, view),
    )
    left, right = (
        MemorySource({"a": random(1024, 1024)}),
        MemorySource({"b": random(1024, 1024, seed=1)}),
    )

    assert match_similar([*lone("a", "left", left), *lone("b", "right", right)], left, right) == []
    assert sum(read) <= 2 * 48 * 1024 * 4

    monkeypatch.setattr(subject, "_MOST", 0)
    read.clear()
    match_similar([*lone("a", "left", left), *lone("b", "right", right)], left, right)
    assert read == []


@pytest.mark.parametrize("extra", [{}, {"only": random(64, 64, seed=5)}], ids=["all", "one lone"])
def test_not_one_byte_more_is_read_where_leftovers_are_on_one_side_at_most(monkeypatch, extra):
    read = []
    kept = InMemory.read_into
    monkeypatch.setattr(
        InMemory,
        "read_into",
        lambda self, start, view: read.append(len(view)) or kept(self, start, view),
    )
    left = {f"w{n}": random(64, 64, seed=n) for n in range(3)}
    right = {name: noisy(array) for name, array in left.items()}

    kinds = [delta.kind for delta in pipeline.diff(left, right | extra, threads=1).deltas]

    assert kinds.count("changed") == 3
    size = 64 * 64 * 4
    assert sum(read) == 6 * size + len(extra) * size
