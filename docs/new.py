"""Writes the four files of a new plug-in: `make new format=NAME`, `analysis=` and so on.

The templates are the recipes of CONTRIBUTING.md, which the tests run: what is
written here works before it is edited.
"""

# ruff: noqa: INP001, T201

from __future__ import annotations

import re
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
RECIPES = {"format": "tinyfmt", "analysis": "outsized", "renderer": "tsv", "diagnosis": "idle"}

_BLOCK = re.compile(r"^`(\S+)`:\n\n```\w+\n(.*?)^```$", re.DOTALL | re.MULTILINE)
_NAME = re.compile("[a-z][a-z0-9]*([-_][a-z0-9]+)*")


def recipe(name: str) -> dict[str, str]:
    """Give the files of a recipe by their paths."""
    blocks = _BLOCK.findall((ROOT / "CONTRIBUTING.md").read_text("utf-8"))
    return {path: text for path, text in blocks if name in path}


def renamed(kind: str, name: str) -> dict[str, str]:
    """Give the files of a recipe under another name; a hyphen is an underscore in code."""
    word = RECIPES[kind]
    stem, public = name.replace("-", "_"), name.replace("_", "-")
    magic = stem[:4].upper().ljust(4, "_")
    files = {}
    for path, text in recipe(word).items():
        spoken = path.endswith(".md")
        said = public if spoken else stem
        body = text.replace(word.capitalize(), stem.title().replace("_", "") or stem)
        body = body.replace("TINY", magic)
        body = body.replace(f'format = "{word}"', f'format = "{public}"').replace(word, said)
        files[path.replace(word, said)] = body
    return files


def main(arguments: list[str]) -> int:
    """Write the files; nothing that is there is overwritten."""
    kind, _, name = arguments[0].partition("=") if len(arguments) == 1 else ("", "", "")
    if kind not in RECIPES or not _NAME.fullmatch(name):
        print(f"usage: make new KIND=NAME, where KIND is one of {', '.join(RECIPES)}")
        return 2
    files = renamed(kind, name)
    there = [path for path in files if (ROOT / path).exists()]
    if there:
        print(f"there already: {', '.join(there)}")
        return 2
    for path, text in files.items():
        (ROOT / path).write_text(text, "utf-8")
        print(path)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
