"""Keep versions of a model with their evidence: which is best, is B better than A, may it ship?

    python examples/versions_walkthrough.py [FOLDER]

Trains three small networks on handwritten digits, three seeds each, records them, compares them,
tests two of them against each other; then plants a regression and watches the gate fail. Needs
`pip install scikit-learn`. Every command it runs is printed first.
"""

# ruff: noqa: INP001, T201, S603

import csv
import json
import subprocess
import sys
import tempfile
import warnings
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.datasets import load_digits
from sklearn.exceptions import ConvergenceWarning
from sklearn.model_selection import train_test_split
from sklearn.neural_network import MLPClassifier

SEEDS = (0, 1, 2)
RECIPES: dict[str, dict[str, Any]] = {
    "tiny": {"hidden": 8, "learning_rate": 0.01, "epochs": 20},
    "small": {"hidden": 16, "learning_rate": 0.01, "epochs": 20},
    "wide": {"hidden": 64, "learning_rate": 0.01, "epochs": 20},
}
# What a typing mistake would do: a learning rate twenty times as high.
PLANTED = RECIPES["wide"] | {"learning_rate": 0.2}


def trained(recipe: dict[str, Any], seed: int, images: Any, labels: Any) -> MLPClassifier:
    """Train one network; that it has not converged after so few epochs is meant."""
    network = MLPClassifier(
        (recipe["hidden"],),
        learning_rate_init=recipe["learning_rate"],
        max_iter=recipe["epochs"],
        batch_size=64,
        random_state=seed,
    )
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        return network.fit(images, labels)


def made(folder: Path, stem: str, recipe: dict[str, Any], data: list[Any]) -> None:
    """Train with every seed, and write what `snapshot add` takes; the first seed is released."""
    images, held_out, labels, answers = data
    networks = [trained(recipe, seed, images, labels) for seed in SEEDS]
    correct = [network.predict(held_out) == answers for network in networks]
    parts = zip(networks[0].coefs_, networks[0].intercepts_, strict=True)
    tensors = {
        f"layers.{layer}.{kind}": array.astype(np.float32)
        for layer, pair in enumerate(parts)
        for kind, array in zip(("weight", "bias"), pair, strict=True)
    }
    np.savez(folder / f"{stem}.npz", allow_pickle=False, **tensors)
    settings = recipe | {"batch_size": 64, "optimizer": "adam"}
    (folder / f"{stem}.training.json").write_text(json.dumps(settings))
    scores = [(place, int(right), "val_accuracy") for place, right in enumerate(correct[0])]
    write(folder / f"{stem}.eval.csv", ("id", "score", "metric"), scores)
    means = [(seed, "accuracy_over_seeds", float(correct[seed].mean())) for seed in SEEDS]
    write(folder / f"{stem}.seeds.csv", ("seed", "metric", "value"), means)


def write(path: Path, heads: tuple[str, ...], rows: list[tuple[Any, ...]]) -> None:
    """Write a table."""
    with path.open("w", newline="") as stream:
        csv.writer(stream).writerows([heads, *rows])


def difflens(folder: Path, *words: str) -> int:
    """Run a command there; print it, and what it says."""
    print(f"\n$ difflens {' '.join(words)}", flush=True)
    return subprocess.run(
        [sys.executable, "-m", "difflens", *words], cwd=folder, check=False
    ).returncode


def recorded(folder: Path, name: str, version: str, stem: str) -> None:
    """Record one version with all its evidence."""
    difflens(
        folder, "snapshot", "add", name, "--version", version, "--weights", f"{stem}.npz",
        "--training", f"{stem}.training.json", "--eval", f"{stem}.eval.csv",
        "--replicates", f"{stem}.seeds.csv", "--dataset", "digits", "--meta", "task=digits",
    )  # fmt: skip


def main(folder: Path) -> int:
    """Tell the story; give the exit code of the gate."""
    images, labels = load_digits(return_X_y=True)
    data = train_test_split(images / 16, labels, test_size=0.5, random_state=0)
    for name, recipe in RECIPES.items():
        made(folder, name, recipe, data)
        recorded(folder, name, "1", name)
    difflens(folder, "compare", *RECIPES)
    difflens(folder, "ab", "small.eval.csv", "wide.eval.csv", "--metric", "val_accuracy",
             "--direction", "higher", "--paired")  # fmt: skip

    made(folder, "wide-2", PLANTED, data)
    recorded(folder, "wide", "2", "wide-2")
    difflens(folder, "version-diff", "wide@1", "wide@2")
    code = difflens(folder, "regressions", "wide@1", "wide@2")
    difflens(folder, "report", "-o", "html", "--out", "report.html")
    print(f"\nThe gate ended with exit code {code}; the report is in {folder / 'report.html'}")
    return code


if __name__ == "__main__":
    if len(sys.argv) > 1:
        sys.exit(main(Path(sys.argv[1])))
    with tempfile.TemporaryDirectory() as name:
        sys.exit(main(Path(name)))
