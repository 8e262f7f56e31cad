"""YAML for people who read JSON's data by eye."""

from __future__ import annotations

from typing import Any

from ..records import Report, View
from . import renderer
from .changes import changes


@renderer(suffix=".yaml")
def yaml(report: Report, view: View) -> str:  # noqa: ARG001  one signature for all
    """The data of `json` as plain maps and lists that a safe loader reads back."""
    import yaml as library

    rows = list(changes(report))
    fast: Any = getattr(library, "CSafeDumper", library.SafeDumper)
    try:
        return _dump(rows, fast)
    except UnicodeEncodeError:  # libyaml takes UTF-8 only; a lone surrogate is none
        return _dump(rows, library.SafeDumper)


def _dump(rows: list[dict[str, list[Any]]], dumper: Any) -> str:
    import yaml as library

    class Plain(dumper):  # type: ignore[misc]
        """Writes equal lists twice: an alias is no plain list."""

        def ignore_aliases(self, data: Any) -> bool:  # noqa: ARG002
            return True

    text: str = library.dump(rows, Dumper=Plain, sort_keys=False)
    return text
