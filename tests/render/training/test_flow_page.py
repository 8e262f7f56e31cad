"""The gradient flow as a page: small, quick to make, and no name in it is markup."""

import re
import time
from base64 import b64decode
from json import loads
from typing import Any

import numpy as np
import pytest
from training.flow.flows import recorded

from difflens.render.training.flow_page import page
from difflens.training.flow.run import animator_of_run, picture_of
from difflens.training.history.building import Builder
from difflens.training.history.frame import Frame
from difflens.training.records.runs import Layer, RunInfo

HOSTILE = "</script><script>document.title='owned'</script><img src=x onerror=alert(1)>"


def written(animator) -> str:
    return page(animator.picture(title="made"), animator.summary_report())


def data(text: str) -> dict[str, Any]:
    return loads(re.findall(r'id="data">(.*?)</script>', text, re.DOTALL)[0])


def test_the_numbers_of_the_page_are_those_recorded_to_the_precision_it_states():
    rng = np.random.default_rng(0)
    steps = [{"a": [size], "b": [size * 2]} for size in 10 ** rng.uniform(-6, 2, 50)]
    animator = recorded(*steps, exploding_threshold=None, vanishing_threshold=None)
    text = written(animator)
    found = data(text)
    codes = np.frombuffer(b64decode(found["value"]), "<u2").reshape(2, 50)
    low, high = found["range"]
    shown = 10 ** (low + (codes[0] - 16) / 65519 * (high - low))
    stated = float(re.search(r"within ([\d.]+)% of those", text)[1]) / 100

    error = np.abs(shown / [step["a"][0] for step in steps] - 1).max()
    assert 0 < error <= stated < 0.001
    assert found["steps"] == list(range(50))


def test_no_name_is_markup():
    text = written(recorded({HOSTILE: [1e9]}, {HOSTILE: [np.nan]}))

    assert text.count("<script") == 2
    assert "<img" not in text
    assert data(text)["layers"] == [HOSTILE]


def test_it_asks_for_nothing_and_runs_one_script():
    text = written(recorded({"a": [1.0]}))

    assert not re.search(r"""(?:src|href)\s*=|https?://|url\(|@import""", text)
    assert re.search(r"default-src 'none'.*script-src 'sha256-[\w+/=]+';", text)


def test_lowest_and_highest_travel_only_where_columns_are_several_frames():
    animator = recorded(*[{"a": [1.0]}] * 30)

    assert data(written(animator))["low"] == ""
    merged = page(animator.picture(columns=10), animator.summary_report())
    assert data(merged)["low"] != ""


def test_nothing_recorded_is_said():
    text = written(recorded())

    assert "(no gradient frames recorded)" in text
    assert "unknown" in text


@pytest.mark.long
def test_a_thousand_layers_over_four_thousand_steps_are_fifteen_megabytes_in_five_seconds():
    info = RunInfo(layers=tuple(Layer(f"layers.{i}.weight", shape=(9, 9)) for i in range(1000)))
    builder, rng = Builder(info), np.random.default_rng(0)
    blocks = np.exp(rng.normal(size=(16, len(info.fields), 1000))).astype(np.float32)
    for step in range(4000):
        builder.add(Frame(step, step, 0.0, 0.0, np.zeros(4), blocks[step % 16]))
    made = builder.history()

    began = time.process_time()  # the machine may be busy with others
    text = page(picture_of(made), animator_of_run(made).summary_report())

    assert time.process_time() - began < 5
    assert len(text.encode()) < 15e6
