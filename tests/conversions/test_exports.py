"""ONNX exports of small models: a right one is the same model, one with a fault in it never is."""

import pytest

from bench.conversions.cells import Bench
from bench.conversions.exports import EXPORTERS
from bench.conversions.networks import MAKERS, STATES

pytestmark = pytest.mark.filterwarnings("ignore")


def wrong_answers(model: str, state: str, exporter: str, folder, *kinds: str) -> list[str]:
    cells = list(Bench(model, state, exporter, folder).cells(list(kinds)))
    asked = [cell for cell in cells if cell.passed is not None]
    assert {cell.is_right for cell in asked} == {True, False}
    return [f"{cell.kind}: {cell.last}" for cell in asked if not cell.passed]


# An LSTM by dynamo takes longer than the three together: it is in the full table.
@pytest.mark.parametrize(
    ("model", "exporter"), [("mlp", "torchscript"), ("mlp", "dynamo"), ("lstm", "torchscript")]
)
def test_only_a_right_export_is_the_same_model(model, exporter, tmp_path):
    assert wrong_answers(model, "trained", exporter, tmp_path) == []


@pytest.mark.parametrize("model", ["cnn", "bert", "vit"])
def test_only_a_right_export_of_a_deeper_model_is_the_same_model(model, tmp_path):
    assert wrong_answers(model, "fresh", "torchscript", tmp_path) == []


def test_a_kernel_that_the_node_of_another_folded_norm_takes_is_in_the_wrong_place(tmp_path):
    assert wrong_answers("resnet", "fresh", "dynamo", tmp_path, "renamed", "rewired") == []


@pytest.mark.slow
@pytest.mark.parametrize("exporter", EXPORTERS)
@pytest.mark.parametrize("state", STATES)
@pytest.mark.parametrize("model", MAKERS)
def test_only_a_right_export_is_the_same_model_in_the_full_table(model, state, exporter, tmp_path):
    assert wrong_answers(model, state, exporter, tmp_path) == []
