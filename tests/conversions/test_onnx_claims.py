"""What a tensor's name claims and its graph denies: right exports pass, rewired ones never do."""

from collections.abc import Callable
from typing import Any

import numpy as np
import onnx
import onnxruntime
import pytest
import torch
from cli.command import InProcess
from onnx import helper, numpy_helper
from torch import nn

from bench.conversions.exports import EXPORTERS, export

pytestmark = pytest.mark.filterwarnings("ignore")

SAME, ROUNDED, DIFFERENT, UNTOLD = (
    (0, "same model"),
    (0, "same within storage rounding"),
    (1, "not the same"),
    (1, "cannot tell"),
)
Change = Callable[[onnx.ModelProto], Any]
TEXT = torch.zeros(2, 4, 8)
VECTOR = torch.zeros(3, 8)
PICTURE = torch.zeros(2, 8, 6, 6)


@pytest.fixture
def command(capsys, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    return InProcess(capsys)


@pytest.fixture
def ask(tmp_path, command):
    """Ask about the export of a model as it is, or with a change of its graph that matters."""

    def asked(module, example, exporter, change: Change | None = None, **how):
        torch.manual_seed(5)
        for each in (*module.parameters(), *module.buffers()):
            if each.is_floating_point():
                each.data += 0.3 * torch.rand_like(each)
        torch.save(module.state_dict(), tmp_path / "model.pt")
        model = export(module.eval(), (example,), exporter, **how)
        if change:
            before = outputs(model, example)
            change(model)
            assert not np.allclose(before, outputs(model, example), atol=1e-3), "no fault at all"
        onnx.save(model, tmp_path / "model.onnx")
        result = command("model.pt", "model.onnx", "--verify-conversion")
        return result.code, result.lines[-1].split(":")[0]

    return asked


def outputs(model, example):
    session = onnxruntime.InferenceSession(
        model.SerializeToString(), providers=["CPUExecutionProvider"]
    )
    shape = example.shape
    values = np.random.default_rng(1).normal(size=shape).astype(np.float32)
    return session.run(None, {session.get_inputs()[0].name: values})[0]


def exchanged(one: str, other: str) -> Change:
    """Let the nodes that read one initializer read the other, and the reverse."""
    return lambda model: rename_inputs(model, {one: other, other: one})


def read_instead(one: str, other: str) -> Change:
    return lambda model: rename_inputs(model, {one: other})


def rename_inputs(model, names):
    assert names.keys() <= {each.name for each in model.graph.initializer}
    for node in model.graph.node:
        for at, name in enumerate(node.input):
            node.input[at] = names.get(name, name)


def matrices_exchanged(model):
    """Let the first two nodes with a matrix of one size take each other's."""
    stored = {each.name: tuple(each.dims) for each in model.graph.initializer}
    kinds = ("Conv", "Gemm", "MatMul")
    nodes = [n for n in model.graph.node if n.op_type in kinds and n.input[1] in stored]
    one = nodes[0]
    other = next(n for n in nodes[1:] if stored[n.input[1]] == stored[one.input[1]])
    one.input[1], other.input[1] = other.input[1], one.input[1]


def turned(name: str) -> Change:
    def change(model):
        (held,) = (each for each in model.graph.initializer if each.name == name)
        held.CopyFrom(numpy_helper.from_array(numpy_helper.to_array(held).T.copy(), name))

    return change


def without_scopes(model):
    for node in model.graph.node:
        node.name = ""
        del node.metadata_props[:]


def not_added(name: str) -> Change:
    """Leave a bias out of the graph, and its initializer in the file."""

    def change(model):
        for node in model.graph.node:
            if name in node.input and node.op_type == "Gemm":
                node.input.remove(name)
            elif name in node.input:
                (other,) = (each for each in node.input if each != name)
                node.CopyFrom(helper.make_node("Identity", [other], list(node.output)))

    return change


class Own(nn.Module):
    """A parameter of its own, used as it lies, before a linear layer."""

    def __init__(self):
        super().__init__()
        self.mix = nn.Parameter(torch.randn(8, 8))
        self.head = nn.Linear(8, 8)

    def forward(self, x):
        return self.head(torch.tanh(x @ self.mix))


@pytest.mark.parametrize("exporter", EXPORTERS)
def test_a_parameter_that_is_used_as_it_lies_is_not_taken_for_a_turned_one(ask, exporter):
    assert ask(Own(), VECTOR, exporter) == SAME
    assert ask(Own(), VECTOR, exporter, turned("mix")) == DIFFERENT


class Two(nn.Sequential):
    def __init__(self):
        super().__init__()
        self.first, self.norm, self.last = nn.Linear(8, 8), nn.LayerNorm(8), nn.Linear(8, 8)


@pytest.mark.parametrize("exporter", EXPORTERS)
@pytest.mark.parametrize("example", [VECTOR, TEXT], ids=["vectors", "texts"])
def test_a_bias_that_no_node_reads_is_missing(ask, exporter, example):
    assert ask(Two(), example, exporter) == SAME
    assert ask(Two(), example, exporter, not_added("last.bias")) == DIFFERENT


@pytest.mark.parametrize("exporter", EXPORTERS)
@pytest.mark.parametrize(
    "change",
    [
        exchanged("norm.weight", "norm.bias"),
        exchanged("first.bias", "norm.weight"),
        exchanged("first.bias", "norm.bias"),
        read_instead("norm.bias", "last.bias"),
    ],
    ids=["gain and bias", "bias and gain", "biases", "one bias twice"],
)
@pytest.mark.parametrize("scopes", [True, False], ids=["scopes", "no scopes"])
def test_a_name_is_not_believed_where_the_operand_or_its_neighbour_says_otherwise(
    ask, exporter, change, scopes
):
    def both(model):
        change(model)
        if not scopes:
            without_scopes(model)

    code, said = ask(Two(), TEXT, exporter, both)

    assert code == 1, said


class Blocks(nn.Module):
    """Attention whose layers lie in dictionaries: TorchScript calls them `/q` and `/q_1`."""

    def __init__(self):
        super().__init__()
        made = [{"q": nn.Linear(8, 8), "k": nn.Linear(8, 8), "v": nn.Linear(8, 8)} for _ in "ab"]
        self.blocks = nn.ModuleList(nn.ModuleDict(each) for each in made)

    def forward(self, x):
        for each in self.blocks:
            x = x + (each["q"](x) @ each["k"](x).transpose(1, 2)).softmax(-1) @ each["v"](x)
        return x


@pytest.mark.parametrize("exporter", EXPORTERS)
@pytest.mark.parametrize(
    ("one", "other"),
    [("blocks.1.q", "blocks.1.k"), ("blocks.0.v", "blocks.1.v"), ("blocks.0.q", "blocks.1.k")],
    ids=["queries and keys", "another layer", "both"],
)
def test_a_layer_that_stands_in_the_place_of_another_is_found(ask, exporter, one, other):
    def change(model):
        for part in ("weight", "bias"):
            exchanged(f"{one}.{part}", f"{other}.{part}")(model)

    how = {"do_constant_folding": False} if exporter == "torchscript" else {"optimize": False}
    assert ask(Blocks(), TEXT, exporter, **how) == SAME
    code, said = ask(Blocks(), TEXT, exporter, change, **how)
    assert code == 1, said


def test_layers_that_onnxruntime_fused_keep_their_place(ask, tmp_path):
    def optimised(model):
        options = onnxruntime.SessionOptions()
        options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_ENABLE_BASIC
        options.optimized_model_filepath = str(tmp_path / "optimised.onnx")
        onnxruntime.InferenceSession(
            model.SerializeToString(), options, providers=["CPUExecutionProvider"]
        )
        model.CopyFrom(onnx.load(tmp_path / "optimised.onnx"))

    def wrong(model):
        optimised(model)
        fused = {node.input[2]: node for node in model.graph.node if len(node.input) == 3}
        one, other = fused["blocks.0.q.bias"], fused["blocks.0.v.bias"]
        for at in (1, 2):
            one.input[at], other.input[at] = other.input[at], one.input[at]

    assert ask(Blocks(), TEXT, "torchscript", wrong)[0] == 1


class Cell(nn.Module):
    def __init__(self):
        super().__init__()
        self.cell = nn.GRUCell(8, 8)

    def forward(self, x):
        return self.cell(x, torch.sin(x))


@pytest.mark.parametrize("exporter", EXPORTERS)
@pytest.mark.parametrize("part", ["weight", "bias"])
def test_the_two_halves_of_a_cell_cannot_change_places(ask, exporter, part):
    assert ask(Cell(), VECTOR, exporter) == SAME
    wrong = exchanged(f"cell.{part}_ih", f"cell.{part}_hh")
    assert ask(Cell(), VECTOR, exporter, wrong)[0] == 1


class Attentions(nn.Module):
    def __init__(self):
        super().__init__()
        self.one, self.other = (nn.MultiheadAttention(8, 2, batch_first=True) for _ in "ab")

    def forward(self, x):
        x = x + self.one(x, x, x, need_weights=False)[0]
        return x + self.other(x, x, x, need_weights=False)[0]


def test_attentions_cannot_take_each_others_matrix(ask):
    assert ask(Attentions(), TEXT, "dynamo") == SAME
    wrong = exchanged("one.out_proj.weight", "other.out_proj.weight")
    assert ask(Attentions(), TEXT, "dynamo", wrong) == DIFFERENT


class Normed(nn.Module):
    """Two layers of one size, each with a batch norm behind it."""

    def __init__(self, names, layer=nn.Conv2d, norm=nn.BatchNorm2d):
        super().__init__()
        size = (8, 8, 3, 1, 1) if layer is nn.Conv2d else (8, 8)
        self.names = names
        for conv, norm_name in names:
            self.add_module(conv, layer(*size))
            self.add_module(norm_name, norm(8))

    def forward(self, x):
        for each in self.names:
            for name in each:
                x = self.get_submodule(name)(x)
            x = x.relu()
        return x


class Lists(nn.Module):
    def __init__(self):
        super().__init__()
        self.convs = nn.ModuleList(nn.Conv2d(8, 8, 3, 1, 1) for _ in "ab")
        self.norms = nn.ModuleList(nn.BatchNorm2d(8) for _ in "ab")

    def forward(self, x):
        for conv, norm in zip(self.convs, self.norms, strict=True):
            x = norm(conv(x)).relu()
        return x


NUMBERED = (("conv1", "bn1"), ("conv2", "bn2"))
WORDED = (("stem_conv", "stem_bn"), ("head_conv", "head_bn"))
ORDERED = (("wide", "bn1"), ("deep", "bn2"))
NAMELESS = (("entry", "post"), ("alpha", "after"))


@pytest.mark.parametrize("exporter", EXPORTERS)
@pytest.mark.parametrize(
    "make",
    [lambda: Normed(NUMBERED), lambda: Normed(WORDED), lambda: Normed(ORDERED), Lists],
    ids=["numbered", "worded", "in order", "lists"],
)
def test_a_folded_norm_goes_with_the_layer_that_its_name_is_joined_to(ask, exporter, make):
    assert ask(make(), PICTURE, exporter) == ROUNDED
    assert ask(make(), PICTURE, exporter, matrices_exchanged) == DIFFERENT


def test_a_norm_that_was_folded_into_a_linear_layer_is_found_in_it(ask):
    def make():
        return Normed(NUMBERED, nn.Linear, nn.BatchNorm1d)

    assert ask(make(), VECTOR, "dynamo") == ROUNDED
    assert ask(make(), VECTOR, "dynamo", matrices_exchanged) == DIFFERENT
    assert ask(make(), VECTOR, "torchscript") == SAME


def test_where_no_name_joins_layers_and_norms_it_cannot_be_told(ask):
    assert ask(Normed(NAMELESS), PICTURE, "torchscript") == UNTOLD
    assert ask(Normed(NAMELESS), PICTURE, "torchscript", matrices_exchanged) == UNTOLD
    assert ask(Normed(NAMELESS), PICTURE, "dynamo") == ROUNDED  # its nodes run in the norm's name


class Places(nn.Module):
    """Angles that are counted out in the forward pass: an exporter keeps them as a constant."""

    def __init__(self):
        super().__init__()
        self.head = nn.Linear(8, 8)

    def forward(self, x):
        return self.head(x + torch.sin(torch.arange(8.0))[None, None])


def test_a_constant_that_only_the_graph_holds_is_said_not_to_be_compared(ask, command):
    assert ask(Places(), TEXT, "dynamo") == SAME
    last = command("model.pt", "model.onnx", "--verify-conversion").lines[-1]
    assert last.endswith("not compared: 1 constant that only the graph holds")


class Rivals(nn.Module):
    """Two parameters of one size that belong to no layer: the graph tells them by name alone."""

    def __init__(self):
        super().__init__()
        self.one, self.other = nn.Parameter(torch.randn(8, 8)), nn.Parameter(torch.randn(8, 8))

    def forward(self, x):
        return torch.tanh(x @ self.one) @ self.other


@pytest.mark.parametrize("exporter", EXPORTERS)
def test_what_only_a_name_tells_is_said(ask, command, exporter):
    assert ask(Rivals(), VECTOR, exporter) == SAME
    last = command("model.pt", "model.onnx", "--verify-conversion").lines[-1]
    assert last.endswith("known by name alone: 2 tensors")


@pytest.mark.parametrize("exporter", EXPORTERS)
def test_no_layer_of_an_export_rests_on_its_name_alone(ask, command, exporter):
    for make, example in ((Two, TEXT), (Attentions, TEXT), (lambda: Normed(NUMBERED), PICTURE)):
        if (make, exporter) == (Attentions, "torchscript"):
            continue  # its matrices are cut into three
        ask(make(), example, exporter)
        last = command("model.pt", "model.onnx", "--verify-conversion").lines[-1]
        assert "by name alone" not in last
