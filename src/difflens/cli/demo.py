"""`difflens demo`: see difflens at work, with nothing to prepare."""

from __future__ import annotations

from pathlib import Path

import click

_ASKED = {
    "finetuned": "What did the fine-tune change?",
    "lora-merged": "Someone merged an adapter. Where?",
    "quantised": "What did eight bits cost?",
    "damaged": "This one answers nonsense. Why?",
}


@click.command(name="demo")
@click.option("--out", default="difflens-demo", show_default=True, metavar="DIR",
              help="Where to put the models and the report.")  # fmt: skip
@click.option("--color", type=click.Choice(["auto", "always", "never"]), default="auto")
def command(out: str, color: str) -> None:
    """Make small checkpoints, diff them, and write an HTML report."""
    from ..analyses import analyse
    from ..pipeline import diff, report
    from ..render import renderer
    from ._demo_models import make
    from ._output import emit, view

    folder = Path(out)
    paths = make(folder)
    show = view(color=color, stats=False, verbose=False, to_file=False)
    total = sum(path.stat().st_size for path in paths.values())
    click.echo(f"Made {len(paths)} checkpoints ({total / 1e6:.1f} MB) in {folder}/\n")
    for name, question in _ASKED.items():
        found = diff(paths["base"], paths[name])
        judged = report(found, [analyse("change_summary", found)])
        click.secho(f"# {question}", bold=show.color)
        click.echo(f"$ difflens {paths['base']} {paths[name]} --change-summary")
        emit(renderer["cli"].plugin(judged, show), None)
        page = folder / f"{name}.html"
        emit(renderer["html"].plugin(judged, show), str(page))
        click.echo(f"(as a page: {page})\n")
    click.echo(
        "Next: difflens LEFT RIGHT on two models of your own; -o json for a program to read."
    )
