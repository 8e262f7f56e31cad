"""A real Lightning Trainer, watched."""

import pytest
import torch

from difflens.callbacks.lightning import lightning_callback
from difflens.history import read_history

lightning = pytest.importorskip("lightning.pytorch")

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
