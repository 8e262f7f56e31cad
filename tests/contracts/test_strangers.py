"""The recipes of CONTRIBUTING.md work unchanged as the plug-ins of another package."""

import shutil
import struct
import tomllib
from pathlib import Path

import pytest
from contracts.plugins import ROOT, load, run

new = load(ROOT / "docs" / "new.py", "new")
PLUGINS = [word for kind, word in new.RECIPES.items() if kind != "command"]

DIFF = """
from difflens import diff
found = diff("left.tinyfmt", "right.tinyfmt")
print([each.text for each in found.analyse("outsized").findings])
"""
HELD = """
from stranger import idle, outsized, test_tinyfmt, tinyfmt, tsv
from difflens.testing import check_analysis, check_diagnosis, check_renderer, check_source
check_source(tinyfmt.tinyfmt, test_tinyfmt.sample)
check_analysis(outsized.outsized)
check_renderer(tsv.tsv)
check_diagnosis(idle.idle)
print("held")
"""


@pytest.fixture(scope="module")
def site(tmp_path_factory):
    """Install the recipes as a stranger's package, with the entry points the page gives."""
    folder = tmp_path_factory.mktemp("site")
    package, about = folder / "stranger", folder / "stranger-1.0.dist-info"
    package.mkdir()
    about.mkdir()
    (package / "__init__.py").write_text("")
    for word in PLUGINS:
        for path, text in new.recipe(word).items():
            if path.endswith(".py"):
                (package / Path(path).name).write_text(text)
    (about / "METADATA").write_text("Metadata-Version: 2.1\nName: stranger\nVersion: 1.0\n")
    (about / "entry_points.txt").write_text(entry_points())
    return folder


def entry_points() -> str:
    """Turn the TOML block of the page into what an installer writes."""
    page = (ROOT / "CONTRIBUTING.md").read_text()
    groups = tomllib.loads(page.partition("```toml\n")[2].partition("```")[0])["project"]
    return "".join(
        f"[{group}]\n{name} = {target.replace('your_package', 'stranger')}\n"
        for group, points in groups["entry-points"].items()
        for name, target in points.items()
    )


@pytest.fixture
def models(tmp_path):
    for name, values in (("left", (1, 2)), ("right", (1, 9))):
        path = tmp_path / f"{name}.tinyfmt"
        path.write_bytes(b"TINY" + struct.pack("<2f", *values))
    return tmp_path


def test_a_strangers_format_and_renderer_work_on_the_command_line(site, models):
    done = run(
        "-m", "difflens", "left.tinyfmt", "right.tinyfmt", "-o", "tsv", cwd=models, path=site
    )

    assert (done.returncode, done.stderr) == (1, "")
    assert done.stdout == "changed\tdata\t3.1305\n"


def test_a_strangers_format_is_recognised_without_its_ending(site, models):
    shutil.copy(models / "left.tinyfmt", models / "weights")

    done = run("-m", "difflens", "show", "weights", cwd=models, path=site)

    assert done.returncode == 0
    assert "tinyfmt, 1 tensor" in done.stdout


def test_a_strangers_damaged_file_is_one_line_and_exit_code_two(site, models):
    with (models / "left.tinyfmt").open("ab") as stream:
        stream.write(b"x")

    done = run("-m", "difflens", "check", "left.tinyfmt", cwd=models, path=site)

    assert done.returncode == 2
    assert (
        done.stderr == "difflens: error: left.tinyfmt: it has 13 bytes, a multiple of 4 is wanted\n"
    )


def test_a_strangers_analysis_answers(site, models):
    done = run("-c", DIFF, cwd=models, path=site)

    assert done.stdout == "['moved by 313% of its norm']\n"


def test_without_the_package_nobody_knows_the_format(models):
    done = run("-m", "difflens", "show", "left.tinyfmt", cwd=models)

    assert done.returncode == 2
    assert "no reader knows this format" in done.stderr


def test_a_stranger_can_hold_its_plug_ins_to_the_contracts(site, tmp_path):
    done = run("-c", HELD, cwd=tmp_path, path=site)

    assert (done.stdout, done.stderr) == ("held\n", "")
