"""Pairs of layers whose norms move together: a screen over all pairs, with few false ones in it.

The reference calls layers cooperative whose summary numbers are alike. Sizes that move together
are `co_moving` and no more; who helps whom is a matter of the gradients' directions, and only
where cosines are handed in does an interaction get that word.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, NamedTuple

from ..network_results import InteractionType, LayerInteraction
from ..records import Interval, Missing
from ..stats.co_movement import FEWEST, CoMovement, co_movements
from ..stats.mean import correlated_mean
from .reasons import because

if TYPE_CHECKING:
    from .totals import Totals

TOP = 20  # pairs listed
LATEST = 4000  # points looked at

Directions = Mapping[tuple[str, str], Sequence[float]]

_IMPACT = Missing("impact_score", "runs with and without a layer", "nothing here estimates it")
_TYPE = Missing(
    "interaction_type",
    "cosines between the gradients of both on shared parameters",
    "norms have no direction",
)


class Moving(NamedTuple):
    """The pairs that are listed, and how many there are in all; why there are none."""

    interactions: tuple[LayerInteraction, ...]
    tested: int
    positive: int
    negative: int
    why: str = ""


def co_moving(
    found: Totals, directions: Directions | None = None, *, partial: bool = False
) -> Moving:
    """Screen all pairs; `partial` adds what is left of a correlation beside the global norm."""
    listed = _by_direction(directions or {})
    table = found.table[-LATEST:]
    common = found.gradient.values[-LATEST:] if partial else None
    moves = co_movements(table, TOP, common=common)
    if moves is None:
        why = (
            f"{table.shape[1]} layers with {len(table)} common points; "
            f"two layers that vary and {FEWEST} points are needed"
        )
        return Moving(tuple(listed.values()), 0, 0, 0, why)
    for pair in moves.pairs:
        names = found.names[pair.left], found.names[pair.right]
        listed[names] = _interaction(names, pair, listed.get(names), partial=partial)
    return Moving(tuple(listed.values()), moves.tested, moves.positive, moves.negative)


def _interaction(
    names: tuple[str, str], pair: CoMovement, known: LayerInteraction | None, *, partial: bool
) -> LayerInteraction:
    reasons = [_IMPACT]
    if known is None:
        reasons += [_TYPE, Missing("direction_cosine", _TYPE.needs, _TYPE.why)]
    if pair.partial is None:
        why = "the global norm explains both" if partial else "this depth leaves it out"
        reasons += because('depth="expert"', why, "partial_correlation")
    return LayerInteraction(
        layer1=names[0],
        layer2=names[1],
        interaction_strength=abs(pair.r),
        interaction_type=known.interaction_type if known else None,
        movement="co_moving" if pair.r > 0 else "counter_moving",
        correlation=pair.r,
        interval=Interval(pair.low, pair.high, 0.95, "Fisher z of ranks", int(pair.n_effective)),
        n_effective=pair.n_effective,
        p_value=pair.p,
        q_value=pair.q,
        partial_correlation=pair.partial,
        lag=pair.lag,
        direction_cosine=known.direction_cosine if known else None,
        missing=tuple(reasons),
    )


def _by_direction(directions: Directions) -> dict[tuple[str, str], LayerInteraction]:
    """Judge the pairs whose cosines are known: the interval of the mean on one side of zero."""
    found = {}
    for names, cosines in directions.items():
        mean = correlated_mean(cosines) if len(cosines) else None
        if mean is None or mean.low is None or mean.high is None:
            continue
        word = InteractionType.NEUTRAL
        if mean.low > 0:
            word = InteractionType.COOPERATIVE
        elif mean.high < 0:
            word = InteractionType.COMPETITIVE
        why = "their norms do not move together beyond chance"
        fields = ("interaction_strength", "correlation", "interval", "n_effective", "p_value",
                  "q_value", "partial_correlation", "lag")  # fmt: skip
        found[names] = LayerInteraction(
            layer1=names[0], layer2=names[1], interaction_type=word, direction_cosine=mean.value,
            missing=(_IMPACT, *because("norms that move together", why, *fields)),
        )  # fmt: skip
    return found
