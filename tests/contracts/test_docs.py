"""Everything is documented, and everything the documents show is true."""

import inspect
import re
from pathlib import Path

import click
import pytest
from contracts.plugins import REGISTRIES, ROOT, load

from difflens.cli import group
from difflens.core import errors, findings, kept, policy, record, records, state
from difflens.core.limits import DEFAULTS
from difflens.diffs.evidence import records as evidences
from difflens.measure.scan import Scan
from difflens.models.health import records as weight_results
from difflens.training.records import flow as flow_results
from difflens.training.records import gradients as gradient_results
from difflens.training.records import network as network_results
from difflens.training.records import runs
from difflens.versions.records import ab as ab_results
from difflens.versions.records import comparisons, snapshots
from difflens.versions.records import regressions as regression_results

DOCS = ROOT / "docs"
RECORDS = DOCS / "records.md"
update = load(DOCS / "update.py", "update")

PLUGINS = [
    (folder, entry.name) for registry, folder in REGISTRIES.values() for entry in registry.ours()
]
COMMANDS = group.list_commands(click.Context(group))
ROOMS = DOCS / "rooms"
FOLDERS = ROOT / "src" / "difflens"
PAGES = [
    ROOT / name for name in ("README.md", "CONTRIBUTING.md", "SECURITY.md", "CHANGELOG.md")
] + sorted(DOCS.rglob("*.md"))


def listed(section: str) -> set[str]:
    """Return the entries of a section of docs/records.md."""
    text = RECORDS.read_text("utf-8")
    body = text.partition(f"## {section}\n")[2].partition("\n## ")[0]
    return set(re.findall(r"^- \*\*(\w+)\*\*:", body, re.MULTILINE))


def classes(module) -> set[str]:
    """Name the public classes a module defines."""
    return {
        name
        for name, each in vars(module).items()
        if inspect.isclass(each) and each.__module__ == module.__name__ and name[0] != "_"
    }


def test_every_plug_in_has_its_page_and_no_page_is_left_of_one_that_is_gone():
    folders = {folder for _, folder in REGISTRIES.values()}
    pages = {f"{each}/{path.stem}" for each in folders for path in (DOCS / each).glob("*.md")}

    assert pages == {f"{folder}/{name}" for folder, name in PLUGINS}


def test_the_page_of_a_plug_in_has_its_name_for_a_heading():
    texts = {each: (DOCS / each[0] / f"{each[1]}.md").read_text("utf-8") for each in PLUGINS}

    assert [each for each, text in texts.items() if not text.startswith(f"# {each[1]}\n")] == []


def test_every_command_has_its_page_with_its_help():
    pages = {name: DOCS / "commands" / f"{name}.md" for name in COMMANDS}
    shown = "<!-- run: difflens {} --help -->"

    assert [
        name
        for name, page in pages.items()
        if not page.is_file() or shown.format(name) not in page.read_text("utf-8")
    ] == []


def test_every_folder_at_the_top_has_its_page():
    names = {path.name for path in FOLDERS.iterdir() if (path / "__init__.py").is_file()}

    assert names == {path.stem for path in ROOMS.glob("*.md")}


def test_every_page_of_a_folder_lists_its_files_and_is_linked():
    start = (DOCS / "how-it-works.md").read_text("utf-8")
    for page in ROOMS.rglob("*.md"):
        name = page.relative_to(ROOMS).with_suffix("").as_posix()

        assert (FOLDERS / name / "__init__.py").is_file(), f"{page} is about no folder"
        assert f"<!-- files: {name} -->" in page.read_text("utf-8"), page
        assert f"(rooms/{name}.md)" in start


def test_every_record_has_its_line_and_nothing_else_has():
    homes = (
        record, records, state, findings, policy, evidences, kept, snapshots, comparisons,
        ab_results, regression_results, runs,
        weight_results, gradient_results, network_results, flow_results,
    )  # fmt: skip

    assert set().union(*map(classes, homes)) == listed("Records")


def test_every_error_has_its_line_and_nothing_else_has():
    assert classes(errors) == listed("Errors")


def test_every_figure_has_its_line():
    text = RECORDS.read_text("utf-8").partition("## Figures")[2]

    assert [name for name in Scan().figures() if f"`{name}`" not in text] == []


def test_every_kind_of_delta_is_named():
    text = RECORDS.read_text("utf-8")

    assert [name for name in records.Kind.__args__ if not re.search(rf"\b{name}\b", text)] == []


