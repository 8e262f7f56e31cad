"""`difflens ab`: two samples in files, however they are written, and one plain conclusion."""

import json
import random
from pathlib import Path
from typing import Any

import pytest
from cli.command import InProcess, assert_refused
from cli.versions import record, scores

from difflens.versions.records.ab import ABTestResult

CONTRACT = {"config", "start_time", "end_time", "model_a_results", "model_b_results",
            "statistical_tests", "conclusion"}  # fmt: skip


def asked(difflens: InProcess, *words: str) -> dict[str, Any]:
    done = difflens("ab", *words, "-o", "json")
    found: dict[str, Any] = json.loads(done.out)
    cannot_tell = found["conclusion"]["verdict"] in {"inconclusive", "not_enough_data"}
    assert done.code == (1 if cannot_tell else 0), done.err
    return found


def numbers(path: str, mean: float, n: int = 40, seed: int = 0) -> str:
    draw = random.Random(seed)
    Path(path).write_text("".join(f"{draw.gauss(mean, 1)}\n" for _ in range(n)))
    return path


def test_plain_numbers_are_tested_as_two_independent_samples(difflens: InProcess) -> None:
    left, right = numbers("left.txt", 0.0), numbers("right.txt", 2.0, seed=1)

    found = asked(difflens, left, right, "--metric", "loss")

    test = found["statistical_tests"]["loss"]
    assert set(found) >= CONTRACT
    assert (test["test_type"], test["paired"], test["direction"]) == ("Welch's t-test", False,
                                                                      "lower")  # fmt: skip
    assert (found["conclusion"]["winner"], found["conclusion"]["verdict"]) == (left, "a_better")


def test_what_cannot_be_told_exits_with_one_and_what_is_shown_with_zero(
    difflens: InProcess,
) -> None:
    files = numbers("a", 0.0), numbers("b", 0.0, seed=1), numbers("c", 3.0, seed=2)

    assert difflens("ab", *files[:2], "--metric", "accuracy").code == 1
    assert difflens("ab", *files[1:], "--metric", "accuracy").code == 0


def test_the_direction_decides_who_wins(difflens: InProcess) -> None:
    left, right = numbers("left.txt", 0.0), numbers("right.txt", 2.0, seed=1)

    def winner(*more: str) -> Any:
        return asked(difflens, left, right, "--metric", "zorps", *more)["conclusion"]["winner"]

    assert winner("--direction", "higher") == right
    assert winner("--direction", "lower") == left
    assert winner() is None


def test_examples_are_paired_by_their_ids(difflens: InProcess, tmp_path: Path) -> None:
    scores(tmp_path / "left.csv", 300)
    right = scores(tmp_path / "right.csv", 330).read_text().splitlines()
    Path("right.csv").write_text("\n".join([right[0], *right[:0:-1]]) + "\n")

    found = asked(difflens, "left.csv", "right.csv", "--metric", "val_accuracy")
    apart = asked(difflens, "left.csv", "right.csv", "--metric", "val_accuracy", "--unpaired")

    test, other = (each["statistical_tests"]["val_accuracy"] for each in (found, apart))
    assert (test["paired"], other["paired"]) == (True, False)
    assert "McNemar" in test["test_type"]
    assert test["p_value"] < other["p_value"]


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("wide.csv", "id,f1\na,1\nb,2\nc,3\n"),
        ("score.csv", "id,score\na,1\nb,2\nc,3\n"),
        ("long.csv", "id,score,metric\na,1,f1\nb,2,f1\nc,3,f1\na,9,other\n"),
        ("lines.jsonl", '{"id": "a", "f1": 1}\n{"id": "b", "f1": 2}\n{"id": "c", "f1": 3}\n'),
        ("plain.txt", "1\n2\n\n3\n"),
        ("bare.csv", "f1\n1\n2\n3\n"),
    ],
)
def test_a_sample_is_read_however_it_is_written(
    name: str, text: str, difflens: InProcess, tmp_path: Path
) -> None:
    (tmp_path / name).write_text(text)
    numbers("other.txt", 0.0, 5)

    found = asked(difflens, name, "other.txt", "--metric", "f1")

    assert found["model_a_results"]["metrics"]["f1"] == [1, 2, 3]
    assert found["model_a_results"]["summary_stats"]["f1"]["median"] == 2


def test_clusters_are_taken_from_the_column_that_is_named(difflens: InProcess) -> None:
    draw = random.Random(0)
    for side, mean in (("left", 0.0), ("right", 0.1)):
        rows = [f"{draw.gauss(mean, 1)},user{place % 10}" for place in range(200)]
        Path(f"{side}.csv").write_text("\n".join(["loss,who", *rows]) + "\n")

    found = asked(difflens, "left.csv", "right.csv", "--metric", "loss", "--cluster", "who")

    test = found["statistical_tests"]["loss"]
    assert test["clusters"] is not None
    assert test["paired"] is False


def test_several_metrics_are_adjusted_and_the_first_is_the_primary_one(difflens: InProcess) -> None:
    draw = random.Random(0)
    for side in ("left", "right"):
        rows = [f"{draw.gauss(0, 1)},{draw.gauss(0, 1)}" for _ in range(50)]
        Path(f"{side}.csv").write_text("\n".join(["f1,loss", *rows]) + "\n")

    found = asked(difflens, "left.csv", "right.csv", "--metric", "f1", "--metric", "loss")

    tests = found["statistical_tests"]
    assert list(tests) == ["f1", "loss"]
    assert found["config"]["primary_metric"] == "f1"
    assert all(each["p_adjusted"] >= each["p_value"] for each in tests.values())
    assert max(each["p_adjusted"] for each in tests.values()) > min(
        each["p_value"] for each in tests.values()
    )


