"""The pairs, each with what is true of it: same, derived, or none (independent)."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import combinations, pairwise
from pathlib import Path

import numpy as np

from . import edits
from .edits import Model
from .nets import chgnet, minilm, shipped, trained

Pair = tuple[str, str, Model | Path, Model | Path]


def pairs(folder: Path) -> Iterator[Pair]:
    """Yield the name of each pair, its truth, and both models."""
    yield from _of_bert(minilm(folder))
    yield from _of_shipped(folder)
    yield from _of_files(folder)
    for kind in ("decoder", "mlp", "cnn"):
        yield from _of_trained(kind)


def _common(name: str, model: Model) -> Iterator[Pair]:
    """Yield the edits that every model can bear."""
    yield f"{name}: itself", "same", model, dict(model)
    yield f"{name}: cast to BF16", "same", model, edits.bfloat(model)
    yield f"{name}: cast to F16", "same", model, edits.cast(model, np.float16)
    for times in (0.01, 0.3, 1.0):
        yield f"{name}: noise of {times:g} deviations", "derived", model, edits.noisy(model, times)
    for share in (0.5, 0.9):
        yield f"{name}: {share:.0%} pruned", "derived", model, edits.pruned(model, share)
    for bits in (8, 4):
        yield f"{name}: INT{bits} per row", "derived", model, edits.quantised(model, bits)
    for share in (0.5, 0.9):
        right = edits.noisy(edits.pruned(model, share), 0.05)
        yield f"{name}: {share:.0%} pruned, then tuned", "derived", model, right
    right = edits.noisy(edits.low_rank(model, "weight"), 0.02)
    yield f"{name}: a LoRA of everything, then tuned", "derived", model, right
    yield f"{name}: all drawn anew", "none", model, edits.redrawn(model)
    yield f"{name}: every matrix shuffled", "none", model, edits.shuffled(edits.redrawn(model))


def _of_bert(model: Model) -> Iterator[Pair]:
    other = edits.redrawn(model)
    yield from _common("MiniLM", model)
    rows: list[tuple[str, str, Model]] = [
        ("LoRA of query and value", "derived", edits.low_rank(model, ".self.")),
        ("pooler tuned", "derived", edits.noisy(model, 0.05, "pooler")),
        ("a LoRA, then BF16", "derived", edits.bfloat(edits.low_rank(model, ".self."))),
        ("hidden units permuted", "derived", edits.units_permuted(model)),
        ("units permuted, noise 0.1", "derived", edits.noisy(edits.units_permuted(model), 0.1)),
        ("residual channels permuted", "derived", edits.channels_permuted(model)),
        ("residual stream rotated", "derived", edits.rotated(model)),
        ("rotated, noise 0.05", "derived", edits.noisy(edits.rotated(model), 0.05)),
        ("last two layers removed", "derived", edits.relayered(model, [0, 1, 2, 3])),
        ("every second layer", "derived", edits.relayered(model, [0, 2, 4])),
        ("layers duplicated", "derived", edits.relayered(model, [0, 0, 1, 1, 2, 2, 3, 3])),
        ("layers reversed", "derived", edits.relayered(model, [5, 4, 3, 2, 1, 0])),
        ("reversed, noise 0.1", "derived",
         edits.noisy(edits.relayered(model, [5, 4, 3, 2, 1, 0]), 0.1)),
        ("2 of 6 layers copied", "derived", edits.grafted(model, other, (1, 4))),
        ("embeddings copied", "derived", edits.redrawn(model, but="embeddings.")),
        ("embeddings copied, noise 0.1", "derived",
         edits.noisy(edits.redrawn(model, but="embeddings."), 0.1, "embeddings.")),
        ("three layers, embeddings copied", "derived",
         edits.relayered(edits.redrawn(model, but="embeddings."), [0, 1, 2])),
        ("vocabulary grown", "derived", edits.grown(model, 100)),
        ("vocabulary grown, tuned", "derived", edits.noisy(edits.grown(model, 100), 0.05)),
        ("a quarter of the units removed", "derived", edits.units_removed(model)),
        ("one layer drawn anew", "derived", edits.redrawn(model, "layer.3.")),
        ("under another prefix", "same", {f"bert.{k}": v for k, v in model.items()}),
        ("wider, drawn anew", "none", _widened(other)),
        ("three layers, drawn anew", "none", edits.relayered(other, [0, 1, 2])),
        ("only the norms and biases are left", "none",
         {k: v for k, v in other.items() if v.ndim > 1}),
    ]  # fmt: skip
    for name, truth, right in rows:
        yield f"MiniLM: {name}", truth, model, right


def _widened(model: Model) -> Model:
    random = np.random.default_rng(0)
    return {
        name: random.normal(0, 0.02, [int(1.5 * n) if n > 64 else n for n in v.shape]).astype("f4")
        for name, v in model.items()
        if v.dtype.kind == "f"
    }


def _of_shipped(folder: Path) -> Iterator[Pair]:
    models = {name: read() for name, read in shipped(folder)}
    for name, model in models.items():
        yield from _common(name, model)
    names = list(models)
    for one, other in pairwise(names):
        yield f"{one} and {other}", "none", models[one], models[other]
    releases = [chgnet(folder, version) for version in ("0.3.0", "r2scan")]
    yield "CHGNet 0.3.0 and r2scan", "derived", releases[0], releases[1]
    yield "CHGNet: drawn anew", "none", releases[0], edits.redrawn(releases[0])
    yield "CHGNet: 90% pruned", "derived", releases[0], edits.pruned(releases[0], 0.9)


# Models of one architecture that different trainings made, as their packages ship them.
_TRAINED_APART = {
    "SpliceAI": [f"spliceai/models/spliceai{n}.h5" for n in range(1, 6)],
    "AECMOS": [f"speechmos/aecmos_models/Run_{n}_Stage_0.onnx" for n in (1663915512, 1663829550)],
}


def _of_files(folder: Path) -> Iterator[Pair]:
    for name, files in _TRAINED_APART.items():
        for one, other in combinations(files, 2):
            where = f"{Path(one).stem} and {Path(other).stem}"
            yield f"{name}: {where}", "none", folder / one, folder / other


_CHAINS = {
    "mlp": [f"{n}.weight" for n in (0, 2, 4, 6)],
    "cnn": [f"{n}.weight" for n in (0, 2, 4, 8)],
}


def _of_trained(kind: str) -> Iterator[Pair]:
    model = trained(kind, 1)
    start = trained(kind, 1, steps=0)
    rows = [
        ("another seed", "none", trained(kind, 2)),
        ("a third seed", "none", trained(kind, 3)),
        ("another seed, not trained", "none", trained(kind, 2, steps=0)),
        ("trained further", "derived", trained(kind, 1, 100, model, 5)),
        ("trained further, half as long again", "derived", trained(kind, 1, 400, model, 6)),
        ("the same start, other data", "derived", trained(kind, 1, order=77)),
        ("before and after training", "derived", start),
        ("only biases trained", "derived", trained(kind, 1, 100, model, 5, only="bias")),
    ]
    yield from _common(kind, model)
    for name, truth, right in rows:
        yield f"{kind}: {name}", truth, model, right
    if kind in _CHAINS:
        moved = edits.chain_permuted(model, _CHAINS[kind])
        yield f"{kind}: units permuted", "derived", model, moved
        tuned = trained(kind, 1, 100, moved, 5)
        yield f"{kind}: units permuted, trained further", "derived", model, tuned
    else:
        copied = trained(kind, 2) | {"embed_tokens.weight": model["embed_tokens.weight"]}
        learner = trained(kind, 2, 200, copied, 8, only="body")
        yield f"{kind}: distilled with copied embeddings", "derived", model, learner
