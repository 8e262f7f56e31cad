"""`compare`, `version-diff`, `regressions` and `report` on a store: what they say, exit codes."""

import json
from pathlib import Path
from typing import Any

import pytest
import yaml
from cli.command import InProcess, assert_refused, run
from cli.versions import record
from models.small import arrays, write

from difflens.core.kept import Kept
from difflens.versions.records.comparisons import ModelComparisonResult, VersionDiff
from difflens.versions.records.regressions import (
    DifferentialDebuggingReport,
    RegressionDetectionResult,
)

# The fields of debugger.md A: they are there, whatever could be known.
CONTRACT = {
    "compare": {"models", "timestamp", "performance_comparison", "architecture_diff",
                "statistical_analysis", "summary"},
    "version-diff": {"from_version", "to_version", "timestamp", "performance_delta",
                     "architecture_changes", "config_changes", "weight_changes"},
    "regressions": {"timestamp", "regressions", "improvements", "overall_assessment"},
    "report": {"timestamp", "config", "total_models", "comparison_count", "ab_test_count",
               "version_diff_count", "regression_detection_count", "recent_comparisons",
               "recent_regressions", "model_summary"},
}  # fmt: skip
RECORDS: dict[str, type[Kept]] = {
    "compare": ModelComparisonResult,
    "version-diff": VersionDiff,
    "regressions": RegressionDetectionResult,
    "report": DifferentialDebuggingReport,
}
WORDS = {
    "compare": ("compare", "base@1", "base@2"),
    "version-diff": ("version-diff", "base@1", "base@2"),
    "regressions": ("regressions", "base@1", "base@2"),
    "report": ("report",),
}


@pytest.fixture
def recorded(difflens: InProcess, monkeypatch: pytest.MonkeyPatch) -> InProcess:
    """Return the command in a folder whose store holds a good version and a bad one."""
    monkeypatch.delenv("DIFFLENS_STORE", raising=False)
    record(difflens, "base@1", right=380, training={"learning_rate": 0.1})
    record(difflens, "base@2", right=300, training={"learning_rate": 0.5})
    return difflens


def asked(difflens: InProcess, *words: str) -> dict[str, Any]:
    return json.loads(difflens(*words, "-o", "json").out)


@pytest.mark.parametrize("name", WORDS)
def test_json_is_the_record_field_for_field(name: str, recorded: InProcess) -> None:
    text = recorded(*WORDS[name], "-o", "json").out

    plain = json.loads(text)
    assert set(plain) >= CONTRACT[name]
    assert json.loads(RECORDS[name].from_json(text).to_json()) == plain


@pytest.mark.parametrize("name", WORDS)
@pytest.mark.parametrize("output", ["cli", "json", "yaml", "markdown", "html"])
def test_every_output_is_written_and_to_a_file_as_well(
    name: str, output: str, recorded: InProcess
) -> None:
    done = recorded(*WORDS[name], "-o", output, "--out", "result")

    text = Path("result").read_text()
    assert (done.out, done.err) == ("", "")
    assert "base" in text
    if output in ("json", "yaml"):
        assert set(yaml.safe_load(text)) >= CONTRACT[name]
    if output == "html":
        assert text.startswith("<!doctype html>")


@pytest.mark.parametrize("name", WORDS)
def test_a_store_that_is_not_there_is_one_line(name: str, difflens: InProcess) -> None:
    assert_refused(difflens(*WORDS[name], "--store", "nowhere.db"), "there is no store")


@pytest.mark.parametrize("name", ["compare", "version-diff", "regressions"])
def test_a_model_that_is_not_there_is_one_line_with_the_nearest(
    name: str, recorded: InProcess
) -> None:
    done = recorded(name, "base@1", "bsae")

    assert_refused(done, "no snapshot is called 'bsae'", "did you mean base")


