"""What a wrong or missing choice is told, for every command: one line that can be read."""

from collections.abc import Iterator

import click
import pytest
from cli.command import assert_refused

from difflens.cli import group


def commands(command: click.Command, path: tuple[str, ...] = ()) -> Iterator[tuple[str, ...]]:
    """Walk all commands, those inside others as well."""
    yield path
    if isinstance(command, click.Group):
        context = click.Context(command)
        for name in command.list_commands(context):
            child = command.get_command(context, name)
            assert child is not None
            yield from commands(child, (*path, name))


EVERY = [each for each in commands(group) if each]
ALONE: set[tuple[str, ...]] = {("demo",), ("list",), ("policy",)}  # they need no argument
ALONE |= {("git", name) for name in ("diff", "show", "log")}  # git answers


def command_at(path: tuple[str, ...]) -> click.Command:
    command: click.Command = group
    for name in path:
        assert isinstance(command, click.Group)
        child = command.get_command(click.Context(command), name)
        assert child is not None
        command = child
    return command


def choices(path: tuple[str, ...]) -> list[tuple[click.Option, list[str]]]:
    return [
        (each, [str(choice) for choice in each.type.choices])
        for each in command_at(path).params
        if isinstance(each.type, click.Choice) and isinstance(each, click.Option)
    ]


def arguments(path: tuple[str, ...]) -> list[str]:
    """Make up a word for every argument that is wanted."""
    return [
        word
        for each in command_at(path).params
        if isinstance(each, click.Argument) and each.required
        for word in ["nowhere"] * max(each.nargs, 1)
    ]


@pytest.mark.parametrize("path", [each for each in EVERY if each not in ALONE], ids=" ".join)
def test_a_command_without_arguments_is_answered_in_readable_lines(difflens, path):
    outcome = difflens(*path)

    assert "\\x" not in outcome.err
    if outcome.code == 2:
        assert_refused(outcome)


@pytest.mark.parametrize("path", EVERY, ids=" ".join)
def test_a_wrong_choice_names_the_right_ones_on_one_line(difflens, path):
    for option, names in choices(path):
        outcome = difflens(*path, *arguments(path), f"{option.opts[-1]}=no such choice")

        assert_refused(outcome, "no such choice", *names)
        assert "\\x" not in outcome.err


@pytest.mark.parametrize("path", EVERY, ids=" ".join)
def test_a_missing_choice_names_the_choices_on_one_line(difflens, path):
    for option, names in choices(path):
        if option.required:
            outcome = difflens(*path, *arguments(path))

            assert_refused(outcome, "missing option", f"choose from {', '.join(names)}")
            assert "\\x" not in outcome.err


def test_export_without_a_format_says_which_there_are(difflens):
    outcome = difflens("export", "runs/one")

    assert outcome.err.splitlines()[0] == (
        "difflens: error: missing option '--to': choose from csv, json, parquet, tensorboard, run"
    )


def test_a_group_without_a_command_says_which_there_are(difflens):
    assert_refused(difflens("snapshot"), "missing command: choose from add, list, remove, show")


def test_control_characters_that_were_typed_are_still_shown_as_codes(difflens):
    outcome = difflens("export", "runs/one", "--to", "csv", "--out", "x", "extra\n\tword")

    assert_refused(outcome, "\\x0a\\x09")
