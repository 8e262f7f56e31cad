"""A small causal transformer, its norm before or after each half block."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from .configs import Config

_HEADS = 4


class Attention(nn.Module):
    """Causal self-attention with projections of its own, so that each is a layer to watch."""

    def __init__(self, width: int) -> None:
        """Make the projections."""
        super().__init__()
        self.project = nn.Linear(width, 3 * width)
        self.gather = nn.Linear(width, width)

    def forward(self, values: Tensor) -> Tensor:
        """Let each place look back."""
        count, length, width = values.shape
        parts = self.project(values).reshape(count, length, 3, _HEADS, width // _HEADS)
        query, key, value = parts.permute(2, 0, 3, 1, 4)
        seen = nn.functional.scaled_dot_product_attention(query, key, value, is_causal=True)
        result: Tensor = self.gather(seen.transpose(1, 2).reshape(count, length, width))
        return result


class Block(nn.Module):
    """Attention and a two-layer network, each with a residual way around it."""

    def __init__(self, config: Config) -> None:
        """Make the parts."""
        super().__init__()
        width = config.width
        self.post = config.norm_place == "post"
        self.attention_norm = nn.LayerNorm(width)
        self.attention = Attention(width)
        self.widen = nn.Linear(width, 4 * width)
        self.widen_activation = nn.GELU()
        self.narrow = nn.Linear(4 * width, width)
        self.norm = nn.LayerNorm(width)
        self.dropout = nn.Dropout(config.dropout) if config.dropout else nn.Identity()

    def forward(self, values: Tensor) -> Tensor:
        """Pass one block."""
        if self.post:
            values = self.attention_norm(values + self.dropout(self.attention(values)))
            result: Tensor = self.norm(values + self.dropout(self._inner(values)))
            return result
        values = values + self.dropout(self.attention(self.attention_norm(values)))
        after: Tensor = values + self.dropout(self._inner(self.norm(values)))
        return after

    def _inner(self, values: Tensor) -> Tensor:
        result: Tensor = self.narrow(self.widen_activation(self.widen(values)))
        return result


class Transformer(nn.Module):
    """Tokens in, scores of the next token out."""

    def __init__(self, config: Config, classes: int, length: int, ending: nn.Module) -> None:
        """Make embeddings and blocks."""
        super().__init__()
        self.tokens = nn.Embedding(classes, config.width)
        self.places = nn.Embedding(length, config.width)
        self.hidden = nn.ModuleList(Block(config) for _ in range(config.depth))
        self.norm = nn.Identity() if config.norm_place == "post" else nn.LayerNorm(config.width)
        self.output = nn.Linear(config.width, classes)
        self.ending = ending
        self.detach_after = config.detach_after

    def forward(self, tokens: Tensor) -> Tensor:
        """Score the next token at each place."""
        values = self.tokens(tokens) + self.places(torch.arange(tokens.shape[1]))
        for number, block in enumerate(self.hidden):
            values = block(values)
            if self.detach_after == number:
                values = values.detach()
        result: Tensor = self.ending(self.output(self.norm(values)))
        return result