@pytest.mark.parametrize(
    ("words", "reason"),
    [
        (("compare", "base@1"), "a comparison takes two models or more"),
        (("compare",), "missing argument"),
        (("compare", "base@1", "base@1"), "base@1 is named twice"),
        (("compare", "base@2", "base"), "are the same snapshot, base@2"),
        (("version-diff", "base@1"), "missing argument 'TO'"),
        (("regressions", "base@1"), "missing argument 'RIGHT'"),
        (("regressions", "base@1", "base@2", "--policy", "nowhere.toml"), "nowhere.toml"),
        (("report", "-o", "png"), "'png' is not one of"),
    ],
)
def test_wrong_usage_is_one_line(words: tuple[str, ...], reason: str, recorded: InProcess) -> None:
    assert_refused(recorded(*words), reason)


def test_compare_tells_the_best_apart_by_the_examples(recorded: InProcess) -> None:
    lines = recorded("compare", "base@2", "base@1").lines

    assert lines[0] == "compare: base@2, base@1"
    assert lines[-1] == "base@1 is best by val_accuracy; told apart from every other model"


def test_compare_of_two_numbers_is_not_testable_and_not_false(difflens: InProcess) -> None:
    record(difflens, "a@1", metrics={"val_accuracy": 0.90})
    record(difflens, "b@1", metrics={"val_accuracy": 0.95})

    found = asked(difflens, "compare", "a", "b")

    accuracy = found["performance_comparison"]["accuracy_comparison"]
    assert accuracy["best_model"] == "b"
    assert accuracy["separated"] is None
    assert accuracy["significant_differences"]["a"] is None


def test_a_custom_metric_gets_its_direction_from_the_policy(difflens: InProcess) -> None:
    record(difflens, "a@1", metrics={"zorps": 10})
    record(difflens, "b@1", metrics={"zorps": 20})
    Path("policy.toml").write_text('[metrics.zorps]\ndirection = "lower"\nmargin = 1.0\n')

    def best(*more: str) -> Any:
        found = asked(difflens, "compare", "a", "b", *more)["performance_comparison"]
        return found["custom_comparisons"]["zorps"]["best_model"]

    assert (best(), best("--policy", "policy.toml")) == (None, "a")


