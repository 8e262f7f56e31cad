"""`difflens demo`: see difflens at work, with nothing to prepare."""

from __future__ import annotations

import json
import struct
from collections.abc import Callable, Iterator
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

if TYPE_CHECKING:
    from difflens.core.records import View

_ASKED = {
    "finetuned": "What did the fine-tune change?",
    "lora-merged": "Someone merged an adapter. Where?",
    "quantised": "What did eight bits cost?",
    "damaged": "This one answers nonsense. Why?",
}


@click.command(name="demo")
@click.option(
    "--out",
    default="difflens-demo",
    show_default=True,
    metavar="DIR",
    help="Write models and pages into DIR.",
)
@click.option(
    "--color", type=click.Choice(["auto", "always", "never"]), default="auto", help="Use colour."
)
def command(out: str, color: str) -> None:
    """Make small checkpoints and a training run; compare, diagnose and write pages."""
    from difflens.diffs.story import diff, report
    from difflens.render.diffs import renderer

    from ._output import emit, view

    folder = Path(out)
    paths = make(folder)
    show = view(color=color, stats=False, verbose=False, to_file=False)
    total = sum(path.stat().st_size for path in paths.values())
    click.echo(f"Made {len(paths)} checkpoints ({total / 1e6:.1f} MB) in {folder}/\n")
    for name, question in _ASKED.items():
        judged = report(diff(paths["base"], paths[name]), ["change_summary"])
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
    """Train a small network that does not learn, and diagnose it."""
    from difflens.render.document.text import painter
    from difflens.render.document.written import written
    from difflens.render.training.diagnosis import diagnosis
    from difflens.render.training.flow_page import page
    from difflens.training.diagnoses import diagnose
    from difflens.training.flow.run import animator_of_run, picture_of
    from difflens.training.flow.text import heat_map, room_for
    from difflens.training.history import read_history

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


# The checkpoints: a small transformer and what usually happens to one. Shapes, names and scales
# are those of a Llama-type model, only smaller.
LAYERS, WIDTH, HIDDEN, VOCABULARY, RANK = 6, 128, 352, 1000, 8
_NAMES = {"bfloat16": "BF16", "float32": "F32", "float16": "F16", "float8_e4m3fn": "F8_E4M3"}

Weights = dict[str, Any]


def write(path: Path, weights: Weights, metadata: dict[str, str]) -> None:
    """Write a safetensors file: length, header, tensors."""
    header: dict[str, Any] = {"__metadata__": metadata}
    place = 0
    for name, array in weights.items():
        header[name] = {
            "dtype": _NAMES[str(array.dtype)],
            "shape": list(array.shape),
            "data_offsets": [place, place + array.nbytes],
        }
        place += array.nbytes
    text = json.dumps(header).encode()
    with path.open("wb") as stream:
        stream.write(struct.pack("<Q", len(text)) + text)
        for array in weights.values():
            stream.write(array.tobytes())


def base(random: Any) -> Weights:
    """A freshly trained model in BF16, its output head tied to its embedding."""
    shapes: dict[str, tuple[int, ...]] = {"model.embed_tokens.weight": (VOCABULARY, WIDTH)}
    for layer in range(LAYERS):
        block = f"model.layers.{layer}"
        shapes |= {f"{block}.self_attn.{role}_proj.weight": (WIDTH, WIDTH) for role in "qkvo"}
        shapes |= {f"{block}.mlp.{role}_proj.weight": (HIDDEN, WIDTH) for role in ("gate", "up")}
        shapes[f"{block}.mlp.down_proj.weight"] = (WIDTH, HIDDEN)
        shapes |= {f"{block}.{role}_layernorm.weight": (WIDTH,) for role in ("input", "post")}
    shapes["model.norm.weight"] = (WIDTH,)
    return {name: _initial(random, name, shape) for name, shape in shapes.items()}


def _initial(random: Any, name: str, shape: tuple[int, ...]) -> Any:
    if "norm" in name:
        return _half(1 + 0.05 * random.standard_normal(shape))
    return _half(0.02 * random.standard_normal(shape))


def _half(array: Any) -> Any:
    import ml_dtypes

    return array.astype(ml_dtypes.bfloat16)


