"""`difflens log`: one line for each commit that changed a model, and what it did."""

import json
import re
from pathlib import Path

import numpy as np
import pytest
from cli.command import assert_refused
from cli.terminal import ESCAPES, Terminal
from git_repositories import NAME, Git, isolate, weights
from models.small import tensor, write


@pytest.fixture
def git(tmp_path, monkeypatch, difflens):  # noqa: ARG001  it changes the folder first
    isolate(tmp_path, monkeypatch)
    git = Git(tmp_path / "repo")
    monkeypatch.chdir(git.folder)
    return git


def history(git: Git) -> None:
    """Commit a base model, a merged LoRA, a cast, a rename and noise."""
    source = np.random.default_rng(0)
    model = {
        f"model.layers.{at}.self_attn.q_proj.weight": source.standard_normal((96, 96)) * 0.02
        for at in range(4)
    }

    def save(name: str, dtype: str, message: str) -> None:
        write(git.folder / name, {each: tensor(values, dtype) for each, values in model.items()})
        git.commit(message)

    save("a.safetensors", "F32", "base")
    for name, values in model.items():
        factors = source.standard_normal((96, 8)), source.standard_normal((8, 96))
        model[name] = values + 0.002 * factors[0] @ factors[1]
    save("a.safetensors", "F32", "adapter")
    save("a.safetensors", "F16", "half")
    git("mv", "a.safetensors", "b.safetensors")
    git.commit("moved")
    for name, values in model.items():
        model[name] = values + 0.001 * source.standard_normal((96, 96))
    save("b.safetensors", "F16", "noise")


def test_each_commit_says_what_it_did(git, difflens):
    history(git)

    lines = difflens("log", "b.safetensors").lines

    assert all(re.match(r"[0-9a-f]{9} \d{4}-\d\d-\d\d [-+~>=!] ", line) for line in lines)
    assert [line.split(" ", 2)[2] for line in lines][1:] == [
        "> renamed from a.safetensors; every one of 4 tensors is bit-identical",
        "~ cast from F32 to F16: all 4 tensors, nothing moved by more than storage rounding",
        "~ a rank-8 LoRA merged into q_proj of all 4 layers",
        "+ added: safetensors, 4 tensors (4 F32), 36.9k parameters, 144.0 KiB",
    ]
    assert "~ noise without structure added to all 4 tensors (relative L2 4.8e-02)" in lines[0]


def test_json_holds_the_whole_of_it(git, difflens):
    history(git)

    entries = json.loads(difflens("log", "b.safetensors", "--json").out)

    assert [each["kind"] for each in entries] == [
        "changed", "renamed", "changed", "changed", "added",
    ]  # fmt: skip
    assert [each["subject"] for each in entries] == ["noise", "moved", "half", "adapter", "base"]
    assert {each["author"] for each in entries} == {"Ada"}
    assert entries[0]["commit"] == git("rev-parse", "HEAD").strip()
    assert entries[1]["renamed_from"] == "a.safetensors"
    assert entries[3]["patterns"] == ["low_rank"]
    assert len(json.loads(difflens("log", "b.safetensors", "--json", "-n", "2").out)) == 2


def test_the_log_begins_where_it_is_told_to(git, difflens):
    history(git)

    assert len(difflens("log", "--revision", "HEAD~2", "a.safetensors").lines) == 3
    assert_refused(difflens("log", "--revision", "--all", "b.safetensors"), "cannot be called")
    shown = difflens("log", "b.safetensors", "-n", "1", "-v").lines
    assert shown[1] == "    Ada: noise"


def test_a_commit_that_cannot_be_read_does_not_end_the_log(git, difflens):
    git.commit("one", model=weights(1))
    (git.folder / NAME).write_bytes(bytes([255] * 7 + [0]) * 600)
    git.commit("broken")
    git.commit("mended", model=weights(2))

    found = difflens("log", NAME)

    assert found.code == 0
    assert [line.split()[2] for line in found.lines] == ["!", "!", "+"]
    assert found.out.count("cannot be read: the header ends at byte") == 2
    assert str(git.folder) not in found.out


def test_a_removed_model_a_folder_and_a_path_from_elsewhere_have_a_log(
    git, difflens, tmp_path, monkeypatch
):
    write(git.folder / "m" / NAME, {"w": tensor([1.0])})
    git.commit("added")
    git("rm", "-q", "-r", "m")
    git.commit("gone")
    monkeypatch.chdir(tmp_path)

    for path in (git.folder / "m", git.folder / "m" / NAME):
        assert [line.split()[2] for line in difflens("log", path).lines] == ["-", "+"]


def test_a_hostile_subject_and_path_are_escaped(git, difflens):
    write(git.folder / "a\x1b[31m.safetensors", {"w": tensor([1.0])})
    git.commit("subject \x1b[31m \u202e")

    shown = difflens("log", "-v", "a\x1b[31m.safetensors").out

    assert "\x1b" not in shown
    assert "\u202e" not in shown


def test_what_is_not_in_the_history_is_refused(git, difflens):
    git.commit("one", model=weights(1))

    assert_refused(difflens("log", "nope.bin"), "no commit of this history holds it")
    assert_refused(difflens("log", "../x.bin"), "not a git repository")


def test_the_files_of_commits_that_are_done_are_let_go(git, difflens, monkeypatch):
    from difflens.cli import log

    git.commit("0", model=weights(0))
    for at in range(1, 5):
        git.commit(f"{at}", model=weights(at))
    counts = []
    compared = log._compared

    def counted(*arguments):
        (home,) = (git.folder / ".git" / "difflens").iterdir()
        counts.append(len([each for each in home.iterdir() if each.is_dir()]))
        opened = [str(each.readlink()) for each in Path("/proc/self/fd").iterdir() if each.exists()]
        counts.append(sum("(deleted)" in each and "difflens" in each for each in opened))
        return compared(*arguments)

    monkeypatch.setattr(log, "_compared", counted)
    assert difflens("log", NAME).code == 0

    assert counts == [2, 0] * 4


def test_a_terminal_sees_progress(git):
    history(git)
    terminal = Terminal("log", "b.safetensors", folder=git.folder, errors=True, columns=200)
    terminal.end()

    assert ESCAPES.sub("", terminal.seen).count("\n") == 5
