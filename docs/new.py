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
RECIPES = {"format": "tinyfmt", "analysis": "outsized", "renderer": "tsv", "diagnosis": "idle",
           "command": "weigh"}  # fmt: skip

_BLOCK = re.compile(r"^`(\S+)`:\n\n(`{3,})\w+\n(.*?)^\2$", re.DOTALL | re.MULTILINE)
_NAME = re.compile("[a-z][a-z0-9]*([-_][a-z0-9]+)*")


def recipe(name: str) -> dict[str, str]:
    """Return the files of a recipe by their paths."""
    blocks = _BLOCK.findall((ROOT / "CONTRIBUTING.md").read_text("utf-8"))
    return {path: text for path, _fence, text in blocks if name in path}


def renamed(kind: str, name: str) -> dict[str, str]:
    """Return the files of a recipe under another name; a hyphen is an underscore in code."""
    word = RECIPES[kind]
    stem, public = name.replace("-", "_"), name.replace("_", "-")
    magic = stem[:4].upper().ljust(4, "_")
    files = {}
    for path, text in recipe(word).items():
        written = public if path.endswith(".md") else stem
        body = text.replace(word.capitalize(), stem.title().replace("_", "") or stem)
        body = body.replace("TINY", magic)
        # Users write the name with hyphens: in quotes, and after `difflens`.
        body = re.sub(rf'(?<="){word}(?=")|(?<=`difflens ){word}\b', "\0", body)
        files[path.replace(word, written)] = body.replace(word, written).replace("\0", public)
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
