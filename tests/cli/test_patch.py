"""`difflens patch`: made, applied, shown, verified, composed; bad input is one line and code 2."""

import json
from pathlib import Path

import pytest
from cli.command import InProcess, assert_refused
from repair.test_patch import files, steps


@pytest.fixture
def three(tmp_path: Path) -> tuple[Path, Path, Path]:
    return files(tmp_path, *steps(n=3000))


def test_a_patch_is_made_and_applied(difflens: InProcess, three, tmp_path: Path):
    base, target, patch = three
    made = difflens("patch", "create", base, target, "-o", patch)
    done = difflens("patch", "apply", base, patch, "-o", tmp_path / "out")
    back = difflens("patch", "apply", target, patch, "-o", tmp_path / "back", "--reverse", "-q")

    assert made.out.startswith(f"{patch}: ")
    assert "4 tensors (4 changed), runs backwards too" in made.out
    assert (done.code, done.out) == (0, f"wrote {tmp_path / 'out'}\n")
    assert (back.code, back.out) == (0, "")
    assert (tmp_path / "out").read_bytes() == target.read_bytes()
    assert (tmp_path / "back").read_bytes() == base.read_bytes()


def test_a_patch_is_shown_and_verified(difflens: InProcess, three):
    base, target, patch = three
    difflens("patch", "create", base, target, "-o", patch, "--way-back", "never")
    shown = difflens("patch", "show", patch)
    data = json.loads(difflens("patch", "show", patch, "-o", "json").out)

    assert "runs forwards only" in shown.out
    assert shown.lines[-1] == f"target: {data['target']}"
    assert data["tensors"] == 4
    assert difflens("patch", "verify", base, patch).out == f"ok   {patch} applies to {base}\n"
    assert_refused(difflens("patch", "verify", target, patch), "not the base it was made with")


def test_two_patches_become_one(difflens: InProcess, three, tmp_path: Path):
    base, target, patch = three
    difflens("patch", "create", base, target, "-o", patch)
    difflens("patch", "create", target, base, "-o", tmp_path / "q")
    both = difflens(
        "patch", "compose", patch, tmp_path / "q", "--base", base, "-o", tmp_path / "both"
    )

    assert both.code == 0
    assert difflens("patch", "apply", base, tmp_path / "both", "-o", tmp_path / "out").code == 0
    assert (tmp_path / "out").read_bytes() == base.read_bytes()


def test_bad_input_is_one_line(difflens: InProcess, three, tmp_path: Path):
    base, target, patch = three
    difflens("patch", "create", base, target, "-o", patch)
    (tmp_path / "broken").write_bytes(patch.read_bytes()[:-1])
    out = ("-o", tmp_path / "out")

    assert_refused(difflens("patch", "apply", base, tmp_path / "broken", *out), "broken")
    assert_refused(difflens("patch", "apply", base, tmp_path / "no", *out), "no such file")
    assert_refused(difflens("patch", "apply", base, target, *out), "it is not a patch")
    assert_refused(difflens("patch", "apply", target, patch, *out), "not the base")
    assert_refused(difflens("patch", "apply", base, patch, "-o", tmp_path), "folder")
    assert_refused(difflens("patch", "create", base, tmp_path / "no", *out), "no such file")
    assert_refused(difflens("patch", "create", base, target), "missing option")
    assert_refused(difflens("patch", "show", base), "it is not a patch")
    assert_refused(
        difflens("patch", "compose", patch, patch, "--base", base, *out), "does not follow"
    )
    assert not (tmp_path / "out").exists()
