"""What `make zoo` prints, with runs and verdicts made by hand."""

from __future__ import annotations

import json

import pytest
from zoo_runs import a_healthy_label, a_label, judged

from zoo import __main__ as program
from zoo import table
from zoo.generate import jobs_of
from zoo.scores import rate, score


@pytest.fixture(autouse=True)
def _said(monkeypatch):
    """Put labels and verdicts in the place of training and asking."""
    label = a_label(divergence_step=100, layers=("hidden.0.*",))
    ours = [
        judged(label, ("vanishing", 12), layers=("hidden.0.linear.weight",)),
        judged(a_healthy_label(id="H1-s3"), ("dead", 40)),
        *(judged(a_healthy_label()) for _ in range(3)),
    ]
    peer = [each._replace(verdict=judged(each.label).verdict) for each in ours]
    monkeypatch.setattr(program, "train_all", lambda *_, **__: {})
    monkeypatch.setattr(program, "write_labels", lambda _: [each.label for each in ours])
    monkeypatch.setattr(program, "ask_all", lambda *_, **__: {"difflens": ours, "peer": peer})


def test_rule_sets_stand_side_by_side_and_the_bars_below(tmp_path, capsys):
    code = program.main(["--no-fixes", "--folder", str(tmp_path), "--json", str(tmp_path / "r")])
    shown = capsys.readouterr().out

    assert code == 0
    assert "1 faulty runs of 1 faults, 4 healthy runs" in shown
    assert "| peer " in shown
    assert "H1-s3" in shown
    assert "MISSED" in next(line for line in shown.splitlines() if line.startswith("| false"))
    assert "yes" in next(line for line in shown.splitlines() if line.startswith("| recall"))


def test_the_figures_are_written_as_json_too(tmp_path):
    path = tmp_path / "results.json"
    program.main(["--no-fixes", "--folder", str(tmp_path), "--json", str(path)])
    figures = json.loads(path.read_text())

    assert figures["scores"]["difflens"]["recall"]["hits"] == 1
    assert figures["scores"]["peer"]["recall"]["hits"] == 0
    assert figures["faults"][0]["said"] == ["vanishing"]


def test_a_missed_bar_fails_only_where_it_was_asked_to(tmp_path):
    plain = ["--no-fixes", "--folder", str(tmp_path), "--json", str(tmp_path / "r")]

    assert program.main(plain) == 0
    assert program.main([*plain, "--strict"]) == 1


def test_a_figure_that_could_not_be_measured_meets_no_bar():
    shown = table.bars(score([]), rate([True]))

    assert shown.count("MISSED") == len(table.BARS)
    assert "fix works" in shown


def test_one_seed_asks_about_the_first_run_of_each_configuration(tmp_path, monkeypatch):
    asked = []
    labels = [a_label(config=name, seed=seed) for name in ("V1", "E1") for seed in (5, 3, 4)]
    monkeypatch.setattr(program, "write_labels", lambda _: labels)
    monkeypatch.setattr(program, "ask_all", lambda given, *_, **__: _silent(asked, given))
    how = ["--part", labels[0].part, "--folder", str(tmp_path), "--json", str(tmp_path / "r")]
    program.main(["--one-seed", "--no-fixes", *how])

    assert [(each.config, each.seed) for each in asked] == [("V1", 3), ("E1", 3)]


@pytest.mark.parametrize("part", ["tune", "report"])
def test_a_part_trains_and_judges_its_own_runs_alone(part, tmp_path, monkeypatch):
    trained, asked = [], []
    labels = [a_label(part="tune"), a_healthy_label(part="report"), a_label(part="report")]
    monkeypatch.setattr(program, "train_all", lambda jobs, *_, **__: trained.extend(jobs))
    monkeypatch.setattr(program, "write_labels", lambda _: labels)
    monkeypatch.setattr(program, "ask_all", lambda given, *_, **__: _silent(asked, given))
    program.main(
        ["--part", part, "--no-fixes", "--folder", str(tmp_path), "--json", str(tmp_path / "r")]
    )

    assert [job.folder for job in trained] == [job.folder for job in jobs_of(part)]
    assert asked == [each for each in labels if each.part == part]


def _silent(asked, given):
    asked.extend(given)
    return {"difflens": [judged(each) for each in given]}