def test_a_margin_asks_for_equivalence(difflens: InProcess) -> None:
    left, right = numbers("left.txt", 0.0, 400), numbers("right.txt", 0.0, 400, seed=1)

    found = asked(difflens, left, right, "--metric", "loss", "--margin", "0.5")

    assert found["conclusion"]["verdict"] == "equivalent"


def test_looking_again_and_again_gives_no_p_of_a_fixed_sample(difflens: InProcess) -> None:
    left, right = numbers("left.txt", 0.0, 100), numbers("right.txt", 1.0, 100, seed=1)

    found = asked(difflens, left, right, "--metric", "loss", "--sequential")

    assert found["sequential"] is not None
    assert found["statistical_tests"]["loss"]["p_value"] is None


def test_the_sample_size_that_would_decide_is_told(difflens: InProcess) -> None:
    left, right = numbers("left.txt", 0.0, 20), numbers("right.txt", 0.1, 20, seed=1)

    done = difflens("ab", left, right, "--metric", "loss", "--min-effect", "0.2")

    assert "observations that would decide: 394 an arm" in done.out


def test_the_conclusion_is_the_last_line(difflens: InProcess) -> None:
    left, right = numbers("left.txt", 0.0), numbers("right.txt", 2.0, seed=1)

    done = difflens("ab", left, right, "--metric", "loss")

    plain = ABTestResult.from_json(
        difflens("ab", left, right, "--metric", "loss", "-o", "json").out
    )
    assert done.lines[-1] == plain.conclusion.summary
    assert done.lines[0].startswith("ab: A (left) is left.txt, B (right) is right.txt")


def test_it_needs_no_store_and_makes_none(difflens: InProcess, tmp_path: Path) -> None:
    asked(difflens, numbers("left.txt", 0), numbers("right.txt", 0, seed=1), "--metric", "loss")

    assert {path.name for path in tmp_path.iterdir()} == {"left.txt", "right.txt"}


def test_it_is_kept_where_there_is_a_store(difflens: InProcess) -> None:
    record(difflens, "a@1")

    asked(difflens, numbers("left.txt", 0), numbers("right.txt", 0, seed=1), "--metric", "loss")

    report = json.loads(difflens("report", "-o", "json").out)
    assert report["ab_test_count"] == 1


@pytest.mark.parametrize(
    ("words", "reason"),
    [
        (("left.txt", "right.txt"), "missing option '--metric'"),
        (("left.txt", "nowhere", "--metric", "a"), "nowhere: no such file"),
        (("left.txt", "left.txt", "--metric", "a"), "model_a and model_b are both"),
        (("left.txt", "table.csv", "--metric", "a"), "no column is called 'a'"),
        (("long.csv", "long2.csv", "--metric", "a"), "no row is of metric 'a'"),
        (("table.csv", "t2.csv", "--metric", "f1", "--cluster", "who"), "called 'who'"),
        (("left.txt", "right.txt", "--metric", "a", "--metric", "b"), "it holds one metric"),
        (("left.txt", "words.txt", "--metric", "a"), "words.txt: line 2"),
        (("left.txt", "right.txt", "--metric", "a", "--alpha", "2"), "alpha is 2.0"),
        (("left.txt", "right.txt", "--metric", "a", "--margin", "-1"), "margin is -1.0"),
        (("left.txt", "short.txt", "--metric", "a", "--paired"), "cannot be paired"),
        (("left.txt", "empty.txt", "--metric", "a"), "it is empty"),
    ],
)
def test_what_cannot_be_tested_is_one_line(
    words: tuple[str, ...], reason: str, difflens: InProcess
) -> None:
    for name, text in {
        "left.txt": "1\n2\n3\n", "right.txt": "1\n2\n4\n", "short.txt": "1\n2\n",
        "table.csv": "id,f1\na,1\nb,2\n", "t2.csv": "id,f1\na,1\nb,2\n", "empty.txt": "",
        "long.csv": "id,score,metric\na,1,f1\n", "long2.csv": "id,score,metric\na,1,f1\n",
        "words.txt": "1\nx\n",
    }.items():  # fmt: skip
        Path(name).write_text(text)

    assert_refused(difflens("ab", *words), reason)


def test_clusters_of_one_side_hold_for_what_both_share(difflens: InProcess) -> None:
    """As the gates take them: the same ids are in the same clusters."""
    draw = random.Random(5)
    rows = [(f"q{at}", draw.random(), at // 10) for at in range(300)]
    Path("l.csv").write_text("id,score,page\n" + "".join(f"{i},{x},{c}\n" for i, x, c in rows))
    Path("r.csv").write_text(
        "id,score\n" + "".join(f"{i},{x + draw.random()}\n" for i, x, _ in rows)
    )

    test = asked(difflens, "l.csv", "r.csv", "--metric", "score", "--cluster", "page")

    assert test["statistical_tests"]["score"]["clusters"] == 30
    missing = difflens("ab", "l.csv", "r.csv", "--metric", "score", "--cluster", "user")
    assert_refused(missing, "no column is called 'user'")
