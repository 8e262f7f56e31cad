"""Watch a loop of Accelerate: `python examples/training/watch_accelerate.py RUN`."""

import sys

import torch
from accelerate import Accelerator

import difflens

torch.manual_seed(0)
accelerator = Accelerator(cpu=True, gradient_accumulation_steps=2)
inputs = torch.randn(512, 16)
data = torch.utils.data.TensorDataset(inputs, (inputs.sum(dim=1) > 0).long())
model = torch.nn.Sequential(torch.nn.Linear(16, 32), torch.nn.Tanh(), torch.nn.Linear(32, 2))
model, optimizer, loader = accelerator.prepare(
    model,
    torch.optim.Adam(model.parameters(), 1e-2),
    torch.utils.data.DataLoader(data, batch_size=32),
)

with difflens.accelerate_monitor(accelerator, model, optimizer, sys.argv[1], every=1) as watch:
    for _ in range(5):
        for batch, labels in loader:
            with accelerator.accumulate(model):
                loss = torch.nn.functional.cross_entropy(model(batch), labels)
                accelerator.backward(loss)
                optimizer.step()
                optimizer.zero_grad()
            if accelerator.sync_gradients:
                watch.step(loss=loss)