def finetuned(weights: Weights, random: Any) -> Weights:
    """Every weight moved a little, later layers more; embeddings of unseen tokens did not."""
    tuned = {}
    for name, array in weights.items():
        layer = int(name.split(".")[2]) if ".layers." in name else 0
        step = 0.01 * (1 + layer) / LAYERS
        moved = array.astype("float64") * (1 + step * _update(array.shape, random))
        if "embed_tokens" in name:
            moved[VOCABULARY // 4 :] = array[VOCABULARY // 4 :].astype("float64")
        tuned[name] = _half(moved)
    return tuned


def _update(shape: tuple[int, ...], random: Any) -> Any:
    """Draw what training would add, of size one: sums over examples, some units used far more."""
    import numpy as np

    if len(shape) < 2:
        return random.standard_normal(shape)
    sizes = [np.exp(0.7 * random.standard_normal(length)) for length in shape]
    errors, inputs = (random.standard_normal((WIDTH, len(each))) * each for each in sizes)
    update = np.einsum("ei,ej->ij", errors, inputs)  # no BLAS: the same bits on every machine
    return update / update.std()


def lora_merged(weights: Weights, random: Any) -> Weights:
    """A low-rank update merged into the query and value projections."""
    merged = dict(weights)
    for name, array in weights.items():
        if name.endswith(("q_proj.weight", "v_proj.weight")):
            up, down = (random.standard_normal(shape) for shape in ((WIDTH, RANK), (RANK, WIDTH)))
            merged[name] = _half(array.astype("float64") + 5e-4 * (up @ down) / RANK**0.5)
    return merged


def quantised(weights: Weights, _random: Any) -> Weights:
    """Matrices cast to eight-bit floats; norms kept as they were."""
    import ml_dtypes

    return {
        name: array.astype("float32").astype(ml_dtypes.float8_e4m3fn) if array.ndim == 2 else array
        for name, array in weights.items()
    }


def damaged(weights: Weights, random: Any) -> Weights:
    """The fine-tune, with the faults of a bad day: NaN in one matrix, another one zeroed."""
    broken = finetuned(weights, random)
    burnt = broken["model.layers.3.mlp.down_proj.weight"].copy()
    burnt[7, :12] = float("nan")
    broken["model.layers.3.mlp.down_proj.weight"] = burnt
    zeroed = "model.layers.5.self_attn.o_proj.weight"
    broken[zeroed] = broken[zeroed] * 0
    return broken


MODELS: dict[str, Callable[[Weights, Any], Weights]] = {
    "finetuned": finetuned,
    "lora-merged": lora_merged,
    "quantised": quantised,
    "damaged": damaged,
}


def make(folder: Path) -> dict[str, Path]:
    """Write every checkpoint into the folder, and say where each is."""
    import numpy as np

    folder.mkdir(parents=True, exist_ok=True)
    first = base(np.random.default_rng(0))
    paths = {"base": folder / "base.safetensors"}
    write(paths["base"], first, {"format": "pt", "step": "0"})
    for number, (name, change) in enumerate(MODELS.items(), 1):
        paths[name] = folder / f"{name}.safetensors"
        changed = change(first, np.random.default_rng(number))
        write(paths[name], changed, {"format": "pt", "step": "0" if name == "quantised" else "800"})
    return paths


# The run: a network whose first layers learn nothing.
DEPTH, UNITS, INPUTS, RUN_STEPS = 10, 24, 8, 300
_RATE = 0.5
_BEGUN = 1_700_000_000.0  # a demo is the same whenever it is made


def make_run(folder: Path) -> Path:
    """Train ten sigmoid layers, through which next to no gradient reaches the first."""
    from difflens.training.history.writer import RunWriter
    from difflens.training.records.runs import Layer, RunInfo

    sizes = [INPUTS, *[UNITS] * (DEPTH - 1), 1]
    layers = tuple(
        Layer(
            f"layers.{i}.weight",
            (sizes[i], sizes[i + 1]),
            "Linear",
            "weight",
            i,
            activation="Sigmoid" if i + 1 < DEPTH else "",
            optimised=True,
        )
        for i in range(DEPTH)
    )
    info = RunInfo(
        "sigmoid-mlp",
        layers=layers,
        scalars=("loss", "lr", "optimizer_steps", "grad_kept"),
        framework="numpy",
        optimizer={"name": "SGD", "lr": _RATE},
        facts={"activations": ["Sigmoid"], "final_module": "Linear"},
    )
    path = folder / "run"
    with RunWriter(path, info, overwrite=True) as writer:
        for step, (loss, block) in enumerate(_trained(sizes)):
            scalars = {"loss": loss, "lr": _RATE, "optimizer_steps": 1.0, "grad_kept": 0.0}
            moment = _BEGUN + step / 10
            writer.append(step, scalars, block, wall_time=moment, monotonic_time=step / 10)
    return path


def _trained(sizes: list[int]) -> Iterator[tuple[float, Any]]:
    """Yield the loss and the fields of every layer, step after step."""
    import numpy as np

    rng = np.random.default_rng(7)
    weights = [
        rng.normal(0, (2 / (rows + columns)) ** 0.5, (rows, columns))
        for rows, columns in pairwise(sizes)
    ]
    for _ in range(RUN_STEPS):
        inputs = rng.normal(size=(32, sizes[0]))
        targets = (inputs[:, :2].sum(axis=1, keepdims=True) > 0).astype(float)
        loss, gradients = _gradients(weights, inputs, targets)
        fields = [
            (
                np.linalg.norm(gradient),
                np.abs(gradient).mean(),
                np.abs(gradient).max(),
                0,
                (gradient == 0).sum(),
                np.linalg.norm(weight),
                _RATE * np.linalg.norm(gradient),
            )
            for gradient, weight in zip(gradients, weights, strict=True)
        ]
        for i, gradient in enumerate(gradients):
            weights[i] = weights[i] - _RATE * gradient
        yield loss, np.array(fields, np.float32).T


def _gradients(weights: list[Any], inputs: Any, targets: Any) -> tuple[float, list[Any]]:
    """Return the mean cross entropy of a batch, and its gradient by every weight."""
    import numpy as np

    signals = [inputs]
    for weight in weights[:-1]:
        signals.append(1 / (1 + np.exp(-signals[-1] @ weight)))
    chances = 1 / (1 + np.exp(-signals[-1] @ weights[-1]))
    loss = -np.log(np.where(targets > 0, chances, 1 - chances)).mean()
    error = (chances - targets) / len(inputs)
    gradients = []
    for i in reversed(range(len(weights))):
        gradients.append(signals[i].T @ error)
        error = (error @ weights[i].T) * signals[i] * (1 - signals[i])
    return float(loss), gradients[::-1]
