"""Groups of rows, and how far two groupings agree."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from numpy.random import Generator
    from numpy.typing import NDArray

_ROUNDS = 100  # of Lloyd's iteration: it settles long before


def k_means(rows: NDArray[Any], k: int, restarts: int = 10, seed: int = 0) -> NDArray[Any]:
    """Part rows into k groups of least squared distance to their means; give each row's label.

    Lloyd (1982) from k-means++ starts (Arthur and Vassilvitskii 2007), the best of `restarts`.
    Labels are numbered in order of appearance.
    """
    import numpy as np

    if not 0 < k <= len(rows):
        raise ValueError(f"{k} groups of {len(rows)} rows")
    exact = np.asarray(rows, np.float32 if rows.dtype == np.float32 else np.float64)
    random = np.random.default_rng(seed)
    found = [_lloyd(exact, _starts(exact, k, random)) for _ in range(restarts)]
    labels = min(found, key=lambda each: each[1])[0]
    _, first, inverse = np.unique(labels, return_index=True, return_inverse=True)
    return np.asarray(np.argsort(np.argsort(first))[inverse])


def adjusted_rand(left: Sequence[int] | NDArray[Any], right: Sequence[int] | NDArray[Any]) -> float:
    """Compare two groupings by pairs: 1 for the same, 0 on average by chance (Hubert, Arabie 1985).

    >>> adjusted_rand([0, 0, 1, 1], [1, 1, 0, 0])
    1.0
    """
    table = _crossed(left, right)
    together = _pairs(table).sum()
    rows, columns = _pairs(table.sum(axis=1)).sum(), _pairs(table.sum(axis=0)).sum()
    every = _pairs(table.sum())
    expected = rows * columns / every if every else 0.0
    most = (rows + columns) / 2
    return float((together - expected) / (most - expected)) if most != expected else 1.0


def adjusted_mutual_information(
    left: Sequence[int] | NDArray[Any], right: Sequence[int] | NDArray[Any]
) -> float:
    """Compare two groupings by information: (MI - E[MI])/(mean entropy - E[MI]).

    Vinh, Epps and Bailey (2010), expectation over all groupings of the same sizes.
    """
    import numpy as np

    table = _crossed(left, right)
    n, rows, columns = table.sum(), table.sum(axis=1), table.sum(axis=0)
    if len(rows) == len(columns) == 1 or len(rows) == len(columns) == n:
        return 1.0
    shares = table / n
    expected_shares = np.outer(rows, columns) / n**2
    seen = shares > 0
    shared = float((shares[seen] * np.log(shares[seen] / expected_shares[seen])).sum())
    chance = _expected_information(rows, columns, int(n))
    most = (_entropy(rows / n) + _entropy(columns / n)) / 2
    return float((shared - chance) / (most - chance))


def silhouette(rows: NDArray[Any], labels: Sequence[int] | NDArray[Any]) -> float | None:
    """Tell how well groups stand apart: mean of (b - a)/max(a, b) (Rousseeuw 1987).

    a: mean distance of a row to its own group, b: to the nearest other; 0 for a row alone. None
    where there are fewer than two groups.
    """
    import numpy as np

    exact = np.asarray(rows, np.float64)
    squares = (exact**2).sum(axis=1)
    gram = squares[:, None] + squares[None, :] - 2 * exact @ exact.T
    np.fill_diagonal(gram, 0)
    return silhouette_of_distances(np.sqrt(np.maximum(gram, 0)), labels)


def silhouette_of_distances(
    distances: NDArray[Any], labels: Sequence[int] | NDArray[Any]
) -> float | None:
    """Return the silhouette where the distances between rows are known."""
    import numpy as np

    _, group = np.unique(np.asarray(labels), return_inverse=True)
    sizes = np.bincount(group)
    if len(sizes) < 2:
        return None
    member = np.eye(len(sizes))[group]
    sums = distances @ member
    n = np.arange(len(group))
    own = sums[n, group] / np.maximum(sizes[group] - 1, 1)
    means = sums / sizes
    means[n, group] = np.inf
    other = means.min(axis=1)
    most = np.maximum(own, other)
    scores = np.where(
        (sizes[group] > 1) & (most > 0), (other - own) / np.where(most > 0, most, 1), 0
    )
    return float(scores.mean())


def average_linkage(distances: NDArray[Any], k: int) -> NDArray[Any]:
    """Join the nearest groups by mean distance until k are left (Sokal and Michener 1958)."""
    import numpy as np
    from scipy.cluster.hierarchy import fcluster, linkage

    n = len(distances)
    if not 0 < k <= n:
        raise ValueError(f"{k} groups of {n} rows")
    if n == 1:
        return np.zeros(1, np.int64)
    upper = np.asarray(distances, np.float64)[np.triu_indices(n, 1)]
    return np.asarray(fcluster(linkage(upper, "average"), k, "maxclust") - 1)


def _starts(rows: NDArray[Any], k: int, random: Generator) -> NDArray[Any]:
    """Choose k rows as first means, far ones likelier; of three candidates the best each time."""
    import numpy as np

    chosen = [int(random.integers(len(rows)))]
    nearest = _squares(rows, rows[chosen])[:, 0]
    for _ in range(k - 1):
        total = float(nearest.sum(dtype=np.float64))
        if total <= 0:  # fewer distinct rows than groups: any row will do
            chosen.append(int(random.integers(len(rows))))
            continue
        drawn = random.choice(len(rows), 3, p=nearest.astype(np.float64) / total)
        closer = np.minimum(nearest[:, None], _squares(rows, rows[drawn]))
        best = int(closer.sum(axis=0).argmin())
        chosen.append(int(drawn[best]))
        nearest = closer[:, best]
    return rows[chosen]


def _lloyd(rows: NDArray[Any], means: NDArray[Any]) -> tuple[NDArray[Any], float]:
    import numpy as np

    lengths = (rows**2).sum(axis=1)
    labels = np.full(len(rows), -1)
    for _ in range(_ROUNDS):
        # Without the rows' own lengths the nearest mean is the same, at half the work.
        nearness = (means**2).sum(axis=1) - 2 * rows @ means.T
        now = nearness.argmin(axis=1)
        if np.array_equal(now, labels):
            break
        labels = now
        means = _means(rows, labels, nearness, lengths)
    loss = float(((rows - means[labels]) ** 2).sum(dtype=np.float64))
    return labels, loss


def _means(
    rows: NDArray[Any], labels: NDArray[Any], nearness: NDArray[Any], lengths: NDArray[Any]
) -> NDArray[Any]:
    """Average each group; one that is empty moves to the row farthest from its own mean."""
    import numpy as np

    k = nearness.shape[1]
    sizes = np.bincount(labels, minlength=k)
    member = np.eye(k, dtype=rows.dtype)[labels]
    means: NDArray[Any] = (member.T @ rows) / np.maximum(sizes, 1)[:, None].astype(rows.dtype)
    empty = np.flatnonzero(sizes == 0)
    if len(empty):
        apart = nearness[np.arange(len(rows)), labels] + lengths
        means[empty] = rows[np.argsort(-apart, kind="stable")[: len(empty)]]
    return means


def _squares(rows: NDArray[Any], means: NDArray[Any]) -> NDArray[Any]:
    import numpy as np

    lengths = (rows**2).sum(axis=1)[:, None] + (means**2).sum(axis=1)[None, :]
    return np.asarray(np.maximum(lengths - 2 * rows @ means.T, 0))


def _crossed(
    left: Sequence[int] | NDArray[Any], right: Sequence[int] | NDArray[Any]
) -> NDArray[Any]:
    import numpy as np

    if len(left) != len(right) or not len(left):
        raise ValueError(f"{len(left)} labels against {len(right)}: as many, and some, are needed")
    _, rows = np.unique(np.asarray(left), return_inverse=True)
    _, columns = np.unique(np.asarray(right), return_inverse=True)
    table = np.zeros((rows.max() + 1, columns.max() + 1))
    np.add.at(table, (rows, columns), 1)
    return table


def _pairs(count: NDArray[Any]) -> NDArray[Any]:
    pairs: NDArray[Any] = count * (count - 1) / 2
    return pairs


def _entropy(shares: NDArray[Any]) -> float:
    import numpy as np

    return float(-(shares * np.log(shares)).sum())


def _expected_information(rows: NDArray[Any], columns: NDArray[Any], n: int) -> float:
    """Average MI over the hypergeometric law of each cell given its margins."""
    import numpy as np
    from scipy.special import gammaln

    def log_factorial(count: NDArray[Any] | float) -> NDArray[Any]:
        return np.asarray(gammaln(np.asarray(count) + 1))

    total = 0.0
    for a in rows:
        for b in columns:
            cell = np.arange(max(1, a + b - n), min(a, b) + 1)
            log_p = (
                log_factorial(a) + log_factorial(b) + log_factorial(n - a) + log_factorial(n - b)
            )
            log_p = log_p - log_factorial(n) - log_factorial(cell) - log_factorial(a - cell)
            log_p = log_p - log_factorial(b - cell) - log_factorial(n - a - b + cell)
            total += float((cell / n * np.log(n * cell / (a * b)) * np.exp(log_p)).sum())
    return total
