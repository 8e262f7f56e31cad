"""Watch a PyTorch loop, with a fault in it: `python examples/training/watch_pytorch.py RUN`."""

import sys

import torch

import difflens

torch.manual_seed(0)
inputs = torch.randn(512, 16)
targets = (inputs[:, :4].sum(dim=1) > 0).long()
model = torch.nn.Sequential(
    torch.nn.Linear(16, 32), torch.nn.ReLU(),
    torch.nn.Linear(32, 32), torch.nn.ReLU(),
    torch.nn.Linear(32, 2),
)  # fmt: skip
optimizer = torch.optim.SGD(model[4].parameters(), lr=0.1)  # the fault: the last layer alone

with difflens.monitor(model, optimizer, run=sys.argv[1], every=1) as watch:
    for _ in range(300):
        batch = torch.randint(0, 512, (64,))
        loss = torch.nn.functional.cross_entropy(model(inputs[batch]), targets[batch])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        watch.step(loss=loss)

for finding in watch.findings:
    print(f"{finding.severity}: {finding.name} since step {finding.since_step}")
    print(f"  {finding.text}")
