"""Further data: small pictures, tables of kinds that people meet, and pairs of views."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

import numpy as np

from .sets import standard

if TYPE_CHECKING:
    from .sets import Made

SIDE, LEVELS = 12, 8


def _shapes() -> Made:
    """Draw level bars, upright bars, crosses and frames into noise."""
    random = np.random.default_rng(21)
    labels = random.integers(0, 4, 1300)
    pictures = random.normal(0, 0.5, (1300, SIDE, SIDE))
    for picture, label in zip(pictures, labels, strict=True):
        top, left = random.integers(0, SIDE - 6, 2)
        if label in (0, 2):
            picture[top + 3, left : left + 7] += 1.5
        if label in (1, 2):
            picture[top : top + 7, left + 3] += 1.5
        if label == 3:
            picture[top : top + 6, [left, left + 5]] += 1.2
            picture[[top, top + 5], left : left + 6] += 1.2
    return pictures.reshape(1300, -1).astype(np.float32), labels.astype(np.int64), 4


def _ink() -> Made:
    """Return the digits as ink on white, nothing below zero."""
    from sklearn import datasets

    inputs, labels = datasets.load_digits(return_X_y=True)
    return (inputs / 8).astype(np.float32), labels.astype(np.int64), 10


def _tags() -> Made:
    """Make a table of counts where each row has several labels at once."""
    from sklearn import datasets

    inputs, targets = datasets.make_multilabel_classification(
        1500, n_features=20, n_classes=6, n_labels=2, random_state=8
    )
    return standard(inputs), targets.astype(np.float32), 0


def _mixture() -> Made:
    """Make four classes of two clusters each, eight of twenty columns of use."""
    from sklearn import datasets

    inputs, labels = datasets.make_classification(
        3000, n_features=20, n_informative=8, n_redundant=2, n_classes=4, class_sep=2.0,
        flip_y=0.01, random_state=12,
    )  # fmt: skip
    return standard(inputs), labels.astype(np.int64), 4


def _quadratic() -> Made:
    """Make a ball in ten dimensions against what lies around it (Hastie et al. 2009, 10.2)."""
    from sklearn import datasets

    inputs, labels = datasets.make_hastie_10_2(4000, random_state=14)
    return inputs.astype(np.float32), (labels > 0).astype(np.int64), 2


def _diabetes() -> Made:
    from sklearn import datasets

    inputs, targets = datasets.load_diabetes(return_X_y=True)
    return standard(inputs), standard(targets[:, None]), 0


def _categories() -> Made:
    """Make four columns of codes; each code has a hidden value, and products of them count."""
    random = np.random.default_rng(23)
    codes = random.integers(0, LEVELS, (2000, 4))
    hidden = random.choice([-1.0, 1.0], (4, LEVELS))
    values = np.stack([hidden[i, codes[:, i]] for i in range(4)], axis=1)
    labels = (values[:, 0] * values[:, 1] > 0) * 2 + (values[:, 2] * values[:, 3] > 0)
    return codes.astype(np.int64), labels.astype(np.int64), 4


def _views() -> Made:
    """Make two views of each digit, noise on both; there is nothing else to be told."""
    from sklearn import datasets

    inputs, _ = datasets.load_digits(return_X_y=True)
    random = np.random.default_rng(25)
    plain = ((inputs - 4.9) / 6.0)[:, None]
    views = plain + 0.4 * random.normal(size=(len(plain), 2, plain.shape[2]))
    return views.astype(np.float32), np.zeros((len(plain), 1), np.float32), 0


def _surface() -> Made:
    """Return the grey of a picture at its places, to be learnt as a function of the place."""
    grid = np.stack(np.meshgrid(*[np.linspace(-1, 1, 40)] * 2), axis=-1).reshape(-1, 2)
    grey = np.sin(9 * grid[:, 0]) * np.cos(7 * grid[:, 1]) + (np.hypot(*grid.T) < 0.5)
    return grid.astype(np.float32), standard(grey[:, None]), 0


PICTURE_SETS: dict[str, Callable[[], Made]] = {
    "shapes": _shapes,
    "ink": _ink,
    "tags": _tags,
    "mixture": _mixture,
    "quadratic": _quadratic,
    "diabetes": _diabetes,
    "categories": _categories,
    "views": _views,
    "surface": _surface,
}
