"""Networks that read tokens: transformers, memories, bags, convolutions and stacks of layers."""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor, nn

from .configs import Config
from .data import Data

_HEADS = 2


class Reader(nn.Module):
    """Embeds tokens, passes them through its hidden blocks, and scores places or the whole."""

    def __init__(self, config: Config, data: Data) -> None:
        """Make the embedding, the blocks of the kind that the subclass gives, and the output."""
        from .networks import _ending

        super().__init__()
        words = 1 + int(max(data.inputs.max(), data.held_inputs.max()))
        self.config, self.length = config, int(data.inputs.shape[1])
        self.entry = config.entry or config.width
        self.tokens = nn.Embedding(words, self.entry)
        self.hidden = nn.ModuleList(self.block(number) for number in range(config.depth))
        self.output = nn.Linear(config.width, data.outputs)
        self.ending = _ending(config)

    def block(self, number: int) -> nn.Module:
        """Make the hidden block of a number: a layer, a norm, an activation, dropout."""
        from .networks import _activation

        config, block = self.config, nn.Sequential()
        block.add_module(*self.layer(self.entering(number)))
        if config.norm != "none":
            block.add_module("norm", self.norm())
        block.add_module("activation", _activation(config.activation))
        if config.dropout:
            block.add_module("dropout", nn.Dropout(config.dropout))
        return block

    def entering(self, number: int) -> int:
        """Return the width that enters a block."""
        return self.config.width if number else self.entry

    def layer(self, entering: int) -> tuple[str, nn.Module]:
        """Return the layer of a block, with its name."""
        return "linear", nn.Linear(entering, self.config.width)

    def norm(self) -> nn.Module:
        """Return the norm of a block."""
        width = self.config.width
        return nn.BatchNorm1d(width) if self.config.norm == "batch" else nn.LayerNorm(width)

    def entered(self, tokens: Tensor) -> Tensor:
        """Return what the first block sees."""
        values: Tensor = self.tokens(tokens)
        return values

    def passed(self, block: nn.Module, values: Tensor) -> Tensor:
        """Pass one block, with the shortcut around it where there is one."""
        after: Tensor = block(values)
        return values + after if self.config.residual and after.shape == values.shape else after

    def read(self, values: Tensor) -> Tensor:
        """Return what the output layer sees."""
        if values.ndim < 3 or self.config.reads == "every":
            return values
        return values.mean(1) if self.config.reads == "mean" else values[:, -1]

    def forward(self, tokens: Tensor) -> Tensor:
        """Score each place, or the whole."""
        values = self.entered(tokens)
        for number, block in enumerate(self.hidden):
            values = self.passed(block, values)
            if self.config.detach_after == number:
                values = values.detach()
        result: Tensor = self.ending(self.output(self.read(values)))
        return result


class TokenBag(Reader):
    """The mean of the embeddings, and layers behind it."""

    def entered(self, tokens: Tensor) -> Tensor:
        """Forget the order."""
        return super().entered(tokens).mean(1)


class TokenStack(Reader):
    """The embeddings side by side, and layers behind them."""

    def entering(self, number: int) -> int:
        """Return the width of all embeddings to the first layer."""
        return super().entering(number) if number else self.entry * self.length

    def entered(self, tokens: Tensor) -> Tensor:
        """Put the embeddings side by side."""
        return super().entered(tokens).flatten(1)


class TokenConvolution(Reader):
    """Convolutions along the places."""

    def layer(self, entering: int) -> tuple[str, nn.Module]:
        """Look at a place and its neighbours."""
        return "conv", nn.Conv1d(entering, self.config.width, 3, padding=1)

    def norm(self) -> nn.Module:
        """Return a norm of channels."""
        width = self.config.width
        return nn.BatchNorm1d(width) if self.config.norm == "batch" else nn.GroupNorm(4, width)

    def entered(self, tokens: Tensor) -> Tensor:
        """Put the places last, as convolutions want them."""
        return super().entered(tokens).transpose(1, 2)

    def read(self, values: Tensor) -> Tensor:
        """Put the places back."""
        return super().read(values.transpose(1, 2))


