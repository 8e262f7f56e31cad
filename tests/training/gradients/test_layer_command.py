"""`difflens gradients RUN`: a verdict a person can read, records for programs, exit codes."""

import json
from pathlib import Path

import numpy as np
import pytest
import yaml
from cli.command import InProcess, assert_refused
from training.gradients.layer_cases import write_run

from difflens.training.records.gradients import EnhancedLayerGradientAnalysis

CONTRACT = {"layer_details", "network_level_analysis", "gradient_hierarchy",
            "optimization_priorities"}  # fmt: skip


@pytest.fixture
def difflens(capsys, monkeypatch, tmp_path) -> InProcess:
    monkeypatch.chdir(tmp_path)
    return InProcess(capsys)


@pytest.fixture
def run(tmp_path: Path) -> Path:
    jump = np.where(np.arange(150) < 120, 1.0, 60.0)
    return write_run(tmp_path / "run", faults={"blocks.1.weight": 0.0, "blocks.2.weight": jump})


def test_the_text_names_the_worst_layers_first_and_ends_in_a_verdict(difflens, run):
    answer = difflens("gradients", run)

    assert answer.code == 0
    assert answer.lines[0].startswith(f"gradients: {run}, 6 layers, 150 records, steps 0 to 1490")
    assert answer.lines[-1].startswith("2 critical: ")
    assert answer.lines[-1].endswith("4 of 6 layers healthy")
    table = answer.lines.index("Layers, worst first:")
    worst = {line.split()[0] for line in answer.lines[table + 2 : table + 4]}
    assert worst == {"blocks.1.weight", "blocks.2.weight"}
    assert "What to do:" in answer.lines
    assert len(answer.lines) < 60


def test_json_and_yaml_are_the_record(difflens, run):
    text = difflens("gradients", run, "-o", "json", "--depth", "expert").out

    assert set(json.loads(text)) >= CONTRACT
    found = EnhancedLayerGradientAnalysis.from_json(text)
    assert found.analysis_depth == "Expert"
    assert yaml.safe_load(
        difflens("gradients", run, "-o", "yaml", "--depth", "expert").out
    ) == json.loads(text)


@pytest.mark.parametrize("output", ["cli", "json", "yaml", "markdown", "html"])
def test_the_same_run_is_written_the_same_twice(output, difflens, run):
    """DX-01."""
    asked = ("gradients", run, "-o", output, "--depth", "comprehensive")

    assert difflens(*asked).out == difflens(*asked).out != ""


def test_only_the_layers_asked_for_are_shown(difflens, run):
    answer = difflens("gradients", run, "--layer", "blocks.1.*", "-o", "json")

    assert list(json.loads(answer.out)["layer_details"]) == ["blocks.1.weight", "blocks.1.bias"]
    assert "(4 more not shown)" in difflens("gradients", run, "--layer", "blocks.1.*").lines[0]


def test_a_pattern_that_fits_nothing_is_refused(difflens, run):
    assert_refused(difflens("gradients", run, "--layer", "head*"))


def test_a_run_that_is_not_there_is_refused(difflens, tmp_path):
    assert_refused(difflens("gradients", tmp_path / "nothing"))


def test_a_window_without_meaning_is_refused(difflens, run):
    assert_refused(difflens("gradients", run, "--window", "1"))


def test_names_of_layers_cannot_command_a_terminal_or_a_page(difflens, tmp_path):
    from difflens.training.history.writer import RunWriter
    from difflens.training.records.runs import Layer, RunInfo

    name = "\x1b[31m<script>alert(1)</script>|`x`"
    writer = RunWriter(tmp_path / "odd", RunInfo(layers=(Layer(name, (4,)),)))
    for step in range(30):
        writer.append(step, {}, np.zeros((7, 1), np.float32), wall_time=0.0, monotonic_time=0.0)
    writer.close()

    outputs = {each: difflens("gradients", tmp_path / "odd", "-o", each).out
               for each in ("cli", "json", "markdown", "html")}  # fmt: skip

    assert not any("\x1b" in text for text in outputs.values())
    assert "<script>alert" not in outputs["html"]
    assert "\n<script>" not in outputs["markdown"]


def test_a_hundred_layers_are_told_by_the_worst_twenty(difflens, tmp_path):
    folder = write_run(tmp_path / "wide", 30, {"blocks.40.weight": 0.0}, blocks=50)

    lines = difflens("gradients", folder).lines

    table = lines.index("Layers, worst first:")
    assert lines[table + 2].startswith("  blocks.40.weight")
    assert lines[table + 22] == "  80 further lines: -o json"


def test_a_stack_that_fades_layer_by_layer_is_told_in_the_verdict(difflens, tmp_path):
    """Each layer is healthy next to the median one: only the depth shows that they vanish."""
    faults = {
        f"blocks.{block}.{role}": 5.0**block for block in range(8) for role in ("weight", "bias")
    }
    run = write_run(tmp_path / "fading", faults=faults, blocks=8)

    assert (
        difflens("gradients", run)
        .lines[-1]
        .endswith("along the depth gradients vanish towards the input")
    )


def test_a_probability_below_what_is_told_is_no_equation(difflens, run):
    answer = difflens("gradients", run, "--depth", "comprehensive")

    assert "= <" not in answer.out
