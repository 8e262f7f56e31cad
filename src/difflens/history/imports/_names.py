"""What people call things in their logs, and what a run calls them."""

from __future__ import annotations

import re
from collections.abc import Iterable

from ...runs import LAYER_FIELDS, OPTIONAL_FIELDS

STEPS = ("step", "global_step", "_step", "iteration", "iter", "batch", "epoch")
WALL_TIMES = ("wall_time", "_timestamp", "timestamp")
# What diagnoses look for, under the names that trainers and people log it by.
_ALIASES = {
    "loss": ("train_loss", "train/loss", "training_loss", "loss/train", "train.loss"),
    "lr": ("learning_rate", "train/learning_rate", "train_lr", "train/lr"),
    "val_loss": ("val/loss", "validation/loss", "valid/loss", "loss/val", "loss/validation"),
    "eval_loss": ("eval/loss",),
    "accuracy": ("train/accuracy", "accuracy/train"),
    "val_accuracy": ("val/accuracy", "eval/accuracy", "accuracy/val"),
}
_FIELDS = {
    "grad_norm": "grad_l2", "gradient_norm": "grad_l2", "grad_2.0_norm": "grad_l2",
    "weight_norm": "weight_l2", "param_norm": "weight_l2", "update_norm": "update_l2",
    **{field: field for field in (*LAYER_FIELDS, *OPTIONAL_FIELDS)},
}  # fmt: skip
_OF_GRADIENTS = {
    "l2": "grad_l2", "norm": "grad_l2", "mean": "grad_mean", "mean_abs": "grad_mean_abs",
    "max_abs": "grad_max_abs", "zeros": "grad_zeros", "nonfinite": "grad_nonfinite",
}  # fmt: skip
_PARAMETER = re.compile(
    r"(^|\.)\d+(\.|$)|\.(weight|bias|kernel|gamma|beta|embedding|scale|weight_[a-z0-9_]+)$"
)

Column = tuple[str, str]  # field and layer; a scalar has no field


def column_of(name: str) -> Column:
    """Say what a logged name is of: a field of a layer, or a scalar.

    >>> column_of("grad_norm/h.0.weight"), column_of("gradients/h.0.weight/l2")
    (('grad_l2', 'h.0.weight'), ('grad_l2', 'h.0.weight'))
    >>> column_of("train/loss"), column_of("grad_norm")
    (('', 'train/loss'), ('', 'grad_norm'))
    """
    first, _, rest = name.partition("/")
    if rest and first in _FIELDS:
        return _FIELDS[first], rest
    middle, _, last = rest.rpartition("/")
    if middle and first in ("gradients", "gradient", "grads") and last in _OF_GRADIENTS:
        return _OF_GRADIENTS[last], middle
    return "", name


def is_parameter(name: str) -> bool:
    """Does a column of a table look like the gradient norms of a layer?

    >>> [is_parameter(each) for each in ("a.weight", "layers.0.w", "val_loss", "train.loss")]
    [True, True, False, False]
    """
    return _PARAMETER.search(name) is not None


def renamed(scalars: Iterable[str]) -> dict[str, str]:
    """Give the run's names of scalars that are logged by another one, each name once.

    >>> renamed(["train/loss", "learning_rate", "lr"])
    {'train/loss': 'loss'}
    """
    there = set(scalars)
    found = {}
    for name, others in _ALIASES.items():
        other = next((each for each in others if each in there), None)
        if name not in there and other is not None:
            found[other] = name
    return found
