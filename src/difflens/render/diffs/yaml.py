"""YAML for people who read JSON's data by eye."""

from __future__ import annotations

from typing import Any

from difflens.core.records import Report, View

from ..report.changes import changes
from . import renderer


@renderer(suffix=".yaml")
def yaml(report: Report, view: View) -> str:  # noqa: ARG001  one signature for all
    """The data of `json` as plain maps and lists that a safe loader reads back."""
    return dumped(list(changes(report)))


def dumped(data: Any) -> str:
    """Write plain data, quickly where the compiled library can."""
    import yaml as library

    fast: Any = getattr(library, "CSafeDumper", library.SafeDumper)
    try:
        return _dump(data, fast)
    except UnicodeEncodeError:  # libyaml takes UTF-8 only; a lone surrogate is none
        return _dump(data, library.SafeDumper)


def _dump(data: Any, dumper: Any) -> str:
    import yaml as library

    class Plain(dumper):
        """Writes equal lists twice: an alias is no plain list."""

        def ignore_aliases(self, data: Any) -> bool:  # noqa: ARG002
            return True

    text: str = library.dump(data, Dumper=Plain, sort_keys=False)
    return text
