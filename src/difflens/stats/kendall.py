"""Kendall's tau-b of a series with its order (Kendall 1945), without loading a library for it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from math import erfc, factorial, sqrt


def kendall(values: Sequence[float]) -> tuple[float, float, str] | None:
    """Return tau-b, its two-sided p, and how p was found; None if all values are alike.

    p is exact where no two values are alike: the number of orders with at most so many pairs out of
    order, of all n! orders; else that of the normal law with the variance for ties.

    >>> kendall([1.0, 2.0, 3.0, 4.0])
    (1.0, 0.08333333333333333, 'exact')
    """
    n = len(values)
    pairs = n * (n - 1) // 2
    ties = [count for count in Counter(values).values() if count > 1]
    tied = sum(count * (count - 1) // 2 for count in ties)
    if n < 2 or tied == pairs:
        return None
    score = sum(
        (values[j] > values[i]) - (values[j] < values[i]) for i in range(n) for j in range(i + 1, n)
    )
    tau = score / sqrt(pairs * (pairs - tied))
    if not ties:
        return tau, _exact(n, (pairs - abs(score)) // 2), "exact"
    base = n * (n - 1) * (2 * n + 5)
    spread = (base - sum(count * (count - 1) * (2 * count + 5) for count in ties)) / 18
    return tau, erfc(abs(score) / sqrt(2 * spread)), "asymptotic"


def _exact(n: int, inversions: int) -> float:
    """Count the orders of n values with at most so many inversions, twice, of all orders."""
    counts = [1]
    for size in range(2, n + 1):
        sums = [0]
        for count in counts + [0] * (size - 1):
            sums.append(sums[-1] + count)
        counts = [
            sums[place + 1] - sums[max(0, place + 1 - size)] for place in range(len(sums) - 1)
        ]
    if 4 * inversions == n * (n - 1):
        return 1.0
    return min(1.0, 2 * sum(counts[: inversions + 1]) / factorial(n))
