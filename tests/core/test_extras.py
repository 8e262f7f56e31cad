"""Extras: each that a message or a page names can be installed, and each is documented."""

import ast
import re
import tomllib
from pathlib import Path

ROOT = Path(__file__).parents[2]
EXTRAS = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"][
    "optional-dependencies"
]
NAMED = re.compile(r"difflens\[([a-z0-9, ]+)\]")


def extras_in_messages() -> dict[str, str]:
    """Return the extras that errors name, each with one file that does."""
    extras = {}
    for path in sorted((ROOT / "src").rglob("*.py")):
        for node in ast.walk(ast.parse(path.read_text("utf-8"))):
            if isinstance(node, ast.Call) and ast.unparse(node.func).endswith("MissingExtra"):
                extras[ast.literal_eval(node.args[1])] = path.name
    return extras


def test_every_extra_that_a_message_names_can_be_installed():
    named = extras_in_messages()

    assert {"gguf", "hdf5", "zstd"} <= named.keys()
    assert named.keys() - EXTRAS.keys() == set()


def test_every_extra_that_a_page_names_can_be_installed():
    pages = [ROOT / "README.md", ROOT / "pyproject.toml", *(ROOT / "docs").rglob("*.md")]
    named = {
        extra.strip()
        for page in pages
        for names in NAMED.findall(page.read_text("utf-8"))
        for extra in names.split(",")
    }

    assert named - EXTRAS.keys() == set()


def test_every_extra_is_documented_and_part_of_all():
    page = (ROOT / "docs" / "extras.md").read_text("utf-8")
    parts = {name: set(NAMED.findall(" ".join(needs))) for name, needs in EXTRAS.items()}
    everything = {extra for each in parts["all"] | parts["formats"] for extra in each.split(",")}

    assert [name for name in EXTRAS if f"| `{name}` |" not in page] == []
    assert everything | {"all"} == EXTRAS.keys()
