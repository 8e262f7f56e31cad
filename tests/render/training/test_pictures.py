"""The pictures of a run: its loss, its layers, and marks where findings begin."""

import numpy as np
import pytest

from difflens.core.records import View
from difflens.render.document.written import written
from difflens.render.training.diagnosis import diagnosis_page
from difflens.render.training.pictures import layer_drawing, loss_drawing
from difflens.training.flow.run import curves_of
from difflens.training.history.building import Builder
from difflens.training.history.frame import Frame, no_layers
from difflens.training.records.runs import Diagnosed, Layer, RunFinding, RunInfo


def curves(losses, layers=()):
    builder = Builder(RunInfo("run", scalars=("loss",), layers=layers))
    for step, loss in enumerate(losses):
        values = no_layers(7, len(layers))
        if layers:
            values[:] = 1e-3 * (step + 1)
            values[3:5] = 0
        builder.add(Frame(step, step, 0.0, 0.0, np.array([loss]), values))
    return curves_of(builder.history(), columns=10, rows=10)


def test_a_loss_is_drawn_with_what_it_went_from_and_to():
    drawn = loss_drawing([("", curves([2.0, 1.5, 1.0]))])

    assert drawn is not None
    assert drawn.caption == "loss 2 -> 1"


def test_two_losses_are_drawn_in_one_picture_and_named():
    drawn = loss_drawing([("left", curves([2.0, 1.0])), ("right", curves([2.0, 3.0]))])

    assert drawn is not None
    assert [key.text for key in drawn.keys] == ["left", "right"]


def test_the_first_loss_that_is_no_number_is_marked():
    drawn = loss_drawing([("", curves([2.0, 1.0, np.nan, np.nan]))])

    assert drawn is not None
    assert [key.text for key in drawn.keys] == ["loss", "first loss that is NaN or infinite"]


def test_a_run_without_losses_or_layers_has_no_picture():
    assert loss_drawing([("", curves([]))]) is None
    assert curves([1.0, 2.0]).layers is None


def test_layers_are_named_on_their_rows():
    layers = tuple(Layer(f"{name}.weight", (4, 4)) for name in ("first", "a" * 40))

    drawn = layer_drawing("", curves([1.0, 2.0, 3.0], layers).layers)

    texts = [label.text for label in drawn.labels]
    assert texts[0] == "first.weight"
    assert texts[1].startswith("…")
    assert texts[1].endswith("aa.weight")


@pytest.mark.parametrize("name", ["<script>alert(1)</script>", "\x1b[31mred"])
def test_a_page_marks_where_findings_begin_and_escapes_names(name):
    found = RunFinding("spike", "critical", f"{name} rose", {}, (name,), since_step=1)
    run = curves([1.0, 9.0, 8.0], (Layer(name, (2,)),))

    page = written(diagnosis_page(Diagnosed("run", 3, False, (found,)), run), "html", View())

    assert "spike since step 1" in page
    assert '<span class="mark alarm">critical</span>' in page
    assert "<script>alert" not in page
    assert "\x1b" not in page
