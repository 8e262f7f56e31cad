"""`difflens ab LEFT RIGHT --metric M`: is the right one better than the left one?"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import click

from difflens.core.errors import EvidenceError
from difflens.core.escape import for_terminal

from . import EXIT_DIFFERENT, EXIT_SAME
from ._options import FilePath, limits_of
from ._store import existing, result_options, show, store_option

_LONGEST = 255
_OPEN = {"inconclusive", "not_enough_data"}  # a verdict that shows nothing


@click.command(name="ab")
@click.argument("left", type=FilePath())
@click.argument("right", type=FilePath())
@click.option(
    "--metric",
    "metrics",
    multiple=True,
    required=True,
    metavar="M",
    help="What was measured; repeatable, then the first is the primary one.",
)
@click.option(
    "--direction",
    type=click.Choice(["higher", "lower"]),
    help="Which way is better; known of common names alone.",
)
@click.option(
    "--paired/--unpaired",
    default=None,
    help="Same examples in both; default: where the ids say so.",
)
@click.option("--cluster", metavar="COLUMN", help="Rows that belong together, such as one user's.")
@click.option(
    "--alpha",
    type=float,
    default=0.05,
    show_default=True,
    metavar="X",
    help="How often a difference may be seen where there is none.",
)
@click.option(
    "--min-effect",
    type=float,
    default=0.0,
    show_default=True,
    metavar="D",
    help="The least effect that matters.",
)
@click.option(
    "--effect-unit",
    type=click.Choice(["standardised", "absolute", "relative"]),
    default="standardised",
    show_default=True,
    help="Of --min-effect.",
)
@click.option(
    "--margin",
    type=float,
    metavar="D",
    help="Ask for equivalence within D, in the metric's own units.",
)
@click.option(
    "--power",
    type=float,
    default=0.8,
    show_default=True,
    metavar="X",
    help="How often the least effect should be seen.",
)
@click.option("--sequential", is_flag=True, help="Stay valid however often one looks.")
@click.option(
    "--seed",
    type=click.IntRange(0),
    default=0,
    show_default=True,
    metavar="N",
    help="Of what is resampled.",
)
@click.option(
    "--limit", "limits", multiple=True, metavar="NAME=VALUE", help="Raise a limit (docs/security)."
)
@store_option
@result_options("cli", "json", "yaml", "markdown", "html")
def command(left: str, right: str, metrics: tuple[str, ...], **options: Any) -> int:
    """Test two samples of one metric: LEFT is A, RIGHT is B.

    Both are files: CSV or JSONL with the metric as a column, or with `score` (and `metric`), and
    `id` where rows of both belong together; or plain numbers, one a line. The result is kept in
    the store where there is one.

    Exit code: 0 something was shown, 1 cannot tell, 2 trouble.
    """
    from difflens.render.versions.ab import ab
    from difflens.versions.ab import run_ab_test

    metrics = tuple(dict.fromkeys(metrics))
    config = _config(left, right, metrics, options)
    limits = limits_of(options["limits"])
    # Not through the debugger: there arms have names of models, here names of files.
    result = run_ab_test(config, *read_arms((left, right), metrics, options["cluster"], limits))
    with existing(options) as store:
        if store is not None:
            store.put(result)
    show(result, ab, options)
    return EXIT_DIFFERENT if result.conclusion.verdict in _OPEN else EXIT_SAME


def _config(left: str, right: str, metrics: tuple[str, ...], options: dict[str, Any]) -> Any:
    from difflens.core.escape import visible
    from difflens.versions.records.ab import ABTestConfig

    names = [visible(path)[-_LONGEST:] for path in (left, right)]
    return ABTestConfig(
        name=" against ".join(names)[-_LONGEST:],
        model_a=names[0],
        model_b=names[1],
        tracked_metrics=metrics,
        primary_metric=metrics[0],
        directions=dict.fromkeys(metrics, options["direction"]) if options["direction"] else {},
        min_effect_size=options["min_effect"],
        effect_unit=options["effect_unit"],
        power=options["power"],
        alpha=options["alpha"],
        margin=options["margin"],
        paired=options["paired"],
        sequential=options["sequential"],
        seed=options["seed"],
    )


Arm = dict[str, list[Any]]  # metric to numbers, or to examples where they have ids


def read_arms(
    paths: Sequence[str], metrics: Sequence[str], cluster: str | None, limits: Any
) -> Any:
    """Read both arms; clusters may be named by one of them, whose ids the other shares."""
    sides = [
        read_arm(path, side, metrics, cluster, limits)
        for path, side in zip(paths, ("left", "right"), strict=True)
    ]
    if cluster:
        known = [_columns(path, limits) for path in paths]
        if not any(cluster in columns for columns in known):
            raise _no_column(paths[0], cluster, known[0])
    return sides


def _columns(path: str, limits: Any) -> list[str]:
    from difflens.diffs.evidence.documents import text

    if _begins_a_number(text(path, limits)):
        return []
    from difflens.diffs.evidence.tables import rows

    return list(next(iter(rows(path, limits))).cells)


def read_arm(path: str, side: str, metrics: Sequence[str], cluster: str | None, limits: Any) -> Arm:
    """Read one arm.

    A table names each metric in a column of its own, or has `score` and, for several metrics,
    `metric`; `id` pairs its rows with those of the other arm, `cluster` says which belong together.
    """
    from difflens.diffs.evidence.documents import text

    if _begins_a_number(text(path, limits)):
        return {_only(path, metrics): _numbers(path, limits)}
    from difflens.diffs.evidence.tables import rows

    table = list(rows(path, limits))
    columns = table[0].cells
    wanted = cluster or "cluster"
    groups = wanted if wanted in columns else None
    return {
        metric: _column(path, table, metric, side=side, groups=groups, metrics=metrics)
        for metric in metrics
    }


def _column(
    path: str, table: list[Any], metric: str, *, side: str, groups: str | None, metrics: Any
) -> list[Any]:
    from difflens.diffs.evidence.records import Example

    columns = table[0].cells
    if metric in columns:
        column, chosen = metric, table
    elif "score" in columns and "metric" in columns:
        column, chosen = "score", [row for row in table if row.cells.get("metric") == metric]
        if not chosen:
            raise EvidenceError(path, f"no row is of metric '{for_terminal(metric, 80)}'")
    elif "score" in columns:
        column, chosen = "score", table
        _only(path, metrics)
    else:
        raise _no_column(path, metric, columns)
    if "id" not in columns and groups is None:
        return [row.number(column) for row in chosen]
    # Rows without an id are known by their place in their own file: they are never paired.
    return [
        Example(
            row.label("id") if "id" in columns else f"{side} {place}",
            row.number(column),
            metric,
            row.label_or_none(groups) if groups else None,
        )
        for place, row in enumerate(chosen)
    ]


def _begins_a_number(whole: str) -> bool:
    first = whole.split(maxsplit=1)[0]
    try:
        float(first)
    except ValueError:
        return False
    return True


def _numbers(path: str, limits: Any) -> list[float]:
    from difflens.diffs.evidence.documents import number, text

    lines = enumerate(text(path, limits).splitlines(), 1)
    return [number(line, path, f"line {at}", written=True) for at, line in lines if line.strip()]


def _only(path: str, metrics: Sequence[str]) -> str:
    if len(metrics) > 1:
        raise EvidenceError(path, f"it holds one metric, {len(metrics)} are asked for")
    return metrics[0]


def _no_column(path: str, name: str, columns: Any) -> EvidenceError:
    known = ", ".join(for_terminal(each, 40) for each in list(columns)[:12]) or "plain numbers"
    return EvidenceError(
        path, f"no column is called '{for_terminal(name, 80)}'", hint=f"it has: {known}"
    )
