"""Which side tends to be larger, and which of many players is stronger: by ranks and by wins.

Brunner-Munzel first: it tests P(left < right) = P(left > right) whatever the shapes are.
Mann-Whitney is the exact test of the two laws being equal, and only of that. Players who meet in
pairs are ranked by Bradley and Terry's model, with simultaneous intervals.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from .comparison import Comparison, quantile, two_sided
from .samples import probability, sample

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray


_EXACT = 30  # values a side up to which the exact law of U is cheap


def brunner_munzel(
    left: Sequence[float], right: Sequence[float], level: float = 0.95
) -> Comparison:
    """Compare by θ = P(left < right) + P(left = right)/2, which is the effect with its interval.

    The difference is 2θ - 1 = P(left < right) - P(left > right). The standard error of θ is
    sqrt(n_l S_l² + n_r S_r²) / (n_l n_r), S² the variance of the placements, and df is by
    Satterthwaite (Brunner & Munzel 2000). Samples that do not overlap have no S²: there the p
    is Mann-Whitney's, and no interval is given.
    """
    probability(level, "level")
    before, after = sample(left, "left"), sample(right, "right")
    theta, parts = _placements(before, after)
    sizes = before.size, after.size
    if min(sizes) < 2 or not sum(parts):
        return _without_spread(before, after, theta, level)
    df = sum(parts) ** 2 / sum(part**2 / (n - 1) for part, n in zip(parts, sizes, strict=True))
    error = sum(parts) ** 0.5 / (before.size * after.size)
    reach = quantile((1 + level) / 2, df) * error
    low, high = max(theta - reach, 0.0), min(theta + reach, 1.0)
    return Comparison(
        2 * theta - 1,
        2 * low - 1,
        2 * high - 1,
        level,
        two_sided((theta - 0.5) / error, df),
        "brunner-munzel",
        *sizes,
        statistic=(theta - 0.5) / error,
        df=df,
        effect=theta,
        effect_low=low,
        effect_high=high,
        standard_error=2 * error,
    )


def mann_whitney(left: Sequence[float], right: Sequence[float]) -> Comparison:
    """Test that both sides have one law; U counts the pairs in which right is larger.

    Exact without ties and with up to 30 values a side, else normal, corrected for ties and for
    continuity (Mann & Whitney 1947). The difference and the effect are as in Brunner-Munzel.
    """
    from numpy import unique
    from scipy.stats import mannwhitneyu

    before, after = sample(left, "left"), sample(right, "right")
    theta, _ = _placements(before, after)
    tied = unique([*before, *after]).size < before.size + after.size
    exact = not tied and max(before.size, after.size) <= _EXACT
    constant = unique([*before, *after]).size == 1
    law = "exact" if exact else "normal"
    found = mannwhitneyu(after, before, method="exact" if exact else "asymptotic")
    return Comparison(
        2 * theta - 1,
        None,
        None,
        0.95,
        1.0 if constant else float(found.pvalue),
        f"mann-whitney, {law}",
        before.size,
        after.size,
        statistic=float(found.statistic),
        effect=theta,
        note="a test of equal laws, without an interval",
    )


def _placements(
    before: NDArray[np.float64], after: NDArray[np.float64]
) -> tuple[float, tuple[float, float]]:
    from numpy import concatenate
    from scipy.stats import rankdata

    ranks = rankdata(concatenate([before, after]))
    left, right = ranks[: before.size], ranks[before.size :]
    theta = float(right.mean() - (after.size + 1) / 2) / before.size
    if min(before.size, after.size) < 2:
        return theta, (0.0, 0.0)
    parts = [
        array.size * float((placed - rankdata(array)).var(ddof=1))
        for array, placed in ((before, left), (after, right))
    ]
    return theta, (parts[0], parts[1])


def _without_spread(
    before: NDArray[np.float64], after: NDArray[np.float64], theta: float, level: float
) -> Comparison:
    small = min(before.size, after.size) < 2
    note = "fewer than two values on a side" if small else "ranks do not vary within the sides"
    p = None if small else mann_whitney(list(before), list(after)).p
    method = "brunner-munzel" if small else "mann-whitney, where brunner-munzel is undefined"
    sizes = before.size, after.size
    return Comparison(2 * theta - 1, None, None, level, p, method, *sizes, effect=theta, note=note)


_ROUNDS = 100_000
_AT_ONCE = 1 << 20  # cells of the tables that are solved together: some tens of megabytes
_RESAMPLED = 1e-7  # how exactly abilities are found in each resample: far below their spread


class BradleyTerry(NamedTuple):
    """Log-abilities of players, the last at zero; None if the results do not fix them."""

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
    abilities, ties_of, moved = _iterate(won[None], drawn[None], exact)
    logs = np.log(abilities[0])
    note = "" if moved[0] < exact else f"not settled: the last step moved by {moved[0]:.1g}"
    return BradleyTerry(tuple((logs - logs[-1]).tolist()), float(ties_of[0]), note)


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

    if players < 2:
        raise ValueError("a ranking needs two players, and none of them plays itself")
    prompts = {prompt: place for place, prompt in enumerate(dict.fromkeys(v[0] for v in verdicts))}
    tables = np.zeros((max(1, len(prompts)), 2, players, players))
    for prompt, first, second, score in verdicts:
        _note_down(tables[prompts[prompt]], first, second, score)
    if not _connected(tables.sum(axis=(0, 1))):
        return None
    whole = _centred(tables.sum(axis=0)[None])[0]
    random = np.random.default_rng(seed)
    times = random.multinomial(len(tables), np.full(len(tables), 1 / len(tables)), resamples)
    step = max(1, _AT_ONCE // players**2)
    drawn = np.concatenate(
        [
            _settled(np.tensordot(times[at : at + step], tables, 1))
            for at in range(0, len(times), step)
        ]
    )
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
        tuple(whole.tolist()),
        tuple((whole - reach).tolist()),
        tuple((whole + reach).tolist()),
        tuple(apart),
        level,
        note,
    )


def _note_down(table: NDArray[Any], first: int, second: int, score: float) -> None:
    if first == second or score not in {0, 0.5, 1}:
        raise ValueError(f"verdict {first} against {second}, {score}: two players, 1, 0 or 0.5")
    if score == 0.5:
        table[1, first, second] += 1
        table[1, second, first] += 1
    else:
        table[0, *((first, second) if score else (second, first))] += 1


def _settled(tables: NDArray[Any]) -> NDArray[Any]:
    """Return the log-abilities of those tables that connect the players, a row for each."""
    return _centred(tables[[_connected(each.sum(axis=0)) for each in tables]])


def _centred(tables: NDArray[Any]) -> NDArray[Any]:
    import numpy as np

    logs = np.log(_iterate(tables[:, 0], tables[:, 1], _RESAMPLED)[0])
    return np.asarray(logs - logs.mean(axis=1, keepdims=True))


def _reach(drawn: NDArray[Any], centre: NDArray[Any], level: float) -> NDArray[Any]:
    """Return how far intervals that hold all at once go: a quantile of the largest |t|."""
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
) -> tuple[NDArray[Any], NDArray[Any], NDArray[Any]]:
    """Solve the score equations of several tables by fixed point, each until it settles.

    The answer has a row for each table: abilities, tie, and how far they moved last.
    """
    import numpy as np

    games = won + won.transpose(0, 2, 1) + drawn
    points = won.sum(axis=2) + drawn.sum(axis=2) / 2
    ties = drawn.reshape(len(drawn), -1).sum(axis=1)
    abilities, tie, moved = (
        np.ones(points.shape),
        (ties > 0).astype(float),
        np.full(len(won), np.inf),
    )
    left = np.arange(len(won))  # those that have not settled
    for _ in range(_ROUNDS):
        before, tie_before = abilities[left], tie[left, None, None]
        own, other = before[:, :, None], before[:, None, :]
        root = np.sqrt(own * other)
        chance = games[left] / (own + other + tie_before * root)
        now = points[left] / (chance * (1 + tie_before / 2 * root / own)).sum(axis=2)
        now = now / np.exp(np.log(now).mean(axis=1, keepdims=True))
        tied = ties[left] / (chance * root).reshape(len(left), -1).sum(axis=1)
        step = np.maximum(np.abs(np.log(now / before)).max(axis=1), np.abs(tied - tie[left]))
        abilities[left], tie[left], moved[left] = now, tied, step
        left = left[step >= exact]
        if not len(left):
            break
    return abilities, tie, moved
