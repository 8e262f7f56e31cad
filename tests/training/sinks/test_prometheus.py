"""The text that Prometheus reads, against its own parser."""

import numpy as np
import pytest
from prometheus_client.parser import text_string_to_metric_families

from difflens.training.history.frame import MISSING, Frame, no_scalars
from difflens.training.records.runs import Layer, RunInfo
from difflens.training.sinks.prometheus import FILE, Prometheus, exposition

HOSTILE = 'a"b\\c\nd}'
INFO = RunInfo(
    "run", layers=(Layer("fc1.weight", (2, 3)), Layer(HOSTILE, (2,)), Layer("frozen", (4,)))
)


def frame(step: int = 7, loss: float = 0.5) -> Frame:
    scalars = no_scalars(len(INFO.scalars))
    scalars[0] = loss
    layers = np.full((7, 3), 2.0, np.float32)
    layers[:, 2] = MISSING
    layers[5, 0] = 4.0
    return Frame(0, step, 1e9, 1.0, scalars, layers)


def samples(text: str) -> dict[tuple[str, str], float]:
    return {
        (each.name, each.labels.get("layer") or each.labels.get("name", "")): each.value
        for family in text_string_to_metric_families(text)
        for each in family.samples
    }


def test_its_own_parser_reads_the_numbers_back_whatever_the_layers_are_called():
    found = samples(exposition(frame(), INFO, "the run"))

    assert found["difflens_scalar", "loss"] == 0.5
    assert found["difflens_grad_norm", HOSTILE] == 2.0
    assert found["difflens_update_ratio", "fc1.weight"] == 0.5
    assert found["difflens_step", ""] == 7


def test_what_was_not_recorded_is_not_there():
    found = samples(exposition(frame(), INFO, "the run"))

    assert ("difflens_grad_norm", "frozen") not in found
    assert ("difflens_scalar", "lr") not in found


@pytest.mark.parametrize("loss", [float("nan"), float("inf"), float("-inf")])
def test_a_loss_that_is_not_finite_is_told_as_it_is(loss):
    found = samples(exposition(frame(loss=loss), INFO, "the run"))

    assert found["difflens_scalar", "loss"] == pytest.approx(loss, nan_ok=True)


def test_the_last_frame_is_in_the_file_when_the_run_ends(tmp_path):
    sink = Prometheus(tmp_path, INFO)
    for step in range(5):
        sink.write(frame(step), INFO)
    sink.close()

    assert samples((tmp_path / FILE).read_text())["difflens_step", ""] == 4
    assert [each.name for each in tmp_path.iterdir()] == [FILE]