class TokenMemory(Reader):
    """Recurrent layers one above the other."""

    def block(self, number: int) -> nn.Module:
        """Make a recurrent layer of the cell that is asked for."""
        size = self.entering(number), self.config.width
        if self.config.cell == "rnn":
            return nn.RNN(*size, nonlinearity=self.config.activation, batch_first=True)
        return (nn.LSTM if self.config.cell == "lstm" else nn.GRU)(*size, batch_first=True)

    def passed(self, block: nn.Module, values: Tensor) -> Tensor:
        """Return the states of all places."""
        states: Tensor = block(values)[0]
        return values + states if self.config.residual else states


class Heads(nn.Module):
    """Self-attention with a layer each for questions, keys, values and what comes of them."""

    def __init__(self, config: Config) -> None:
        """Make the four layers."""
        super().__init__()
        width = config.width
        self.query, self.key = nn.Linear(width, width), nn.Linear(width, width)
        self.value, self.mix = nn.Linear(width, width), nn.Linear(width, width)
        self.causal = config.causal
        self.scale = config.attention_scale * (width // _HEADS) ** -0.5

    def forward(self, values: Tensor) -> Tensor:
        """Let each place look at the others."""
        parts = (layer(values) for layer in (self.query, self.key, self.value))
        query, key, value = (each.unflatten(-1, (_HEADS, -1)).transpose(1, 2) for each in parts)
        seen = nn.functional.scaled_dot_product_attention(
            query, key, value, is_causal=self.causal, scale=self.scale
        )
        result: Tensor = self.mix(seen.transpose(1, 2).flatten(2))
        return result


class HeadsBlock(nn.Module):
    """Attention and two layers, each with a norm and, where asked for, a shortcut."""

    def __init__(self, config: Config, activation: nn.Module) -> None:
        """Make the parts."""
        super().__init__()
        self.post, self.residual = config.norm_place == "post", config.residual
        normed = config.norm != "none"
        self.attention = Heads(config)
        self.attention_norm = nn.LayerNorm(config.width) if normed else nn.Identity()
        self.widen = nn.Linear(config.width, 2 * config.width)
        self.activation = activation
        self.narrow = nn.Linear(2 * config.width, config.width)
        self.norm = nn.LayerNorm(config.width) if normed else nn.Identity()
        self.dropout = nn.Dropout(config.dropout) if config.dropout else nn.Identity()

    def forward(self, values: Tensor) -> Tensor:
        """Pass both halves."""
        values = self._half(values, self.attention_norm, self.attention)
        return self._half(values, self.norm, self._inner)

    def _half(self, values: Tensor, norm: nn.Module, part: Callable[[Tensor], Tensor]) -> Tensor:
        after = self.dropout(part(values if self.post else norm(values)))
        after = values + after if self.residual else after
        result: Tensor = norm(after) if self.post else after
        return result

    def _inner(self, values: Tensor) -> Tensor:
        result: Tensor = self.narrow(self.activation(self.widen(values)))
        return result


class TokenTransformer(Reader):
    """Blocks of attention; places are learnt."""

    def __init__(self, config: Config, data: Data) -> None:
        """Make an embedding of the places and the last norm besides."""
        super().__init__(config, data)
        if config.places:
            self.places = nn.Embedding(self.length, self.entry)
        ends = config.norm != "none" and config.norm_place == "pre"
        self.norm_last = nn.LayerNorm(config.width) if ends else nn.Identity()

    def block(self, number: int) -> nn.Module:
        """Make a block of attention."""
        from .networks import _activation

        del number
        return HeadsBlock(self.config, _activation(self.config.activation))

    def entered(self, tokens: Tensor) -> Tensor:
        """Add the places."""
        values = super().entered(tokens)
        return values + self.places(torch.arange(self.length)) if self.config.places else values

    def passed(self, block: nn.Module, values: Tensor) -> Tensor:
        """Pass a block, which has shortcuts of its own."""
        after: Tensor = block(values)
        return after

    def read(self, values: Tensor) -> Tensor:
        """Return what the output layer sees, behind the last norm."""
        normed: Tensor = self.norm_last(values)
        return super().read(normed)


NETWORKS: dict[str, Callable[[Config, Data], nn.Module]] = {
    "token-bag": TokenBag,
    "token-stack": TokenStack,
    "token-convolution": TokenConvolution,
    "token-memory": TokenMemory,
    "token-transformer": TokenTransformer,
}
