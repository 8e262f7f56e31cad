"""`difflens diff LEFT RIGHT`: what changed between two models."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import click

from . import EXIT_DIFFERENT, EXIT_SAME, EXIT_TROUBLE, _say
from ._analyses import GATES, analysis_flags, chosen, gate_code, sections
from ._compare import compare, document_flags, rendered, settle_output, show
from ._evidence import evidence_names, evidence_options, refuse_for_folders
from ._options import Epsilon, FileLocation, Sectioned, shared
from ._revisions import AFTER, Words, as_paths, rename_error, renamed

if TYPE_CHECKING:
    from difflens.core.records import Report

_ALIASES = {"text": "cli", "diffai": "cli"}
_COMPARING = """epsilon path ignore match shape_only exact verify_conversion recursive check format
    threads engine limits allow_http"""
_OUTPUT = """output out stats by_magnitude quiet brief verbose review generate_report charts
    markdown color no_color"""
_JUDGING = "policy alert_mode is_lower exit_zero"
_EXAMPLES = (
    "difflens diff base.safetensors tuned.safetensors --change-summary",
    "difflens diff base.safetensors tuned.safetensors -o html --out page.html",
    "difflens diff hf-folder model.gguf --verify-conversion",
    "difflens diff s3://bucket/base hf://owner/name@main --shape-only",
    "difflens diff v1:model.safetensors v2:model.safetensors",
    "difflens diff HEAD~3 -- model.safetensors",
    "difflens diff old new --regression-test --eval-left old.csv --eval-right new.csv",
)


def _sections() -> dict[str, set[str]]:
    """Return the sections of the help, each with the names of its options."""
    analyses = sections()
    gates = analyses.pop(GATES) | set(_JUDGING.split())
    return {
        "Comparing": set(_COMPARING.split()),
        "Output": set(_OUTPUT.split()),
        **analyses,
        "Evidence, if it is not found beside the models": evidence_names(),
        GATES: gates,
    }


def _output(_context: click.Context, _option: click.Parameter, name: str) -> str:
    return _ALIASES.get(name, name)


class _Diff(Words, Sectioned):
    """The command, which tells revisions of Git from paths."""


@click.command(name="diff", cls=_Diff, sections=_sections(), examples=_EXAMPLES)
@click.argument("left", type=FileLocation())
@click.argument("right", type=FileLocation(), required=False)
@click.argument("more", type=FileLocation(), required=False, nargs=-1, metavar="[-- PATH]")
@click.option(
    "-o",
    "--output",
    default="cli",
    callback=_output,
    metavar="NAME",
    help="Write as cli (or text, diffai), json, full-json, yaml, csv, markdown or html.",
)
@click.option(
    "--stats", is_flag=True, help="Show mean and standard deviation of each changed tensor."
)
@click.option(
    "--epsilon",
    type=Epsilon(0),
    default=0.0,
    metavar="X",
    help="Count an element as changed only if it moved by more than X.",
)
@click.option("--path", metavar="TEXT", help="Compare only tensors whose name contains TEXT.")
@click.option(
    "--ignore-keys-regex",
    "ignore",
    metavar="RE",
    help="Leave out tensors whose name contains a match of RE.",
)
@click.option(
    "--match",
    type=click.Choice(["exact", "auto"]),
    default="auto",
    show_default=True,
    help="Pair tensors by exact name, or ignore prefixes such as `module.` too.",
)
@click.option(
    "--shape-only", is_flag=True, help="Compare names, shapes and dtypes; read headers only."
)
@click.option(
    "--exact", is_flag=True, help="Of a fingerprint, read the model too, where hashes differ."
)
@click.option(
    "--verify-conversion",
    is_flag=True,
    help="Check that both are the same model, in whatever format.",
)
@click.option(
    "--sort-by-change-magnitude",
    "by_magnitude",
    is_flag=True,
    help="List the largest relative change first.",
)
@click.option(
    "--engine",
    metavar="NAME",
    help="Work on threads of this machine, or with ray on the cluster of RAY_ADDRESS.",
)
@click.option("--check", is_flag=True, help="Verify the files instead of comparing them.")
@click.option(
    "-r", "--recursive", is_flag=True, help="Compare two folders of models, file by file."
)
@click.option("-q", "--quiet", is_flag=True, help="Print nothing; the exit code is the answer.")
@click.option("--brief", is_flag=True, help="Print only whether the models differ.")
@click.option("-v", "--verbose", is_flag=True, help="Print every line; fold none.")
@click.option(
    "--exit-zero", is_flag=True, help="Exit with 0 even if something differs; trouble is still 2."
)
@click.option(
    "--stream", is_flag=True, hidden=True, help="Accepted and ignored: streaming is always on."
)
@document_flags
@analysis_flags
@evidence_options
@shared
def command(left: str, right: str | None, more: tuple[str, ...], **options: Any) -> int:
    """Compare two models tensor by tensor.

    LEFT is before, RIGHT is after: model files, folders that hold a sharded model, or with -r
    folders of models; paths or addresses (s3://, hf://). Either may be a model of a Git revision,
    REV:PATH; `REV -- PATH` compares with the working tree. Exit code: 0 nothing differs, 1
    something differs, 2 trouble.
    """
    words = [each for each in (left, right, *more) if each is not None]
    with as_paths(words, click.get_current_context().meta[AFTER]) as sides:
        if sides is None:
            return _compare_sides(left, None, options)
        return _compare_sides(sides.left, sides.right, options | {"shown": sides.shown})


def _compare_sides(left: str, right: str | None, options: dict[str, Any]) -> int:
    if options["check"]:
        from .check import check_all

        code = check_all([left, right] if right else [left], **options)
        return EXIT_SAME if options["exit_zero"] and code == EXIT_DIFFERENT else code
    if right is None:
        raise click.UsageError("RIGHT is missing: a diff takes two models")
    if options["verify_conversion"] and options["shape_only"]:
        raise click.UsageError("--verify-conversion reads values: leave --shape-only out")
    options = settle_output(options)
    if options["recursive"]:
        refuse_for_folders(options)
        code = compare_folders(left, right, options)
    else:
        from difflens.core.errors import DifflensError

        compared = compare(left, right, options)
        show(compared, options)
        code = exit_code(compared.report, options)
        if code == EXIT_TROUBLE and is_empty(compared.report):
            _say(
                DifflensError(
                    "nothing to compare: neither side holds a tensor",
                    hint="name files that hold weights",
                )
            )
    return EXIT_SAME if options["exit_zero"] and code == EXIT_DIFFERENT else code


def exit_code(report: Report, options: dict[str, Any]) -> int:
    """Return the worst of the gates that were named, or whether anything differs."""
    if chosen(options):
        code = gate_code(report.analyses, options)
        if code is not None:
            return code
    if is_empty(report):
        return EXIT_TROUBLE
    return EXIT_DIFFERENT if report.verdict.differs else EXIT_SAME


def is_empty(report: Report) -> bool:
    """Does neither side hold a tensor, so that nothing was compared?"""
    return report.verdict.word == "nothing_to_compare"


def compare_folders(left: str, right: str, options: dict[str, Any]) -> int:
    """Compare every model both folders hold, and name those only one holds."""
    from difflens.core.addresses import locate
    from difflens.core.errors import DifflensError, ModelError, UnknownFormat
    from difflens.models.folders.listing import model_files

    from ._output import emit

    if options["output"] in {"html", "markdown"} or options["generate_report"]:
        raise click.UsageError("a report is about one pair: name the two models")
    sides = locate(left), locate(right)
    names = [set(model_files(each)) for each in sides]
    if not names[0] | names[1]:
        raise UnknownFormat(left, f"neither it nor {right} holds a model")
    code, count = EXIT_SAME, 0
    parts: dict[str, Any] = {}
    for name in sorted(names[0] | names[1]):
        if not (name in names[0] and name in names[1]):
            parts[name] = None if name in names[0] else False
            code = max(code, EXIT_DIFFERENT)
            continue
        try:
            before, after = (str(side if name == "." else side / name) for side in sides)
            compared = compare(before, after, options)
        except ModelError as error:  # the others can still be compared; the exit code tells
            _say(rename_error(error, options.get("shown", {})))
            code = EXIT_TROUBLE
        else:
            parts[name] = rendered(compared, options)
            if not is_empty(compared.report):  # such as training_args.bin beside the weights
                count += 1
                code = max(code, exit_code(compared.report, options))
    if not options["quiet"] and parts:
        emit(_joined(left, right, parts, options), options["out"])
    if not count and code == EXIT_SAME:
        _say(DifflensError("nothing to compare: no pair of files holds a tensor", where=left))
        return EXIT_TROUBLE
    return code


def _joined(left: str, right: str, parts: dict[str, Any], options: dict[str, Any]) -> str:
    """Put the models' results together: text after text, or one document of them all."""
    output = options["output"]
    if options["brief"] or output == "cli":
        return _text(left, right, parts, options.get("shown", {}), brief=options["brief"])
    if output == "csv":
        return _csv(parts)
    import json

    if output == "yaml":
        import yaml

        documents = {name: _parsed(text, name, yaml.safe_load) for name, text in parts.items()}
        return yaml.safe_dump(documents, sort_keys=False)
    documents = {name: _parsed(text, name, json.loads) for name, text in parts.items()}
    return json.dumps(documents, indent=1).replace("\x7f", "\\u007f")


def _parsed(text: Any, name: str, parse: Any) -> Any:
    """Read a result again; a model that only one side has is one row."""
    if isinstance(text, str):
        return parse(text)
    return [{"ModelRemoved" if text is None else "ModelAdded": [name]}]


def _text(
    left: str, right: str, parts: dict[str, Any], shown: Mapping[str, str], *, brief: bool
) -> str:
    from difflens.core.escape import for_terminal

    texts = []
    for name, text in parts.items():
        label = for_terminal(name)
        if isinstance(text, str):
            texts.append(text if brief else f"== {label}\n{text}")
        else:
            side = for_terminal(renamed(left if text is None else right, shown))
            texts.append(f"Only in {side}: {label}\n")
    return ("" if brief else "\n").join(texts)


def _csv(parts: dict[str, Any]) -> str:
    import csv
    import io

    from difflens.core.escape import for_csv
    from difflens.render.diffs.csv import COLUMNS
    from difflens.render.report.rows import FIGURES

    out = io.StringIO()
    tables = {
        name: list(csv.DictReader(io.StringIO(text, newline="")))
        if isinstance(text, str)
        else [{"kind": "model removed" if text is None else "model added"}]
        for name, text in parts.items()
    }
    found = [key for rows in tables.values() for row in rows for key in row]
    # Two models may have been measured by different measures: every column once, ours first.
    columns = dict.fromkeys(["file", *COLUMNS, *FIGURES, *found])
    writer = csv.DictWriter(out, list(columns), restval="", lineterminator="\n")
    writer.writeheader()
    for name, rows in tables.items():
        writer.writerows({"file": for_csv(name), **row} for row in rows)
    return out.getvalue()
