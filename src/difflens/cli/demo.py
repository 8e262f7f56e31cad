"""`difflens demo`: see difflens at work, with nothing to prepare."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

if TYPE_CHECKING:
    from ..records import View

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
    """Make small checkpoints and a training run; diff them, diagnose it, and write pages."""
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
    _show_run(folder, show)
    click.echo(
        "Next: difflens LEFT RIGHT on two models of your own; difflens.monitor(model, optimizer) "
        "around a training loop of your own."
    )


def _show_run(folder: Path, show: View) -> None:
    """Train a small network that does not learn, and ask why."""
    from ..diagnoses import diagnose
    from ..flow.run import animator_of_run, picture_of
    from ..flow.text import heat_map, room_for
    from ..history import read_history
    from ..render.colors import painter
    from ..render.training.diagnosis import diagnosis
    from ..render.training.flow_page import page
    from ..render.versions import written
    from ._demo_run import make_run
    from ._output import emit

    run = make_run(folder)
    history = read_history(run)
    click.secho("# This network does not learn. Why?", bold=show.color)
    click.echo(f"$ difflens diagnose {run}")
    emit(written(diagnosis(diagnose(history, run=str(run))), "cli", show), None)
    click.echo(f"\n$ difflens flow {run}")
    columns = room_for([layer.name for layer in history.info.layers], show.width)
    picture = picture_of(history, columns=columns)
    emit(heat_map(picture, width=show.width, paint=painter(show.color)), None)
    target = folder / "flow.html"
    emit(page(picture_of(history), animator_of_run(history).summary_report()), str(target))
    click.echo(f"(as a page that plays: {target})\n")
