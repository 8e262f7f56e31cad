"""The compiled kernel under the address and undefined-behaviour sanitizers."""

import shutil
import subprocess
from pathlib import Path

import pytest

HERE = Path(__file__).parent
KERNEL = HERE.parents[2] / "src" / "difflens" / "measure" / "kernel"
WATCHED = ["-fsanitize=address,undefined", "-fno-sanitize-recover=all"]
STRICT = ["-std=gnu11", "-O1", "-g", "-Wall", "-Wextra", "-Werror", "-fno-omit-frame-pointer"]
ROUNDING = ["-ffp-contract=off"]  # as setup.py has it: no sum is fused with a product that rounds


@pytest.fixture(scope="module")
def compiler(tmp_path_factory) -> str:
    found = shutil.which("cc") or shutil.which("gcc") or shutil.which("clang")
    if not found:
        pytest.skip("there is no C compiler")
    folder = tmp_path_factory.mktemp("probe")
    source = folder / "probe.c"
    source.write_text("int main(void) { return 0; }\n")
    command = [found, *WATCHED, str(source), "-o", str(folder / "probe")]
    if subprocess.run(command, capture_output=True, check=False).returncode:
        pytest.skip(f"{found} has no sanitizers")
    return found


# Telling what comes, as on Intel's processors, is one more way through the same loops.
@pytest.mark.parametrize(
    "telling", [pytest.param(0, marks=pytest.mark.slow), pytest.param(1, marks=pytest.mark.long)]
)
def test_the_sanitizers_see_nothing_over_all_dtypes_sizes_and_alignments_and_levels_agree(
    compiler, tmp_path, telling
):
    program = tmp_path / "drive"
    loops = sorted(KERNEL.glob("loops_*.c"))
    own = [KERNEL / f"{name}.c" for name in ("scan", "moments", "careful", "files")]
    sources = [*own, *loops, HERE / "drive.c"]
    how = [*STRICT, *ROUNDING, *WATCHED, f"-DWANTS_TELLING={telling}", f"-I{KERNEL}"]
    command = [compiler, *how, *sources, "-lm", "-o", program]
    built = subprocess.run(command, capture_output=True, text=True, check=False)
    assert built.returncode == 0, built.stderr

    ran = subprocess.run([program], capture_output=True, text=True, check=False)
    assert ran.returncode == 0, ran.stderr
    hashes = dict(line.split() for line in ran.stdout.splitlines())
    assert "baseline" in hashes
    assert len(set(hashes.values())) == 1, hashes
