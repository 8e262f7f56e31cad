"""Counts which destroyed matrices `anomaly_detection` finds, and what it finds in healthy tunes.

Usage: python -m bench.lineage.anomalies FOLDER; the folder is that of bench.lineage.
"""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import torch

from difflens.diffs.analyses import ask
from difflens.diffs.evidence.records import Evidence
from difflens.diffs.story import diff

from . import edits
from .edits import Model
from .nets import chgnet, minilm, shipped, trained


def _redrawn(value: np.ndarray) -> np.ndarray:
    return np.random.default_rng(1).normal(value.mean(), value.std(), value.shape)


def _shuffled(value: np.ndarray) -> np.ndarray:
    return np.random.default_rng(2).permutation(value.ravel()).reshape(value.shape)


DESTROYED: dict[str, Callable[[np.ndarray], np.ndarray]] = {
    "shuffled": _shuffled,
    "drawn anew at equal deviation": _redrawn,
    "transposed": lambda value: value.T,
    "sign flipped": np.negative,
}


def findings(left: Model, right: Model) -> list[tuple[str, str]]:
    """Return the subjects and texts of what is found."""
    envelope = ask("anomaly_detection", diff(left, right), Evidence())
    return [(each.subject, each.text) for each in envelope.findings]


def planted(model: Model, tuned: Model) -> Iterator[tuple[str, str, Model]]:
    """Yield each kind of destruction in up to six matrices of a tuned model."""
    names = [n for n, v in model.items() if v.ndim > 1 and v.dtype.kind == "f" and v.size >= 1024]
    chosen = [names[i] for i in sorted({round(x) for x in np.linspace(1, len(names) - 2, 6)})]
    for name in chosen:
        for kind, change in DESTROYED.items():
            if kind != "transposed" or ((v := model[name]).ndim == 2 and v.shape[0] == v.shape[1]):
                value = np.ascontiguousarray(change(tuned[name])).astype(tuned[name].dtype)
                yield kind, name, tuned | {name: value}


def healthy(folder: Path) -> Iterator[tuple[str, Model, Model]]:
    """Yield pairs in which nothing is wrong."""
    bert = minilm(folder)
    yield "MiniLM, noise 0.01", bert, edits.noisy(bert, 0.01)
    yield "MiniLM, LoRA of the attention", bert, edits.low_rank(bert, ".self.")
    yield "MiniLM, LoRA of everything", bert, edits.low_rank(bert, "weight")
    yield "MiniLM, pooler drawn anew", bert, edits.redrawn(edits.noisy(bert, 0.01), "pooler")
    yield "MiniLM, the last layers only", bert, edits.noisy(bert, 0.05, "layer.5")
    yield "MiniLM, rates by layer", bert, _by_layer(bert)
    yield "MiniLM, units permuted", bert, edits.units_permuted(bert)
    yield "MiniLM, INT4", bert, edits.quantised(bert, 4)
    yield "MiniLM, 90 % pruned", bert, edits.pruned(bert, 0.9)
    yield "CHGNet 0.3.0 to r2scan", chgnet(folder, "0.3.0"), chgnet(folder, "r2scan")
    heads = {"decoder": "lm_head", "mlp": "6.", "cnn": "8."}
    for kind, head in heads.items():
        for seed in range(2):
            model = trained(kind, seed)
            name = f"{kind} {seed}"
            for steps in (20, 200, 800):
                yield f"{name}, {steps} steps", model, trained(kind, seed, steps, model, 50 + seed)
            yield f"{name}, head only", model, trained(kind, seed, 200, model, 9, only=head)
            yield f"{name}, biases only", model, trained(kind, seed, 200, model, 9, only="bias")
            yield f"{name}, weights only", model, trained(kind, seed, 200, model, 9, only="weight")
            yield f"{name}, from the start", trained(kind, seed, 0), model
            yield f"{name}, early", trained(kind, seed, 5), model
            yield f"{name}, another seed", model, trained(kind, seed + 10)
            fresh = edits.redrawn(model, head)
            yield f"{name}, a new head, then all", model, trained(kind, seed, 200, fresh, 9)
            yield f"{name}, a new head alone", model, trained(kind, seed, 200, fresh, 9, only=head)


def _by_layer(model: Model) -> Model:
    for layer in range(6):
        model = edits.noisy(model, 0.1 * 0.3 ** (5 - layer), f"layer.{layer}.")
    return model


def main(folder: Path) -> None:
    """Print a row for each kind of destruction, and every finding in a healthy pair."""
    torch.set_num_threads(1)
    bases = {"MiniLM": minilm(folder), "CHGNet": chgnet(folder, "0.3.0")}
    bases |= {name: read() for name, read in shipped(folder)}
    bases |= {kind: trained(kind, 1) for kind in ("decoder", "mlp", "cnn")}
    tried, found, false = Counter[str](), Counter[str](), Counter[str]()
    for name, model in bases.items():
        tuned = edits.noisy(model, 0.01)
        for kind, where, right in planted(model, tuned):
            tried[kind] += 1
            subjects = [subject for subject, _ in findings(model, right)]
            found[kind] += where in subjects
            false[kind] += len(set(subjects) - {where})
            if where not in subjects:
                print(f"missed: {name} {where} {model[where].shape} {kind}")
    print("| kind | planted | found | elsewhere |\n|---|---|---|---|")
    for kind in DESTROYED:
        print(f"| {kind} | {tried[kind]} | {found[kind]} | {false[kind]} |")
    pairs = 0
    for name, left, right in healthy(folder):
        pairs += 1
        for subject, text in findings(left, right):
            print(f"{name}: {subject}: {text}")
    print(f"{pairs} healthy pairs")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
