"""The faults of the specification: a line a fault, with the labels that count as right."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any, Literal

from .config import Config
from .images_parents import IMAGES_PARENTS
from .odd_parents import ODD_PARENTS
from .parents import PARENTS, Parent
from .series_parents import SERIES_PARENTS
from .signals_parents import SIGNALS_PARENTS
from .structures_parents import STRUCTURES_PARENTS
from .tables_parents import TABLES_PARENTS
from .tokens_parents import TOKENS_PARENTS
from .unseen_parents import UNSEEN_PARENTS

ALL_PARENTS = (
    PARENTS
    | UNSEEN_PARENTS
    | IMAGES_PARENTS
    | SERIES_PARENTS
    | SIGNALS_PARENTS
    | TOKENS_PARENTS
    | TABLES_PARENTS
    | STRUCTURES_PARENTS
    | ODD_PARENTS
)

# From which step on the fault is there: a number, or what the run itself shows.
Onset = int | Literal["nonfinite", "lowest-validation", "divergence"]


@dataclass(frozen=True)
class Fault:
    """A mutation of a parent, and what a diagnosis should say of it."""

    id: str
    parent_name: str
    cause: str
    changes: dict[str, Any] = field(hash=False)
    name: str  # the class that is right
    accept: tuple[str, ...] = ()  # classes that count as right beside it
    onset: Onset = 0
    layers: tuple[str, ...] = ()  # patterns of the layers at fault, where some are
    seeds: tuple[int, ...] = (0, 1, 2, 3, 4)

    @property
    def parent(self) -> Parent:
        """The parent of which this is a mutation."""
        return ALL_PARENTS[self.parent_name]

    @property
    def config(self) -> Config:
        """The parent's knobs with those of the fault."""
        return replace(self.parent.config, **self.changes)


FAULTS: tuple[Fault, ...] = (
    Fault("V1", "deep12", "sigmoid in 12 layers", {"activation": "sigmoid"},
          "vanishing", ("slow",), layers=("hidden.[0-5].*",)),
    Fault("V2", "deep20-tanh", "weights of sd 0.02", {"init": "normal", "init_scale": 0.02},
          "vanishing", ("slow",), layers=("hidden.[0-9].*",)),
    Fault("V3", "deep20-relu", "weights of sd 0.03", {"init": "normal", "init_scale": 0.03},
          "vanishing", ("dead",), layers=("hidden.[0-9].*",)),
    Fault("V4", "rnn", "memory of 0.3", {"recurrent": "identity", "recurrent_scale": 0.3},
          "vanishing", ("slow",), layers=("memory.*",)),
    Fault("V6", "deep16-circles", "sigmoid in 16 layers", {"activation": "sigmoid"},
          "vanishing", ("slow",), layers=("hidden.[0-7].*",)),
    Fault("E1", "deep12", "weights three times He's", {"init_scale": 3.0},
          "exploding", ("nan",)),
    Fault("E2", "irnn", "memory of 1.6", {"recurrent_scale": 1.6},
          "exploding", ("dead", "oscillating"), layers=("memory.*",)),
    Fault("E3", "regression", "neither inputs nor targets scaled",
          {"input_scale": 30.0, "target_scale": 1000.0}, "exploding", ("nan", "data")),
    Fault("E6", "post-norm", "no warm-up, lr 1e-2", {"warmup": 0, "lr": 1e-2},
          "exploding", ("spike", "slow")),
    Fault("D1", "mlp", "biases of -8", {"hidden_bias": -8.0},
          "dead", ("vanishing",), layers=("hidden.*",)),
    Fault("D3", "sgd", "lr 3", {"lr": 3.0}, "dead", ("lr-high",)),
    Fault("D4", "deep34", "34 layers without shortcuts and norms",
          {"residual": False, "norm": "none"}, "dead", ("vanishing",)),
    Fault("O1", "tanh", "lr 2", {"lr": 2.0}, "oscillating", ("lr-high",)),
    Fault("O2", "sgd", "momentum 0.98, lr 0.3", {"momentum": 0.98, "lr": 0.3},
          "oscillating", ("lr-high", "dead")),
    Fault("O3", "single", "batches of 1, lr 0.3", {"lr": 0.3},
          "oscillating", ("lr-high", "dead")),
    Fault("S1", "sgd", "lr 1e-5", {"lr": 1e-5}, "slow", ("lr-low",)),
    Fault("S2", "mlp", "lr 1e-7", {"lr": 1e-7}, "slow", ("lr-low",)),
    Fault("S4", "mlp", "all weights zero", {"init": "zero"}, "slow", ("dead", "symmetry")),
    Fault("S5", "cnn", "lr is zero from a tenth on", {"schedule": "early-zero"},
          "plateau", ("lr-low",), onset=30),
    Fault("P1", "blobs", "stuck at a prior", {"output_bias": 12.0, "lr": 3e-4},
          "plateau", ("slow", "lr-low")),
    Fault("W1", "mlp", "only the last layer is optimised", {"optimised": "last"},
          "not-training", ("slow",), layers=("hidden.*",)),
    Fault("W2", "mlp", "step() is never called", {"calls_step": False},
          "not-training", ("slow",)),
    Fault("W3", "sgd", "gradients are never zeroed", {"zero_grad": "never"},
          "wiring", ("exploding", "lr-high")),
    Fault("W4", "narrow", "cut from the graph behind layer 2", {"detach_after": 1},
          "not-training", (), layers=("hidden.0.*", "hidden.1.*")),
    Fault("W5", "bn-cnn", "left in evaluation mode", {"train_mode": False},
          "wiring", ("slow",)),
    Fault("L1", "sgd", "softmax before cross-entropy", {"softmax": True},
          "loss-pairing", ("slow",)),
    Fault("L2", "mlp", "loss negated", {"loss_sign": -1}, "loss-pairing", ("exploding",)),
    Fault("X1", "mlp", "labels permuted", {"labels": "permuted"}, "data", ("slow",)),
    Fault("X2", "sgd16", "a stream sorted by class", {"order": "sorted"},
          "data", ("oscillating",)),
    Fault("N1", "mlp", "an entropy with the log of a negative number", {"loss": "naive-log"},
          "nan", (), onset="nonfinite"),
    Fault("N2", "mlp", "a NaN in one example", {"bad_step": 150}, "nan", ("data",), onset=150),
    Fault("K1", "gpt", "lr x60 for one step", {"kick_step": 292, "kick_factor": 60.0},
          "spike", (), onset=292),
    Fault("F1", "small", "no regularisation", {"dropout": 0.0, "weight_decay": 0.0},
          "over-fit", (), onset="lowest-validation"),
)  # fmt: skip
