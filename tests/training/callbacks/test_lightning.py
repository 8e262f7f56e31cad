"""A real Lightning Trainer, watched."""

from typing import Any

import numpy as np
import pytest
import torch
from training.callbacks.healthy import BATCH, FEATURES, assert_sound, task

from difflens.training.callbacks.lightning import lightning_callback
from difflens.training.history import read_history

lightning: Any = pytest.importorskip("lightning.pytorch")

pytestmark = pytest.mark.filterwarnings("ignore")


class Module(lightning.LightningModule):
    def __init__(self, rate=0.05):
        super().__init__()
        torch.manual_seed(0)
        self.rate = rate
        self.net = torch.nn.Sequential(
            torch.nn.Linear(6, 8), torch.nn.Tanh(), torch.nn.Linear(8, 1)
        )
        self.losses = []

    def training_step(self, batch, _index):
        loss = (self.net(batch[0]) - batch[1]).square().mean()
        self.losses.append(float(loss.detach()))
        return loss

    def validation_step(self, batch, _index):
        self.log("val_loss", (self.net(batch[0]) - batch[1]).square().mean())

    def configure_optimizers(self):
        return torch.optim.SGD(self.parameters(), self.rate)


def fitted(tmp_path, callback, module, epochs=2, **settings):
    torch.manual_seed(1)
    x = torch.randn(48, 6)
    data = torch.utils.data.TensorDataset(x, x.sum(1, keepdim=True))
    loader = torch.utils.data.DataLoader(data, batch_size=8)
    trainer = lightning.Trainer(
        accelerator="cpu", devices=1, max_epochs=epochs, logger=False, enable_checkpointing=False,
        enable_progress_bar=False, enable_model_summary=False, default_root_dir=tmp_path,
        callbacks=[callback], **settings,
    )  # fmt: skip
    trainer.fit(module, loader, loader)
    return trainer


def test_every_step_is_a_frame_with_its_loss(tmp_path):
    module = Module()
    fitted(tmp_path, lightning_callback(tmp_path / "run", every=1), module)

    course = read_history(tmp_path / "run").course
    assert course.steps.tolist() == list(range(1, 13))
    assert course.scalar("loss").tolist() == pytest.approx(module.losses)
    assert (course.field("update_l2") > 0).all()
    assert course.scalar("val_loss") is not None


def test_an_accumulated_step_is_one_frame(tmp_path):
    callback = lightning_callback(tmp_path / "run", every=1)
    fitted(tmp_path, callback, Module(), accumulate_grad_batches=3)

    assert read_history(tmp_path / "run").frames == 4


def test_a_finding_as_grave_as_asked_for_stops_the_trainer(tmp_path):
    callback = lightning_callback(tmp_path / "run", every=1, stop_on="critical", diagnose_every=1)
    trainer = fitted(tmp_path, callback, Module(rate=1e12), epochs=200)

    assert trainer.should_stop
    assert trainer.global_step < 1200


class Sound(lightning.LightningModule):
    """Learns the task, logs a metric of every third batch, and validates."""

    def __init__(self):
        super().__init__()
        torch.manual_seed(0)
        self.net = torch.nn.Sequential(
            torch.nn.Linear(FEATURES, 16), torch.nn.ReLU(), torch.nn.Linear(16, 16),
            torch.nn.ReLU(), torch.nn.Linear(16, 1),
        )  # fmt: skip
        self.validations, self.logged, self.losses = [], [], []

    def training_step(self, batch, index):
        loss = (self.net(batch[0]) - batch[1]).square().mean()
        self.losses.append(float(loss.detach()))
        if index % 3 == 0:
            self.log("spread", batch[1].std())
            self.logged.append(self.global_step)
        return loss

    def validation_step(self, batch, _index):
        self.log("val_loss", (self.net(batch[0]) - batch[1]).square().mean())

    def on_validation_end(self):
        if not self.trainer.sanity_checking:
            self.validations.append(self.global_step)

    def configure_optimizers(self):
        return torch.optim.Adam(self.parameters(), 3e-3)


def sound_fit(tmp_path, epochs=12, **settings):
    torch.manual_seed(1)
    x, y, held_x, held_y = map(torch.tensor, task())
    loader = torch.utils.data.DataLoader(
        torch.utils.data.TensorDataset(x, y), batch_size=BATCH, shuffle=True
    )
    held_back = torch.utils.data.DataLoader(
        torch.utils.data.TensorDataset(held_x, held_y), batch_size=64
    )
    module = Sound()
    trainer = lightning.Trainer(
        accelerator="cpu", devices=1, max_epochs=epochs, logger=False, enable_checkpointing=False,
        enable_progress_bar=False, enable_model_summary=False, default_root_dir=tmp_path,
        callbacks=[lightning_callback(tmp_path / "run", every=1)], **settings,
    )  # fmt: skip
    trainer.fit(module, loader, held_back)
    return module


@pytest.mark.parametrize(
    "settings",
    [
        {},
        {"val_check_interval": 5},
        {"check_val_every_n_epoch": 4, "log_every_n_steps": 7},
        {"accumulate_grad_batches": 4, "epochs": 40},
    ],
    ids=["a validation an epoch", "several an epoch", "logging intervals", "accumulation"],
)
def test_a_healthy_run_with_validation_stays_silent(tmp_path, settings):
    module = sound_fit(tmp_path, **settings)

    history = assert_sound(tmp_path / "run", module.validations)
    assert len(module.validations) >= 3
    assert history.frames == history.last_step


def test_a_metric_is_recorded_where_it_was_logged_and_nowhere_else(tmp_path):
    module = sound_fit(tmp_path, epochs=2)

    course = read_history(tmp_path / "run").course
    there = np.isfinite(course.scalar("spread"))
    assert (course.steps[there] - 1).tolist() == module.logged


def test_equal_values_that_were_logged_twice_are_recorded_twice(tmp_path, monkeypatch):
    monkeypatch.setattr(
        Sound, "configure_optimizers", lambda self: torch.optim.SGD(self.parameters(), 0.0)
    )
    module = sound_fit(tmp_path, epochs=3, limit_train_batches=2)

    values = read_history(tmp_path / "run").course.scalar("val_loss")
    assert len(module.validations) == np.isfinite(values).sum() == 3
    assert len(set(values[np.isfinite(values)])) == 1


def test_the_loss_of_an_accumulated_step_is_the_mean_of_its_batches(tmp_path):
    module = sound_fit(tmp_path, epochs=1, accumulate_grad_batches=4)

    course = read_history(tmp_path / "run").course
    means = np.array(module.losses).reshape(-1, 4).mean(axis=1)
    assert course.scalar("loss").tolist() == pytest.approx(means.tolist(), rel=1e-5)
