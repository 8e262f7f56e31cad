"""All knobs of a training run: a healthy parent is a set of them, a fault changes one or two.

A class per fault was not taken: with knobs a fault is one line that can be read beside its parent,
a remedy is the same kind of line, and the hash of the knobs is the name of the cached run.
"""

from __future__ import annotations

import hashlib
import json
from dataclasses import asdict, dataclass, field, fields
from typing import Any


def _later(default: Any) -> Any:
    """Give a knob that came after runs were kept: at its default it is not part of the key."""
    return field(default=default, metadata={"later": True})


@dataclass(frozen=True)
class Config:
    """One way to train one small network; the defaults are a healthy classifier of digits."""

    # What is learnt, from what.
    data: str = "digits"  # any name in data.SETS
    samples: int = 0  # training examples used, 0 is all
    length: int = 60  # of sequences
    input_scale: float = 1.0
    input_shift: float = 0.0
    target_scale: float = 1.0
    labels: str = "true"  # true permuted shifted
    label_noise: float = 0.0  # share of the training labels drawn anew
    order: str = "shuffled"  # shuffled sorted
    bad_step: int | None = None  # something sits in the batch of this step: a NaN, or
    bad_kind: str = _later("nan")  # nan infinite target outlier
    jitter: float = _later(0.0)  # sd of the noise that is put on every batch

    # The network.
    model: str = "mlp"  # mlp cnn rnn gru lstm transformer logistic
    depth: int = 3  # hidden layers or blocks
    width: int = 64
    activation: str = "relu"
    init: str = "he"  # he xavier orthogonal normal zero constant
    init_scale: float = 1.0
    odd_layer: int | None = None  # one hidden layer with a scale and a bias of its own
    odd_scale: float = 1.0
    odd_bias: float = 0.0
    hidden_bias: float = 0.0
    output_bias: float = 0.0  # of the first class
    recurrent: str = "orthogonal"  # orthogonal identity
    recurrent_scale: float = 1.0
    memory_bias: float = _later(0.0)  # of an LSTM's forget gate
    norm: str = "none"  # none layer batch group
    norm_place: str = "pre"  # pre post
    residual: bool = False
    dropout: float = 0.0
    ending: str = _later("none")  # what squashes the scores: none sigmoid tanh relu
    pretrained: int = _later(0)  # steps of Adam before the run begins
    new_head: bool = _later(False)  # with an output layer that is fresh

    # How it is optimised.
    optimiser: str = "adam"  # sgd adam adamw nadam rmsprop adagrad
    lr: float = 1e-3
    momentum: float = 0.0
    weight_decay: float = 0.0
    schedule: str = "constant"  # any name in schedules.SHAPES
    gamma: float = _later(1.0)  # by which a schedule multiplies
    period: int = _later(100)  # steps of a schedule that has periods
    warmup: int = 0
    batch: int = 64
    clip: float | None = None
    accumulate: int = 1
    averages: bool = _later(True)  # accumulated losses are divided by their count
    steps: int = 300
    kick_step: int | None = None  # the step at which the rate is multiplied once
    kick_factor: float = 1.0

    # The loop.
    zero_grad: str = "start"  # start before-backward before-step after-step never
    calls_step: bool = True
    train_mode: bool = True
    optimised: str = "all"  # all last biases copy, or all-but-N: hidden layer N
    frozen: int = 0  # hidden layers frozen on purpose
    detach_after: int | None = None  # hidden layer whose output is cut from the graph
    softmax: bool = False  # before cross-entropy
    loss_sign: int = 1
    loss: str = "auto"  # auto (by the data), or any name in losses.LOSSES
    label_smoothing: float = _later(0.0)
    skip_nonfinite: bool = False
    stop_step: int | None = None

    # What is different from a step on: a fault that was not there from the start.
    switch_step: int | None = _later(None)
    switched: tuple[tuple[str, Any], ...] = _later(())

    @property
    def key(self) -> str:
        """Name this configuration by its content."""
        unused = {
            each.name
            for each in fields(self)
            if each.metadata.get("later") and getattr(self, each.name) == each.default
        }
        knobs = {name: value for name, value in asdict(self).items() if name not in unused}
        text = json.dumps(knobs, sort_keys=True)
        return hashlib.sha256(text.encode()).hexdigest()[:12]
