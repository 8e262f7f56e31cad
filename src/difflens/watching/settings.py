"""Refuses settings of a monitor that have no meaning, before anything is made."""

from __future__ import annotations

from typing import Any

from ..errors import InvalidConfig


def check(  # noqa: PLR0917  one for each setting, in the order of the monitor's own
    every: Any,
    budget: Any,
    ranks: Any,
    activations: Any,
    updates: Any,
    diagnose_every: Any,
    stop_on: Any,
) -> None:
    """Raise `InvalidConfig` for the first that cannot be."""
    if every != "auto" and not _is_count(every, 1):
        raise InvalidConfig(f"every is {every!r}; it is a number of steps or 'auto'")
    if isinstance(budget, bool) or not isinstance(budget, (int, float)) or not 0 < budget <= 1:
        raise InvalidConfig(f"budget is {budget!r}; it is a share of the step's time, up to 1")
    if ranks not in {"merged", "each"}:
        raise InvalidConfig(f"ranks is {ranks!r}; it is 'merged' or 'each'")
    if not _is_count(activations, 0):
        raise InvalidConfig(f"activations is {activations!r}; it is a number of steps, 0 for never")
    if updates != "auto" and not _is_count(updates, 1):
        raise InvalidConfig(f"updates is {updates!r}; it is a number of readings or 'auto'")
    if diagnose_every not in {None, "auto"} and not _is_count(diagnose_every, 1):
        raise InvalidConfig(f"diagnose_every is {diagnose_every!r}; steps, 'auto' or None")
    if stop_on not in {None, "warning", "critical"}:
        raise InvalidConfig(f"stop_on is {stop_on!r}; it is 'warning', 'critical' or None")


def _is_count(value: Any, least: int) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and value >= least
