"""Healthy parents that read tokens: each task has a network of another kind."""

from __future__ import annotations

from dataclasses import replace

from .config import Config
from .parents import Parent, accurate, low

_HEADS = Config(
    model="token-transformer", depth=2, width=32, length=12, batch=32, init="xavier",
    norm="layer", residual=True, activation="gelu", reads="every", lr=3e-3,
)  # fmt: skip
_MEMORY = Config(model="token-memory", depth=1, width=32, entry=16, init="xavier", batch=32)
_SGD = Config(optimiser="sgd", batch=32, lr=0.1)

TOKENS_PARENTS: dict[str, Parent] = {
    # An encoder turns eight tokens round.
    "tokens-reverse": accurate(replace(_HEADS, data="token-reverse", steps=200), 0.90, 0.1),
    # A decoder goes on with the sentences of a small grammar.
    "tokens-grammar": low(
        replace(_HEADS, data="token-grammar", causal=True, width=24, lr=2e-3, optimiser="adamw"),
        0.85, 0.05,
    ),
    # An encoder with its norms behind fills in what was masked.
    "tokens-masked": low(
        replace(_HEADS, data="token-masked", depth=3, width=24, norm_place="post", lr=2e-3,
                warmup=40),
        1.0, 0.15,
    ),
    # Two layers of memory count brackets.
    "tokens-brackets": accurate(
        replace(_MEMORY, data="token-brackets", depth=2, reads="every", lr=5e-3, steps=200),
        0.93, 0.05,
    ),
    # A plain memory keeps the first token.
    "tokens-recall": accurate(
        replace(_MEMORY, data="token-recall", cell="rnn", activation="tanh", recurrent="identity",
                length=12, lr=5e-3, steps=200),
        0.95, 0.1,
    ),
    # A bag of words tells its topic.
    "tokens-topics": accurate(
        replace(_SGD, model="token-bag", data="token-topics", depth=2, width=32, momentum=0.9),
        0.90, 0.05,
    ),
    # Ten layers over digits side by side.
    "tokens-sums": accurate(
        replace(_SGD, model="token-stack", data="token-sums", depth=10, width=24, entry=8,
                optimiser="adam", lr=3e-3, batch=64, steps=350),
        0.80, 0.1,
    ),
    # Convolutions with batch norms tag words.
    "tokens-tags": accurate(
        replace(_SGD, model="token-convolution", data="token-tags", depth=4, width=24, entry=12,
                norm="batch", reads="every", momentum=0.9),
        0.93, 0.05,
    ),
}  # fmt: skip
