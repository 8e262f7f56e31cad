"""A diff as a run of MLflow, in a store of files, read back by MLflow."""

import json
from pathlib import Path

import pytest
from contracts.plugins import ROOT, run
from models.small import arrays, write

pytest.importorskip("mlflow", reason="mlflow-skinny is not installed")


def test_counts_are_metrics_and_the_rows_are_an_artifact(tmp_path, monkeypatch):
    monkeypatch.delenv("MLFLOW_TRACKING_URI", raising=False)
    monkeypatch.setenv("MLFLOW_DISABLE_TELEMETRY", "true")
    left = arrays(a=[3, 4], b=[1, 2], c=[5])
    write(tmp_path / "left.safetensors", left)
    write(tmp_path / "right.safetensors", left | arrays(a=[3, 5], c=[5, 6]))

    example = str(ROOT / "examples" / "mlflow_diff.py")
    done = run(example, "left.safetensors", "right.safetensors", cwd=tmp_path)

    assert done.returncode == 0, done.stderr
    number, _, sentence = done.stdout.strip().partition(": ")
    assert sentence == "different: 1 changed, 1 reshaped, of 3 tensors"
    kept = Path(tmp_path, "mlruns", "0", number)
    metrics = {path.name: float(path.read_text().split()[1]) for path in kept.glob("metrics/*")}
    assert metrics == {
        "difflens.changed": 1,
        "difflens.recast": 0,
        "difflens.reshaped": 1,
        "difflens.added": 0,
        "difflens.removed": 0,
        "difflens.renamed": 0,
        "difflens.identical": 1,
        "difflens.relative_l2": 0.2,
    }
    assert (kept / "tags" / "difflens.verdict").read_text() == "different"
    rows = json.loads((kept / "artifacts" / "difflens.json").read_text())
    assert [next(iter(row)) for row in rows] == ["TensorStatsChanged", "TensorShapeChanged"]
