"""Live numbers in a real MLflow."""

import mlflow
import pytest
from training.sinks.test_prometheus import INFO, frame

from difflens.training.sinks.mlflow import Mlflow


@pytest.fixture
def tracking(tmp_path, monkeypatch):
    monkeypatch.setenv("MLFLOW_ALLOW_FILE_STORE", "true")  # the skinny package has no database
    before = mlflow.get_tracking_uri()
    mlflow.set_tracking_uri(f"file://{tmp_path}/tracked")
    yield mlflow.MlflowClient()
    mlflow.end_run()
    mlflow.set_tracking_uri(before)


def history(client, run_id: str, metric: str) -> list[tuple[int, float]]:
    return sorted((each.step, each.value) for each in client.get_metric_history(run_id, metric))


@pytest.mark.filterwarnings("ignore")
def test_the_active_run_gets_every_step_and_stays_open(tracking, tmp_path):
    with mlflow.start_run() as run:
        sink = Mlflow(tmp_path, INFO)
        for step in range(12):
            sink.write(frame(step, loss=1 / (step + 1))._replace(sequence=step), INFO)
        sink.close()

        assert mlflow.active_run() is not None
    losses = history(tracking, run.info.run_id, "loss")
    assert losses == [(step, 1 / (step + 1)) for step in range(12)]
    assert [step for step, _ in history(tracking, run.info.run_id, "grad_norm/fc1.weight")] == [
        0,
        10,
    ]


@pytest.mark.filterwarnings("ignore")
def test_without_an_active_run_one_is_begun_and_ended(tracking, tmp_path):
    sink = Mlflow(tmp_path, INFO)
    sink.write(frame(3), INFO)
    sink.close()

    (run,) = tracking.search_runs(["0"])
    assert run.info.status == "FINISHED"
    assert history(tracking, run.info.run_id, "loss") == [(3, 0.5)]
