"""Healthy parents of the faults in the report: none of them was there when rules were chosen."""

from __future__ import annotations

from dataclasses import replace

from .config import Config
from .parents import Parent, accurate, low

_MLP = Config(depth=2, width=200, optimiser="sgd", lr=0.05, momentum=0.9, batch=48, steps=240)
_GELU = Config(
    depth=2, width=256, activation="gelu", init="xavier", optimiser="adamw", lr=5e-4,
    weight_decay=0.01, batch=96, steps=220,
)  # fmt: skip
_ELU = Config(
    depth=4, width=48, activation="elu", init="xavier", optimiser="rmsprop", lr=1e-3, steps=260
)
_TANH = Config(
    data="wine", depth=2, width=24, activation="tanh", init="xavier", optimiser="sgd", lr=0.1,
    batch=16, steps=240,
)  # fmt: skip
_FRIEDMAN = Config(
    data="friedman", depth=2, width=48, optimiser="sgd", lr=0.02, momentum=0.8, batch=32, steps=320
)
_LSTM = Config(model="lstm", data="rows", width=32, lr=6e-3, steps=240)
_WAVES = Config(model="gru", data="waves", length=24, width=24, lr=8e-3, clip=1.0, steps=240)
_FIRST = Config(
    model="lstm", data="sequences", length=25, width=20, lr=1e-2, memory_bias=2.0, steps=220
)
_CNN = Config(model="cnn", depth=4, width=10, lr=2e-3, batch=48, steps=240)
_RES = replace(
    _CNN, depth=6, width=8, residual=True, norm="batch", optimiser="sgd", lr=0.03, momentum=0.9,
    init="xavier",
)  # fmt: skip
_GPT = Config(
    model="transformer", data="markov", depth=3, width=16, length=8, batch=24, init="xavier",
    optimiser="adamw", lr=4e-3, warmup=20, steps=260,
)  # fmt: skip
_DEEP = Config(depth=10, width=40, optimiser="sgd", lr=0.015, momentum=0.9, steps=320)
_LN = Config(
    depth=12, width=32, activation="silu", norm="layer", residual=True, init="xavier",
    optimiser="adamw", lr=1e-3, steps=260,
)  # fmt: skip

_STREAM = replace(_ELU, depth=3, batch=20, optimiser="sgd", lr=0.1, steps=280)
_GPT_SGD = replace(_GPT, depth=2, optimiser="sgd", lr=0.3, momentum=0.9)
_CODER = replace(_ELU, data="autoencoder", activation="tanh", lr=2e-3)
_IRNN = Config(model="rnn", activation="relu", recurrent="identity", steps=240)
_GROUP = replace(_CNN, depth=3, width=12, norm="group", activation="silu", optimiser="rmsprop")
_FEW = replace(_ELU, data="spirals", samples=60, label_noise=0.3, optimiser="adam", lr=3e-3)
_BATCH3 = replace(_STREAM, activation="tanh", batch=3, lr=0.03, steps=500)

