"""All knobs of a training run: a healthy parent is a set of them, a fault changes one or two.

A class per fault was not taken: with knobs a fault is one line that can be read beside its parent,
a remedy is the same kind of line, and the hash of the knobs is the name of the cached run.
"""

from __future__ import annotations

import hashlib
import json
from dataclasses import asdict, dataclass


@dataclass(frozen=True)
class Config:
    """One way to train one small network; the defaults are a healthy classifier of digits."""

    # What is learnt, from what.
    data: str = "digits"  # digits cancer blobs circles sequences markov regression autoencoder
    samples: int = 0  # training examples used, 0 is all
    length: int = 60  # of sequences
    input_scale: float = 1.0
    input_shift: float = 0.0
    target_scale: float = 1.0
    labels: str = "true"  # true permuted
    label_noise: float = 0.0  # share of the training labels drawn anew
    order: str = "shuffled"  # shuffled sorted
    bad_step: int | None = None  # a NaN sits in the batch of this step

    # The network.
    model: str = "mlp"  # mlp cnn rnn gru transformer logistic
    depth: int = 3  # hidden layers or blocks
    width: int = 64
    activation: str = "relu"
    init: str = "he"  # he xavier orthogonal normal zero
    init_scale: float = 1.0
    odd_layer: int | None = None  # one hidden layer with a scale and a bias of its own
    odd_scale: float = 1.0
    odd_bias: float = 0.0
    hidden_bias: float = 0.0
    output_bias: float = 0.0  # of the first class
    recurrent: str = "orthogonal"  # orthogonal identity
    recurrent_scale: float = 1.0
    norm: str = "none"  # none layer batch
    norm_place: str = "pre"  # pre post
    residual: bool = False
    dropout: float = 0.0

    # How it is optimised.
    optimiser: str = "adam"  # sgd adam adamw
    lr: float = 1e-3
    momentum: float = 0.0
    weight_decay: float = 0.0
    schedule: str = "constant"  # constant cosine cyclic early-zero ramp
    warmup: int = 0
    batch: int = 64
    clip: float | None = None
    accumulate: int = 1
    steps: int = 300
    kick_step: int | None = None  # the step at which the rate is multiplied once
    kick_factor: float = 1.0

    # The loop.
    zero_grad: str = "start"  # start, before-backward, after-step or never
    calls_step: bool = True
    train_mode: bool = True
    optimised: str = "all"  # all, last, or all-but-N: hidden layer N is left out
    frozen: int = 0  # hidden layers frozen on purpose
    detach_after: int | None = None  # hidden layer whose output is cut from the graph
    softmax: bool = False  # before cross-entropy
    loss_sign: int = 1
    loss: str = "auto"  # auto (by the data) or naive-log
    skip_nonfinite: bool = False
    stop_step: int | None = None

    @property
    def key(self) -> str:
        """Name this configuration by its content."""
        text = json.dumps(asdict(self), sort_keys=True)
        return hashlib.sha256(text.encode()).hexdigest()[:12]
