"""`--verify-conversion`: the same model, the same within storage rounding, or not, and where."""

import json
from pathlib import Path
from typing import Any

import gguf
import msgspec
import numpy as np
import onnx
import pytest
import torch
from cli.command import InProcess
from conversions.test_conversions import converted, hugging_face, llama, random
from models.small import tensor, write
from onnx import helper, numpy_helper

import difflens
from difflens.core.records import Figures, Kind, Row, TensorInfo
from difflens.diffs.judge.conversion import conversion

KIND = gguf.GGMLQuantizationType
VERIFY = "--verify-conversion"


@pytest.fixture
def command(capsys, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    return InProcess(capsys)


def exported(path: Path, initializers: dict[str, Any]) -> Path:
    made = [numpy_helper.from_array(array, name) for name, array in initializers.items()]
    graph = helper.make_graph([], "g", [], [], made)
    onnx.save(helper.make_model(graph), path)
    return path


def network(hidden: int = 18, *, bias: bool = False) -> dict[str, Any]:
    """Layers of which the shape tells each matrix; equal ones where `hidden` is 20, or `bias`."""
    torch.manual_seed(0)
    layers = torch.nn.Sequential(
        torch.nn.Linear(12, 20), torch.nn.Linear(20, hidden), torch.nn.Linear(hidden, 4)
    )
    state = {f"net.{name}": each for name, each in layers.state_dict().items()}
    rnn = torch.nn.LSTM(6, 5, bias=bias)
    state |= {f"rnn.{name}": each for name, each in rnn.state_dict().items()}
    return {name: each.numpy() for name, each in state.items()}


def as_onnx(state: dict[str, Any]) -> dict[str, Any]:
    """What an exporter makes of it: matrices turned, gates in the order i o f c, numbered names."""
    made = {}
    for number, (name, array) in enumerate(state.items()):
        if name.startswith("rnn"):
            gates = np.split(array, 4)
            made[f"onnx::LSTM_{number}"] = np.concatenate([gates[g] for g in (0, 3, 1, 2)])[None]
        elif array.ndim == 2:
            made[f"onnx::MatMul_{number}"] = array.T.copy()
        else:
            made[name] = array
    return made


def saved(path: Path, state: dict[str, Any]) -> Path:
    torch.save({name: torch.from_numpy(array.copy()) for name, array in state.items()}, path)
    return path


def test_an_onnx_export_of_linear_and_lstm_layers_is_the_same_model(tmp_path, command):
    left = saved(tmp_path / "m.pt", network())
    right = exported(tmp_path / "m.onnx", as_onnx(network()))

    plain, verified = command(left, right), command(left, right, VERIFY)

    assert (plain.code, verified.code) == (0, 0)
    assert "> net.0.weight -> onnx::MatMul_0" in plain.out
    assert verified.lines[-1] == (
        "same model: all 8 tensors hold the same values; "
        "undone: left gates re-ordered (2), left transposed (3)"
    )


@pytest.mark.parametrize(
    ("state", "unknown"),
    [(network(20), "onnx::MatMul_2"), (network(bias=True), "onnx::LSTM_8, onnx::LSTM_9")],
    ids=["a square matrix", "two biases of one shape"],
)
def test_numbered_tensors_without_nodes_are_not_told_apart_by_their_values(
    tmp_path, command, state, unknown
):
    left = saved(tmp_path / "m.pt", state)
    right = exported(tmp_path / "m.onnx", as_onnx(state))

    verified = command(left, right, VERIFY)

    assert verified.code == 1
    assert verified.lines[-1].startswith("cannot tell: ")
    assert verified.lines[-1].endswith(f": {unknown}")


def test_within_one_format_the_plain_diff_says_renamed_and_the_conversion_is_right(
    tmp_path, command
):
    left = saved(tmp_path / "a.pt", network())
    right = saved(tmp_path / "b.pt", as_onnx(network()))

    assert command(left, right).code == 1
    assert command(left, right, VERIFY).code == 0


def test_a_packed_copy_is_no_other_format(tmp_path, command):
    import gzip

    left = hugging_face({"a": random(20)}, tmp_path / "a.safetensors")
    right = hugging_face({"b": random(20)}, tmp_path / "b.safetensors")
    packed = tmp_path / "b.safetensors.gz"
    packed.write_bytes(gzip.compress(right.read_bytes()))

    assert command(left, packed).code == 1


def test_rows_in_an_order_no_converter_writes_are_told_and_not_the_same(tmp_path, command):
    left = saved(tmp_path / "m.pt", {"embedding": random(40, 8), "w": random(3, 3)})
    right = exported(tmp_path / "m.onnx", {"onnx::1": random(40, 8)[::-1], "w": random(3, 3)})

    plain, verified = command(left, right), command(left, right, VERIFY)

    assert (plain.code, verified.code) == (1, 1)
    assert verified.lines[-1] == "not the same: 1 of 2 tensors: onnx::1 (rows shuffled)"


def test_a_llama_in_gguf_is_the_same_model(tmp_path, command):
    left = hugging_face(llama(), tmp_path / "hf.safetensors")
    right = converted(llama(), tmp_path / "m.gguf", KIND.F32)

    outcome = command(left, right, VERIFY)

    assert outcome.code == 0
    assert outcome.lines[-1] == (
        "same model: all 21 tensors hold the same values; undone: left rotary rows re-ordered (4)"
    )


def test_f16_is_the_same_within_storage_rounding(tmp_path, command):
    left = hugging_face(llama(), tmp_path / "hf.safetensors")
    right = converted(llama(), tmp_path / "m.gguf", KIND.F16)

    outcome = command(left, right, VERIFY)

    assert (command(left, right).code, outcome.code) == (1, 0)
    assert outcome.lines[-1].startswith(
        "same within storage rounding: 16 of 21 tensors rounded, F32 -> F16; undone: "
    )


@pytest.mark.parametrize(("kind", "least"), [("Q8_0", 35), ("Q4_0", 15)])
def test_a_quantised_copy_is_not_the_same_and_its_loss_is_told(tmp_path, command, kind, least):
    left = hugging_face(llama(), tmp_path / "hf.safetensors")
    right = converted(llama(), tmp_path / "m.gguf", KIND[kind])

    outcome = command(left, right, VERIFY)

    assert outcome.code == 1
    said = outcome.lines[-1]
    assert said.startswith("not the same: 16 of 21 tensors: ")
    assert f"; 16 quantised ({kind}); the worst of them keeps an SQNR of " in said
    assert said.endswith(" dB")
    assert float(said.split()[-2]) > least


def test_a_wrong_conversion_is_named_with_where_and_how_far(tmp_path, command):
    model = llama()
    left = hugging_face(model, tmp_path / "hf.safetensors")
    name = "model.layers.0.self_attn.q_proj.weight"
    model[name] = model[name][::-1].copy()
    right = converted(model, tmp_path / "m.gguf", KIND.F16)

    outcome = command(left, right, VERIFY)

    assert outcome.code == 1
    assert outcome.lines[-1].startswith(
        "not the same: 1 of 21 tensors: blk.0.attn_q.weight (relative_l2=1."
    )


def test_what_is_missing_comes_first_and_five_are_named(tmp_path, command):
    left = {f"t{n}": random(4, 3, seed=n) for n in range(9)}
    right = {f"t{n}": array + n for n, array in enumerate(left.values()) if n < 8}
    outcome = command(
        hugging_face(left, tmp_path / "a.safetensors"),
        hugging_face(right, tmp_path / "b.safetensors"),
        VERIFY,
    )

    assert outcome.code == 1
    said = outcome.lines[-1]
    assert said.startswith("not the same: 8 of 9 tensors: t8 (removed), t")
    assert said.endswith(", and 3 more")
    assert said.count("relative_l2=") == 4


def test_a_tied_head_and_metadata_are_no_difference(tmp_path, command):
    embedding = tensor(random(8, 4))
    both = {"model.embed_tokens.weight": embedding, "lm_head.weight": embedding}
    left = write(tmp_path / "a.safetensors", both, metadata={"step": "1"})
    right = write(tmp_path / "b.safetensors", {"model.embed_tokens.weight": embedding})

    outcome = command(left, right, VERIFY)

    assert outcome.code == 0
    assert outcome.lines[-1] == "same model: all 2 tensors hold the same values"


def test_epsilon_does_not_soften_the_gate(tmp_path, command):
    left = hugging_face({"w": random(4, 4)}, tmp_path / "a.safetensors")
    right = hugging_face({"w": random(4, 4) + np.float32(1e-3)}, tmp_path / "b.safetensors")

    assert command(left, right, "--epsilon", "1").code == 0
    assert command(left, right, "--epsilon", "1", VERIFY).code == 1


def test_json_has_a_row_with_an_envelope(tmp_path, command):
    left = saved(tmp_path / "m.pt", network())
    right = exported(tmp_path / "m.onnx", as_onnx(network()) | {"extra": random(3)})

    outcome = command(left, right, VERIFY, "-o", "json")

    (row,) = [each for each in json.loads(outcome.out) if "VerifyConversion" in each]
    name, envelope = row["VerifyConversion"]
    assert (outcome.code, name, envelope["status"]) == (1, "verify_conversion", "ok")
    assert envelope["fields"] == {
        "verdict": "not the same",
        "worst": ["extra"],
        "pairs": 9,
        "rounded": 0,
        "different": 1,
        "unknown": 0,
        "constants": 0,
        "transforms": {"left transposed": 3, "left gates re-ordered": 2},
    }
    assert envelope["findings"][0]["text"] == "added"


@pytest.mark.parametrize("output", ["full-json", "yaml", "csv", "html"])
def test_every_renderer_takes_it(tmp_path, command, output):
    left = saved(tmp_path / "m.pt", network())
    right = exported(tmp_path / "m.onnx", as_onnx(network()))

    outcome = command(left, right, VERIFY, "-o", output)

    assert (outcome.code, outcome.err) == (0, "")
    assert "onnx::MatMul_0" in outcome.out


class Classifier(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.conv, self.norm = torch.nn.Conv2d(3, 8, 3), torch.nn.LayerNorm(36)
        self.first, self.last = torch.nn.Linear(36, 36), torch.nn.Linear(36, 4)
        self.rnn = torch.nn.LSTM(4, 8, num_layers=2)

    def forward(self, x):
        hidden = self.first(self.norm(self.conv(x).flatten(2)))
        return self.rnn(self.last(hidden))[0]


@pytest.mark.filterwarnings("ignore")
def test_what_torch_itself_exports_is_the_same_model(tmp_path, command):
    network = Classifier().eval()
    torch.save(network.state_dict(), tmp_path / "m.pt")
    example = (torch.randn(2, 3, 8, 8),)
    torch.onnx.export(network, example, str(tmp_path / "m.onnx"), dynamo=False)

    outcome = command("m.pt", "m.onnx", VERIFY)

    assert outcome.code == 0, outcome.out
    assert outcome.lines[-1] == (
        "same model: all 16 tensors hold the same values; "
        "undone: right gates re-ordered (8), right transposed (2)"
    )
    rows = json.loads(command("m.pt", "m.onnx", VERIFY, "-o", "json").out)
    (envelope,) = [row["VerifyConversion"][1] for row in rows if "VerifyConversion" in row]
    assert envelope["fields"]["constants"] > 0
    assert command("m.onnx", "m.pt", VERIFY).code == 0


@pytest.mark.parametrize(
    "values", [np.array([0.5], np.float32), np.eye(2, dtype=np.float32), np.arange(17)]
)
def test_what_a_graph_has_beside_is_no_excuse_for_weights(tmp_path, command, values):
    left = saved(tmp_path / "m.pt", {"w": random(4, 4)})
    right = exported(tmp_path / "m.onnx", {"w": random(4, 4), "extra": values})

    assert command(left, right, VERIFY).code == 1


def test_zeros_that_are_missing_from_a_graph_are_missing(tmp_path, command):
    left = saved(tmp_path / "m.pt", {"w": random(4, 4), "bias": np.zeros(4, "f4")})
    right = exported(tmp_path / "m.onnx", {"w": random(4, 4)})

    assert command(left, right, VERIFY).code == 1
    assert command(right, left, VERIFY).code == 1


def test_the_steps_a_batch_norm_counted_are_no_weight(tmp_path, command):
    counted = {"w": random(4, 4), "bn.num_batches_tracked": np.array(7)}
    left = saved(tmp_path / "m.pt", counted)
    right = exported(tmp_path / "m.onnx", {"w": random(4, 4)})
    plain = hugging_face({"w": random(4, 4)}, tmp_path / "m.safetensors")

    assert command(left, right, VERIFY).code == 0
    assert command(left, plain, VERIFY).code == 1


def test_quiet_brief_and_exit_zero_go_by_its_verdict(tmp_path, command):
    left = hugging_face(llama(), tmp_path / "hf.safetensors")
    same = converted(llama(), tmp_path / "f16.gguf", KIND.F16)
    other = converted(llama(), tmp_path / "q4.gguf", KIND.Q4_0)

    assert command(left, same, VERIFY, "-q").code == 0
    assert command(left, same, VERIFY, "--brief").out == ""
    assert command(left, other, VERIFY, "--brief").out.endswith("differ\n")
    assert command(left, other, VERIFY, "--exit-zero").code == 0


def test_headers_alone_cannot_verify(tmp_path, command):
    left = hugging_face({"w": random(4, 4)}, tmp_path / "a.safetensors")

    outcome = command(left, left, VERIFY, "--shape-only")

    assert outcome.code == 2
    assert "leave --shape-only out" in outcome.err


def row(kind: Kind, *, transform: str | None = None, **figures: Any) -> Row:
    info = TensorInfo("w", "F32", (4,))
    known = Figures(**figures) if figures else None
    return Row("w", kind, info, info, "exact", transform, None, None, None, known)


@pytest.mark.parametrize(
    ("given", "word"),
    [
        (row("identical"), "same"),
        (row("tied"), "same"),
        (row("recast", changed_count=0), "same"),
        (row("recast", changed_count=3, within_storage_rounding=True), "rounded"),
        (row("recast", changed_count=3, within_storage_rounding=False), "different"),
        (row("changed", changed_count=1, within_storage_rounding=False), "different"),
        (row("within_epsilon", changed_count=1, within_storage_rounding=False), "different"),
        (row("identical", transform="left rows shuffled"), "different"),
        (row("identical", transform="left rotary rows re-ordered"), "same"),
        *((row(kind), "different") for kind in ("added", "removed", "uncompared", "reshaped")),
        (row("paired"), "different"),
    ],
)
def test_each_row_has_its_word(given, word):
    assert conversion([given]).word == word
    assert conversion([row("identical"), given]).word == word


def test_two_empty_models_are_not_the_same():
    found = conversion([])

    assert found.word == "different"
    assert found.sentence == "nothing to compare: neither side holds a weight"


def test_the_report_stays_plain_data():
    from difflens.diffs import story as pipeline

    found = difflens.diff({"w": random(4, 4)}, {"w": random(4, 4)})
    report = pipeline.report(found, verify_conversion=True)

    assert msgspec.convert(report.to_dict(), type(report)) == report
    assert report.verdict.word == "equal"
