"""Log the diff of two models to MLflow: the JSON as an artifact, counts by kind as metrics.

    python examples/mlflow_diff.py base.safetensors tuned.safetensors

The run goes where `MLFLOW_TRACKING_URI` says, and without it to the folder `mlruns`; needs
`pip install mlflow-skinny`.
"""

# ruff: noqa: INP001, T201

import os
import sys
from pathlib import Path

import mlflow

import difflens
from difflens.core.records import View
from difflens.render.diffs import renderer


def main(left: str, right: str) -> None:
    """Compare two models and log what came out as one run."""
    if "MLFLOW_TRACKING_URI" not in os.environ:
        os.environ["MLFLOW_ALLOW_FILE_STORE"] = "true"  # MLflow 3 would rather have a database
        mlflow.set_tracking_uri(Path("mlruns").resolve().as_uri())
    report = difflens.diff(left, right).report()
    kinds = ("changed", "recast", "reshaped", "added", "removed", "renamed", "identical")
    with mlflow.start_run(run_name=f"{Path(left).name} to {Path(right).name}") as run:
        mlflow.set_tags({"difflens.verdict": report.verdict.word})
        mlflow.log_metrics({f"difflens.{kind}": getattr(report.totals, kind) for kind in kinds})
        if report.totals.relative_l2 is not None:
            mlflow.log_metric("difflens.relative_l2", report.totals.relative_l2)
        mlflow.log_text(renderer["json"].plugin(report, View()), "difflens.json")
    print(f"{run.info.run_id}: {report.verdict.sentence}")


if __name__ == "__main__":
    main(*sys.argv[1:3])
