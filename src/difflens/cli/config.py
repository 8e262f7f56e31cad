"""`difflens config`: which settings are in force, and where each comes from."""

from __future__ import annotations

import os
from typing import Any, NamedTuple

import click

from ._options import FilePath

_COMMAND_LINE, _ENVIRONMENT, _DEFAULT = "command line", "environment", "default"


class _Setting(NamedTuple):
    """One setting, its value as it may be shown, and its origin."""

    setting: str
    value: Any
    origin: str


@click.command(name="config")
@click.option("--store", metavar="URL", help="As other commands take it: what would it change?")
@click.option("--policy", type=FilePath(), metavar="FILE", help="The same of a policy.")
@click.option(
    "-o", "--output", type=click.Choice(["cli", "json"]), default="cli", help="Write text or JSON."
)
@click.option("--debug", is_flag=True, expose_value=False, help="Show the traceback of an error.")
def command(store: str | None, policy: str | None, output: str) -> None:
    """Show the settings in force here and where each comes from.

    The command line goes before the environment, the environment before the project file, and
    that before the defaults.
    """
    import json

    from ._output import emit

    settings = list(_settings(store, policy))
    if output == "json":
        rows = [each._asdict() for each in settings]
        emit(json.dumps(rows, indent=1), None)
        return
    from difflens.core.escape import for_terminal

    wide = max(len(each.setting) for each in settings)
    for each in settings:
        value = ", ".join(each.value) if isinstance(each.value, list) else each.value
        emit(f"{each.setting:{wide}}  {for_terminal(value or '-')}  ({each.origin})", None)


def _settings(store: str | None, policy: str | None) -> list[_Setting]:
    from difflens.core.escape import visible
    from difflens.versions.store import DEFAULT_STORE
    from difflens.versions.store.connections import place_of

    from ._project import find_project
    from ._store import VARIABLE

    project = find_project()
    own = project.settings if project else {}
    where = visible(str(project.file)) if project else ""

    def first(*choices: tuple[Any, str]) -> tuple[Any, str]:
        return next((value, origin) for value, origin in choices if value is not None)

    url, origin = first(
        (store, _COMMAND_LINE),
        (os.environ.get(VARIABLE) or None, f"{_ENVIRONMENT}: {VARIABLE}"),
        (own.get("store"), where),
        (DEFAULT_STORE, _DEFAULT),
    )
    rows = [_Setting("store", place_of(url).shown, origin)]
    rows.append(_Setting("policy", *first((policy, _COMMAND_LINE), (own.get("policy"), where),
                                          ("", _DEFAULT))))  # fmt: skip
    ignored = own.get("ignore")
    rows.append(_Setting("ignore", list(ignored or ()), where if ignored else _DEFAULT))
    outputs = {"diff": "cli"} | dict(own.get("output", {}))
    for name, output in sorted(outputs.items()):
        is_own = name in own.get("output", {})
        rows.append(_Setting(f"output.{name}", output, where if is_own else _DEFAULT))
    return rows
