"""A loop whose parts went through Accelerate, watched."""

import pytest
import torch

from difflens.callbacks.accelerate import accelerate_monitor
from difflens.history import read_history

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
