"""A real Hugging Face Trainer, watched."""

from itertools import pairwise

import numpy as np
import pytest
import torch
from training.callbacks.healthy import FEATURES, assert_sound, task

import difflens
from difflens.training.callbacks.transformers import transformers_callback
from difflens.training.history import read_history

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


class Pairs(torch.utils.data.Dataset):
    def __init__(self, x, y):
        self.x, self.y = torch.tensor(x), torch.tensor(y)

    def __len__(self):
        return len(self.x)

    def __getitem__(self, i):
        return {"x": self.x[i], "labels": self.y[i]}


class Sound(torch.nn.Module):
    def __init__(self):
        super().__init__()
        torch.manual_seed(0)
        self.net = torch.nn.Sequential(
            torch.nn.Linear(FEATURES, 16), torch.nn.ReLU(), torch.nn.Linear(16, 16),
            torch.nn.ReLU(), torch.nn.Linear(16, 1),
        )  # fmt: skip

    def forward(self, x, labels=None):
        out = self.net(x)
        return {"loss": torch.nn.functional.mse_loss(out, labels), "logits": out}


@pytest.mark.parametrize(
    "settings",
    [
        {"eval_steps": 20},
        {"eval_steps": 7, "logging_steps": 10},
        {"eval_steps": 25, "logging_steps": 5, "gradient_accumulation_steps": 4},
        {"eval_steps": 50, "logging_steps": 25, "logging_first_step": True},
    ],
    ids=["every step logged", "logging intervals", "accumulation", "rarely logged"],
)
def test_a_healthy_run_with_evaluations_stays_silent(tmp_path, settings):
    x, y, held_x, held_y = task()
    arguments = transformers.TrainingArguments(
        output_dir=str(tmp_path / "out"), per_device_train_batch_size=8, report_to=[],
        use_cpu=True, disable_tqdm=True, save_strategy="no", seed=0, eval_strategy="steps",
        learning_rate=3e-3, lr_scheduler_type="constant",
        **{"max_steps": 200, "logging_steps": 1, **settings},
    )  # fmt: skip
    trainer = transformers.Trainer(
        model=Sound(), args=arguments, train_dataset=Pairs(x, y),
        eval_dataset=Pairs(held_x, held_y),
        callbacks=[transformers_callback(tmp_path / "run", every=1)],
    )  # fmt: skip
    trainer.train()

    rows = trainer.state.log_history
    history = assert_sound(
        tmp_path / "run", [row["step"] for row in rows if "eval_loss" in row], "eval_loss"
    )
    assert history.frames == 200
    losses = history.course.scalar("loss")
    logged = {row["step"]: row["loss"] for row in rows if "loss" in row}
    assert np.isfinite(losses).all()
    assert means(losses, logged) == pytest.approx(list(logged.values()), rel=1e-3, abs=1e-4)


def means(losses, logged):
    """Return the means of the losses of steps between the logs, as the trainer logs them."""
    ends = [0, *logged]
    return [losses[left:right].mean() for left, right in pairwise(ends)]


def losses_of(run):
    return read_history(run).scalars.scalar("loss")


@pytest.mark.parametrize("batches", [1, 3])
def test_the_loss_of_every_step_is_recorded_though_the_trainer_never_logs(tmp_path, batches):
    """Evaluations in between do not count; micro-batches make one loss."""
    settings = {"gradient_accumulation_steps": batches, "max_steps": 20}
    trainer = trained(tmp_path, transformers_callback(tmp_path / "often"), **settings)
    logged = [row["loss"] for row in trainer.state.log_history if "loss" in row]

    trained(
        tmp_path, transformers_callback(tmp_path / "never"), logging_strategy="no",
        eval_strategy="steps", eval_steps=3, **settings,
    )  # fmt: skip

    assert losses_of(tmp_path / "often").tolist() == pytest.approx(logged, abs=1e-4)
    assert losses_of(tmp_path / "never").tolist() == pytest.approx(logged, abs=1e-4)


class Shared(Net):
    """A model that divides its loss by the items of the whole update, as the library's do."""

    def forward(self, x, labels=None, num_items_in_batch=None, **_others):
        out = super().forward(x, labels)
        if num_items_in_batch is not None:
            out["loss"] = out["loss"] * len(x) / num_items_in_batch
        return out


def test_losses_that_are_shares_of_an_update_are_added_up(tmp_path, monkeypatch):
    monkeypatch.setitem(globals(), "Net", Shared)
    trainer = trained(
        tmp_path, transformers_callback(tmp_path / "run"), gradient_accumulation_steps=2
    )

    logged = [row["loss"] for row in trainer.state.log_history if "loss" in row]
    assert losses_of(tmp_path / "run").tolist() == pytest.approx(logged, abs=1e-4)


def test_a_model_without_a_loss_of_its_own_has_the_logged_one(tmp_path):
    class Bare(transformers.Trainer):
        def compute_loss(self, model, inputs, return_outputs=False, **_others):
            out = model(inputs["x"], inputs["labels"])["logits"]
            loss = torch.nn.functional.cross_entropy(out, inputs["labels"])
            return (loss, out) if return_outputs else loss

    class Logits(Net):
        def forward(self, x, labels=None):
            return {"logits": super().forward(x, labels)["logits"]}

    Bare(
        model=Logits(), train_dataset=Numbers(),
        callbacks=[transformers_callback(tmp_path / "run")],
        args=transformers.TrainingArguments(
            output_dir=str(tmp_path / "out"), max_steps=12, logging_steps=4, report_to=[],
            use_cpu=True, disable_tqdm=True, save_strategy="no",
        ),
    ).train()  # fmt: skip

    assert np.flatnonzero(np.isfinite(losses_of(tmp_path / "run"))).tolist() == [3, 7, 11]


def test_a_rate_that_is_far_too_high_is_found_though_the_trainer_never_logs(tmp_path):
    trained(
        tmp_path, transformers_callback(tmp_path / "run", every=1), logging_strategy="no",
        learning_rate=30.0, lr_scheduler_type="constant", max_steps=150, max_grad_norm=0.0,
    )  # fmt: skip

    assert difflens.diagnose(tmp_path / "run").healthy is False
