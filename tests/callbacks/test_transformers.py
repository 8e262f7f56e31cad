"""A real Hugging Face Trainer, watched."""

import numpy as np
import pytest
import torch

from difflens.callbacks.transformers import transformers_callback
from difflens.history import read_history

transformers = pytest.importorskip("transformers")

pytestmark = pytest.mark.filterwarnings("ignore")


class Numbers(torch.utils.data.Dataset):
    def __init__(self, n=64):
        rng = np.random.default_rng(0)
        self.x = torch.tensor(rng.normal(size=(n, 6)), dtype=torch.float32)
        self.y = (self.x.sum(1) > 0).long()

    def __len__(self):
        return len(self.x)

    def __getitem__(self, i):
        return {"x": self.x[i], "labels": self.y[i]}


class Net(torch.nn.Module):
    def __init__(self):
        super().__init__()
        torch.manual_seed(0)
        self.body = torch.nn.Sequential(torch.nn.Linear(6, 8), torch.nn.ReLU())
        self.head = torch.nn.Linear(8, 2)

    def forward(self, x, labels=None):
        logits = self.head(self.body(x))
        return {"loss": torch.nn.functional.cross_entropy(logits, labels), "logits": logits}


def trained(tmp_path, callback, **settings):
    arguments = transformers.TrainingArguments(
        output_dir=str(tmp_path / "out"),
        per_device_train_batch_size=8,
        report_to=[],
        use_cpu=True,
        disable_tqdm=True,
        logging_steps=1,
        save_strategy="no",
        seed=0,
        **{"max_steps": 12, **settings},
    )
    trainer = transformers.Trainer(
        model=Net(), args=arguments, train_dataset=Numbers(), eval_dataset=Numbers(16),
        callbacks=[callback],
    )  # fmt: skip
    trainer.train()
    return trainer


def test_every_step_is_a_frame_with_the_loss_that_the_trainer_logged(tmp_path):
    trainer = trained(tmp_path, transformers_callback(tmp_path / "run", every=1))

    history = read_history(tmp_path / "run")
    logged = {row["step"]: row["loss"] for row in trainer.state.log_history if "loss" in row}
    assert history.course.steps.tolist() == list(range(1, 13))
    assert history.course.scalar("loss").tolist() == pytest.approx(list(logged.values()))
    assert history.info.layers[0].name == "body.0.weight"
    assert (history.course.field("grad_l2") > 0).all()
    assert (history.course.field("update_l2") > 0).all()


def test_an_accumulated_step_is_one_frame(tmp_path):
    trained(
        tmp_path, transformers_callback(tmp_path / "run", every=1),
        gradient_accumulation_steps=2, max_steps=4,
    )  # fmt: skip

    history = read_history(tmp_path / "run")
    assert history.frames == 4
    assert history.course.scalar("optimizer_steps").tolist() == [1.0] * 4


def test_losses_on_held_back_data_are_in_the_frames(tmp_path):
    trained(
        tmp_path, transformers_callback(tmp_path / "run", every=1),
        eval_strategy="steps", eval_steps=4,
    )  # fmt: skip

    held = read_history(tmp_path / "run").course.scalar("eval_loss")
    assert np.flatnonzero(np.isfinite(held)).tolist() == [3, 7, 11]


def test_a_finding_as_grave_as_asked_for_ends_the_training(tmp_path):
    callback = transformers_callback(
        tmp_path / "run", every=1, stop_on="critical", diagnose_every=1
    )
    with np.errstate(all="ignore"):
        trainer = trained(tmp_path, callback, learning_rate=1e18, max_steps=400, max_grad_norm=0.0)

    assert trainer.state.global_step < 400


def test_hooks_are_gone_after_training(tmp_path):
    trainer = trained(tmp_path, transformers_callback(tmp_path / "run"))

    assert not trainer.model._forward_pre_hooks
    assert not any(module._forward_hooks for module in trainer.model.modules())
