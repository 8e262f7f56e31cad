"""Healthy parents on structures: graphs, sets, codes, fields, motions, ratings, pairs, heads."""

from __future__ import annotations

from .config import Config
from .parents import Parent, accurate, low

_GRAPH = Config(
    data="structures-spins", model="structures-graph", depth=3, width=32, lr=3e-3, batch=32,
)  # fmt: skip
_SET = Config(
    data="structures-counts", model="structures-pool", depth=3, width=32, lr=2e-3, loss="poisson",
)  # fmt: skip
_DENOISER = Config(
    data="structures-signals", model="structures-hourglass", depth=3, width=48, code=10,
    activation="tanh", init="xavier", optimiser="sgd", momentum=0.9, lr=0.1, batch=32, steps=400,
)  # fmt: skip
_FIELD = Config(
    data="structures-field", model="structures-field", depth=8, width=32, activation="tanh",
    init="xavier", lr=1e-3, steps=400,
)  # fmt: skip
_PENDULUM = Config(
    data="structures-pendulum", model="structures-motion", depth=2, width=32, activation="elu",
    init="xavier", lr=3e-3, steps=250,
)  # fmt: skip
_RATINGS = Config(
    data="structures-ratings", model="structures-ratings", depth=2, width=32, entry=6,
    entry_scale=0.3, optimiser="adamw", weight_decay=0.2, lr=1e-2, batch=128, steps=400,
)  # fmt: skip
_SIAMESE = Config(
    data="structures-same", model="structures-siamese", depth=3, width=48, norm="batch",
    optimiser="sgd", momentum=0.9, lr=0.05, steps=400,
)  # fmt: skip
_HEADS = Config(
    data="structures-regions", model="structures-heads", depth=8, width=5, optimiser="sgd",
    momentum=0.9, lr=0.05, batch=32, steps=400,
)  # fmt: skip

STRUCTURES_PARENTS: dict[str, Parent] = {
    "structures-graph": accurate(_GRAPH, 0.78, 0.05),
    "structures-set": low(_SET, 0.6, 0.1),
    "structures-denoiser": low(_DENOISER, 0.15, 0.05),
    "structures-field": low(_FIELD, 0.06, 0.05),
    "structures-pendulum": low(_PENDULUM, 0.05, 0.03),
    "structures-ratings": low(_RATINGS, 0.25, 0.1),
    "structures-siamese": accurate(_SIAMESE, 0.9, 0.03),
    "structures-heads": low(_HEADS, 0.27, 0.05),
}
