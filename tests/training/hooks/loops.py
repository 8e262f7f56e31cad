"""Small training loops that keep exact figures beside the monitor's."""

from typing import Any

import numpy as np
import torch
from torch import nn

from difflens.training.history.reader import RunReader
from difflens.training.history.writer import file_of
from difflens.training.story import monitor


class Wrong(Exception):
    """What a test plants."""


def mlp() -> Any:
    torch.manual_seed(0)
    return nn.Sequential(
        nn.Linear(20, 33), nn.ReLU(), nn.Linear(33, 17), nn.Tanh(), nn.Linear(17, 5)
    )


def read(folder, rank=0):
    """Return all frames of a run, and the info in force at the last."""
    with RunReader(file_of(folder, rank)) as reader:
        frames = list(reader.frames())
        return frames, reader.info


def with_layers(frames):
    """Choose the frames of steps that were read; the others have their scalars alone."""
    return [frame for frame in frames if frame.is_read]


def reference(parameters, before) -> Any:
    """Return the fields of every parameter in 64 bits: gradients now, weights against `before`."""
    rows = []
    for each, old in zip(parameters, before, strict=True):
        g = torch.zeros(each.shape) if each.grad is None else each.grad.detach().to_dense()
        g, w, was = g.double(), each.detach().double(), old.double()
        finite = g[g.isfinite()]
        rows.append([
            float(g.norm()), float(finite.abs().mean()),
            float(finite.abs().max()) if finite.numel() else 0.0,
            float(g.numel() - finite.numel()), float((g == 0).sum()), float(w.norm()),
            float((w - was).norm()),
        ])  # fmt: skip
    return np.array(rows).T


def made(model, kind: str, rate: float) -> Any:
    if kind == "AdamW":
        return torch.optim.AdamW(model.parameters(), rate, eps=1e-3)
    if kind == "fused":
        return torch.optim.AdamW(model.parameters(), rate, eps=1e-3, fused=True)
    return torch.optim.SGD(model.parameters(), rate, momentum=0.9, nesterov=True)


def trained(
    model, folder, *, steps, optimizer="SGD", given=None, rate=0.05, micro=1, to_none=True,
    clears="after", clip=None, divide=None, scaler=None, hands_scaler=True, calls_step=True,
    watch_optimizer=True, between=None, inputs=None, loss_factor=1.0, compute_reference=True,
    every=1, **how,
) -> list[Any]:  # fmt: skip
    """Train, watched, and give the exact figures of each step."""
    torch.manual_seed(1)
    parameters = list(model.parameters())
    given = made(model, optimizer, rate) if given is None else given
    all_of_them = given if isinstance(given, list) else [given]
    dtype = parameters[-1].dtype
    data = torch.randn(16, 20).to(dtype) if inputs is None else inputs
    targets = torch.randint(0, 5, (16,))
    exact: list[Any] = []
    how.setdefault("diagnose_every", None)
    with monitor(
        model, given if watch_optimizer else None, folder, every=every,
        scaler=scaler if hands_scaler else None, **how,
    ) as watch:  # fmt: skip
        for step in range(steps):
            if between is not None:
                between(step)
            for _ in range(micro):
                out = model(data)
                if clears == "before":
                    for each in all_of_them:
                        each.zero_grad(set_to_none=to_none)
                loss = nn.functional.cross_entropy(out.float(), targets) * loss_factor
                (loss if scaler is None else scaler.scale(loss)).backward()
            finished(exact, parameters, all_of_them, locals())
            if clears == "after" and calls_step:
                for each in all_of_them:
                    each.zero_grad(set_to_none=to_none)
            watch.step(loss, step=step)
            if clears == "after" and not calls_step:
                model.zero_grad()
    return exact


def finished(exact, parameters, optimizers, switches) -> None:
    """Clip, unscale and step as asked, and take down what is exact."""
    scaler, wanted = switches["scaler"], switches["compute_reference"]
    if scaler is not None:
        for each in optimizers:
            scaler.unscale_(each)
    if switches["divide"]:
        for each in parameters:
            each.grad.div_(switches["divide"])
    before = [each.detach().clone() for each in parameters] if wanted else []
    figures = reference(parameters, before) if wanted else None
    clip = switches["clip"]
    if clip is not None:
        cut = clip if callable(clip) else torch.nn.utils.clip_grad_norm_
        cut(parameters, *(() if callable(clip) else (clip,)))
    for each in optimizers if switches["calls_step"] else ():
        each.step() if scaler is None else scaler.step(each)
    if scaler is not None:
        scaler.update()
    if figures is not None:
        figures[5:] = reference(parameters, before)[5:]
        exact.append(figures)
