"""Healthy parents of the part `odd`: small and quick, many of them unusual themselves."""

from __future__ import annotations

from dataclasses import replace

from .config import Config
from .parents import Parent, accurate, low

_PLAIN = Config(depth=2, width=44, lr=2e-3, steps=180)
_SGD = replace(_PLAIN, optimiser="sgd", lr=0.08, momentum=0.8)
_TABLE = Config(
    data="friedman", depth=2, width=36, activation="tanh", init="xavier", lr=8e-3, steps=240
)
_DEEP = Config(depth=7, width=28, activation="gelu", init="xavier", lr=3e-3, steps=220)
_SPREAD = Config(
    data="spread", depth=2, width=28, activation="elu", init="xavier", loss="gaussian", lr=5e-3,
    batch=48, steps=260, clip=5.0,
)  # fmt: skip

ODD_PARENTS: dict[str, Parent] = {
    "odd-read": accurate(_PLAIN, 0.92),
    "odd-columns": low(_TABLE, 0.16, 0.1),
    # Entries that are missing are replaced by the mean of their column.
    "odd-gaps": accurate(
        replace(_SGD, data="cancer", width=20, lr=0.03, batch=32, missing=0.02), 0.92
    ),
    "odd-rows": low(replace(_TABLE, samples=250, activation="elu", lr=4e-3, steps=300), 0.30, 0.1),
    "odd-pairs": accurate(
        replace(_SGD, batch=2, lr=0.01, momentum=0.6, activation="elu", steps=700), 0.88
    ),
    "odd-hinges": accurate(replace(_PLAIN, depth=3, activation="mish", optimiser="nadam"), 0.92),
    "odd-spread": low(_SPREAD, -0.4, 0.15),
    "odd-normed": accurate(replace(_DEEP, norm="layer"), 0.90),
    "odd-half": accurate(replace(_PLAIN, depth=4, width=32, lr=2.5e-3, epsilon=1e-6), 0.90),
    # Nine weights of twenty are held at zero, as a lottery ticket has them.
    "odd-sparse": accurate(
        replace(_PLAIN, depth=4, width=56, pruned=(("hidden.*.linear.weight", 0.45),), steps=220),
        0.90,
    ),
    "odd-wide": accurate(
        replace(_PLAIN, data="spirals", depth=2, width=16, lr=1.5e-2, steps=400), 0.90
    ),
    "odd-resumed": accurate(replace(_DEEP, depth=5, schedule="cosine"), 0.90),
    # Gradients come a step late, as where two machines take turns.
    "odd-late": accurate(replace(_SGD, lr=0.05, delay=1, width=40), 0.92),
    # One bit a weight is sent: the sign of its gradient.
    "odd-signs": accurate(
        replace(_SGD, momentum=0.0, signs=True, lr=1.5e-3, schedule="linear", steps=240), 0.90
    ),
    # The greatest tenth of each gradient is sent.
    "odd-sent": accurate(replace(_SGD, width=60, lr=0.1, top_share=0.1, steps=240), 0.90),
    "odd-judged": accurate(
        replace(_SGD, depth=4, width=32, lr=0.02, momentum=0.7, reduces="min", steps=320), 0.90
    ),
    # Layers that no step reaches, and narrow pairs beside them that learn.
    "odd-adapters": accurate(
        Config(
            model="odd-adapters",
            data="spirals",
            depth=2,
            width=20,
            code=6,
            init="xavier",
            adapters="up",
            lr=1.5e-2,
            steps=400,
        ),
        0.88,
    ),
    "odd-domains": accurate(replace(_SGD, depth=3, lr=0.06, activation="elu", init="xavier"), 0.92),
    "odd-assigned": accurate(replace(_SGD, depth=4, width=36, lr=0.02, steps=240), 0.91),
    # A step as long as the loss and its slope ask for (Polyak 1987), up to a limit.
    "odd-slopes": accurate(
        replace(_SGD, activation="gelu", momentum=0.9, label_noise=0.25, polyak=0.05, steps=240),
        0.88,
    ),
}
