"""The recipes of CONTRIBUTING.md are true: in this house, and in a stranger's package."""

import shutil
import struct
import tomllib
from pathlib import Path

import pytest
from contracts.plugins import ROOT, copy_house, load, run

new = load(ROOT / "docs" / "new.py", "new")
RECIPES = new.RECIPES
CONTRACTS = [
    *(f"tests/contracts/test_every_{kind}.py" for kind in ("source", "analysis", "renderer")),
    "tests/diagnoses/test_every_diagnosis.py",
]

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


@pytest.mark.parametrize("word", RECIPES.values())
def test_a_recipe_is_four_new_files(word):
    files = new.recipe(word)

    assert len(files) == 4
    assert [path for path in files if (ROOT / path).exists()] == []


@pytest.fixture(scope="module")
def house(tmp_path_factory):
    """Build the house with the recipes dropped in, and as many that `make new` made."""
    folder = copy_house(tmp_path_factory.mktemp("house"))
    for word in RECIPES.values():
        for path, text in new.recipe(word).items():
            (folder / path).write_text(text)
    made_anew = {"format": "big-blob", "analysis": "odd_ones", "renderer": "wide",
                 "diagnosis": "cold"}  # fmt: skip
    for kind, name in made_anew.items():
        made = run("docs/new.py", f"{kind}={name}", cwd=folder)
        assert made.returncode == 0, made.stdout
        assert len(made.stdout.split()) == 4
    return folder


def test_the_contract_tests_find_the_new_plug_ins_by_themselves(house):
    names = "tinyfmt or outsized or tsv or idle or big-blob or odd-ones or wide or cold"
    pytest_arguments = ["-m", "pytest", "-q", "-p", "no:cacheprovider", "-p", "no:randomly"]

    done = run(*pytest_arguments, "-k", names, *CONTRACTS, cwd=house, path=house / "src")

    assert done.returncode == 0, done.stdout
    assert " passed" in done.stdout
    assert int(done.stdout.rsplit(" passed", 1)[0].split()[-1]) >= 2 * (10 + 7 + 6 + 8)


def test_the_tests_of_the_recipes_pass(house):
    tests = [
        f"tests/{path}.py"
        for path in (
            *("sources/test_tinyfmt", "analyses/test_outsized", "render/test_tsv"),
            *("sources/test_big_blob", "analyses/test_odd_ones", "render/test_wide"),
            *("diagnoses/test_idle", "diagnoses/test_cold"),
        )
    ]

    done = run(
        "-m", "pytest", "-q", "-p", "no:cacheprovider", *tests, cwd=house, path=house / "src"
    )

    assert done.returncode == 0, done.stdout
    assert "8 passed" in done.stdout


def test_new_plug_ins_keep_the_rules_of_the_house_and_have_their_pages(house):
    contracts = ["test_rooms", "test_house", "test_docs"]
    tests = [f"tests/contracts/{name}.py" for name in contracts]
    rules = "imports_only or one_line or overlong or has_its_page"
    plugins = "tinyfmt or outsized or tsv or idle or big or odd_ones or odd-ones or wide or cold"
    named = f"({rules}) and ({plugins})"

    done = run("-m", "pytest", "-q", "-k", named, *tests, cwd=house, path=house / "src")

    assert done.returncode == 0, done.stdout
    assert f"{8 * 4} passed" in done.stdout


def test_their_fragments_are_gathered_into_the_changelog(house):
    done = run("-c", "import runpy; print(runpy.run_path('docs/update.py')['news']())", cwd=house)

    assert "- Reads tinyfmt files." in done.stdout
    assert "- `-o wide` writes tab-separated values." in done.stdout


def test_make_new_overwrites_nothing(house):
    done = run("docs/new.py", "renderer=tsv", cwd=house)

    assert done.returncode == 2
    assert done.stdout.startswith("there already: src/difflens/render/tsv.py")


@pytest.mark.parametrize("asked", ["", "renderer", "renderer=", "renderer=../x", "flavour=mint"])
def test_make_new_says_what_it_takes(asked, house):
    done = run("docs/new.py", *filter(None, [asked]), cwd=house)

    assert done.returncode == 2
    assert "format, analysis, renderer, diagnosis" in done.stdout


@pytest.fixture(scope="module")
def site(tmp_path_factory):
    """Install the recipes as a stranger's package, with the entry points the page gives."""
    folder = tmp_path_factory.mktemp("site")
    package, about = folder / "stranger", folder / "stranger-1.0.dist-info"
    package.mkdir()
    about.mkdir()
    (package / "__init__.py").write_text("")
    for word in RECIPES.values():
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
