"""Gates on the command line: the exit code is theirs, the worst of all that were named."""

import json

import pytest
from cli.command import assert_refused
from models.small import arrays, write

LEFT, RIGHT = "left.safetensors", "right.safetensors"
GOOD, BAD = [1] * 900 + [0] * 100, [1] * 600 + [0] * 400
GATES = ("--regression-test", "--alert-on-degradation", "--deployment-readiness")


@pytest.fixture
def pair(tmp_path):
    write(tmp_path / LEFT, arrays(w=[1, 2]))
    write(tmp_path / RIGHT, arrays(w=[1, 3]))
    return LEFT, RIGHT


@pytest.fixture
def evals(tmp_path):
    """Write results of both sides, and give the options that hand them in."""

    def written(left, right):
        options = []
        for side, scores in (("left", left), ("right", right)):
            lines = "".join(f"q{i},{score},accuracy\n" for i, score in enumerate(scores))
            (tmp_path / f"{side}.csv").write_text(f"id,score,metric\n{lines}")
            options += [f"--eval-{side}", f"{side}.csv"]
        return options

    return written


@pytest.mark.parametrize("gate", GATES)
def test_a_gate_without_evidence_is_trouble_and_never_a_pass(difflens, pair, gate):
    assert difflens(*pair, gate).code == 2
    assert difflens(LEFT, LEFT, gate).code == 2


@pytest.mark.parametrize("gate", GATES[:2])
def test_a_gate_passes_or_fails_by_its_evidence_not_by_what_differs(difflens, pair, evals, gate):
    assert difflens(*pair, gate, *evals(GOOD, GOOD)).code == 0
    assert difflens(LEFT, LEFT, gate, *evals(GOOD, BAD)).code == 1


def test_the_worst_of_several_gates_is_the_exit_code(difflens, pair, evals, tmp_path):
    """A single number past its margin fails one gate, and is no evidence for the other."""
    (tmp_path / "policy.toml").write_text("[metrics.accuracy]\nmargin = 0.1\n")
    numbers = ["--policy", "policy.toml"]
    for side, value in (("left", 0.9), ("right", 0.5)):
        (tmp_path / f"{side}.json").write_text(json.dumps({"accuracy": value}))
        numbers += [f"--metrics-{side}", f"{side}.json"]
    first, second, _ = GATES

    assert difflens(*pair, first, second, *evals(GOOD, GOOD)).code == 0
    assert difflens(*pair, first, *numbers).code == 1
    assert difflens(*pair, first, second, *numbers).code == 1
    assert difflens(*pair, first, GATES[2]).code == 2


def test_a_gate_beside_other_analyses_still_decides(difflens, pair, evals):
    said = difflens(*pair, "--change-summary", "--regression-test", *evals(GOOD, GOOD))

    assert said.code == 0


def test_what_is_no_gate_leaves_the_code_of_the_diff(difflens, pair):
    for flag in ("--risk-assessment", "--anomaly-detection"):
        assert difflens(*pair, flag).code == 1
        assert difflens(LEFT, LEFT, flag).code == 0


def test_all_analyses_never_gate(difflens, pair, evals):
    assert difflens(*pair, "--all-analyses", *evals(GOOD, GOOD)).code == 1
    assert difflens(LEFT, LEFT, "--all-analyses", *evals(GOOD, BAD)).code == 0


def test_exit_zero_forgives_a_failure_and_no_trouble(difflens, pair, evals):
    assert difflens(*pair, "--regression-test", "--exit-zero", *evals(GOOD, BAD)).code == 0
    assert difflens(*pair, "--regression-test", "--exit-zero").code == 2


def test_the_mode_of_the_alarm_is_an_option(difflens, pair, evals):
    noise = evals([1] * 30 + [0] * 10, [1] * 28 + [0] * 12)

    limit = difflens(*pair, "--alert-on-degradation", *noise)
    point = difflens(*pair, "--alert-on-degradation", "--alert-mode", "point", *noise)

    assert (limit.code, point.code) == (1, 1)
    assert "verdict=cannot_tell" in limit.out
    assert "verdict=failed" in point.out


def test_an_answer_says_what_it_was_judged_by(difflens, pair, evals):
    said = difflens(*pair, "--regression-test", *evals(GOOD, BAD), "-o", "full-json")

    (envelope,) = json.loads(said.out)["analyses"]
    assert envelope["fields"]["passed"] is False
    assert envelope["policy"]["alpha"] == {"value": 0.05, "source": "default"}


