"""Small networks that are trained on the spot: what they are, and the tasks that they learn."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any, NamedTuple

import numpy as np

from .model import Array

Batch = tuple[Any, Any]


class Family(NamedTuple):
    """A network, its task and how the loss is computed; `config` is what lies beside it."""

    make: Callable[[], Any]
    draw: Callable[[np.random.Generator, int], tuple[Array, Array]]  # a batch of a task
    loss: Callable[[Any, Any, Any], Any]  # network, inputs, targets
    steps: int
    rate: float
    config: dict[str, Any] | None = None


_VOCABULARY, _LENGTH, _CLASSES, _SIDE = 256, 24, 10, 16


@cache
def _successors(task: int) -> Array:
    """Return four likely successors of each token: a language for each task."""
    return np.random.default_rng(1000 + task).integers(0, _VOCABULARY, (_VOCABULARY, 4))


def _draw_tokens(rng: np.random.Generator, task: int) -> tuple[Array, Array]:
    rows = np.empty((8, _LENGTH + 1), np.int64)
    rows[:, 0] = rng.integers(0, _VOCABULARY, 8)
    for at in range(_LENGTH):
        choice = rng.choice(4, 8, p=[0.6, 0.2, 0.15, 0.05])
        rows[:, at + 1] = _successors(task)[rows[:, at], choice]
    return rows[:, :-1], rows[:, 1:]


@cache
def _templates(task: int) -> Array:
    return np.random.default_rng(2000 + task).standard_normal((_CLASSES, 3, _SIDE, _SIDE))


def _draw_pictures(rng: np.random.Generator, task: int) -> tuple[Array, Array]:
    labels = rng.integers(0, _CLASSES, 32)
    noise = rng.standard_normal((32, 3, _SIDE, _SIDE))
    return (_templates(task)[labels] + 2 * noise).astype(np.float32), labels


def _draw_tables(rng: np.random.Generator, task: int) -> tuple[Array, Array]:
    weights = np.random.default_rng(3000 + task).standard_normal((32, _CLASSES))
    rows = rng.standard_normal((64, 32))
    return rows.astype(np.float32), (rows**2 @ weights + rows @ weights).argmax(1)


def _draw_waves(rng: np.random.Generator, task: int) -> tuple[Array, Array]:
    labels = rng.integers(0, _CLASSES, 32)
    speeds = np.random.default_rng(4000 + task).uniform(0.1, 1.5, _CLASSES)
    time = np.arange(_LENGTH)[None, :, None] + rng.uniform(0, 6, (32, 1, 1))
    shift = np.arange(8)[None, None, :]
    waves = np.sin(speeds[labels][:, None, None] * time + shift)
    return (waves + 0.3 * rng.standard_normal(waves.shape)).astype(np.float32), labels


def _cross_entropy(network: Any, inputs: Any, targets: Any) -> Any:
    from torch.nn.functional import cross_entropy

    outputs = network(inputs)
    outputs = getattr(outputs, "logits", outputs)
    return cross_entropy(outputs.reshape(-1, outputs.shape[-1]), targets.reshape(-1))


def _mlp() -> Any:
    from torch import nn

    return nn.Sequential(
        nn.Linear(32, 192), nn.ReLU(), nn.Linear(192, 192), nn.ReLU(), nn.Linear(192, 96),
        nn.ReLU(), nn.Linear(96, _CLASSES),
    )  # fmt: skip


def _cnn() -> Any:
    from collections import OrderedDict

    from torch import nn

    layers: list[tuple[str, Any]] = []
    for index, (before, after) in enumerate(((3, 32), (32, 64), (64, 64)), 1):
        layers += [
            (f"conv{index}", nn.Conv2d(before, after, 3, padding=1, bias=False)),
            (f"bn{index}", nn.BatchNorm2d(after)),
            (f"relu{index}", nn.ReLU()),
            (f"pool{index}", nn.MaxPool2d(2)),
        ]
    layers += [("flatten", nn.Flatten()), ("fc", nn.Linear(256, _CLASSES))]
    return nn.Sequential(OrderedDict(layers))


def _lstm() -> Any:
    import torch
    from torch import nn

    class Recurrent(nn.Module):
        """Two layers of LSTM, and a head on the last state."""

        def __init__(self) -> None:
            super().__init__()
            self.lstm = nn.LSTM(8, 96, 2, batch_first=True)
            self.head = nn.Linear(96, _CLASSES)

        def forward(self, inputs: torch.Tensor) -> torch.Tensor:
            """Read the sequence, and classify its end."""
            return self.head(self.lstm(inputs)[0][:, -1])

    return Recurrent()


_GPT = {
    "vocab_size": _VOCABULARY, "n_positions": 64, "n_embd": 96, "n_layer": 4, "n_head": 4,
    "bos_token_id": 0, "eos_token_id": 0,
}  # fmt: skip
_LLAMA = {
    "vocab_size": _VOCABULARY, "hidden_size": 96, "intermediate_size": 256,
    "num_hidden_layers": 4, "num_attention_heads": 4, "num_key_value_heads": 2,
    "max_position_embeddings": 64, "tie_word_embeddings": False, "rope_theta": 10000.0,
    "rms_norm_eps": 1e-6, "hidden_act": "silu", "bos_token_id": 0, "eos_token_id": 0,
}  # fmt: skip


def _gpt() -> Any:
    from transformers import GPT2Config, GPT2LMHeadModel

    return GPT2LMHeadModel(GPT2Config(**_GPT, resid_pdrop=0.0, embd_pdrop=0.0, attn_pdrop=0.0))


def _llama() -> Any:
    from transformers import LlamaConfig, LlamaForCausalLM

    return LlamaForCausalLM(LlamaConfig(**_LLAMA))


FAMILIES = {
    "mlp": Family(_mlp, _draw_tables, _cross_entropy, 400, 2e-3),
    "cnn": Family(_cnn, _draw_pictures, _cross_entropy, 150, 2e-3),
    "lstm": Family(_lstm, _draw_waves, _cross_entropy, 150, 3e-3),
    "gpt": Family(
        _gpt, _draw_tokens, _cross_entropy, 250, 2e-3,
        {"model_type": "gpt2", "architectures": ["GPT2LMHeadModel"], **_GPT},
    ),
    "llama": Family(
        _llama, _draw_tokens, _cross_entropy, 250, 2e-3,
        {"model_type": "llama", "architectures": ["LlamaForCausalLM"], **_LLAMA},
    ),
}  # fmt: skip
