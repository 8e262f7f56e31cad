"""How the held-back part trains: its data, its networks from a seed, its fine-tunes, its LoRAs."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, NamedTuple

import numpy as np
import torch
from torch import Tensor, nn
from torch.func import functional_call
from torch.nn import functional

from .heldback_nets import SCRIBE_LENGTH, SCRIBE_VOCABULARY, Glance, Mender, Murmur, Scribe, Towers
from .heldback_nets import Voice as VoiceNet
from .model import Arrays

Batch = tuple[Tensor, Tensor]


class Task(NamedTuple):
    """A network, how a batch of its data is drawn, and its loss."""

    network: Callable[[], nn.Module]
    batch: Callable[[torch.Generator, int], Batch]
    loss: Callable[[Tensor, Tensor], Tensor]


class Recipe(NamedTuple):
    """How to fine-tune: the optimizer, its rate, its steps, which parameters, on which data."""

    optimizer: str = "adamw"
    rate: float = 3e-4
    steps: int = 40
    only: Callable[[str], bool] = lambda _name: True
    data: int = 1  # 0 is what the network was trained on, others are drawn differently
    seed: int = 7001
    decay: float = 0.01


def _characters() -> Tensor:
    """Return the text that Python ships about itself, as characters below 112."""
    from pydoc_data.topics import topics

    text = "\n".join(topics[name] for name in sorted(topics))[:400_000]
    return torch.tensor([min(ord(each), 126) - 15 if ord(each) >= 32 else 0 for each in text])


def _text(generator: torch.Generator, data: int) -> Batch:
    text = _characters_once()
    half = len(text) // 2
    start = half if data else 0
    places = torch.randint(start, start + half - SCRIBE_LENGTH - 1, (12,), generator=generator)
    pieces = torch.stack([text[place : place + SCRIBE_LENGTH + 1] for place in places])
    if data > 1:
        pieces = pieces.flip(1)  # text read backwards: far from what the model knows
    return pieces[:, :-1], pieces[:, 1:]


_KEPT: dict[str, Any] = {}


def _characters_once() -> Tensor:
    if "text" not in _KEPT:
        _KEPT["text"] = _characters()
    text: Tensor = _KEPT["text"]
    return text


def _digits_once() -> Batch:
    if "digits" not in _KEPT:
        from sklearn.datasets import load_digits

        pictures, labels = load_digits(return_X_y=True)
        scaled = torch.tensor(pictures / 8.0 - 1.0, dtype=torch.float32).reshape(-1, 1, 8, 8)
        _KEPT["digits"] = scaled, torch.tensor(labels, dtype=torch.int64)
    digits: Batch = _KEPT["digits"]
    return digits


def _pictures(generator: torch.Generator, data: int) -> Batch:
    pictures, labels = _digits_once()
    chosen = torch.randint(0, len(labels), (48,), generator=generator)
    if data:  # turned pictures, and even against odd as the odd ones come last
        return pictures[chosen].transpose(2, 3), (labels[chosen] * 3 + data) % 10
    return pictures[chosen], labels[chosen]


def _noisy(generator: torch.Generator, data: int) -> Batch:
    pictures = _digits_once()[0]
    chosen = pictures[torch.randint(0, len(pictures), (40,), generator=generator)]
    noise = torch.randn(chosen.shape, generator=generator) * (0.3 + 0.4 * data)
    return chosen + noise, chosen


def _clicks(generator: torch.Generator, data: int) -> Batch:
    users = torch.randint(0, 610, (256,), generator=generator)
    items = torch.randint(0, 430, (256,), generator=generator)
    liked = ((users * 7 + items * (3 + 2 * data)) % 11 < 4).float()
    return torch.stack([users, items], 1), liked


def _sounds(generator: torch.Generator, data: int) -> Batch:
    """Draw six speakers, each a spectrum of its own with four noisy pieces of sound."""
    voices = torch.rand((6, 1, 40), generator=generator) * (1 + data)
    frames = torch.rand((24, 20, 40), generator=generator) * 0.3
    return frames + voices.repeat_interleave(4, 0), torch.arange(6).repeat_interleave(4)


def _next(logits: Tensor, wanted: Tensor) -> Tensor:
    return functional.cross_entropy(logits.reshape(-1, SCRIBE_VOCABULARY), wanted.reshape(-1))


def _match(vectors: Tensor, speakers: Tensor) -> Tensor:
    """Ask that pieces of one speaker are more alike than those of two."""
    alike = vectors @ vectors.T * 8 - torch.eye(len(vectors)) * 1e3
    same = (speakers[:, None] == speakers[None]) & ~torch.eye(len(vectors), dtype=torch.bool)
    return -(functional.log_softmax(alike, 1) * same).sum() / same.sum()


TASKS: dict[str, Task] = {
    "scribe": Task(Scribe, _text, _next),
    "murmur": Task(Murmur, _text, _next),
    "glance": Task(Glance, _pictures, functional.cross_entropy),
    "towers": Task(Towers, _clicks, functional.binary_cross_entropy_with_logits),
    "mender": Task(Mender, _noisy, functional.mse_loss),
    "voice": Task(VoiceNet, _sounds, _match),
}


@contextmanager
def _alone() -> Iterator[None]:
    """Train on one thread, so that a seed makes the same weights wherever it is run."""
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        yield
    finally:
        torch.set_num_threads(threads)


def trained_network(name: str, seed: int, steps: int, rate: float = 2e-3) -> Arrays:
    """Train a network of `TASKS` from its random start."""
    with _alone():
        torch.manual_seed(seed)
        network = TASKS[name].network()
        recipe = Recipe(rate=rate, steps=steps, data=0, seed=seed)
        _run(TASKS[name], network, list(network.parameters()), recipe)
        return arrays_of(network)


def fresh_network(name: str, seed: int) -> Arrays:
    """Return a network of `TASKS` at its random start."""
    torch.manual_seed(seed)
    return arrays_of(TASKS[name].network())


def fine_tuned(name: str, tensors: Arrays, recipe: Recipe) -> Arrays:
    """Train a network further; float tensors that the recipe leaves out keep their bits."""
    with _alone():
        network = _loaded(name, tensors)
        chosen = {key for key, _ in network.named_parameters() if recipe.only(key)}
        for key, value in network.named_parameters():
            value.requires_grad_(key in chosen)
        parameters = [each for each in network.parameters() if each.requires_grad]
        frozen = len(chosen) < len(list(network.named_parameters()))
        network.train(not frozen)  # running statistics stay where only a part is trained
        _run(TASKS[name], network, parameters, recipe)
        return {
            **tensors,
            **{key: arrays_of(network)[key] for key in tensors if key in arrays_of(network)},
        }


def with_optimizer(name: str, tensors: Arrays, recipe: Recipe) -> tuple[Arrays, dict[str, Any]]:
    """Train a network further; return it with the state of its optimizer."""
    with _alone():
        network = _loaded(name, tensors)
        optimizer = _run(TASKS[name], network, list(network.parameters()), recipe)
        return {**tensors, **arrays_of(network)}, optimizer.state_dict()


class Adapter(NamedTuple):
    """What a LoRA training made for one matrix: up (rows x rank), down (rank x columns)."""

    up: Any
    down: Any
    scale: float

    @property
    def update(self) -> Any:
        """Return scale * up @ down as float64."""
        return self.scale * (self.up.astype(np.float64) @ self.down.astype(np.float64))


def low_rank_trained(
    name: str, tensors: Arrays, targets: list[str], rank: int, *, alpha: float, recipe: Recipe
) -> dict[str, Adapter]:
    """Train a LoRA on the named matrices and return its factors."""
    with _alone():
        network = _loaded(name, tensors)
        fixed = {key: each.detach() for key, each in network.named_parameters()}
        generator = torch.Generator().manual_seed(recipe.seed)
        factors = {}
        for key in targets:
            rows, columns = fixed[key].shape
            down = torch.randn((rank, columns), generator=generator) / columns**0.5
            factors[key] = (nn.Parameter(torch.zeros(rows, rank)), nn.Parameter(down))
        scale = alpha / rank
        flat = [each for pair in factors.values() for each in pair]
        optimizer = _optimizer(recipe, flat)
        for _ in range(recipe.steps):
            inputs, wanted = TASKS[name].batch(generator, recipe.data)
            merged = {key: fixed[key] + scale * up @ down for key, (up, down) in factors.items()}
            loss = TASKS[name].loss(
                functional_call(network, {**fixed, **merged}, (inputs,)), wanted
            )
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        return {
            key: Adapter(up.detach().numpy().copy(), down.detach().numpy().copy(), scale)
            for key, (up, down) in factors.items()
        }


def arrays_of(network: nn.Module) -> Arrays:
    """Return what the network holds as arrays of their own."""
    return {key: each.detach().numpy().copy() for key, each in network.state_dict().items()}


def _loaded(name: str, tensors: Arrays) -> nn.Module:
    network = TASKS[name].network()
    state = network.state_dict()
    known = {
        key: torch.from_numpy(tensors[key].astype(value.numpy().dtype))
        for key, value in state.items()
    }
    network.load_state_dict(known)
    return network


def _optimizer(recipe: Recipe, parameters: list[Any]) -> torch.optim.Optimizer:
    if recipe.optimizer == "sgd":
        return torch.optim.SGD(parameters, lr=recipe.rate)
    if recipe.optimizer == "momentum":
        return torch.optim.SGD(parameters, lr=recipe.rate, momentum=0.9)
    return torch.optim.AdamW(parameters, lr=recipe.rate, weight_decay=recipe.decay)


def _run(
    task: Task, network: nn.Module, parameters: list[Any], recipe: Recipe
) -> torch.optim.Optimizer:
    generator = torch.Generator().manual_seed(recipe.seed)
    optimizer = _optimizer(recipe, parameters)
    for _ in range(recipe.steps):
        inputs, wanted = task.batch(generator, recipe.data)
        loss = task.loss(network(inputs), wanted)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    return optimizer