def test_a_margin_of_the_policy_makes_the_gate_strict(difflens, pair, evals, tmp_path):
    (tmp_path / "policy.toml").write_text("[metrics.accuracy]\nmargin = 0.001\n")
    said = difflens(*pair, "--regression-test", *evals(GOOD, GOOD), "--policy", "policy.toml")

    assert said.code == 1
    assert "verdict=cannot_tell" in said.out
    assert "examples of accuracy (there are 1,000)" in said.out


def test_the_gates_that_must_pass_are_the_policys(difflens, tmp_path):
    for name in (LEFT, RIGHT):
        write(tmp_path / name, arrays(w=[1, 2]))
    (tmp_path / "policy.toml").write_text('[gates]\nrequired = ["loads", "finite"]\n')
    (tmp_path / "typo.toml").write_text('[gates]\nrequired = ["finit"]\n')
    asked = (LEFT, RIGHT, "--deployment-readiness", "--policy")

    assert difflens(*asked, "policy.toml").code == 0
    assert_refused(difflens(*asked, "typo.toml"), "no gate is called 'finit'", "finite")


def test_a_model_that_holds_no_numbers_is_not_ready(difflens, tmp_path):
    write(tmp_path / LEFT, arrays(w=[1, 2]))
    write(tmp_path / RIGHT, arrays(w=[1, float("nan")]))

    assert difflens(LEFT, RIGHT, "--deployment-readiness").code == 1


def test_a_policy_that_allows_no_test_is_refused_in_one_line(difflens, pair, tmp_path):
    (tmp_path / "policy.toml").write_text("[regression_test]\nalpha = 0.9\n")
    said = difflens(*pair, "--regression-test", "--policy", "policy.toml")

    assert_refused(said, "alpha is 0.9, it must lie between 0 and 0.5")


@pytest.mark.parametrize(("way", "code"), [((), 1), (("--lower-is-better",), 0)])
def test_a_bare_score_needs_no_policy(difflens, pair, tmp_path, way, code):
    options = []
    for side, scores in (("left", GOOD), ("right", BAD)):
        lines = "".join(f"q{i},{score}\n" for i, score in enumerate(scores))
        (tmp_path / f"{side}.csv").write_text(f"id,score\n{lines}")
        options += [f"--eval-{side}", f"{side}.csv"]
    said = difflens(*pair, "--regression-test", *options, *way)

    assert said.code == code
    assert "directions={score: " in said.out
    assert "unknown (needs --eval" not in said.out


@pytest.mark.parametrize(
    ("gate", "word"),
    [("regression-test", "passed"), ("alert-on-degradation", "passed"),
     ("deployment-readiness", "cannot_tell")],
)  # fmt: skip
def test_a_clear_gain_is_judged_by_the_same_margin_everywhere(difflens, pair, evals, gate, word):
    said = difflens(*pair, f"--{gate}", *evals(BAD, GOOD), "-o", "full-json")
    fields = json.loads(said.out)["analyses"][0]["fields"]

    assert fields["verdict"] == word
    assert said.code == (0 if word == "passed" else 1)
    if gate == "deployment-readiness":
        quality = next(each for each in fields["gates"] if each["name"] == "quality")
        assert quality["result"] == "pass"
        assert "better by at least" in quality["evidence"]


@pytest.mark.parametrize("share", [0.8, 0.9, 0.99])
@pytest.mark.parametrize("size", [100, 300])
def test_as_many_examples_as_are_said_to_be_needed_decide(difflens, pair, evals, share, size):
    def asked(n):
        same = [1] * round(n * share) + [0] * (n - round(n * share))
        return difflens(*pair, "--regression-test", *evals(same, same), "-o", "full-json")

    first = json.loads(asked(size).out)["analyses"][0]
    needed = int(first["missing"][0]["needs"].split()[1].replace(",", ""))

    assert asked(round(1.05 * needed)).code == 0
    assert asked(round(0.9 * needed)).code == 1


def test_one_example_a_side_is_too_few_and_no_trouble(difflens, pair, evals):
    for gate in GATES[:2]:
        said = difflens(*pair, gate, *evals([1], [1]))
        assert said.code == 1
        assert "verdict=cannot_tell" in said.out


def test_a_column_that_lacks_is_said_of_the_line_that_names_columns(difflens, pair, tmp_path):
    (tmp_path / "bare.csv").write_text("1,0.5\n2,0.5\n")
    options = ("--eval-left", "bare.csv", "--eval-right", "bare.csv")

    assert_refused(
        difflens(*pair, "--regression-test", *options), "line 1: there is no column 'id'"
    )


def test_no_threads_are_refused_and_more_than_the_most_are_the_most(difflens, pair):
    assert_refused(difflens(*pair, "--threads", "0"), "--threads")
    assert difflens(*pair, "--threads", "999").code == 1
