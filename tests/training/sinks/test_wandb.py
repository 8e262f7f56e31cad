"""Live numbers in a real W&B that records offline."""

import pytest
from training.sinks.test_prometheus import INFO, frame


@pytest.mark.filterwarnings("ignore")
def test_an_offline_run_holds_every_step(tmp_path, monkeypatch):
    monkeypatch.setenv("WANDB_MODE", "offline")
    monkeypatch.delenv("WANDB_DIR", raising=False)
    pytest.importorskip("wandb")
    from difflens.training.sinks.wandb import Wandb

    sink = Wandb(tmp_path, INFO)
    for step in range(3):
        sink.write(frame(step, loss=1.5 + step), INFO)
    last = dict(sink._run.summary)
    sink.close()

    assert last["difflens/loss"] == 3.5
    assert last["difflens/step"] == 2
    assert last["difflens/grad_norm/fc1.weight"] == 2.0
    assert list(tmp_path.rglob("*.wandb"))
