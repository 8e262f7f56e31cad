"""Gates on the command line: the exit code is theirs, the worst of all that were named."""

import json

import pytest
from cli.command import assert_refused
from models import arrays, write

LEFT, RIGHT = "left.safetensors", "right.safetensors"
GOOD, BAD = [1] * 90 + [0] * 10, [1] * 60 + [0] * 40
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
    assert difflens(*pair, first, second, *numbers).code == 2


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

    assert difflens(*pair, "--alert-on-degradation", *noise).code == 0
    assert difflens(*pair, "--alert-on-degradation", "--alert-mode", "point", *noise).code == 1


def test_an_answer_says_what_it_was_judged_by(difflens, pair, evals):
    said = difflens(*pair, "--regression-test", *evals(GOOD, BAD), "-o", "full-json")

    (envelope,) = json.loads(said.out)["analyses"]
    assert envelope["fields"]["passed"] is False
    assert envelope["policy"]["alpha"] == {"value": 0.05, "source": "default"}


def test_a_margin_of_the_policy_makes_the_gate_strict(difflens, pair, evals, tmp_path):
    (tmp_path / "policy.toml").write_text("[metrics.accuracy]\nmargin = 0.01\n")
    said = difflens(*pair, "--regression-test", *evals(GOOD, GOOD), "--policy", "policy.toml")

    assert said.code == 2
    assert "needs more examples of accuracy" in said.out


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
