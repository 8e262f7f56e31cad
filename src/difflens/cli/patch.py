"""`difflens patch`: ship what changed between two models, and apply it bit for bit."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, TypeVar

import click

from ._options import MOST_THREADS, FilePath, Threads, limits_of

if TYPE_CHECKING:
    from difflens.repair.records import PatchSummary

Command = TypeVar("Command", bound=Callable[..., Any])

_KIB = 1024


def _working(command: Command) -> Command:
    """Add what every command that reads models takes."""
    for option in (
        click.option("--debug", is_flag=True, expose_value=False, help="Show a traceback."),
        click.option("--limit", "limits", multiple=True, metavar="NAME=VALUE",
                     help="Raise a limit on what files may hold; docs/security.md lists them."),
        click.option("--threads", type=Threads(1), metavar="N",
                     help=f"Use N threads, at most {MOST_THREADS}; default: one for each core."),
    ):  # fmt: skip
        command = option(command)
    return command


def _format(command: Command) -> Command:
    return click.option("--format", metavar="NAME", help="Read models as this format.")(command)


def _to(what: str) -> Callable[[Command], Command]:
    text = f"The {what} to write; it is complete or absent, whatever happens."
    return click.option("-o", "--output", required=True, type=FilePath(), metavar="PATH", help=text)


_digests = click.option(
    "--digests/--no-digests",
    default=True,
    help="Digest every tensor (BLAKE2b): most of the time. Checksums are always on.",
)
_way_back = click.option(
    "--way-back",
    type=click.Choice(["auto", "always", "never"]),
    default="auto",
    show_default=True,
    help="Make the patch run backwards too; auto where that adds a tenth at most.",
)
_reverse = click.option("--reverse", is_flag=True, help="Turn the target back into the base.")
_quiet = click.option("-q", "--quiet", is_flag=True, help="Print nothing.")


@click.group(name="patch")
def command() -> None:
    """Write what changed between two models as a small file, and apply it bit for bit."""


@command.command(name="create")
@click.argument("base", type=FilePath())
@click.argument("target", type=FilePath())
@_to("patch")
@click.option(
    "--adapter",
    type=FilePath(),
    metavar="PATH",
    help="The LoRA adapter that was merged into BASE: with its matrices the patch is small.",
)
@click.option(
    "--with-files",
    is_flag=True,
    help="Ship the settings and tokenizers beside the weights of a folder too.",
)
@_way_back
@_digests
@_quiet
@_format
@_working
def _create(base: str, target: str, output: str, **options: Any) -> None:
    """Write the patch that turns BASE into TARGET.

    Models are files or folders of any format that is read. A target in another format than
    safetensors, GGUF and npz is made as the safetensors file of its tensors; so is one whose
    tensors are packed or compressed.
    """
    from difflens.repair.patch import create_patch

    summary = create_patch(
        base,
        target,
        output,
        adapter=options["adapter"],
        with_files=options["with_files"],
        way_back=options["way_back"],
        digests=options["digests"],
        threads=options["threads"],
        limits=limits_of(options["limits"]),
        format=options["format"],
    )
    _print(summary, quiet=options["quiet"])


@command.command(name="apply")
@click.argument("base", type=FilePath())
@click.argument("patch", type=FilePath())
@_to("model")
@_reverse
@_digests
@_quiet
@_format
@_working
def _apply(base: str, patch: str, output: str, **options: Any) -> None:
    """Write the model that PATCH makes of BASE: the bytes of the target it was made with.

    Another base is refused. With --reverse, BASE is the target of the patch.
    """
    from difflens.repair.patch import apply_patch

    apply_patch(
        base,
        patch,
        output,
        reverse=options["reverse"],
        digests=options["digests"],
        threads=options["threads"],
        limits=limits_of(options["limits"]),
        format=options["format"],
    )
    if not options["quiet"]:
        from difflens.core.escape import visible

        click.echo(f"wrote {visible(output)}")


@command.command(name="verify")
@click.argument("base", type=FilePath())
@click.argument("patch", type=FilePath())
@_reverse
@_quiet
@_format
@_working
def _verify(base: str, patch: str, **options: Any) -> None:
    """Apply PATCH to BASE and write nothing: is the base the right one, is the patch whole?

    Exit code: 0 yes, 2 no.
    """
    from difflens.core.escape import visible
    from difflens.repair.patch import verify_patch

    verify_patch(
        base,
        patch,
        reverse=options["reverse"],
        threads=options["threads"],
        limits=limits_of(options["limits"]),
        format=options["format"],
    )
    if not options["quiet"]:
        click.echo(f"ok   {visible(patch)} applies to {visible(base)}")


@command.command(name="show")
@click.argument("patch", type=FilePath())
@click.option("-o", "--output", type=click.Choice(["cli", "json"]), default="cli")
@_working
def _show(patch: str, output: str, **options: Any) -> None:
    """Describe PATCH: its size, what it makes, the tensors with the largest changes."""
    from difflens.repair.patch import show_patch

    summary = show_patch(patch, limits=limits_of(options["limits"]))
    if output == "json":
        import json

        click.echo(json.dumps(summary.to_dict(), indent=2))
        return
    _print(summary)
    from difflens.core.escape import for_terminal

    for name, size in summary.largest.items():
        click.echo(f"  {_size(size):>10}  {for_terminal(name)}")
    for side in ("base", "target"):
        click.echo(f"{side}: {getattr(summary, side) or 'no digest'}")


@command.command(name="compose")
@click.argument("first", type=FilePath())
@click.argument("second", type=FilePath())
@click.option(
    "--base", required=True, type=FilePath(), metavar="BASE", help="The base of the first patch."
)
@_to("patch")
@_way_back
@_quiet
@_working
def _compose(first: str, second: str, base: str, output: str, **options: Any) -> None:
    """Write the one patch that does what FIRST and then SECOND do."""
    from difflens.repair.patch import compose_patches

    summary = compose_patches(
        first,
        second,
        base,
        output,
        way_back=options["way_back"],
        threads=options["threads"],
        limits=limits_of(options["limits"]),
    )
    _print(summary, quiet=options["quiet"])


def _print(summary: PatchSummary, *, quiet: bool = False) -> None:
    """Write one line about a patch."""
    from difflens.core.escape import visible
    from difflens.render.document.numbers import plural

    if quiet:
        return
    parts = [f"{visible(summary.path)}: {_size(summary.size_bytes)}"]
    if summary.target_bytes:
        share = summary.size_bytes / summary.target_bytes
        parts.append(f"{share:.3%} of {_size(summary.target_bytes)}")
    counts = [
        f"{count:,} {word}"
        for word in ("changed", "added", "removed")
        if (count := getattr(summary, word))
    ]
    parts.append(plural(summary.tensors, "tensor") + (f" ({', '.join(counts)})" if counts else ""))
    parts.append("runs backwards too" if summary.reversible else "runs forwards only")
    click.echo(", ".join(parts))


def _size(count: int) -> str:
    size, units = float(count), iter(("KiB", "MiB", "GiB", "TiB"))
    if size < _KIB:
        return f"{count} B"
    unit = ""
    while size >= _KIB and (unit := next(units, unit)):
        size /= _KIB
        if unit == "TiB":
            break
    return f"{size:.1f} {unit}"
