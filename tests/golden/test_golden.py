"""Every golden case through every renderer, against the file a reviewer has read."""

import os
import subprocess
import sys
from pathlib import Path

import pytest
from golden.cases import CASES, SUFFIXES, Case
from models.small import write

from difflens import cli
from difflens.render.diffs import renderer

HERE = Path(__file__).parent
NAMES = ("left.safetensors", "right.safetensors")
KERNELS = ({"DIFFLENS_KERNEL": "numpy"}, {"DIFFLENS_LEVEL": "baseline"}, {"DIFFLENS_LEVEL": "avx2"})


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return the working folder, so that reports hold no path but the names."""
    monkeypatch.chdir(tmp_path)
    for wish in ("NO_COLOR", "FORCE_COLOR"):
        monkeypatch.delenv(wish, raising=False)
    return tmp_path


def lay_out(case: Case, folder: Path) -> None:
    for name, model, metadata in zip(NAMES, (case.left, case.right), case.metadata, strict=True):
        write(folder / name, model, metadata)


@pytest.mark.parametrize("output", SUFFIXES)
@pytest.mark.parametrize("name", CASES)
def test_the_output_is_the_one_that_was_read(name, output, folder, capsys, pytestconfig):
    case = CASES[name]()
    lay_out(case, folder)

    code = cli._run([*NAMES, "-o", output, *case.options])
    found = capsys.readouterr().out

    kept = HERE / name / f"expected.{SUFFIXES[output]}"
    if pytestconfig.getoption("--update-golden"):
        kept.parent.mkdir(exist_ok=True)
        kept.write_text(found, encoding="utf-8")
    assert code in {0, 1}
    assert found == kept.read_text(encoding="utf-8")


def test_every_renderer_has_its_golden_files():
    assert set(SUFFIXES) == set(renderer.names())


def test_no_golden_file_is_left_over():
    kept = {str(path.relative_to(HERE)) for path in HERE.glob("*/expected.*")}

    assert kept == {f"{name}/expected.{suffix}" for name in CASES for suffix in SUFFIXES.values()}


@pytest.mark.parametrize("kernel", KERNELS, ids=lambda kernel: next(iter(kernel.values())))
def test_every_kernel_prints_the_same_digits(kernel):
    """The whole of this file again, in a process that starts with another kernel."""
    chosen = f"{Path(__file__)}::{test_the_output_is_the_one_that_was_read.__name__}"
    ended = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-x", chosen, "-k", "json or cli or csv"],
        env={**os.environ, **kernel},
        cwd=HERE.parent.parent,
        capture_output=True,
        text=True,
        check=False,
    )

    assert ended.returncode == 0, ended.stdout
