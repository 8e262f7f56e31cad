"""Trains small networks, fine-tunes them and trains LoRAs for them; results are kept on disk."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable
from typing import Any

import numpy as np

from .model import Array, Arrays, Model, as_float, is_float
from .networks import FAMILIES
from .pairs import Edit, Edited, Expected

_STILL = 1e-6  # a tensor that moved by less, relative to its norm, need not be named


def trained(name: str, seed: int = 0) -> Model:
    """Return a network of the family, trained from a seed."""
    arrays = _remember(f"{name}-base-{seed}", lambda: _train(name, seed))
    return Model(arrays, FAMILIES[name].config)


def tune(
    name: str, *, seed: int = 1, only: str = ".", steps: int = 60, rate: float = 1e-4, task: int = 1
) -> Edit:
    """Fine-tune the base `name` on another task: parameters whose name matches `only`.

    The edit belongs on that base, in the dtype it was trained in or another: what was learned is
    added in float64, then rounded.
    """
    how: dict[str, Any] = {
        "seed": seed, "only": only, "steps": steps, "rate": rate, "task": task,
    }  # fmt: skip

    def edit(model: Model) -> Edited:
        return learned(model, trained(name), tuned(name, **how))

    return edit


def tuned(
    name: str, *, seed: int = 1, only: str = ".", steps: int = 60, rate: float = 1e-4, task: int = 1
) -> Model:
    """Return the base, fine-tuned on another task."""
    key = f"{name}-tuned-{seed}-{only}-{steps}-{rate}-{task}"
    arrays = _remember(key, lambda: _tune(name, seed, only=only, steps=steps, rate=rate, task=task))
    return Model(arrays, FAMILIES[name].config)


def learned(model: Model, start: Model, end: Model) -> Edited:
    """Add to a model what training moved, from start to end, and expect it to be named."""
    tensors = dict(model.tensors)
    names: set[str] = set()
    maybe: set[str] = set()
    for name, array in end.tensors.items():
        if name not in tensors or array.tobytes() == start.tensors[name].tobytes():
            continue
        if not is_float(array):
            tensors[name] = array
            maybe.add(name)
            continue
        before, after = as_float(start.tensors[name]), as_float(array)
        own = tensors[name]
        exact = after if own.dtype == array.dtype else as_float(own) + after - before
        tensors[name] = exact.astype(np.float32).astype(own.dtype)
        size = float(np.linalg.norm(before))
        is_buffer = "running_" in name
        moved = float(np.linalg.norm(after - before)) > _STILL * size
        (names if moved and not is_buffer else maybe).add(name)
    expected = Expected("trained", frozenset(names), maybe=frozenset(maybe))
    return Edited(model._replace(tensors=tensors), (expected,))


def trained_lora(
    name: str, where: str, rank: int, *, seed: int = 1, steps: int = 60, rate: float = 5e-4
) -> Edit:
    """Train low-rank factors for the matrices that match, and merge them."""

    def edit(model: Model) -> Edited:
        from .edits.low_rank import merged

        flat = _remember(
            f"{name}-lora-{seed}-{where}-{rank}-{steps}-{rate}",
            lambda: _train_lora(name, where, rank, seed, steps=steps, rate=rate),
        )
        factors = {
            key.removesuffix("|up"): (as_float(up), as_float(flat[key.removesuffix("up") + "down"]))
            for key, up in flat.items()
            if key.endswith("|up")
        }
        return merged(model, factors, rank)

    return edit


def optimizer_state(name: str, steps: int, seed: int = 5) -> dict[str, Any]:
    """Return the state of an AdamW after some steps, as a checkpoint holds it."""
    network, optimizer = _ready(name, trained(name).tensors, ".", 1e-4)
    _learn(network, optimizer, name, seed, steps=steps, task=1)
    return {"optimizer": optimizer.state_dict(), "step": steps}


def _train(name: str, seed: int) -> Arrays:
    import torch

    torch.manual_seed(seed)
    family = FAMILIES[name]
    network = family.make()
    network.train()
    optimizer = torch.optim.AdamW(network.parameters(), family.rate)
    _learn(network, optimizer, name, seed, steps=family.steps, task=0)
    return _arrays(network)


def _tune(name: str, seed: int, *, only: str, steps: int, rate: float, task: int) -> Arrays:
    network, optimizer = _ready(name, trained(name).tensors, only, rate)
    _learn(network, optimizer, name, seed, steps=steps, task=task)
    return _arrays(network)


def _ready(name: str, start: Arrays, only: str, rate: float) -> tuple[Any, Any]:
    """Load the weights; batch norm keeps its statistics where some parameters are frozen."""
    import torch

    network = FAMILIES[name].make()
    state = {key: torch.from_numpy(array.copy()) for key, array in start.items()}
    network.load_state_dict(state, strict=False)
    network.train(only == ".")
    chosen = []
    for key, parameter in network.named_parameters():
        parameter.requires_grad = re.search(only, key) is not None
        if parameter.requires_grad:
            chosen.append(parameter)
    return network, torch.optim.AdamW(chosen, rate, weight_decay=0.0)


def _learn(network: Any, optimizer: Any, name: str, seed: int, *, steps: int, task: int) -> None:
    import torch

    torch.set_num_threads(1)
    family, rng = FAMILIES[name], np.random.default_rng(seed)
    for _ in range(steps):
        inputs, targets = map(torch.from_numpy, family.draw(rng, task))
        optimizer.zero_grad()
        family.loss(network, inputs, targets).backward()
        optimizer.step()


def _arrays(network: Any) -> Arrays:
    """Return the weights, tied ones once."""
    seen: set[int] = set()
    arrays: Arrays = {}
    for name, tensor in network.state_dict().items():
        if tensor.data_ptr() in seen and tensor.ndim:
            continue
        seen.add(tensor.data_ptr())
        arrays[name] = tensor.detach().numpy().copy()
    return arrays


def _train_lora(name: str, where: str, rank: int, seed: int, *, steps: int, rate: float) -> Arrays:
    import torch
    from torch.func import functional_call

    torch.manual_seed(seed)
    torch.set_num_threads(1)
    network, _ = _ready(name, trained(name).tensors, ".", 1e-4)
    network.eval()
    weights = {
        key: parameter.detach()
        for key, parameter in network.named_parameters()
        if re.search(where, key) and parameter.ndim >= 2
    }
    factors = {
        key: (torch.zeros(len(weight), rank, requires_grad=True),
              (torch.randn(rank, weight[0].numel()) / weight[0].numel() ** 0.5).requires_grad_())
        for key, weight in weights.items()
    }  # fmt: skip
    leaves = [factor for pair in factors.values() for factor in pair]
    optimizer = torch.optim.AdamW(leaves, rate, weight_decay=0.0)
    family, rng = FAMILIES[name], np.random.default_rng(seed)
    for _ in range(steps):
        inputs, targets = map(torch.from_numpy, family.draw(rng, 1))
        merged = {
            key: weights[key] + (up @ down).reshape(weights[key].shape)
            for key, (up, down) in factors.items()
        }
        optimizer.zero_grad()
        family.loss(
            lambda x, now=merged: functional_call(network, now, (x,)), inputs, targets
        ).backward()
        optimizer.step()
    flat: Arrays = {}
    for key, (up, down) in factors.items():
        flat[f"{key}|up"], flat[f"{key}|down"] = up.detach().numpy(), down.detach().numpy()
    return flat


def _remember(key: str, make: Callable[[], dict[str, Array]]) -> dict[str, Array]:
    """Return what was trained before under that key; train and keep it otherwise."""
    from .bases import home

    digest = hashlib.sha256(key.encode()).hexdigest()[:10]
    path = home() / "trained" / f"{re.sub('[^a-z0-9]+', '-', key.lower())[:60]}-{digest}.npz"
    if not path.exists():
        path.parent.mkdir(parents=True, exist_ok=True)
        arrays = make()
        part = path.with_suffix(f".{id(arrays)}.part.npz")
        np.savez(part, **arrays)
        part.rename(path)
    with np.load(path, allow_pickle=False) as kept:
        return {name: kept[name] for name in kept.files}
