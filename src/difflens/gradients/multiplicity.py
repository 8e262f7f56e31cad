"""One test a layer is many tests: p of all layers adjusted together, then a word for each."""

from __future__ import annotations

from collections.abc import Mapping

import msgspec

from ..gradient_results import FlowCharacteristics
from ..records import Missing
from ..stats.adjust import benjamini_hochberg


def adjusted(
    flows: Mapping[str, FlowCharacteristics], level: float
) -> dict[str, FlowCharacteristics]:
    """Fill q of trend and oscillation, and say which layers oscillate.

    Without this a thousand layers of pure noise would have fifty that oscillate.
    """
    trends = _adjusted({name: each.trend_p for name, each in flows.items()})
    swings = _adjusted({name: each.oscillation_p for name, each in flows.items()})
    made = {}
    for name, each in flows.items():
        swing = swings.get(name)
        filled = msgspec.structs.replace(
            each,
            trend_q=trends.get(name),
            oscillation_q=swing,
            is_oscillating=None if swing is None else swing <= level,
        )
        made[name] = msgspec.structs.replace(filled, missing=_reasons(filled))
    return made


def _adjusted(ps: Mapping[str, float | None]) -> dict[str, float]:
    known = {name: p for name, p in ps.items() if p is not None}
    return dict(zip(known, benjamini_hochberg(list(known.values())), strict=True)) if known else {}


def _reasons(flow: FlowCharacteristics) -> tuple[Missing, ...]:
    """Give the q that is null the reason that its p has."""
    of = {each.field: each for each in flow.missing}
    told = [each for each in flow.missing if getattr(flow, each.field, None) is None]
    for field in flow.unexplained():
        why = of.get("trend_p" if field == "trend_q" else "oscillation_p")
        told.append(Missing(field, why.needs if why else "", why.why if why else "not tested"))
    return tuple(told)