def test_the_glossary_has_at_most_forty_words():
    words = re.findall(r"^- \*\*", (DOCS / "glossary.md").read_text("utf-8"), re.MULTILINE)

    assert 0 < len(words) <= 40


def test_the_table_of_limits_is_current():
    text = (DOCS / "security.md").read_text("utf-8")
    table = re.findall(r"^\| `(\w+)` \| (\d+) \|", text, re.MULTILINE)

    assert {name: int(value) for name, value in table} == DEFAULTS


@pytest.fixture(scope="module")
def models(tmp_path_factory):
    return update.make_models(tmp_path_factory.mktemp("models"))


SHOWING = [page for page in update.pages() if "<!-- " in page.read_text("utf-8")]


@pytest.mark.long
@pytest.mark.parametrize("page", SHOWING, ids=lambda page: str(page.relative_to(ROOT)))
def test_what_a_page_shows_of_the_program_is_current(page, models):
    text = page.read_text("utf-8")

    assert update.updated(text, models) == text, "run make docs"


# Those whose blocks show what they print were run above.
RUN = [
    page
    for page in PAGES
    if page.name != "CONTRIBUTING.md"
    and "```python" in page.read_text("utf-8")
    and "<!-- output -->" not in page.read_text("utf-8")
]


@pytest.mark.long
@pytest.mark.parametrize("page", RUN, ids=lambda page: str(page.relative_to(ROOT)))
def test_the_python_blocks_of_a_page_run(page, models):
    assert update.printed(page.read_text("utf-8"), models)


@pytest.mark.long
def test_a_stale_page_would_be_noticed(models):
    page = "<!-- run: echo new -->\n```console\n$ echo old\nold\n```\n"

    assert (
        update.updated(page, models) == "<!-- run: echo new -->\n```console\n$ echo new\nnew\n```\n"
    )


@pytest.mark.long
def test_a_python_block_that_fails_would_be_noticed(models):
    with pytest.raises(SystemExit, match="ZeroDivisionError"):
        update.printed("```python\n1 / 0\n```\n", models)


def test_every_link_between_pages_leads_somewhere():
    assert [(page, link) for page in PAGES for link in links(page) if not leads(page, link)] == []


def links(page: Path) -> list[str]:
    """List the links of a page, those in its blocks of code left out."""
    text = re.sub(r"^```.*?^```$", "", page.read_text("utf-8"), flags=re.DOTALL | re.MULTILINE)
    return re.findall(r"\]\(([^)]+)\)", text)


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


@pytest.mark.long
def test_every_picture_is_drawn_and_current(models):
    wanted = {}
    for page in update.pages():
        wanted |= update.pictures(page.read_text("utf-8"), models)

    assert wanted
    assert [path for path, drawn in wanted.items() if path.read_text("utf-8") != drawn] == []


def test_a_picture_keeps_colours_and_columns():
    drawn = update.drawn(r"printf '\033[31mbad\033[0m & good\n'; seq -s ' ' 50", ROOT)

    assert '<text x="20" y="52" fill="#ff7b72" textLength="25.2">bad</text>' in drawn
    assert '<text x="53.6" y="52" fill="#c9d1d9" textLength="50.4">&amp; good</text>' in drawn
    assert [drawn.count(f">{start} ") for start in ("1", "2", "39")] == [1, 0, 1]


def test_the_readme_is_short_and_the_bench_has_its_page():
    readme = (ROOT / "README.md").read_text("utf-8")
    table = (DOCS / "benchmarks.md").read_text("utf-8").partition("<!-- bench:begin -->")[2]

    assert len(readme.splitlines()) <= 150
    assert "Measured by `make bench`" in table.partition("<!-- bench:end -->")[0]


def test_the_table_of_contents_names_every_page_of_its_own():
    text = (DOCS / "README.md").read_text("utf-8")
    pages = {path.relative_to(DOCS).as_posix() for path in DOCS.glob("*.md")} - {"README.md"}
    pages |= {path.relative_to(DOCS).as_posix() for path in DOCS.glob("recipes/*.md")}

    assert {page for page in pages if f"({page})" not in text} == set()


def test_the_two_commands_come_before_anything_else_to_do():
    text = (ROOT / "README.md").read_text("utf-8")

    assert text.index("difflens base") < text.index("make demo") < text.index("make test")
    assert text.index("make test") < text.index("pip install")


def test_the_licence_is_the_whole_apache_licence():
    text = (ROOT / "LICENSE").read_text("utf-8")

    assert len(text.splitlines()) == 202
    assert "Apache License" in text
    assert "APPENDIX: How to apply the Apache License to your work." in text
