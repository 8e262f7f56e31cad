"""`difflens show --health`: what is wrong with which weights."""

import json

import numpy as np
import pytest
from cli.command import assert_refused
from models.small import arrays, tensor, write

from difflens.models.health.records import WeightDistributionAnalysis


def normal():
    return np.random.default_rng(0).normal(0, 0.1, (20, 30))


@pytest.fixture
def path(tmp_path):
    model = arrays(**{"layers.10.weight": normal(),
                      "layers.2.weight": np.zeros((4, 5)), "head.bias": [0.5, np.nan]})  # fmt: skip
    model["step"] = tensor([3], "I64")
    return write(tmp_path / "m.safetensors", model)


def test_what_is_not_finite_comes_first_and_the_exit_code_is_zero(difflens, path):
    outcome = difflens("show", path, "--health")

    assert (outcome.code, outcome.err) == (0, "")
    assert outcome.lines[:5] == [
        f"{path}: 3 tensors of weights, 622 parameters",
        "",
        "Issues:",
        "  ! head.bias: non_finite (critical): 1 of 2 values are NaN or infinite",
        "  - layers.2.weight: all_zero (high): all values are zero",
    ]
    assert (
        outcome.lines[-1]
        == "critical: health 39.0 of 100; 1 critical issue: non_finite in head.bias"
    )


def test_every_tensor_stands_in_natural_order_and_what_is_left_out_is_named(difflens, path):
    lines = difflens("show", path, "--health").lines

    table = [line.split()[0] for line in lines[lines.index("Tensors:") + 2 :] if line[:2] == "  "]
    assert table[:3] == ["head.bias", "layers.2.weight", "layers.10.weight"]
    assert "  ? step: I64 holds codes or counters, not weights" in lines


def test_json_is_the_record(difflens, path):
    out = difflens("show", path, "--health", "-o", "json").out

    found = WeightDistributionAnalysis.from_json(out)
    assert found.source == str(path)
    assert found.distribution_health.status.value == "Critical"
    json.loads(out, parse_constant=pytest.fail)


@pytest.mark.parametrize("output", ["yaml", "markdown", "html"])
def test_documents_name_the_worst_issue(difflens, path, output):
    outcome = difflens("show", path, "--health", "-o", output)

    assert outcome.code == 0
    assert "head.bias" in outcome.out
    assert "non_finite" in outcome.out


@pytest.mark.parametrize("output", ["cli", "json", "markdown"])
def test_hostile_names_stay_text(difflens, tmp_path, output):
    bad = "a\x1b[2J\n\x7f\u202eb"
    path = write(tmp_path / "m.safetensors", {bad: tensor([np.nan]), f"{bad}2": tensor([1], "I8")})

    out = difflens("show", path, "--health", "-o", output).out

    assert all(line.isprintable() for line in out.splitlines())


def test_markup_in_names_stays_text(difflens, tmp_path):
    path = write(tmp_path / "m.safetensors", {"<script>x</script>": tensor([np.nan, 1])})

    assert "<script>x" not in difflens("show", path, "--health", "-o", "html").out


def test_many_tensors_with_one_issue_are_folded(difflens, tmp_path):
    model = arrays(**{f"layers.{i}.weight": np.zeros((3, 3)) for i in range(9)})
    path = write(tmp_path / "m.safetensors", model)

    lines = difflens("show", path, "--health").lines

    assert sum("all_zero (high): all values" in line for line in lines) == 5
    assert "  - all_zero (high): 4 further tensors" in lines


def test_many_tensors_that_are_left_out_are_folded(difflens, tmp_path):
    model = {f"codes.{i}": tensor([i], "I32") for i in range(13)}
    path = write(tmp_path / "m.safetensors", model)

    lines = difflens("show", path, "--health").lines

    assert sum("I32 holds codes" in line for line in lines) == 10
    assert "  3 further tensors" in lines


def test_the_farthest_weights_are_told_with_their_place(difflens, tmp_path):
    weights = normal()
    weights[4, 7] = -3.0
    path = write(tmp_path / "m.safetensors", arrays(**{"fc.weight": weights}))

    lines = difflens("show", path, "--health").lines

    row = lines[lines.index("Farthest weights:") + 2].split()
    assert row[:4] == ["fc.weight", "[4,", "7]", "-3"]


def test_an_empty_model_is_unknown(difflens, tmp_path):
    path = write(tmp_path / "e.safetensors", {})

    outcome = difflens("show", path, "--health")

    assert outcome.code == 0
    assert outcome.lines[-1] == "unknown: there is no tensor of weights"


@pytest.mark.parametrize("threads", ["1", "3"])
def test_threads_change_nothing(difflens, path, threads):
    plain = difflens("show", path, "--health", "-o", "json")

    assert difflens("show", path, "--health", "-o", "json", "--threads", threads) == plain


def test_out_takes_it(difflens, path, tmp_path):
    text = difflens("show", path, "--health").out

    assert difflens("show", path, "--health", "--out", "health.txt").out == ""
    assert (tmp_path / "health.txt").read_text() == text


def test_what_cannot_be_asked_is_refused(difflens, path):
    assert_refused(difflens("show", "nowhere", "--health"), "nowhere: no such file")
    assert_refused(difflens("show", path, "--health", "--stats"), "--health and --stats: name one")
    assert_refused(difflens("show", path, "-o", "html"), "-o html needs --health")
