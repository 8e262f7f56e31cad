"""Healthy controls that are parents with other choices, as sound as theirs."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from .controls import Control
from .faults import ALL_PARENTS


def healthy(seeds: tuple[int, ...], name: str, parent_name: str, **changes: Any) -> Control:
    """Return a control: a parent with knobs changed, by the parent's name."""
    parent = ALL_PARENTS[parent_name]
    return Control(name, replace(parent, config=replace(parent.config, **changes)), seeds)
