"""Lists all that users rely on, a line each: public names, the command line, the JSON schemas.

`python -m tools.surface` compares it with `tests/contracts/surface.txt` and prints what was added
and what is gone; with `--write` it becomes the new list.
"""

# ruff: noqa: T201

from __future__ import annotations

import argparse
import inspect
import json
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path
from typing import Any

import click
import msgspec

ROOT = Path(__file__).resolve().parents[1]
LIST = ROOT / "tests" / "contracts" / "surface.txt"


def main() -> int:
    """Print what differs from the list; exit code 1 where something is gone."""
    parser = argparse.ArgumentParser(prog="python -m tools.surface", description=__doc__)
    parser.add_argument("--write", action="store_true", help="make today's surface the list")
    if parser.parse_args().write:
        LIST.write_text("".join(f"{line}\n" for line in surface()), "utf-8")
        return 0
    added, gone = differences()
    print(*(f"+ {line}" for line in added), *(f"- {line}" for line in gone), sep="\n")
    return 1 if gone else 0


def differences() -> tuple[list[str], list[str]]:
    """Return the lines that the list does not have yet, and those that only the list has."""
    before, today = set(LIST.read_text("utf-8").splitlines()), set(surface())
    return sorted(today - before), sorted(before - today)


def surface() -> list[str]:
    """List the public names, the commands with their options, and the fields of the schemas."""
    return sorted({*_names(), *_commands(), *_schemas()})


def _names() -> Iterator[str]:
    difflens = import_module("difflens")
    for name in difflens.__all__:
        thing = getattr(difflens, name)
        yield f"difflens.{name}"
        if callable(thing):
            yield from _parameters(f"difflens.{name}", thing)
        if inspect.isclass(thing):
            yield from _members(f"difflens.{name}", thing)


def _members(place: str, thing: type) -> Iterator[str]:
    for name in dir(thing):
        owners = [each for each in thing.__mro__ if name in vars(each)]
        if name.startswith("_") or not owners or not owners[0].__module__.startswith("difflens"):
            continue
        yield f"{place}.{name}"
        member = inspect.getattr_static(thing, name)
        if inspect.isfunction(member) or isinstance(member, classmethod | staticmethod):
            yield from _parameters(f"{place}.{name}", getattr(thing, name))


def _parameters(place: str, thing: Any) -> Iterator[str]:
    try:
        parameters = inspect.signature(thing).parameters.values()
    except ValueError:
        return
    for each in parameters:
        default = "" if each.default is inspect.Parameter.empty else f"={_default(each.default)}"
        if each.name != "self" and not each.name.startswith("_") and " at 0x" not in default:
            yield f"{place} ({each.name}{default})"


def _default(value: Any) -> str:
    """Write a default in full: a record's own repr is shortened."""
    if not isinstance(value, msgspec.Struct):
        return repr(value)
    fields = msgspec.structs.asdict(value).items()
    return f"{type(value).__name__}({', '.join(f'{name}={each!r}' for name, each in fields)})"


def _commands() -> Iterator[str]:
    from difflens.cli import group

    yield from _command("difflens", group)


def _command(place: str, command: click.Command) -> Iterator[str]:
    yield place
    yield from _options(place, command)
    if isinstance(command, click.Group):
        context = click.Context(command)
        for name in command.list_commands(context):
            inner = command.get_command(context, name)
            if inner is not None:
                yield from _command(f"{place} {name}", inner)


def _options(place: str, command: click.Command) -> Iterator[str]:
    for each in command.params:
        spellings = [*each.opts, *each.secondary_opts]
        for spelling in spellings if isinstance(each, click.Option) else [each.name]:
            yield f"{place} {spelling}"
            if isinstance(each.type, click.Choice):
                yield from (f"{place} {spelling} {choice}" for choice in each.type.choices)


def _schemas() -> Iterator[str]:
    for path in sorted((ROOT / "docs").glob("*.schema.json")):
        yield from _fields(path.name, json.loads(path.read_text("utf-8")))


def _fields(place: str, schema: Any) -> Iterator[str]:
    if isinstance(schema, list):
        for each in schema:
            yield from _fields(place, each)
    if not isinstance(schema, dict):
        return
    for name, inner in schema.items():
        if name in {"properties", "$defs", "definitions"}:
            for field, its in inner.items():
                yield f"{place} {field}"
                yield from _fields(f"{place} {field}", its)
        elif name == "enum":
            yield from (f"{place} = {value!r}" for value in inner)
        elif name == "required":
            yield from (f"{place} {field} is always there" for field in inner)
        elif isinstance(inner, dict | list):
            yield from _fields(place, inner)


if __name__ == "__main__":
    raise SystemExit(main())
