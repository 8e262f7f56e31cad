"""Under which licence a model stands: what its card says, or the first line of its LICENSE."""

from __future__ import annotations

import re
from pathlib import Path

from ..escape import for_terminal
from .documents import Limits, text

NAMES = ("README.md", "LICENSE", "LICENSE.txt", "LICENSE.md", "LICENCE")
_LONGEST = 80
_FRONT = re.compile(r"\A---\r?\n(.*?)^---\s*$", re.DOTALL | re.MULTILINE)
_LINE = re.compile(r"^licen[sc]e:[ \t]*['\"]?([^\s'\"#][^'\"#\r\n]*)", re.MULTILINE)


def licence(path: str | Path, limits: Limits = None) -> str | None:
    """Give the licence's name; a card must name it in its front matter, else None."""
    whole = text(path, limits)
    if Path(path).name == "README.md":
        front = _FRONT.match(whole)
        named = _LINE.search(front[1]) if front else None
        return for_terminal(named[1].strip(), _LONGEST) if named else None
    return for_terminal(whole.strip().splitlines()[0].strip(), _LONGEST)
