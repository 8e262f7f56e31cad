"""Tables of the zoo: classes, several labels or targets at once, levels, and codes."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np

from .sets import standard

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Made = tuple[NDArray[Any], NDArray[Any], int]  # inputs, targets, classes (0: regression)

CODES = 6  # values that each column of the table of codes can have
_ROWS = 1500


def _sets() -> Any:
    """Return what ships with scikit-learn, imported when it is asked for."""
    from sklearn import datasets

    return datasets


def _quantiles() -> Made:
    """Make three shells around a centre."""
    inputs, labels = _sets().make_gaussian_quantiles(
        n_samples=_ROWS, n_features=4, n_classes=3, random_state=21
    )
    return standard(inputs), labels.astype(np.int64), 3


def _s_curve() -> Made:
    """Make a bent sheet in space; the label is how far along it a point lies, in five parts."""
    inputs, along = _sets().make_s_curve(_ROWS, noise=0.1, random_state=22)
    return standard(inputs), _levels(along, 5), 5


def _seldom() -> Made:
    """Make four classes, of which one has half of the rows and one a twentieth."""
    inputs, labels = _sets().make_classification(
        _ROWS, n_features=16, n_informative=8, n_redundant=4, n_classes=4, class_sep=1.8,
        weights=[0.5, 0.3, 0.15, 0.05], flip_y=0.0, random_state=23,
    )  # fmt: skip
    return standard(inputs), labels.astype(np.int64), 4


def _impedance() -> Made:
    """Make a regression on four columns of very different kind (Friedman 1991)."""
    inputs, targets = _sets().make_friedman2(_ROWS, noise=40.0, random_state=24)
    return standard(inputs), standard(targets[:, None]), 0


def _codes() -> Made:
    """Draw eight columns of codes; the label hangs on each of them and on some in pairs."""
    random = np.random.default_rng(25)
    inputs = random.integers(0, CODES, (2 * _ROWS, 8))
    single, paired = random.normal(size=(8, CODES, 3)), random.normal(size=(3, CODES, CODES, 3))
    scores = sum(single[i, inputs[:, i]] for i in range(8))
    scores = scores + 0.7 * sum(paired[i, inputs[:, 2 * i], inputs[:, 2 * i + 1]] for i in range(3))
    scores = standard(np.asarray(scores))
    return inputs.astype(np.int64), scores.argmax(1).astype(np.int64), 3


def _multilabel() -> Made:
    """Make rows of counts that have some of five labels each."""
    inputs, labels = _sets().make_multilabel_classification(
        _ROWS, n_features=20, n_classes=5, n_labels=2, length=200, random_state=26
    )
    return standard(inputs), labels.astype(np.float32), 0


def _products() -> Made:
    """Make three targets, each the sum of a product of columns and of a column."""
    random = np.random.default_rng(27)
    inputs = random.uniform(-1.7, 1.7, (_ROWS, 6))
    one, two, three, four, five, six = inputs.T
    targets = np.stack([one * two + 0.5 * three, three * four - five, six * one + four], axis=1)
    targets += 0.1 * random.normal(size=targets.shape)
    return inputs.astype(np.float32), standard(targets), 0


def _ordinal() -> Made:
    """Make five levels in order; a target says of each bound whether it was passed."""
    inputs, targets = _sets().make_friedman1(_ROWS, n_features=8, noise=0.5, random_state=28)
    passed = _levels(targets, 5)[:, None] > np.arange(4)
    return standard(inputs), passed.astype(np.float32), 0


def _diabetes() -> Made:
    inputs, targets = _sets().load_diabetes(return_X_y=True)
    return standard(inputs), standard(targets[:, None]), 0


def _iris() -> Made:
    inputs, labels = _sets().load_iris(return_X_y=True)
    return standard(inputs), labels.astype(np.int64), 3


def _levels(values: NDArray[Any], count: int) -> NDArray[np.int64]:
    """Cut values into levels with equally many rows each."""
    bounds = np.quantile(values, np.arange(1, count) / count)
    return np.searchsorted(bounds, values).astype(np.int64)


SETS: dict[str, Callable[[], Made]] = {
    "tables-quantiles": _quantiles,
    "tables-s-curve": _s_curve,
    "tables-seldom": _seldom,
    "tables-impedance": _impedance,
    "tables-codes": _codes,
    "tables-multilabel": _multilabel,
    "tables-products": _products,
    "tables-ordinal": _ordinal,
    "tables-diabetes": _diabetes,
    "tables-iris": _iris,
}
