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
    """Return a knob that came after runs were kept: at its default it is not part of the key."""
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
    labels: str = "true"  # true permuted shifted same (as the inputs)
    label_noise: float = 0.0  # share of the training labels drawn anew
    order: str = "shuffled"  # shuffled sorted stuck (the same batch for ever)
    bad_step: int | None = None  # something sits in the batch of this step: a NaN, or
    bad_kind: str = _later("nan")  # nan infinite target outlier blank empty wild-target
    jitter: float = _later(0.0)  # sd of the noise that is put on every batch
    augment: str = _later("none")  # of training batches: any name in mishaps.augmented
    held_scale: float = _later(1.0)  # of the inputs held back alone
    odd_column: float = _later(1.0)  # scale of the first column of a table
    imbalance: float = _later(1.0)  # share of the upper half of the classes that is kept
    tail: int = _later(0)  # empty places put behind each sequence, in training and held back
    in_place: tuple[float, float] = _later((1.0, 0.0))  # factor and shift of an example once read
    leak: bool = _later(False)  # a column holds the target, in training alone
    missing: float = _later(0.0)  # share of a table's entries that are missing
    missing_as: float = _later(0.0)  # and what stands in their place
    identifiers: int = _later(0)  # columns that code an identifier of each row

    # The network.
    model: str = "mlp"  # any name in networks.build
    depth: int = 3  # hidden layers or blocks
    width: int = 64
    activation: str = "relu"
    init: str = "he"  # any name in starts
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
    skip_gain: float = _later(1.0)  # of the shortcut
    cut_branches: bool = _later(False)  # what lies beside a shortcut is cut from the graph
    own_eps: float | None = _later(None)  # pictures are scaled by their own spread and this
    mixed_up: bool = _later(False)  # a reshape in the place of a transpose
    gate_bias: float = _later(0.0)  # of what is named a gate, or is one of a GRU
    norm_scale: float = _later(1.0)  # of the norms' weights at the start
    norm_momentum: float = _later(0.1)  # of the statistics that a batch norm keeps
    norms_eval: bool = _later(False)  # norms alone are in evaluation mode
    spread_limit: float | None = _later(None)  # of the log of a variance
    pace: float = _later(8.0)  # of waves
    copied: bool = _later(False)  # hidden blocks start as copies of the first
    norm_eps: float = _later(1e-5)  # what norms add to a variance
    widened: int = _later(1)  # times each unit of a smaller network was copied
    same_layers: bool = _later(False)  # hidden layers of one shape start as one
    adapters: str = _later("")  # what starts at zero of a frozen layer's adapter: up both

    # Networks that read series and those that code what they see.
    cell: str = _later("gru")  # of a reader: rnn gru lstm
    reads: str = _later("last")  # what the output sees: last mean every first
    pads: str = _later("masked")  # masked, or read like all the rest
    batch_first: bool = _later(True)  # as the data lie
    causal: bool = _later(False)
    places: bool = _later(True)  # a transformer knows where a token stands
    attention_scale: float = _later(1.0)  # on top of the usual one
    entry: int = _later(0)  # width of embeddings, 0 is the width of the network
    entry_scale: float = _later(1.0)  # of embeddings at the start
    tied: bool = _later(False)  # the output layer is the embedding
    gated: bool = _later(False)  # convolutions with a gate each
    alike: str = _later("")  # pattern of the parameters that start as one value each
    code: int = _later(8)  # width of an autoencoder's narrowest layer
    kl: float = _later(0.0)  # weight of a variational autoencoder's second loss

    # How it is optimised.
    optimiser: str = "adam"  # any name in optimisers
    lr: float = 1e-3
    momentum: float = 0.0
    betas: tuple[float, float] = _later((0.9, 0.999))  # of Adam and its kin
    epsilon: float = _later(1e-8)
    left_out: str = _later("")  # pattern of the parameters the optimiser was not given
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
    rates: tuple[tuple[str, float], ...] = _later(())  # factors of the rate, by names
    doubled: int = _later(1)  # times that each parameter is handed to the optimiser
    clip_each: float | None = _later(None)  # each element of the gradient
    grad_noise: float = _later(0.0)
    burst_step: int | None = _later(None)  # the step at which gradients are multiplied once
    burst_factor: float = _later(1.0)
    growth: float = _later(0.0)  # by which weights grow at each step
    weights_in: str = _later("")  # bfloat16: weights are rounded behind each step
    delay: int = _later(0)  # steps by which the gradients that are applied are late
    signs: bool = _later(False)  # gradients are replaced by their signs
    top_share: float = _later(1.0)  # of each gradient's elements, the greatest, that is sent
    polyak: float | None = _later(None)  # the rate is the loss by the squared gradient, up to this
    state_in: str = _later("")  # float16: what the optimiser keeps is rounded
    reduces: str = _later("")  # the rate, where validation got no smaller or greater: min max

    # The loop.
    zero_grad: str = "start"  # start before-backward before-step after-step never
    calls_step: bool = True
    train_mode: bool = True
    optimised: str = "all"  # all last biases norms copy, all-but-N: hidden layer N, or not-PREFIX
    frozen: int = 0  # hidden layers frozen on purpose
    detach_after: int | None = None  # hidden layer whose output is cut from the graph
    softmax: bool = False  # before cross-entropy
    loss_sign: int = 1
    loss: str = "auto"  # auto (by the data), or any name in losses.LOSSES
    label_smoothing: float = _later(0.0)
    held_loss: str = _later("")  # the loss that is measured on what was held back, if another
    temperature: float = _later(1.0)  # by which scores are divided
    prior: float = _later(1.0)  # weight of the second part of a loss
    l1: float = _later(0.0)  # weight of the sum of all weights' sizes
    penalty: float = _later(0.0)  # weight of the squared weights in the loss
    class_weights: str = _later("")  # balanced inverted
    half: bool = _later(False)  # gradients pass through half precision
    loss_scale: float = _later(1.0)  # by which a loss is multiplied before its gradients
    unscaled: bool = _later(True)  # and by which they are divided again
    scale_period: int = _later(0)  # steps after which that scale is doubled
    averaged: float = _later(0.0)  # decay of a moving average written back into the weights
    restored: int = _later(0)  # every so many steps the weights of the start come back
    flip_step: int | None = _later(None)  # the step at which a weight loses a bit
    flip_name: str = _later("")  # and the pattern of the parameter it is in
    reversed_for: str = _later("")  # pattern of the parameters whose gradient is negated
    pruned: tuple[tuple[str, float], ...] = _later(())  # shares of weights held at zero, by names
    events: tuple[tuple[int, str, str], ...] = _later(())  # step, what befalls, which parameters
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
