"""Everything is documented, and everything the documents show is true."""

import inspect
import re
from pathlib import Path

import click
import pytest
from contracts.plugins import REGISTRIES, ROOT, load

from difflens import (
    ab_results,
    comparisons,
    errors,
    evidences,
    flow_results,
    gradient_results,
    kept,
    network_results,
    records,
    regression_results,
    runs,
    snapshots,
    weight_results,
)
from difflens.cli import group
from difflens.measure.scan import Scan
from difflens.sources.limits import DEFAULTS

DOCS = ROOT / "docs"
update = load(DOCS / "update.py", "update")

PLUGINS = [
    pytest.param(folder, entry.name, id=f"{folder}/{entry.name}")
    for registry, folder in REGISTRIES.values()
    for entry in registry.ours()
]
COMMANDS = group.list_commands(click.Context(group))
ROOMS = sorted(
    path.name for path in (ROOT / "src" / "difflens").iterdir() if (path / "__init__.py").is_file()
)
PAGES = [
    ROOT / name for name in ("README.md", "CONTRIBUTING.md", "SECURITY.md", "CHANGELOG.md")
] + sorted(DOCS.rglob("*.md"))


def glossary(section: str) -> set[str]:
    """Give the entries of a section of the glossary."""
    text = (DOCS / "glossary.md").read_text("utf-8")
    body = text.partition(f"## {section}\n")[2].partition("\n## ")[0]
    return set(re.findall(r"^- \*\*(\w+)\*\*:", body, re.MULTILINE))


def classes(module) -> set[str]:
    """Name the public classes a module defines."""
    return {
        name
        for name, each in vars(module).items()
        if inspect.isclass(each) and each.__module__ == module.__name__ and name[0] != "_"
    }


@pytest.mark.parametrize(("folder", "name"), PLUGINS)
def test_every_plug_in_has_its_page(folder, name):
    page = DOCS / folder / f"{name}.md"

    assert page.is_file(), f"write {page.relative_to(ROOT)}"
    assert page.read_text("utf-8").startswith(f"# {name}\n")


@pytest.mark.parametrize("folder", [folder for _, folder in REGISTRIES.values()])
def test_no_page_is_left_of_a_plug_in_that_is_gone(folder):
    names = {name for home, name in (param.values for param in PLUGINS) if home == folder}

    assert {path.stem for path in (DOCS / folder).glob("*.md")} == names


@pytest.mark.parametrize("name", COMMANDS)
def test_every_command_has_its_page_with_its_help(name):
    page = (DOCS / "commands" / f"{name}.md").read_text("utf-8")

    assert f"<!-- run: difflens {name} --help -->" in page


@pytest.mark.parametrize("name", ROOMS)
def test_every_room_has_its_page_with_its_files(name):
    page = (DOCS / "rooms" / f"{name}.md").read_text("utf-8")

    assert f"<!-- files: {name} -->" in page
    assert f"(rooms/{name}.md)" in (DOCS / "how-it-works.md").read_text("utf-8")


def test_every_record_is_in_the_glossary_and_nothing_else():
    homes = (
        records, evidences, kept, snapshots, comparisons, ab_results, regression_results, runs,
        weight_results, gradient_results, network_results, flow_results,
    )  # fmt: skip

    assert set().union(*map(classes, homes)) == glossary("Records")


def test_every_error_is_in_the_glossary_and_nothing_else():
    assert classes(errors) == glossary("Errors")


def test_every_figure_is_in_the_glossary():
    text = (DOCS / "glossary.md").read_text("utf-8").partition("## Figures")[2]

    assert [name for name in Scan().figures() if f"`{name}`" not in text] == []


@pytest.mark.parametrize("name", records.Kind.__args__)
def test_every_kind_of_delta_is_named_in_the_glossary(name):
    assert re.search(rf"\b{name}\b", (DOCS / "glossary.md").read_text("utf-8"))


def test_the_table_of_limits_is_current():
    text = (DOCS / "security.md").read_text("utf-8")
    table = re.findall(r"^\| `(\w+)` \| (\d+) \|", text, re.MULTILINE)

    assert {name: int(value) for name, value in table} == DEFAULTS


@pytest.fixture(scope="module")
def models(tmp_path_factory):
    return update.make_models(tmp_path_factory.mktemp("models"))


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_what_a_page_shows_of_the_program_is_current(page, models):
    text = page.read_text("utf-8")

    assert update.updated(text, models) == text, "run make docs"


RUN = [page for page in PAGES if page.name != "CONTRIBUTING.md" and "```python" in page.read_text()]


@pytest.mark.parametrize("page", RUN, ids=lambda page: str(page.relative_to(ROOT)))
def test_the_python_blocks_of_a_page_run(page, models):
    assert update.printed(page.read_text("utf-8"), models)


def test_a_stale_page_would_be_noticed(models):
    page = "<!-- run: echo new -->\n```console\n$ echo old\nold\n```\n"

    assert (
        update.updated(page, models) == "<!-- run: echo new -->\n```console\n$ echo new\nnew\n```\n"
    )


def test_a_python_block_that_fails_would_be_noticed(models):
    with pytest.raises(SystemExit, match="ZeroDivisionError"):
        update.printed("```python\n1 / 0\n```\n", models)


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_every_link_between_pages_leads_somewhere(page):
    text = re.sub(r"^```.*?^```$", "", page.read_text("utf-8"), flags=re.DOTALL | re.MULTILINE)
    broken = [link for link in re.findall(r"\]\(([^)]+)\)", text) if not leads(page, link)]

    assert broken == []


def leads(page: Path, link: str) -> bool:
    """Is there such a file, and such a heading in it?"""
    if link.startswith("https://"):
        return True
    path, _, anchor = link.partition("#")
    target = (page.parent / path) if path else page
    if not target.exists():
        return False
    headings = re.findall(r"^#+ (.+)$", target.read_text("utf-8"), re.MULTILINE) if anchor else []
    return not anchor or anchor in {heading.lower().replace(" ", "-") for heading in headings}


def test_every_fragment_of_the_changelog_names_a_room():
    names = {path.name for path in (ROOT / "changelog.d").glob("*.md")} - {"README.md"}

    assert {name for name in names if name.partition(".")[0] not in update.ROOMS} == set()


def test_the_readme_is_short_and_leaves_room_for_the_bench():
    text = (ROOT / "README.md").read_text("utf-8")

    before, _, rest = text.partition("<!-- bench:begin -->")
    table, _, after = rest.partition("<!-- bench:end -->")
    assert len((before + after).splitlines()) <= 150
    assert "Measured by `make bench`" in table


def test_the_two_commands_come_before_anything_else_to_do():
    text = (ROOT / "README.md").read_text("utf-8")

    assert text.index("difflens base") < text.index("make demo") < text.index("make test")
    assert text.index("make test") < text.index("pip install")


def test_the_licence_is_the_whole_apache_licence():
    text = (ROOT / "LICENSE").read_text("utf-8")

    assert len(text.splitlines()) == 202
    assert "Apache License" in text
    assert "APPENDIX: How to apply the Apache License to your work." in text
