"""The hook in a real repository: values pass, an architecture is asked about."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from contracts.plugins import ROOT
from models.small import arrays, write

HOOK = ROOT / "examples" / "pre_commit_models.py"
ON_A_TERMINAL = "import pty, sys; sys.exit(pty.spawn(sys.argv[1:]) >> 8)"
WHO = {
    f"GIT_{role}_{what}": "x@example.org" for role in ("AUTHOR", "COMMITTER")
    for what in ("NAME", "EMAIL")
}  # fmt: skip

pytestmark = pytest.mark.skipif(shutil.which("git") is None, reason="git is not installed")


class Repository:
    """A repository with one model committed, and the hook in place."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.git("init", "--quiet")
        hooks = folder / "hooks"
        hooks.mkdir()
        # The interpreter of the tests has difflens; the one a shebang finds may not.
        (hooks / "pre-commit").write_text(f'#!/bin/sh\nexec "{sys.executable}" "{HOOK}"\n')
        (hooks / "pre-commit").chmod(0o755)
        self.stage(w=[1, 2], head=[3])
        self.git("commit", "--quiet", "--message", "first")
        self.git("config", "core.hooksPath", str(hooks))

    def git(self, *words: str, front: tuple[str, ...] = (), said: str | None = None):
        return subprocess.run(
            [*front, "git", *words],
            cwd=self.folder,
            env={**os.environ, **WHO, "GIT_CONFIG_GLOBAL": "/dev/null"},
            input=said,
            stdin=subprocess.DEVNULL if said is None else None,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            check=False,
            start_new_session=True,  # a terminal of whoever runs the tests is not asked
            timeout=120,
        )

    def stage(self, **model: object) -> None:
        write(self.folder / "model.safetensors", arrays(**model))
        self.git("add", "model.safetensors")

    def commit(self, **how):
        return self.git("commit", "--message", "next", **how)


@pytest.fixture
def repository(tmp_path):
    return Repository(tmp_path)


def test_changed_values_are_told_and_pass(repository):
    repository.stage(w=[1, 3], head=[3])

    done = repository.commit()

    assert "model.safetensors: different: 1 changed, of 2 tensors" in done.stdout
    assert done.returncode == 0


def test_a_changed_architecture_fails_where_nobody_can_be_asked(repository):
    repository.stage(w=[1, 2, 3])

    done = repository.commit()

    assert "the architecture of model.safetensors changed\nno terminal to ask on" in done.stdout
    assert done.returncode == 1


@pytest.mark.parametrize(("said", "code"), [("y\n", 0), ("n\n", 1), ("\n", 1)])
def test_a_changed_architecture_is_asked_about_on_a_terminal(repository, said, code):
    repository.stage(w=[1, 2, 3])

    done = repository.commit(front=(sys.executable, "-c", ON_A_TERMINAL), said=said)

    assert "commit anyway? [y/N]" in done.stdout
    assert done.returncode == code


def test_what_is_staged_counts_and_not_what_lies_in_the_folder(repository):
    repository.stage(w=[1, 3], head=[3])
    write(repository.folder / "model.safetensors", arrays(other=[1]))

    done = repository.commit()

    assert "different: 1 changed, of 2 tensors" in done.stdout
    assert done.returncode == 0


def test_a_model_that_cannot_be_read_stops_the_commit(repository):
    (repository.folder / "model.safetensors").write_bytes(b"\xff" * 16)
    repository.git("add", "model.safetensors")

    done = repository.commit()

    assert "cannot compare: " in done.stdout
    assert done.returncode == 1


def test_other_files_are_not_its_business(repository):
    (repository.folder / "notes.txt").write_text("words")
    repository.git("add", "notes.txt")

    assert repository.commit().returncode == 0
