"""Starting costs next to nothing: no heavy library comes along unasked."""

import subprocess
import sys

import pytest

HEAVY = {"numpy", "scipy", "torch", "rich", "jinja2", "yaml", "ml_dtypes", "sqlalchemy"}


def imported_by(code: str) -> set[str]:
    script = f"import sys\n{code}\nprint(*sorted(name for name in sys.modules), file=sys.stderr)"
    done = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=True
    )
    return {name.partition(".")[0] for name in done.stderr.split()}


RUN = "import difflens.cli\ntry: difflens.cli.main({arguments})\nexcept SystemExit: pass"


def test_importing_difflens_brings_no_heavy_library():
    assert imported_by("import difflens") & HEAVY == set()


def test_help_imports_click_and_nothing_heavy():
    found = imported_by(RUN.format(arguments=["--help"]))

    assert found & (HEAVY | {"msgspec"}) == set()
    assert "click" in found


def test_a_default_diff_imports_neither_numpy_nor_scipy(tmp_path):
    pytest.importorskip("difflens.measure.kernel._scan", reason="the NumPy kernel needs NumPy")
    path = tmp_path / "m.safetensors"
    header = b'{"w":{"dtype":"F32","shape":[1],"data_offsets":[0,4]}}'
    path.write_bytes(len(header).to_bytes(8, "little") + header + bytes(4))

    found = imported_by(RUN.format(arguments=[str(path), str(path)]))

    assert found & (HEAVY | {"hashlib", "difflib"}) == set()


def test_this_test_can_fail():
    assert "numpy" in imported_by("import numpy")
