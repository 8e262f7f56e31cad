"""`difflens blame` and `bisect`: what they print, their exit codes, and one line for bad input."""

import json
from pathlib import Path

import pytest
from cli.command import InProcess, assert_refused
from repair.blame.hybrid_models import fails_where_negative, files, judge
from repair.blame.test_hybrid_files import DOWN, UP, damaged


@pytest.fixture
def pair(tmp_path: Path) -> tuple[Path, Path, list[str]]:
    """Write a good model, a bad one, and a command that tells them apart."""
    return *files(tmp_path, *damaged(UP)), judge(tmp_path, fails_where_negative(UP))


def test_a_culprit_is_printed_with_both_answers_and_the_proof(difflens: InProcess, pair):
    good, bad, command = pair

    said = difflens("blame", good, bad, "--", *command)

    assert said.code == 0
    assert said.lines[0].startswith(f"blame: {UP} is to blame, of 37 changes: ")
    assert said.lines[0].endswith(" (4 evaluations, 2 hybrids)")
    assert f"  repair: put back {UP}: 1.0 kB of 38.9 kB that differ" in said.out
    assert f"  cause: {UP} breaks GOOD" in said.out
    assert "+ proof: BAD with the repair passes, GOOD with the cause fails" in said.out


@pytest.mark.parametrize("output", ["json", "yaml", "markdown", "html"])
def test_the_answer_is_written_in_every_form(difflens: InProcess, pair, output):
    good, bad, command = pair

    said = difflens("blame", good, bad, "-o", output, "--", *command, "{}")

    assert said.code == 0
    assert UP in said.out
    if output == "json":
        data = json.loads(said.out)
        assert (data["verdict"], data["repair"], data["cause"]) == ("found", [UP], [UP])
        assert data["evaluations"] == 4
        assert data["shares"] == {}


def test_a_repair_is_written_and_passes(difflens: InProcess, pair, tmp_path: Path):
    good, bad, command = pair
    patch, mended = tmp_path / "repair.patch", tmp_path / "mended.safetensors"

    said = difflens("blame", good, bad, "--repair", patch, "--", *command)
    applied = difflens("patch", "apply", bad, patch, "-o", mended)
    again = difflens("blame", good, mended, "--", *command)

    assert f"patch: {patch}" in said.out
    assert applied.code == 0
    assert_refused(again, "the check passes on BAD too: nothing to blame")


def test_what_stays_undecided_exits_with_one(difflens: InProcess, pair):
    good, bad, command = pair

    said = difflens("blame", good, bad, "--budget", "2", "--", *command)

    assert said.code == 1
    assert "cannot tell after 2 evaluations: the budget ended" in said.lines[0]


def test_thresholds_can_be_named_in_three_ways(difflens: InProcess, pair, tmp_path: Path):
    good, bad, _ = pair
    command = judge(tmp_path, f"print(model[{UP!r}][0])")

    for options in (["--threshold", "0"], ["--at-least", "0"], ["--threshold", "auto"]):
        assert difflens("blame", good, bad, *options, "--", *command).code == 0
    assert_refused(
        difflens("blame", good, bad, "--at-most", "0", "--threshold", "1", "--", *command),
        "--at-most names the threshold and the direction already",
    )
    assert_refused(
        difflens("blame", good, bad, "--threshold", "x", "--", *command),
        "is no number, and not auto",
    )


def test_bad_input_is_one_line(difflens: InProcess, pair, tmp_path: Path):
    good, bad, command = pair
    other = tmp_path / "other"
    other.mkdir()
    stranger = files(other, {"x": damaged()[0][UP]}, {"x": damaged()[0][DOWN]})[0]
    for arguments, reason in (
        ((good, tmp_path / "none", "--", *command), "no such file"),
        ((good, stranger, "--", *command), "no tensor in common"),
        ((good, bad, "--", "false"), "the check fails on GOOD too: nothing to blame"),
        ((good, bad, "--", "true"), "the check passes on BAD too: nothing to blame"),
        ((good, good, "--", *command), "there is nothing to blame"),
        ((good, bad, "--", str(tmp_path / "none")), "the command cannot run: no such file"),
        ((good, bad, "--", str(bad)), "the command cannot run: permission denied"),
        ((good, bad, "--threshold", "auto", "--", "true"), "the command printed no number"),
        ((good, bad, *command), "there is no command to run: put it after --"),
    ):
        assert_refused(difflens("blame", *arguments), reason)


def test_the_last_line_of_a_failing_command_is_shown(difflens: InProcess, pair):
    good, bad, _ = pair

    said = difflens("blame", good, bad, "--", "cat", "/nowhere/at/all")

    assert_refused(said, "fails on GOOD too: nothing to blame (cat: /nowhere/at/all")


def test_bisect_prints_the_first_bad_checkpoint_and_what_broke_it(
    difflens: InProcess, pair, tmp_path: Path
):
    good, bad, command = pair
    row = [tmp_path / f"{at}.safetensors" for at in range(6)]
    for at, path in enumerate(row):
        path.write_bytes((good if at < 4 else bad).read_bytes())

    said = difflens("bisect", *row, "--", *command)
    data = json.loads(difflens("bisect", *row, "-o", "json", "--", *command).out)

    assert said.code == 0
    assert "4.safetensors is the first bad one of 6 checkpoints (5 evaluations)" in said.lines[0]
    assert f"blame: {UP} is to blame" in said.out
    assert data["last_good"] == str(row[3])
    assert data["blame"]["repair"] == [UP]
    assert_refused(difflens("bisect", good, "--", *command), "two are needed at least")
    assert_refused(difflens("bisect", good, row[0], "--", *command), "passes on BAD too")
    assert_refused(difflens("bisect", good, tmp_path / "no", "--", *command), "no such file")