def test_version_diff_reads_both_weight_files_wherever_it_runs(
    difflens: InProcess, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for version, values in (("1", [1, 2]), ("2", [-1, -2])):
        write(tmp_path / f"{version}.safetensors", arrays(w=values))
        done = difflens("snapshot", "add", "m", "--version", version, "--weights",
                        f"{version}.safetensors")  # fmt: skip
        assert done.code == 0
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    monkeypatch.chdir(elsewhere)

    found = asked(difflens, "version-diff", "m@1", "m@2", "--store", "../.difflens/store.db")

    weights = found["weight_changes"]
    assert (weights["basis"], weights["layer_changes"]) == ("elements", {"w": 2.0})


def test_version_diff_without_the_files_tells_which_tensors_changed(
    difflens: InProcess, tmp_path: Path
) -> None:
    for version, values in (("1", [1, 2]), ("2", [1, 3])):
        write(tmp_path / "m.safetensors", arrays(w=values, same=[1]))
        difflens("snapshot", "add", "m", "--version", version, "--weights", "m.safetensors")
    (tmp_path / "m.safetensors").unlink()

    done = difflens("version-diff", "m@1", "m@2")

    assert "from fingerprints alone: which tensors changed, not how far" in done.out
    assert done.lines[-1].endswith("tensors changed: 1")


def test_a_regression_fails_the_gate_with_its_reason(recorded: InProcess) -> None:
    done = recorded("regressions", "base@1", "base@2")

    assert done.code == 1
    assert done.lines[0] == "regressions: current is base@2 (right), baseline is base@1 (left)"
    assert any(line.startswith("  - val_accuracy: Critical: 0.95 -> 0.75") for line in done.lines)
    assert any("learning_rate 0.1 -> 0.5" in line for line in done.lines)
    assert done.lines[-1].startswith("failed: 1 regression (1 Critical): val_accuracy")


def test_an_improvement_passes_the_gate(recorded: InProcess) -> None:
    record(recorded, "base@3", right=395)

    done = recorded("regressions", "base@2", "base@3")

    assert done.code == 0
    assert done.lines[-1].startswith("passed: 0 regressions")


def test_what_cannot_be_judged_does_not_pass_the_gate(difflens: InProcess) -> None:
    record(difflens, "a@1", metrics={"zorps": 10})
    record(difflens, "a@2", metrics={"zorps": 20})

    done = difflens("regressions", "a@1", "a@2")

    assert done.code == 1
    assert done.lines[-1].startswith("cannot tell: ")


def test_two_numbers_breach_a_limit_and_are_called_that(difflens: InProcess) -> None:
    record(difflens, "a@1", metrics={"val_accuracy": 0.90})
    record(difflens, "a@2", metrics={"val_accuracy": 0.70})

    done = difflens("regressions", "a@1", "a@2")

    assert done.code == 1
    assert "a limit of the policy passed, not a test" in done.out


def test_a_wider_margin_lets_the_same_versions_pass(difflens: InProcess) -> None:
    record(difflens, "a@1", metrics={"val_accuracy": 0.90})
    record(difflens, "a@2", metrics={"val_accuracy": 0.88})
    Path("wide.toml").write_text("[metrics.val_accuracy]\nmargin = 0.1\n")

    assert difflens("regressions", "a@1", "a@2").code == 1
    assert difflens("regressions", "a@1", "a@2", "--policy", "wide.toml").code == 0


def test_the_steps_of_severity_are_set_by_the_policy(recorded: InProcess) -> None:
    Path("mild.toml").write_text("[regressions]\nmajor = 1000.0\ncritical = 2000.0\n")

    found = asked(recorded, "regressions", "base@1", "base@2", "--policy", "mild.toml")

    assert [each["severity"] for each in found["regressions"]] == ["Minor"]


def test_an_older_right_side_is_a_warning(recorded: InProcess) -> None:
    done = recorded("regressions", "base@2", "base@1")

    assert done.code == 0
    assert "difflens: warning: the current base@1 is older than the baseline base@2" in done.err


def test_the_report_counts_what_was_asked_before(recorded: InProcess) -> None:
    for words in (WORDS["compare"], WORDS["version-diff"], WORDS["regressions"]):
        recorded(*words)
    Path("left.txt").write_text("1\n2\n3\n")
    Path("right.txt").write_text("2\n3\n4\n")
    recorded("ab", "left.txt", "right.txt", "--metric", "loss")

    found = asked(recorded, "report")

    counts = ("total_models", "comparison_count", "ab_test_count", "version_diff_count",
              "regression_detection_count")  # fmt: skip
    assert [found[name] for name in counts] == [2, 1, 1, 1, 1]
    assert [each["current"] for each in found["recent_regressions"]] == ["base@2"]


def test_the_report_follows_a_metric_that_only_examples_give(recorded: InProcess) -> None:
    (course,) = asked(recorded, "report")["histories"]

    assert (course["metric"], [each["value"] for each in course["points"]]) == (
        "val_accuracy", [0.95, 0.75],
    )  # fmt: skip


def test_the_page_draws_metrics_over_versions(difflens: InProcess) -> None:
    for version in range(12):
        record(difflens, f"base@{version}", metrics={"val_accuracy": 0.9 - 0.2 * (version > 6)})

    done = difflens("report", "-o", "html")

    assert done.code == 0
    assert done.out.count("<svg") >= 1
    assert 'class="curve"' in done.out


def test_an_empty_store_is_reported_as_one(difflens: InProcess) -> None:
    record(difflens, "a@1")
    difflens("snapshot", "remove", "a")

    done = difflens("report")

    assert done.code == 0
    assert done.lines[0] == "report: 0 snapshots in .difflens/store.db"


def test_a_debug_traceback_is_shown_only_when_asked(tmp_path: Path) -> None:
    (tmp_path / "store.db").write_bytes(b"this is no database" * 100)

    plain = run("report", "--store", "store.db", cwd=tmp_path)
    traced = run("report", "--store", "store.db", "--debug", cwd=tmp_path)

    assert_refused(plain, "store.db")
    assert "Traceback" in traced.err
