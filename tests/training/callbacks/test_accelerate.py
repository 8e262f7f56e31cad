"""A loop whose parts went through Accelerate, watched."""

import pytest
import torch
from training.callbacks.healthy import BATCH, FEATURES, assert_sound, task

from difflens.training.callbacks.accelerate import accelerate_monitor
from difflens.training.history import read_history

accelerate = pytest.importorskip("accelerate")

pytestmark = pytest.mark.filterwarnings("ignore")


def test_an_accumulated_step_is_one_frame_with_the_whole_gradient(tmp_path):
    torch.manual_seed(0)
    accelerator = accelerate.Accelerator(cpu=True, gradient_accumulation_steps=2)
    bare = torch.nn.Linear(4, 1)
    model, optimizer = accelerator.prepare(bare, torch.optim.SGD(bare.parameters(), 0.1))
    norms = []
    with accelerate_monitor(accelerator, model, optimizer, tmp_path / "run", every=1) as watch:
        for _ in range(8):
            with accelerator.accumulate(model):
                loss = model(torch.randn(16, 4)).square().mean()
                accelerator.backward(loss)
                if accelerator.sync_gradients:
                    norms.append(float(bare.weight.grad.norm()))
                optimizer.step()
                optimizer.zero_grad()
            if accelerator.sync_gradients:
                watch.step(loss=loss)

    course = read_history(tmp_path / "run").course
    assert len(course) == 4
    assert course.field("grad_l2")[:, 0].tolist() == pytest.approx(norms, rel=1e-5)


@pytest.mark.parametrize("accumulated", [1, 4])
@pytest.mark.parametrize("every", [1, 20], ids=["loss of every step", "loss now and then"])
def test_a_healthy_run_with_validation_stays_silent(tmp_path, accumulated, every):
    torch.manual_seed(0)
    x, y, held_x, held_y = map(torch.tensor, task())
    accelerator = accelerate.Accelerator(cpu=True, gradient_accumulation_steps=accumulated)
    bare = torch.nn.Sequential(
        torch.nn.Linear(FEATURES, 16), torch.nn.ReLU(), torch.nn.Linear(16, 16),
        torch.nn.ReLU(), torch.nn.Linear(16, 1),
    )  # fmt: skip
    loader = torch.utils.data.DataLoader(
        torch.utils.data.TensorDataset(x, y), batch_size=BATCH, shuffle=True
    )
    model, optimizer, loader = accelerator.prepare(
        bare, torch.optim.Adam(bare.parameters(), 3e-3), loader
    )
    mse, validated, updates = torch.nn.functional.mse_loss, [], 0
    with accelerate_monitor(accelerator, model, optimizer, tmp_path / "run", every=1) as watch:
        for _ in range(12 * accumulated):
            for inputs, targets in loader:
                with accelerator.accumulate(model):
                    loss = mse(model(inputs), targets)
                    accelerator.backward(loss)
                    optimizer.step()
                    optimizer.zero_grad()
                if not accelerator.sync_gradients:
                    continue
                told = {}
                if updates % 16 == 15:
                    with torch.no_grad():
                        told["val_loss"] = mse(model(held_x), held_y)
                    validated.append(updates)
                watch.step(loss=loss if updates % every == 0 else None, **told)
                updates += 1

    history = assert_sound(tmp_path / "run", validated)
    assert history.frames == updates == 192
    assert history.course.scalar("optimizer_steps").tolist() == [1.0] * updates
