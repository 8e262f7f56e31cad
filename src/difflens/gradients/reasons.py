"""Why a part of the network's analysis is not known."""

from __future__ import annotations

from typing import Any, TypeVar

from ..network_results import NetworkPart
from ..records import Missing

PartT = TypeVar("PartT", bound=NetworkPart)


def because(needs: str, why: str, *fields: str) -> tuple[Missing, ...]:
    """Give several fields the same reason."""
    return tuple(Missing(field, needs, why) for field in fields)


def blank(kind: type[PartT], needs: str, why: str, **known: Any) -> PartT:
    """Make a record of what is known; all else is null for one reason."""
    given = {each.field for each in known.get("missing", ())}
    told = [
        Missing(each.field, needs, why)
        for each in getattr(kind(**known), "missing", ())
        if each.field not in given
    ]
    return kind(**{**known, "missing": (*known.get("missing", ()), *told)})
