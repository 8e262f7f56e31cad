"""Small networks of the held-back part, of other families than those of dev."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional

SCRIBE_VOCABULARY, SCRIBE_LENGTH = 112, 56


class RootNorm(nn.Module):
    """RMS norm with a weight, as decoders of today have it."""

    def __init__(self, width: int) -> None:
        """Make the weight."""
        super().__init__()
        self.weight = nn.Parameter(torch.ones(width))

    def forward(self, values: Tensor) -> Tensor:
        """Divide by the root mean square."""
        scale = torch.rsqrt(values.square().mean(-1, keepdim=True) + 1e-6)
        result: Tensor = values * scale * self.weight
        return result


class ScribeAttention(nn.Module):
    """Causal attention of five heads, four projections without biases."""

    def __init__(self, width: int, heads: int) -> None:
        """Make the projections."""
        super().__init__()
        self.heads = heads
        self.q_proj = nn.Linear(width, width, bias=False)
        self.k_proj = nn.Linear(width, width, bias=False)
        self.v_proj = nn.Linear(width, width, bias=False)
        self.o_proj = nn.Linear(width, width, bias=False)

    def forward(self, values: Tensor) -> Tensor:
        """Let each place look back."""
        shape = (*values.shape[:2], self.heads, -1)
        query, key, value = (
            each(values).reshape(shape).transpose(1, 2)
            for each in (self.q_proj, self.k_proj, self.v_proj)
        )
        seen = functional.scaled_dot_product_attention(query, key, value, is_causal=True)
        result: Tensor = self.o_proj(seen.transpose(1, 2).reshape(values.shape))
        return result


class ScribeMlp(nn.Module):
    """A gated network of two layers."""

    def __init__(self, width: int, hidden: int) -> None:
        """Make the projections."""
        super().__init__()
        self.gate_proj = nn.Linear(width, hidden, bias=False)
        self.up_proj = nn.Linear(width, hidden, bias=False)
        self.down_proj = nn.Linear(hidden, width, bias=False)

    def forward(self, values: Tensor) -> Tensor:
        """Gate, then project back."""
        gate = functional.silu(self.gate_proj(values))
        result: Tensor = self.down_proj(gate * self.up_proj(values))
        return result


class ScribeLayer(nn.Module):
    """One decoder layer, its norms before each half."""

    def __init__(self, width: int, heads: int, hidden: int) -> None:
        """Make the halves."""
        super().__init__()
        self.self_attn = ScribeAttention(width, heads)
        self.mlp = ScribeMlp(width, hidden)
        self.input_layernorm = RootNorm(width)
        self.post_attention_layernorm = RootNorm(width)

    def forward(self, values: Tensor) -> Tensor:
        """Pass both halves."""
        values = values + self.self_attn(self.input_layernorm(values))
        result: Tensor = values + self.mlp(self.post_attention_layernorm(values))
        return result


class Scribe(nn.Module):
    """A decoder of characters: seven layers, learned positions, a head of its own."""

    def __init__(self, width: int = 80, layers: int = 7, hidden: int = 216, heads: int = 5) -> None:
        """Make the layers."""
        super().__init__()
        self.model = nn.Module()
        self.model.embed_tokens = nn.Embedding(SCRIBE_VOCABULARY, width)
        self.model.embed_positions = nn.Embedding(SCRIBE_LENGTH, width)
        blocks = (ScribeLayer(width, heads, hidden) for _ in range(layers))
        self.model.layers = nn.ModuleList(blocks)
        self.model.norm = RootNorm(width)
        self.lm_head = nn.Linear(width, SCRIBE_VOCABULARY, bias=False)

    def forward(self, tokens: Tensor) -> Tensor:
        """Return logits of the next character."""
        body: Any = self.model
        values = body.embed_tokens(tokens) + body.embed_positions.weight[: tokens.shape[1]]
        for layer in body.layers:
            values = layer(values)
        result: Tensor = self.lm_head(body.norm(values))
        return result


class Murmur(nn.Module):
    """A recurrent model of characters: two GRU layers."""

    def __init__(self, width: int = 44, hidden: int = 136) -> None:
        """Make the layers."""
        super().__init__()
        self.encoder = nn.Embedding(SCRIBE_VOCABULARY, width)
        self.rnn = nn.GRU(width, hidden, num_layers=2, batch_first=True)
        self.decoder = nn.Linear(hidden, SCRIBE_VOCABULARY)

    def forward(self, tokens: Tensor) -> Tensor:
        """Return logits of the next character."""
        result: Tensor = self.decoder(self.rnn(self.encoder(tokens))[0])
        return result


class GlanceBlock(nn.Module):
    """A vision block with one matrix for queries, keys and values."""

    def __init__(self, width: int, heads: int) -> None:
        """Make the parts."""
        super().__init__()
        self.heads = heads
        self.norm1 = nn.LayerNorm(width)
        self.attn = nn.Module()
        self.attn.qkv = nn.Linear(width, 3 * width)
        self.attn.proj = nn.Linear(width, width)
        self.norm2 = nn.LayerNorm(width)
        self.mlp = nn.Module()
        self.mlp.fc1 = nn.Linear(width, 2 * width)
        self.mlp.fc2 = nn.Linear(2 * width, width)

    def forward(self, values: Tensor) -> Tensor:
        """Pass attention, then the two-layer network."""
        attention: Any = self.attn
        network: Any = self.mlp
        count, length, width = values.shape
        parts = attention.qkv(self.norm1(values)).reshape(count, length, 3, self.heads, -1)
        query, key, value = parts.permute(2, 0, 3, 1, 4)
        seen = functional.scaled_dot_product_attention(query, key, value)
        values = values + attention.proj(seen.transpose(1, 2).reshape(count, length, width))
        inner = functional.gelu(network.fc1(self.norm2(values)))
        result: Tensor = values + network.fc2(inner)
        return result


class Glance(nn.Module):
    """A vision transformer for pictures of 8 x 8: patches of 2 x 2, four blocks."""

    def __init__(self, width: int = 72, depth: int = 4, heads: int = 6) -> None:
        """Make the blocks."""
        super().__init__()
        self.cls_token = nn.Parameter(torch.zeros(1, 1, width))
        self.pos_embed = nn.Parameter(torch.randn(1, 17, width) * 0.02)
        self.patch_embed = nn.Module()
        self.patch_embed.proj = nn.Conv2d(1, width, 2, stride=2)
        self.blocks = nn.ModuleList(GlanceBlock(width, heads) for _ in range(depth))
        self.norm = nn.LayerNorm(width)
        self.head = nn.Linear(width, 10)

    def forward(self, pictures: Tensor) -> Tensor:
        """Return logits of ten classes."""
        embed: Any = self.patch_embed
        patches = embed.proj(pictures).flatten(2).transpose(1, 2)
        first = self.cls_token.expand(len(patches), -1, -1)
        values = torch.cat([first, patches], 1) + self.pos_embed
        for block in self.blocks:
            values = block(values)
        result: Tensor = self.head(self.norm(values)[:, 0])
        return result


class Towers(nn.Module):
    """Two towers, one of users and one of items; their product says whether they match."""

    def __init__(self, users: int = 610, items: int = 430, width: int = 36) -> None:
        """Make both towers."""
        super().__init__()
        self.user_tower = self._tower(users, width)
        self.item_tower = self._tower(items, width)
        self.temperature = nn.Parameter(torch.tensor(1.0))

    @staticmethod
    def _tower(count: int, width: int) -> nn.Module:
        tower = nn.Module()
        tower.embedding = nn.Embedding(count, width)
        tower.hidden = nn.Linear(width, 3 * width)
        tower.norm = nn.LayerNorm(3 * width)
        tower.output = nn.Linear(3 * width, 48)
        return tower

    def forward(self, pairs: Tensor) -> Tensor:
        """Return the logit of each pair of a user and an item."""
        sides = []
        for tower, column in ((self.user_tower, 0), (self.item_tower, 1)):
            part: Any = tower
            inner = functional.relu(part.norm(part.hidden(part.embedding(pairs[:, column]))))
            sides.append(part.output(inner))
        result: Tensor = (sides[0] * sides[1]).sum(-1) * self.temperature
        return result


class Mender(nn.Module):
    """A U-shaped network that takes noise out of pictures: three scales, one bridge each."""

    def __init__(self, width: int = 20) -> None:
        """Make the way down and the way up."""
        super().__init__()
        self.down1 = self._stage(1, width)
        self.down2 = self._stage(width, 2 * width)
        self.middle = self._stage(2 * width, 4 * width)
        self.up2 = nn.ConvTranspose2d(4 * width, 2 * width, 2, stride=2)
        self.merge2 = self._stage(4 * width, 2 * width)
        self.up1 = nn.ConvTranspose2d(2 * width, width, 2, stride=2)
        self.merge1 = self._stage(2 * width, width)
        self.final = nn.Conv2d(width, 1, 1)

    @staticmethod
    def _stage(before: int, after: int) -> nn.Sequential:
        return nn.Sequential(
            nn.Conv2d(before, after, 3, padding=1),
            nn.BatchNorm2d(after),
            nn.ReLU(),
            nn.Conv2d(after, after, 3, padding=1),
            nn.BatchNorm2d(after),
            nn.ReLU(),
        )

    def forward(self, pictures: Tensor) -> Tensor:
        """Return the pictures without noise."""
        first = self.down1(pictures)
        second = self.down2(functional.max_pool2d(first, 2))
        lowest = self.middle(functional.max_pool2d(second, 2))
        upper = self.merge2(torch.cat([self.up2(lowest), second], 1))
        result: Tensor = self.final(self.merge1(torch.cat([self.up1(upper), first], 1)))
        return result


class Voice(nn.Module):
    """The shape of Resemblyzer's encoder of voices: three LSTM layers and one projection."""

    def __init__(self) -> None:
        """Make the layers."""
        super().__init__()
        self.lstm = nn.LSTM(40, 256, 3, batch_first=True)
        self.linear = nn.Linear(256, 256)

    def forward(self, frames: Tensor) -> Tensor:
        """Return one vector of length one for each piece of sound."""
        last = self.lstm(frames)[1][0][-1]
        result: Tensor = functional.normalize(functional.relu(self.linear(last)), dim=1)
        return result