UNSEEN_PARENTS: dict[str, Parent] = {
    "wide": accurate(_MLP, 0.93),
    "wide-gelu": accurate(_GELU, 0.93),
    "elu-rmsprop": accurate(_ELU, 0.93),
    "adagrad": accurate(
        replace(_MLP, depth=3, width=80, optimiser="adagrad", lr=0.03, momentum=0.0), 0.92
    ),
    "decaying": accurate(
        replace(_MLP, momentum=0.0, lr=0.2, schedule="exponential", gamma=0.995), 0.93
    ),
    "stepped": accurate(
        replace(_ELU, optimiser="adam", schedule="steps", gamma=0.5, period=100), 0.93
    ),
    "norm": accurate(replace(_MLP, depth=3, width=96, norm="batch", lr=0.1), 0.93),
    "raw-pixels": accurate(replace(_MLP, optimiser="adam", lr=1e-3, input_scale=20.0), 0.90),
    "hot": accurate(replace(_MLP, optimiser="adam", lr=0.03, input_scale=3.0), 0.88),
    "spirals": accurate(
        replace(_ELU, data="spirals", activation="mish", optimiser="nadam", lr=5e-3, steps=320),
        0.90,
    ),
    "moons": accurate(replace(_ELU, data="moons", width=24, activation="relu", lr=3e-3), 0.95),
    "wine": accurate(_TANH, 0.90),
    "friedman": low(_FRIEDMAN, 0.16, 0.1),
    "friedman-adamw": low(
        replace(_GELU, data="friedman", depth=3, width=64, lr=3e-3, steps=280), 0.05, 0.05
    ),
    "coder": low(replace(_CODER, depth=3, width=24), 0.18, 0.03),
    "lstm-rows": accurate(_LSTM, 0.90),
    "rnn-rows": accurate(
        replace(_LSTM, model="rnn", activation="tanh", width=48, lr=2e-3, clip=1.0), 0.88
    ),
    "gru-waves": low(_WAVES, 0.09, 0.05),
    "rnn-first": accurate(
        replace(
            _FIRST,
            model="rnn",
            activation="tanh",
            memory_bias=0.0,
            width=24,
            length=30,
            optimiser="rmsprop",
            lr=1e-3,
        ),
        0.95,
    ),
    "irnn-waves": low(
        replace(_IRNN, data="waves", length=24, width=24, init="xavier", lr=3e-3, clip=1.0),
        0.5,
        0.1,
    ),
    "lstm-first": accurate(_FIRST, 0.95),
    "cnn4": accurate(_CNN, 0.93),
    "cnn-group": accurate(replace(_GROUP, lr=1e-3), 0.93),
    "cnn-residual": accurate(_RES, 0.88),
    "cnn-norm": accurate(replace(_RES, residual=False, init="he", init_scale=2.0, lr=0.2), 0.90),
    "cnn-sgd": accurate(replace(_CNN, depth=3, optimiser="sgd", lr=0.05, momentum=0.9), 0.92),
    "pre-norm": low(_GPT, 1.40, 0.1),
    "gpt-sgd": low(_GPT_SGD, 1.45, 0.1),
    "deep10": accurate(_DEEP, 0.90),
    "deep10-gelu": accurate(
        replace(_DEEP, activation="gelu", optimiser="adam", momentum=0.0, lr=1e-3), 0.88
    ),
    "deep14-tanh": accurate(
        replace(_DEEP, activation="tanh", init="xavier", depth=14, lr=0.02), 0.90
    ),
    "residual12": accurate(_LN, 0.92),
    "tuned": accurate(replace(_GELU, depth=3, width=64, pretrained=120, lr=2e-4, steps=160), 0.94),
    "few-cnn": low(
        replace(_CNN, depth=2, width=24, samples=80, label_noise=0.5, stop_step=30, steps=360),
        1.70,
        0.15,
    ),
    "few-spirals": low(replace(_FEW, stop_step=40, steps=320), 0.75, 0.1),
    "accumulated": accurate(
        replace(_MLP, depth=3, width=64, momentum=0.0, lr=0.2, batch=8, accumulate=8, steps=160),
        0.92,
    ),
    "batch3": accurate(_BATCH3, 0.88),
    "stream": accurate(_STREAM, 0.92),
    "warm-sgd": low(replace(_GPT_SGD, warmup=150), 1.45, 0.1),
    "climbing": accurate(replace(_STREAM, schedule="steps", gamma=0.7, period=40), 0.92),
    "residual-sgd": accurate(replace(_LN, depth=10, optimiser="sgd", lr=0.05, momentum=0.9), 0.90),
    "deep-coder": low(replace(_CODER, depth=7, width=32, optimiser="adam"), 0.30, 0.08),
    "rnn-clipped": accurate(
        replace(_IRNN, data="rows", width=40, optimiser="sgd", lr=0.4, clip=0.3), 0.70
    ),
    "few-gpt": low(
        replace(_GPT, samples=50, width=32, depth=2, stop_step=35, steps=260), 1.68, 0.15
    ),
}
