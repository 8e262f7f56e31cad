"""`difflens check`: is it whole, is it safe, is it finite?"""

import json

import numpy as np
import pytest
from cli.command import assert_refused
from models.small import arrays, write


@pytest.fixture
def good(tmp_path):
    return write(tmp_path / "good.safetensors", arrays(w=[[1, 2]], b=[0]))


@pytest.fixture
def burnt(tmp_path):
    model = arrays(a=[1, np.nan, np.inf, -np.inf, np.nan], b=[1])
    return write(tmp_path / "burnt.safetensors", model)


def test_a_whole_and_finite_model_passes(difflens, good):
    outcome = difflens("check", good)

    facts = "safetensors, 2 tensors (2 F32), 3 parameters, 12 B, read to the last byte, all finite"
    assert (outcome.code, outcome.out, outcome.err) == (0, f"ok   {good}: {facts}\n", "")


def test_nan_and_infinities_fail_and_are_counted_by_tensor(difflens, burnt):
    outcome = difflens("check", burnt)

    assert outcome.code == 1
    assert outcome.lines[0].startswith(f"BAD  {burnt}: ")
    assert outcome.lines[1:] == ["     a: 2 NaN, 1 +inf, 1 -inf"]


def test_only_the_first_twenty_tensors_are_named(difflens, tmp_path):
    path = write(tmp_path / "m.safetensors", arrays(**{f"w{n}": [np.nan] for n in range(23)}))

    lines = difflens("check", path).lines

    assert (len(lines), lines[-1]) == (22, "     and 3 more")


def test_one_file_that_is_cut_is_trouble(difflens, good):
    good.write_bytes(good.read_bytes()[:-1])

    assert_refused(difflens("check", good), f"{good}: tensor 'b' ends at byte")


def test_of_many_the_worst_decides_and_all_are_told(difflens, good, burnt, tmp_path):
    cut = tmp_path / "cut.safetensors"
    cut.write_bytes(good.read_bytes()[:-1])

    outcome = difflens("check", cut, burnt, tmp_path / "nowhere", good)

    assert outcome.code == 2
    assert [line.split()[0] for line in outcome.lines] == ["BAD", "a:", "ok"]
    errors = [line for line in outcome.err.splitlines() if not line.startswith("hint: ")]
    assert [line.split(": ")[2] for line in errors] == [str(cut), str(tmp_path / "nowhere")]
    assert difflens("check", good, burnt).code == 1
    assert difflens("check", good, good).code == 0


def test_json_says_the_same_to_programs(difflens, good, burnt):
    outcome = difflens("check", good, burnt, "-o", "json")

    assert outcome.code == 1
    assert json.loads(outcome.out) == [
        {"path": str(good), "format": "safetensors", "tensors": 2, "finite": True,
         "nonfinite": {}, "refused": [], "warnings": []},
        {"path": str(burnt), "format": "safetensors", "tensors": 2, "finite": False,
         "nonfinite": {"a": 4}, "refused": [], "warnings": []},
    ]  # fmt: skip


def test_quiet_tells_by_its_code_alone(difflens, good, burnt):
    assert difflens("check", "-q", good).out == ""
    assert difflens("check", "-q", burnt) == difflens("check", "--quiet", burnt)
    assert (difflens("check", "-q", burnt).code, difflens("check", "-q", burnt).out) == (1, "")


def test_out_takes_the_answer(difflens, good, tmp_path):
    assert difflens("check", good, "--out", "answer.txt").out == ""
    assert (tmp_path / "answer.txt").read_text().startswith("ok   ")


def test_a_model_without_tensors_is_whole(difflens, tmp_path):
    empty = write(tmp_path / "empty.safetensors", {})

    assert difflens("check", empty).out.startswith(f"ok   {empty}: safetensors, no tensors, 0 ")


def test_odd_booleans_are_a_warning_not_a_failure(difflens, tmp_path):
    path = write(tmp_path / "m.safetensors", {"mask": ("BOOL", (2,), b"\1\7")})

    outcome = difflens("check", path)

    assert outcome.code == 0
    assert outcome.err.startswith("difflens: warning: mask: 1 BOOL bytes")


def test_integers_and_packed_floats_are_always_finite(difflens, tmp_path):
    model = {"i": ("I64", (1,), b"\xff" * 8), "p": ("F6_E2M3", (4,), b"\xff" * 3)}

    assert difflens("check", write(tmp_path / "m.safetensors", model)).code == 0


@pytest.mark.parametrize("threads", ["1", "3"])
def test_threads_change_nothing(difflens, burnt, threads):
    assert difflens("check", burnt, "--threads", threads) == difflens("check", burnt)


def test_it_wants_a_file(difflens):
    assert_refused(difflens("check"), "missing argument 'FILE...'")


@pytest.mark.parametrize(
    ("option", "word"), [("--format=x", "no format"), ("--limit=x=1", "limit")]
)
def test_what_is_not_known_is_refused(difflens, good, option, word):
    assert_refused(difflens("check", good, option), word)
