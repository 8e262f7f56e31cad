"""Evidence on the command line: read when an analysis asks, listed, refused in one line."""

import json
from pathlib import Path
from typing import Any

import pytest
from cli.command import assert_refused
from models.small import arrays, write

from difflens.diffs.evidence import gather as gathering

LEFT, RIGHT = "left/model.safetensors", "right/model.safetensors"


@pytest.fixture
def pair(tmp_path):
    for name, values in ((LEFT, [1, 2]), (RIGHT, [1, 3])):
        write(tmp_path / name, arrays(w=values))
    return LEFT, RIGHT


def used(outcome) -> dict[str, Any]:
    return json.loads(outcome.out)["evidence"]


def test_what_lies_beside_the_models_is_used_and_listed(difflens, pair, tmp_path):
    (tmp_path / "left/config.json").write_text('{"a": 1}')
    said = difflens(*pair, "--change-summary", "-o", "full-json")

    assert used(said) == {"config_left": "left/config.json (discovered)"}


def test_discovery_can_be_switched_off(difflens, pair, tmp_path):
    (tmp_path / "left/config.json").write_text('{"a": 1}')
    said = difflens(*pair, "--change-summary", "-o", "full-json", "--no-discovery")

    assert used(said) == {}


def test_every_option_reads_its_file(difflens, pair, tmp_path):
    options = {
        "config": '{"a": 1}', "metrics": '{"a": 1}', "eval": "id,score\n1,1\n", "latency": "1\n",
        "tokenizer": '{"a": 0}',
    }  # fmt: skip
    lone = {
        "log": "step,loss\n1,2\n", "history": "version,metric,value\n1,a,2\n",
        "gradients": "step,w\n1,2\n", "runs": "lr\n1\n", "policy": "[metrics.a]\nmargin = 1\n",
    }  # fmt: skip
    both = {f"{name}-{side}": text for name, text in options.items() for side in ("left", "right")}
    arguments = []
    for name, text in (both | lone).items():
        (tmp_path / f"{name}.json").write_text(text)
        arguments += [f"--{name}", f"{name}.json"]
    said = difflens(*pair, "--change-summary", "-o", "full-json", "--base", LEFT, *arguments,
                    "--checkpoint", RIGHT, "--checkpoint", LEFT)  # fmt: skip

    words = {"eval": "evals", "tokenizer": "tokens"}
    expected = {
        f"{words.get(name.rpartition('-')[0], name.rpartition('-')[0])}_{name.rpartition('-')[2]}"
        if name in both
        else name: f"{name}.json (named)"
        for name in both | lone
    }
    models = {"base": LEFT, "checkpoint_1": RIGHT, "checkpoint_2": LEFT}
    assert used(said) == expected | {name: f"{path} (named)" for name, path in models.items()}
    assert said.code == 1


def test_a_default_diff_gathers_nothing(difflens, pair, monkeypatch):
    def gather(*_, **__):
        raise AssertionError("evidence was gathered")

    monkeypatch.setattr(gathering, "gather", gather)

    assert difflens(*pair).code == 1
    assert difflens(*pair, "-o", "html", "--out", "page.html").code == 1
    assert "evidence was gathered" in difflens(*pair, "--change-summary").err


@pytest.mark.parametrize(
    ("option", "text", "words"),
    [
        ("--metrics-left", "[]", "it holds a list, an object is wanted"),
        ("--eval-right", "id,score\n1,x\n", "line 2, column 'score'"),
        ("--log", "loss\n1\n", "there is no column 'step'"),
        ("--policy", "[change_summery]\n", "line 1: no analysis is called 'change_summery'"),
        ("--policy", "[change_summary]\nfull = 1\n", "no threshold of change_summary is called"),
        ("--policy", "[change_summary]\nfull_fraction = nan\n", "a finite number is wanted"),
        ("--tokenizer-left", "{}", "it holds no token"),
    ],
)
@pytest.mark.usefixtures("pair")
def test_a_wrong_file_is_one_line_and_exit_code_2(difflens, option, text, words):
    Path("evidence").write_text(text)
    said = difflens(LEFT, RIGHT, "--change-summary", option, "evidence")

    assert_refused(said, "evidence: ", words)


def test_evidence_that_nobody_would_look_at_is_refused(difflens, pair):
    assert_refused(difflens(*pair, "--log", "x"), "--log is for analyses: name one")
    assert_refused(difflens(*pair, "--eval-left", "x"), "--eval-left is for analyses: name one")


@pytest.mark.usefixtures("pair")
def test_evidence_is_about_one_pair_of_models(difflens):
    said = difflens("left", "right", "-r", "--change-summary", "--log", "x")

    assert_refused(said, "evidence is about one pair of models: leave -r out, or the evidence")


@pytest.mark.usefixtures("pair")
def test_thresholds_hold_for_every_pair_of_a_folder(difflens, tmp_path):
    (tmp_path / "policy.toml").write_text("[change_summary]\nfull_fraction = 0.25\n")
    said = difflens("left", "right", "-r", "--change-summary", "--policy", "policy.toml", "-o",
                    "full-json")  # fmt: skip

    (report,) = json.loads(said.out).values()
    assert report["analyses"][0]["policy"]["full_fraction"] == {"value": 0.25, "source": "user"}


def test_a_policy_reaches_the_analysis(difflens, pair, tmp_path):
    (tmp_path / "policy.toml").write_text("[change-summary]\nfull_fraction = 1\n")
    said = difflens(*pair, "--change-summary", "--policy", "policy.toml", "-o", "full-json")

    report = json.loads(said.out)
    assert report["analyses"][0]["policy"]["full_fraction"] == {"value": 1.0, "source": "user"}
    assert report["evidence"] == {"policy": "policy.toml (named)"}


def test_how_to_alert_is_a_threshold_of_the_alerts():
    from difflens.cli._evidence import _policy

    found = _policy({"policy": None, "alert_mode": "point", "limits": ()})

    assert found.thresholds == {"alert_on_degradation": {"mode": "point"}}


def test_a_limit_can_be_raised(difflens, pair, tmp_path):
    (tmp_path / "metrics.json").write_text('{"accuracy": 0.5}')
    arguments = (*pair, "--change-summary", "--metrics-left", "metrics.json")

    assert_refused(difflens(*arguments, "--limit", "evidence_bytes=5"), "too large: 17 bytes")
    assert difflens(*arguments, "--limit", "evidence_bytes=50").code == 1
