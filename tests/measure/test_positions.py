"""Tables of relative positions that an exporter looked up: right ones are found, others are not."""

import numpy as np
import onnx
import pytest
import torch
from cli.command import InProcess
from onnx import numpy_helper
from torch import nn

from difflens.diffs.pairing.graph_forms import row_numbers

EXPORTED = pytest.mark.filterwarnings("ignore")


@pytest.mark.parametrize("rows", [4, 8, 32, 64, 128])
@pytest.mark.parametrize("part", ["encoder", "decoder"])
@pytest.mark.parametrize("length", [3, 40, 1200])
def test_buckets_are_those_of_t5(rows, part, length):
    from transformers.models.t5.modeling_t5 import T5Attention

    (ours,) = row_numbers(f"{part}.bias", rows, length, length)

    ahead = torch.arange(length)[None] - torch.arange(length)[:, None]
    theirs = T5Attention._relative_position_bucket(ahead, part == "encoder", rows)
    assert np.array_equal(ours, theirs.numpy())


@pytest.mark.parametrize("side", [2, 3, 7])
def test_windows_are_those_of_swin(side):
    (ours,) = row_numbers("table", (2 * side - 1) ** 2, side * side, side * side)

    steps = np.arange(1 - side, side)
    row = {place: n for n, place in enumerate((down, across) for down in steps for across in steps)}
    for query, key in np.ndindex(ours.shape):
        down, across = query // side - key // side, query % side - key % side
        assert ours[query, key] == row[down, across]


@pytest.mark.parametrize("rows", [0, 1, 3, 256, 1 << 40])
def test_a_table_that_no_rule_fits_has_no_rows(rows):
    assert list(row_numbers("encoder.bias", rows, 5, 5)) == []


@pytest.fixture
def command(capsys, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    return InProcess(capsys)


class Attention(nn.Module):
    """One layer of attention in the manner of T5, with two heads."""

    def __init__(self):
        super().__init__()
        self.relative = nn.Embedding(8, 2)
        self.mix = nn.Linear(16, 16)

    def forward(self, x):
        from transformers.models.t5.modeling_t5 import T5Attention

        places = torch.arange(x.shape[1])
        ahead = places[None] - places[:, None]
        rows = T5Attention._relative_position_bucket(ahead, True, 8)
        heads = self.mix(x).unflatten(-1, (2, 8)).transpose(1, 2)
        scores = heads @ heads.transpose(2, 3) + self.relative(rows).permute(2, 0, 1)[None]
        return scores.softmax(-1) @ heads


class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.encoder = Attention()

    def forward(self, x):
        return self.encoder(x)


@pytest.fixture(scope="module")
def exported(tmp_path_factory):
    torch.manual_seed(4)
    model = Model().eval()
    folder = tmp_path_factory.mktemp("looked-up")
    torch.save(model.state_dict(), folder / "model.pt")
    torch.onnx.export(model, (torch.zeros(1, 9, 16),), folder / "model.onnx", dynamo=True)
    return folder


def with_positions(folder, path, change):
    """Change the one initializer that holds the positions, and write the graph anew."""
    model = onnx.load(folder / "model.onnx")
    (held,) = (each for each in model.graph.initializer if list(each.dims) == [1, 2, 9, 9])
    values = numpy_helper.to_array(held).copy()
    change(values)
    held.CopyFrom(numpy_helper.from_array(values, held.name))
    onnx.save(model, path)
    return path


@EXPORTED
def test_positions_that_were_looked_up_are_the_same_model_in_both_orders(exported, command):
    sides = exported / "model.pt", exported / "model.onnx"

    for left, right in (sides, sides[::-1]):
        result = command(left, right, "--verify-conversion")
        assert (result.code, result.lines[-1].split(":")[0]) == (0, "same model")
        assert "positions looked up" in result.out


def one_off(values):
    values[0, 1, 4, 5] *= 1.01


def heads_exchanged(values):
    values[:] = values[:, ::-1].copy()


def turned(values):
    values[:] = values.swapaxes(2, 3).copy()


def rows_exchanged(values):
    values[:, :, [2, 5]] = values[:, :, [5, 2]]


@EXPORTED
@pytest.mark.parametrize("change", [one_off, heads_exchanged, turned, rows_exchanged])
def test_positions_that_were_looked_up_wrongly_are_not_the_same(
    change, exported, tmp_path, command
):
    wrong = with_positions(exported, tmp_path / "wrong.onnx", change)

    result = command(exported / "model.pt", wrong, "--verify-conversion")

    assert (result.code, result.lines[-1].split(":")[0]) == (1, "not the same")
    assert "encoder.relative.weight" in result.lines[-1]
