"""The project file: `[tool.difflens]` in pyproject.toml, or difflens.toml.

It comes with a repository, perhaps a stranger's, so it is not trusted: it names files of its own
folder only, no servers, no outputs and no code, and what it leaves out of a comparison is reported.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path, PurePosixPath
from typing import Any, NamedTuple, NoReturn

import click

from difflens.core.errors import EvidenceError, UnknownName
from difflens.core.escape import for_terminal, visible

_OWN, _SHARED = "difflens.toml", "pyproject.toml"
_LARGEST = 1_000_000  # bytes
_MOST_PATTERNS, _LONGEST_PATTERN = 100, 200


class Project(NamedTuple):
    """A project file that was read, and what it sets: `policy`, `store`, `ignore`, `output`."""

    file: Path
    settings: Mapping[str, Any]


def find_project(folder: Path | None = None) -> Project | None:
    """Read the nearest project file, from the folder up to the root of its repository.

    Outside a repository only the folder itself counts: what lies above may be anybody's.
    """
    for place in _upwards((folder or Path.cwd()).absolute()):
        for name in (_OWN, _SHARED):
            file = place / name
            if file.is_file():
                settings = _read(file)
                if settings is not None:
                    return Project(file, settings)
    return None


def _upwards(folder: Path) -> Iterator[Path]:
    """Yield the folder and those above it, up to the one that holds `.git`."""
    places = [folder, *folder.parents]
    roots = [at for at, place in enumerate(places) if (place / ".git").exists()]
    yield from places[: roots[0] + 1 if roots else 1]


def _read(file: Path) -> dict[str, Any] | None:
    """Read one file; None if it is a pyproject.toml that says nothing of difflens."""
    import tomllib

    try:
        if file.stat().st_size > _LARGEST:
            _refuse(file, f"it is larger than {_LARGEST} bytes")
        tables = tomllib.loads(file.read_text(encoding="utf-8"))
    except OSError as error:
        _refuse(file, (error.strerror or str(error)).lower())
    except (tomllib.TOMLDecodeError, UnicodeDecodeError, RecursionError, ValueError) as error:
        _refuse(file, f"not TOML: {for_terminal(str(error))}")
    if file.name == _SHARED:
        tools = tables.get("tool", {})
        if not isinstance(tools, dict) or "difflens" not in tools:
            return None
        tables = tools["difflens"]
        if not isinstance(tables, dict):
            _refuse(file, "tool.difflens must be a table")
    for name in tables:
        if name not in _READERS:
            from difflib import get_close_matches  # for an error alone

            near = get_close_matches(name, _READERS, 1)
            hint = f"did you mean {near[0]}?" if near else f"known: {', '.join(_READERS)}"
            _refuse(file, f"no setting is called '{for_terminal(name)}'", hint)
    return {name: _READERS[name](file, value) for name, value in tables.items()}


def _own_path(name: str) -> Callable[[Path, Any], str]:
    """Return what reads the path of a file that belongs to the project."""

    def read(file: Path, value: Any) -> str:
        if not isinstance(value, str) or not value or "\0" in value:
            _refuse(file, f"{name} must be the path of a file")
        hint = "" if name == "policy" else "name other stores in DIFFLENS_STORE or with --store"
        if "://" in value or value.startswith(("/", "~", ":")):
            _refuse(file, f"{name} must be a path relative to this file", hint)
        home = Path(os.path.realpath(file.parent))
        target = Path(os.path.realpath(home / value))
        if ".." in PurePosixPath(value).parts or not target.is_relative_to(home):
            _refuse(file, f"{name} leads out of the folder of this file", hint)
        return str(file.parent / value)

    return read


def _patterns(file: Path, value: Any) -> tuple[str, ...]:
    """Read names of tensors to leave out: with `*`, `?` and `[...]`, never regular expressions.

    A regular expression can take a lifetime on one name.
    """
    patterns = [value] if isinstance(value, str) else value
    if not isinstance(patterns, list) or not all(isinstance(each, str) for each in patterns):
        _refuse(file, "ignore must be a list of names, which may hold * and ?")
    if len(patterns) > _MOST_PATTERNS or any(len(each) > _LONGEST_PATTERN for each in patterns):
        _refuse(file, f"ignore may hold {_MOST_PATTERNS} names of {_LONGEST_PATTERN} characters")
    return tuple(patterns)


def _outputs(file: Path, value: Any) -> dict[str, str]:
    """Read the form of output by command."""
    if not isinstance(value, dict):
        _refuse(file, 'output must be a table, such as output = {diff = "markdown"}')
    for command, output in value.items():
        if not isinstance(output, str):
            _refuse(file, f"output.{for_terminal(command)} must be the name of an output")
        try:
            _check_output(command, output)
        except UnknownName as error:
            _refuse(file, f"output: {error.reason}", error.hint)
    return value


def _check_output(command: str, output: str) -> None:
    """Raise unless a command of this name writes such an output."""
    from . import group

    found = group.get_command(click.Context(group), command)
    option = next((each for each in found.params if each.name == "output"), None) if found else None
    if option is None:
        raise UnknownName("command with an output", command, ("diff", "compare", "report"))
    if isinstance(option.type, click.Choice):
        known = list(option.type.choices)
    else:
        from difflens.render.diffs import renderer

        known = renderer.names()
    if output not in known:
        raise UnknownName(f"output of {command}", output, known)


_READERS: Mapping[str, Callable[[Path, Any], Any]] = {
    "policy": _own_path("policy"),
    "store": _own_path("store"),
    "ignore": _patterns,
    "output": _outputs,
}


def defaults(command: click.Command) -> dict[str, Any]:
    """Return what the project file sets of a command's options; what the user types goes first."""
    names = {each.name for each in command.params} & {"policy", "ignore", "output"}
    project = find_project() if names and command.name != "config" else None
    if project is None:
        return {}
    values = dict(project.settings)
    values["output"] = values.get("output", {}).get(command.name)
    values["ignore"] = as_expression(values.get("ignore", ()))
    return {name: values[name] for name in names if values.get(name)}


def as_expression(patterns: tuple[str, ...]) -> str:
    """Return a regular expression that finds what one of the patterns matches as a whole."""
    from fnmatch import translate

    return "|".join(rf"\A{translate(each)}" for each in patterns)


def is_from_project(option: str) -> bool:
    """Was this option of the running command set by the project file?"""
    context = click.get_current_context(silent=True)
    source = context.get_parameter_source(option) if context else None
    return source is click.core.ParameterSource.DEFAULT_MAP


def left_out() -> str:
    """Return the warning about tensors that the project file leaves out; empty if it does not."""
    project = find_project() if is_from_project("ignore") else None
    if project is None:
        return ""
    patterns = ", ".join(for_terminal(each) for each in project.settings["ignore"])
    return f"{visible(project.file.name)} leaves out tensors: {patterns}"


def _refuse(file: Path, reason: str, hint: str = "") -> NoReturn:
    raise EvidenceError(visible(str(file)), reason, hint=hint)
