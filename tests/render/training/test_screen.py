"""The screen of `watch`: it fits, whatever is on it."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as some

from difflens.core.records import View
from difflens.core.terminal import display_width
from difflens.render.training.screen import Seen, screen, sparkline
from difflens.training.flow.run import picture_of
from difflens.training.flow.text import heat_map
from difflens.training.history.building import Builder
from difflens.training.history.frame import Frame, no_scalars
from difflens.training.records.runs import Diagnosed, Layer, RunFinding, RunInfo

HOSTILE = "\x1b[2Jlayer\n" + "w" * 300


def history(layers: int, frames: int):
    info = RunInfo("run", layers=tuple(Layer(f"{HOSTILE}{i}", (3, 3)) for i in range(layers)))
    builder = Builder(info)
    for i in range(frames):
        builder.add(Frame(i, i, 0.0, 0.0, no_scalars(4), np.full((7, layers), 0.1, np.float32)))
    return builder.history()


def seen(**changes) -> Seen:
    whole = Seen("run\x1b[31m", "running", 30, 29, 12.5, 0.2, 0.5, 0.4, [1.0, 0.5, 0.4, 0.5],
                 {"lr": 1e-3, "loss\nscale": 2.0}, 3.0)  # fmt: skip
    return whole._replace(**changes)


def findings(count: int) -> Diagnosed:
    each = RunFinding("nan", "critical", "x重" * 250 + "\x1b[2J", {"n": 1}, since_step=3)
    return Diagnosed("runs/one", 30, False, (each,) * count)


@given(
    width=some.integers(40, 200), height=some.integers(8, 60), layers=some.integers(1, 40),
    count=some.integers(0, 12),
)  # fmt: skip
def test_it_fits_the_terminal_and_holds_no_commands(width, height, layers, count):
    past = history(layers, 30)
    picture = picture_of(past, columns=width // 2, rows=max(1, height - 14), title="")

    drawn = heat_map(picture, width=width)

    text = screen(seen(name="重い\x1b[31m" * 30), drawn, findings(count), View(width=width), height)

    lines = text.splitlines()
    assert len(lines) == height
    assert all(display_width(line) <= width for line in lines)
    assert "\x1b" not in text


def test_the_first_finding_is_on_the_smallest_screen():
    text = screen(seen(), "", findings(3), View(width=60), 8)

    assert "not healthy: nan since step 3" in text


@pytest.mark.parametrize("loss", [float("nan"), float("inf")])
def test_a_loss_that_is_not_finite_is_said(loss):
    text = screen(seen(loss=loss, losses=[1.0, loss]), "", None, View(width=60), 8)

    assert f"loss {loss}" in text
    assert "▁x" in text or "█x" in text


def test_a_run_without_a_loss_says_so():
    empty = seen(loss=None, lowest_loss=None, losses=[], step=None, frames=0)

    assert "loss unknown" in screen(empty, "", None, View(width=60), 8)


def test_a_sparkline_is_as_long_as_its_room():
    assert len(sparkline(list(range(1000)), 30)) == 30
    assert sparkline([1.0, 1.0], 30) == "▁▁"


@given(some.lists(some.floats(), min_size=1, max_size=50), some.integers(1, 20))
def test_a_sparkline_is_drawn_of_any_numbers(values, width):
    assert len(sparkline(values, width)) == min(width, len(values))


@pytest.mark.parametrize(("odd", "sign"), [(9.0, "█"), (-9.0, "▁"), (float("nan"), "x")])
@pytest.mark.parametrize("place", [0, 3, 499, 998, 999])
def test_one_odd_loss_among_a_thousand_is_in_the_line(odd, sign, place):
    values = [1.0] * 1000
    values[place] = odd

    assert sign in sparkline(values, 30)


@pytest.mark.parametrize(
    ("seconds", "said"), [(42, "42 s"), (600, "10 min"), (9000, "2 h"), (94767677, "1,097 days")]
)
def test_a_long_silence_is_told_in_its_own_unit(seconds, said):
    text = screen(seen(state="quiet", seconds_since_last=seconds), "", None, View(width=80), 8)

    assert f"nothing new for {said}" in text
