"""Small networks of four kinds, and four others that no rule was chosen on; all are trained here.

Each has at least a hundred tensors, is trained on a task of its own seed, and then fine-tuned on
the same task with other noise, so that every tensor drifts.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import torch
from torch import Tensor, nn

LENGTH, WIDTH, CLASSES, HEADS = 12, 32, 8, 4
State = dict[str, Tensor]


class Attention(nn.Module):
    """Self-attention with projections of its own."""

    def __init__(self, width: int, *, bias: bool) -> None:
        """Make the projections."""
        super().__init__()
        self.q_proj, self.k_proj, self.v_proj, self.o_proj = (
            nn.Linear(width, width, bias=bias) for _ in range(4)
        )

    def forward(self, x: Tensor) -> Tensor:
        """Attend."""
        count, length, width = x.shape
        q, k, v = (
            each(x).reshape(count, length, HEADS, -1).transpose(1, 2)
            for each in (self.q_proj, self.k_proj, self.v_proj)
        )
        seen = nn.functional.scaled_dot_product_attention(q, k, v)
        return self.o_proj(seen.transpose(1, 2).reshape(count, length, width))


class Hidden(nn.Module):
    """Two layers, or three with a gate."""

    def __init__(self, width: int, inner: int, *, gated: bool) -> None:
        """Make the layers."""
        super().__init__()
        self.up_proj = nn.Linear(width, inner, bias=not gated)
        self.down_proj = nn.Linear(inner, width, bias=not gated)
        if gated:
            self.gate_proj = nn.Linear(width, inner, bias=False)

    def forward(self, x: Tensor) -> Tensor:
        """Widen, bend, narrow."""
        up = self.up_proj(x)
        gate = getattr(self, "gate_proj", None)
        return self.down_proj(
            nn.functional.gelu(up) if gate is None else nn.functional.silu(gate(x)) * up
        )


class Block(nn.Module):
    """A block of a transformer."""

    def __init__(self, width: int, *, gated: bool) -> None:
        """Make the parts."""
        super().__init__()
        norm = nn.RMSNorm if gated else nn.LayerNorm
        self.input_norm, self.post_norm = norm(width), norm(width)
        self.self_attn = Attention(width, bias=not gated)
        self.mlp = Hidden(width, 2 * width, gated=gated)

    def forward(self, x: Tensor) -> Tensor:
        """Pass one block."""
        x = x + self.self_attn(self.input_norm(x))
        return x + self.mlp(self.post_norm(x))


class Dense(nn.Module):
    """A residual block of a network for tables."""

    def __init__(self, width: int, inner: int, *, norm: bool) -> None:
        """Make the parts."""
        super().__init__()
        self.norm = nn.LayerNorm(width) if norm else nn.Identity()
        self.mlp = Hidden(width, inner, gated=False)

    def forward(self, x: Tensor) -> Tensor:
        """Pass one block."""
        return x + 0.5 * self.mlp(self.norm(x))


class Convolutions(nn.Module):
    """A residual block of a network for pictures."""

    def __init__(self, channels: int, *, depthwise: bool) -> None:
        """Make the parts."""
        super().__init__()
        groups = channels if depthwise else 1
        self.conv1 = nn.Conv1d(channels, channels, 3, padding=1, bias=False, groups=groups)
        self.bn1 = nn.BatchNorm1d(channels)
        self.conv2 = nn.Conv1d(
            channels, channels, 1 if depthwise else 3, padding=0 if depthwise else 1, bias=False
        )
        self.bn2 = nn.BatchNorm1d(channels)

    def forward(self, x: Tensor) -> Tensor:
        """Pass one block."""
        inner = nn.functional.relu(self.bn1(self.conv1(x)))
        return x + 0.5 * self.bn2(self.conv2(inner))


class Recurrent(nn.Module):
    """A recurrent layer with a way around it."""

    def __init__(self, width: int, kind: str) -> None:
        """Make the parts."""
        super().__init__()
        self.norm = nn.LayerNorm(width)
        self.rnn = getattr(nn, kind)(width, width // 2, batch_first=True, bidirectional=True)
        self.out_proj = nn.Linear(width, width)

    def forward(self, x: Tensor) -> Tensor:
        """Pass one layer."""
        return x + self.out_proj(self.rnn(self.norm(x))[0])


class Network(nn.Module):
    """An embedding, blocks, a norm, a head."""

    def __init__(self, blocks: list[nn.Module], width: int, *, picture: bool) -> None:
        """Take the blocks."""
        super().__init__()
        self.embed = nn.Linear(WIDTH // 2, width)
        self.layers = nn.ModuleList(blocks)
        self.final_norm = nn.LayerNorm(width)
        self.lm_head = nn.Linear(width, CLASSES)
        self.picture = picture

    def forward(self, x: Tensor) -> Tensor:
        """Score the classes."""
        x = self.embed(x)
        if self.picture:
            x = x.transpose(1, 2)
        for layer in self.layers:
            x = layer(x)
        if self.picture:
            x = x.transpose(1, 2)
        return self.lm_head(self.final_norm(x).mean(1))


class Kind(NamedTuple):
    """How to make a network, and what its blocks are."""

    name: str
    make: Callable[[], Network]
    family: str


def _kinds(*rows: tuple[str, str, int, Callable[[], nn.Module]]) -> tuple[Kind, ...]:
    def maker(family: str, number: int, block: Callable[[], nn.Module]) -> Callable[[], Network]:
        return lambda: Network([block() for _ in range(number)], WIDTH, picture=family == "cnn")

    return tuple(
        Kind(name, maker(family, number, block), family) for name, family, number, block in rows
    )


CHOSEN = _kinds(
    ("transformer", "transformer", 7, lambda: Block(WIDTH, gated=False)),
    ("mlp", "mlp", 18, lambda: Dense(WIDTH, 48, norm=True)),
    ("cnn", "cnn", 12, lambda: Convolutions(WIDTH, depthwise=False)),
    ("lstm", "recurrent", 9, lambda: Recurrent(WIDTH, "LSTM")),
)
HELD_BACK = _kinds(
    ("llama", "transformer", 12, lambda: Block(WIDTH, gated=True)),
    ("plain-mlp", "mlp", 26, lambda: Dense(WIDTH, 40, norm=False)),
    ("depthwise-cnn", "cnn", 13, lambda: Convolutions(WIDTH, depthwise=True)),
    ("gru", "recurrent", 10, lambda: Recurrent(WIDTH, "GRU")),
)


class Trained(NamedTuple):
    """A network before and after a fine-tune, and the data it is evaluated on."""

    kind: Kind
    network: Network
    good: State
    drifted: State
    inputs: Tensor
    labels: Tensor

    def score(self, state: Any) -> float:
        """Return the mean log-probability of the right class, at least -20."""
        self.network.load_state_dict(state)
        self.network.eval()
        with torch.no_grad():
            logits = self.network(self.inputs)
            loss = nn.functional.cross_entropy(logits.double(), self.labels, reduction="none")
        return -float(torch.nan_to_num(loss, 20.0, 20.0).clamp(max=20.0).mean())


def trained(kind: Kind, seed: int) -> Trained:
    """Train a network, and fine-tune it."""
    torch.manual_seed(seed)
    network = kind.make()
    chance = torch.Generator().manual_seed(seed)
    templates = torch.randn(CLASSES, LENGTH, WIDTH // 2, generator=chance)

    def batch(count: int, noise: float) -> tuple[Tensor, Tensor]:
        labels = torch.randint(CLASSES, (count,), generator=chance)
        return templates[labels] + noise * torch.randn(
            count, LENGTH, WIDTH // 2, generator=chance
        ), labels

    def fit(steps: int, rate: float, noise: float) -> State:
        optimizer = torch.optim.AdamW(network.parameters(), rate)
        network.train()
        for _ in range(steps):
            inputs, labels = batch(32, noise)
            loss = nn.functional.cross_entropy(network(inputs), labels)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        return {name: value.clone() for name, value in network.state_dict().items()}

    good = fit(120, 2e-3, 1.5)
    drifted = fit(60, 2e-4, 1.3)
    return Trained(kind, network, good, drifted, *batch(160, 1.5))
