"""Many models on many datasets: are any of them different, and which pairs?

Ranks over datasets (Demsar 2006), not wins and losses between pairs of models, which forget how
many pairs were tried. scipy's `friedmanchisquare` corrects for ties, the published tables do not:
both are right, and must not be compared.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING:
    from numpy.typing import NDArray

_ROUNDS = 100_000
_RESAMPLED = 1e-7  # how exactly abilities are found in each resample: far below their spread


class Friedman(NamedTuple):
    """Mean ranks (1 is best), the test that they are all equal, and what two must differ by."""

    ranks: tuple[float, ...]
    chi2: float
    f: float | None
    p: float
    critical_difference: float


class BradleyTerry(NamedTuple):
    """Log-abilities of players, the last at zero; None where the results do not fix them."""

    abilities: tuple[float, ...] | None
    tie: float
    note: str


class Standing(NamedTuple):
    """Abilities about their mean with simultaneous intervals, and the pairs (i above j) apart."""

    abilities: tuple[float, ...]
    low: tuple[float, ...]
    high: tuple[float, ...]
    apart: tuple[tuple[int, int], ...]
    level: float
    note: str


def friedman(scores: Sequence[Sequence[float]], alpha: float = 0.05) -> Friedman:
    """Test whether models (columns) differ over datasets (rows); a higher score is better.

    chi2 = 12 N/(k (k + 1)) (sum R^2 - k (k + 1)^2/4), F = (N - 1) chi2/(N (k - 1) - chi2) (Iman and
    Davenport 1980), critical difference q sqrt(k (k + 1)/(6 N)) with q of the studentised range
    over sqrt 2 (Nemenyi 1963). F is None where all datasets rank alike: it is infinite, p is 0.
    """
    import numpy as np
    from scipy.stats import f as fisher
    from scipy.stats import rankdata

    table = np.asarray(scores, np.float64)
    if table.ndim != 2 or min(table.shape) < 2:
        raise ValueError("a ranking needs at least two models on at least two datasets")
    if not np.isfinite(table).all():
        raise ValueError("scores hold values that are not finite; leave those datasets out")
    n, k = table.shape
    ranks = rankdata(-table, axis=1).mean(axis=0)
    chi2 = 12 * n / (k * (k + 1)) * (float((ranks**2).sum()) - k * (k + 1) ** 2 / 4)
    room = n * (k - 1) - chi2
    difference = nemenyi(k, alpha) * (k * (k + 1) / (6 * n)) ** 0.5
    if room <= 1e-9 * n * k:
        return Friedman(tuple(ranks.tolist()), chi2, None, 0.0, difference)
    statistic = (n - 1) * chi2 / room
    p = float(fisher.sf(statistic, k - 1, (k - 1) * (n - 1)))
    return Friedman(tuple(ranks.tolist()), chi2, statistic, p, difference)


def nemenyi(k: int, alpha: float = 0.05) -> float:
    """Give q: the studentised range of k endless samples over sqrt 2.

    >>> round(nemenyi(4), 3)
    2.569
    """
    import numpy as np
    from scipy.stats import studentized_range

    return float(studentized_range.ppf(1 - alpha, k, np.inf) / 2**0.5)


def bradley_terry(
    wins: Sequence[Sequence[float]] | NDArray[Any],
    ties: Sequence[Sequence[float]] | NDArray[Any] | None = None,
    exact: float = 1e-12,
) -> BradleyTerry:
    """Estimate abilities from how often each beat each: P(i beats j) = a_i/(a_i + a_j + t_ij).

    Bradley and Terry (1952); t_ij = v sqrt(a_i a_j) where there are ties, which have probability
    t_ij/(a_i + a_j + t_ij) (Davidson 1970). Found by Hunter's (2004) iteration. Only where everyone
    is beaten, over some chain, by everyone, is there an answer (Ford 1957). The iteration ends
    where a step moves no log-ability by `exact`.
    """
    import numpy as np

    won = np.asarray(wins, np.float64)
    drawn = np.zeros_like(won) if ties is None else np.asarray(ties, np.float64)
    if won.ndim != 2 or won.shape[0] != won.shape[1] or won.shape != drawn.shape:
        raise ValueError(f"wins {won.shape}, ties {drawn.shape}: both are players by players")
    if len(won) < 2 or won.diagonal().any() or drawn.diagonal().any():
        raise ValueError("a ranking needs two players, and none of them plays itself")
    if (drawn != drawn.T).any() or (won < 0).any() or (drawn < 0).any():
        raise ValueError("counts are not negative, and a tie counts for both players alike")
    if not _connected(won + drawn):
        return BradleyTerry(None, 0.0, "not connected: some players never lose to the others")
    abilities, tie, moved = _iterate(won, drawn, exact)
    logs = np.log(abilities)
    note = "" if moved < exact else f"not settled: the last step moved by {moved:.1g}"
    return BradleyTerry(tuple((logs - logs[-1]).tolist()), tie, note)


def standing(
    verdicts: Sequence[tuple[object, int, int, float]],
    players: int,
    *,
    resamples: int = 999,
    seed: int = 0,
    level: float = 0.95,
) -> Standing | None:
    """Rank players by verdicts (prompt, first, second, score of the first: 1, 0 or 0.5 for a tie).

    Prompts are resampled whole. The intervals hold all at once, and a pair is apart where the
    interval of its difference, simultaneous over all pairs, leaves out zero: others are ties. None
    where the verdicts, or a tenth of the resamples, do not connect the players.
    """
    import numpy as np

    prompts = {prompt: place for place, prompt in enumerate(dict.fromkeys(v[0] for v in verdicts))}
    tables = np.zeros((max(1, len(prompts)), 2, players, players))
    for prompt, first, second, score in verdicts:
        _note_down(tables[prompts[prompt]], first, second, score)
    whole = _centred(tables.sum(axis=0))
    if whole is None:
        return None
    random = np.random.default_rng(seed)
    times = random.multinomial(len(tables), np.full(len(tables), 1 / len(tables)), resamples)
    every = [_centred(np.tensordot(time, tables, 1)) for time in times]
    drawn = np.array([each for each in every if each is not None])
    if len(drawn) < 0.9 * resamples:
        return None
    reach = _reach(drawn, whole, level)
    pairs = [(i, j) for i in range(players) for j in range(players) if i != j]
    left, right = (list(side) for side in zip(*pairs, strict=True))
    gaps = whole[left] - whole[right]
    margins = _reach(drawn[:, left] - drawn[:, right], gaps, level)
    apart = [pair for pair, gap, far in zip(pairs, gaps, margins, strict=True) if gap > far]
    note = "" if len(drawn) == resamples else f"{resamples - len(drawn)} resamples not connected"
    return Standing(
        tuple(whole.tolist()), tuple((whole - reach).tolist()), tuple((whole + reach).tolist()),
        tuple(apart), level, note,
    )  # fmt: skip


def _note_down(table: NDArray[Any], first: int, second: int, score: float) -> None:
    if first == second or score not in {0, 0.5, 1}:
        raise ValueError(f"verdict {first} against {second}, {score}: two players, 1, 0 or 0.5")
    if score == 0.5:
        table[1, first, second] += 1
        table[1, second, first] += 1
    else:
        table[0, *((first, second) if score else (second, first))] += 1


def _centred(table: NDArray[Any]) -> NDArray[Any] | None:
    import numpy as np

    found = bradley_terry(table[0], table[1], _RESAMPLED).abilities
    return None if found is None else np.array(found) - np.mean(found)


def _reach(drawn: NDArray[Any], centre: NDArray[Any], level: float) -> NDArray[Any]:
    """Give how far intervals that hold all at once go: a quantile of the largest |t|."""
    import numpy as np

    deviation = drawn.std(axis=0, ddof=1)
    deviation = np.where(deviation > 0, deviation, 1)
    largest = (np.abs(drawn - centre) / deviation).max(axis=1)
    return np.asarray(np.quantile(largest, level) * deviation)


def _connected(beaten: NDArray[Any]) -> bool:
    """Is there a chain of results from everyone to everyone?"""
    from scipy.sparse.csgraph import connected_components

    parts, _ = connected_components(beaten > 0, directed=True, connection="strong")
    return bool(parts == 1)


def _iterate(
    won: NDArray[Any], drawn: NDArray[Any], exact: float
) -> tuple[NDArray[Any], float, float]:
    """Solve the score equations by fixed point; give abilities, tie and how far they moved last."""
    import numpy as np

    games = won + won.T + drawn
    points = won.sum(axis=1) + drawn.sum(axis=1) / 2
    abilities, tie, moved = np.ones(len(won)), float(drawn.any()), np.inf
    for _ in range(_ROUNDS):
        root = np.sqrt(np.outer(abilities, abilities))
        chance = games / (abilities[:, None] + abilities[None, :] + tie * root)
        now = points / (chance * (1 + tie / 2 * root / abilities[:, None])).sum(axis=1)
        now = now / np.exp(np.log(now).mean())
        tied = float(drawn.sum() / (chance * root).sum())
        moved = max(float(np.abs(np.log(now / abilities)).max()), abs(tied - tie))
        abilities, tie = now, tied
        if moved < exact:
            break
    return abilities, tie, moved
