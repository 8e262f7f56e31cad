"""Results on versions as text, Markdown, a page, JSON or YAML."""

from __future__ import annotations

import json as json_text
from collections.abc import Callable
from typing import Any

from difflens.core.kept import Kept
from difflens.core.records import View

from .document import Document

OUTPUTS = ("cli", "json", "yaml", "markdown", "html")


def as_text(data: Any, output: str) -> str:
    """Write plain data as JSON or YAML; what commands a terminal stays a string."""
    if output == "json":
        # ASCII by default, and DEL beside it.
        return json_text.dumps(data, indent=1).replace("\x7f", "\\u007f") + "\n"
    from ..diffs.yaml import dumped

    return dumped(data)


def written(document: Document, output: str, view: View) -> str:
    """Write a layout as text, Markdown or a page."""
    if output == "markdown":
        from .markdown import markdown as write
    elif output == "html":
        from .page import page as write
    else:
        from .text import text as write
    return write(document, view)


def rendered(result: Kept, layout: Callable[[Any], Document], output: str, view: View) -> str:
    """Write a result as asked: the record itself, or its layout."""
    if output in ("json", "yaml"):
        return as_text(result.to_dict(), output)
    return written(layout(result), output, view)
