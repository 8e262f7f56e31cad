"""`difflens ab LEFT RIGHT --metric M`: is the right one better than the left one?"""

from __future__ import annotations

from typing import Any

import click

from ._options import FilePath, limits_of
from ._store import existing, result_options, show, store_option

_LONGEST = 255


@click.command(name="ab")
@click.argument("left", type=FilePath())
@click.argument("right", type=FilePath())
@click.option("--metric", "metrics", multiple=True, required=True, metavar="M",
              help="What was measured; repeatable, then the first is the primary one.")  # fmt: skip
@click.option("--direction", type=click.Choice(["higher", "lower"]),
              help="Which way is better; known of common names alone.")  # fmt: skip
@click.option("--paired/--unpaired", default=None,
              help="Same examples in both; default: where the ids say so.")  # fmt: skip
@click.option("--cluster", metavar="COLUMN", help="Rows that belong together, such as one user's.")
@click.option("--alpha", type=float, default=0.05, show_default=True, metavar="X",
              help="How often a difference may be seen where there is none.")  # fmt: skip
@click.option("--min-effect", type=float, default=0.0, show_default=True, metavar="D",
              help="The least effect that matters.")  # fmt: skip
@click.option("--effect-unit", type=click.Choice(["standardised", "absolute", "relative"]),
              default="standardised", show_default=True, help="Of --min-effect.")  # fmt: skip
@click.option("--margin", type=float, metavar="D",
              help="Ask for equivalence within D, in the metric's own units.")  # fmt: skip
@click.option("--power", type=float, default=0.8, show_default=True, metavar="X",
              help="How often the least effect should be seen.")  # fmt: skip
@click.option("--sequential", is_flag=True, help="Stay valid however often one looks.")
@click.option("--seed", type=click.IntRange(0), default=0, show_default=True, metavar="N",
              help="Of what is resampled.")  # fmt: skip
@click.option("--limit", "limits", multiple=True, metavar="NAME=VALUE",
              help="Raise a limit (docs/security).")  # fmt: skip
@store_option
@result_options("cli", "json", "yaml", "markdown", "html")
def command(left: str, right: str, metrics: tuple[str, ...], **options: Any) -> None:
    """Test two samples of one metric: LEFT is A, RIGHT is B.

    Both are files: CSV or JSONL with the metric as a column, or with `score` (and `metric`), and
    `id` where rows of both belong together; or plain numbers, one a line. The result is kept in
    the store where there is one.
    """
    from ..render.versions.ab import ab
    from ..versions.ab import run_ab_test
    from ._arms import arm

    metrics = tuple(dict.fromkeys(metrics))
    config = _config(left, right, metrics, options)
    limits = limits_of(options["limits"])
    arms = [arm(path, side, metrics, options["cluster"], limits)
            for path, side in ((left, "left"), (right, "right"))]  # fmt: skip
    # Not through the debugger: its arms are called like models, these like files.
    result = run_ab_test(config, *arms)
    with existing(options) as store:
        if store is not None:
            store.put(result)
    show(result, ab, options)


def _config(left: str, right: str, metrics: tuple[str, ...], options: dict[str, Any]) -> Any:
    from ..ab_results import ABTestConfig
    from ..escape import visible

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
