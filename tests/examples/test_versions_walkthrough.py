"""The walkthrough of versions, run for real: trained, recorded, compared, tested, gated."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

EXAMPLE = Path(__file__).parents[2] / "examples" / "versions_walkthrough.py"


@pytest.fixture(scope="module")
def story(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, str, int]:
    pytest.importorskip("sklearn")
    folder = tmp_path_factory.mktemp("walkthrough")
    done = subprocess.run(
        [sys.executable, str(EXAMPLE), str(folder)],
        capture_output=True, text=True, check=False, timeout=300,
    )  # fmt: skip
    assert done.stderr == ""
    return folder, done.stdout, done.returncode


def told(story: tuple[Path, str, int], command: str) -> list[str]:
    """Return what one command of the walkthrough printed."""
    _, after = story[1].split(f"$ difflens {command}", 1)
    return after.partition("\n$ difflens")[0].splitlines()[1:]


def asked(folder: Path, *words: str) -> dict[str, object]:
    done = subprocess.run(
        [sys.executable, "-m", "difflens", *words, "-o", "json"],
        cwd=folder, capture_output=True, text=True, check=False,
    )  # fmt: skip
    return json.loads(done.stdout)


def test_the_gate_fails(story: tuple[Path, str, int]) -> None:
    assert story[2] == 1
    assert "The gate ended with exit code 1" in story[1]


def test_the_gate_says_which_metric_and_what_came_with_it(story: tuple[Path, str, int]) -> None:
    lines = told(story, "regressions wide@1 wide@2")

    assert lines[0] == "regressions: current is wide@2 (right), baseline is wide@1 (left)"
    assert lines[-1].startswith("failed: ") or lines[-2].startswith("failed: ")
    assert any(line.lstrip().startswith("- val_accuracy: ") for line in lines)
    assert any("learning_rate" in line and "0.2" in line for line in lines)


def test_the_regression_is_shown_by_its_interval_not_by_two_numbers(
    story: tuple[Path, str, int],
) -> None:
    found = asked(story[0], "regressions", "wide@1", "wide@2")

    (accuracy,) = [each for each in found["regressions"] if each["metric"] == "val_accuracy"]  # type: ignore[attr-defined]
    assert (accuracy["basis"], accuracy["statistical"]) == ("evals", True)
    assert accuracy["interval"]["low"] > accuracy["margin"]


def test_the_best_of_three_is_the_widest_and_told_apart_from_the_tiniest(
    story: tuple[Path, str, int],
) -> None:
    found = asked(story[0], "compare", "tiny", "small", "wide@1")

    accuracy = found["performance_comparison"]["accuracy_comparison"]  # type: ignore[index]
    assert accuracy["best_model"].startswith("wide")
    assert accuracy["evidence"] == "evals"
    assert accuracy["significant_differences"][accuracy["worst_model"]] is True


def test_the_ab_test_is_paired_by_example(story: tuple[Path, str, int]) -> None:
    found = asked(story[0], "ab", "small.eval.csv", "wide.eval.csv", "--metric", "val_accuracy")

    assert found["statistical_tests"]["val_accuracy"]["paired"] is True  # type: ignore[index]


def test_the_version_diff_compares_the_weights_element_by_element(
    story: tuple[Path, str, int],
) -> None:
    found = asked(story[0], "version-diff", "wide@1", "wide@2")

    assert found["weight_changes"]["basis"] == "elements"  # type: ignore[index]
    changes = {each["parameter"]: each for each in found["config_changes"]}  # type: ignore[attr-defined]
    assert (changes["learning_rate"]["old_value"], changes["learning_rate"]["new_value"]) == (
        "0.01",
        "0.2",
    )


def test_the_report_is_a_page_that_draws_the_versions(story: tuple[Path, str, int]) -> None:
    text = (story[0] / "report.html").read_text()

    assert "val_accuracy" in text
    assert text.count("<svg") >= 2
