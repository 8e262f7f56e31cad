"""Keeps what is advised from pulling one knob two ways: within a finding, and between findings.

A remedy is read as the knob that it turns and the way it turns it. The fix of a finding speaks
before its advice, and a likelier cause before the next; what contradicts them is left out.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from typing import Any

import msgspec

from ..records.runs import Fix, RunFinding

Turns = dict[str, str]  # knob -> the way it is turned

INSTEAD = "mend what stands above first: it asks for the opposite of what would help here alone"
_NUMBER = r"([0-9.]+(?:e[+-]?[0-9]+)?)"
# How advice names a knob and a way; a number stands for the way by being above one or below.
_WORDS: tuple[tuple[str, str, str], ...] = (
    (rf"multiply the learning rate by about {_NUMBER}", "learning rate", ""),
    (r"raise the learning rate", "learning rate", "up"),
    (r"(lower|cap) the learning rate", "learning rate", "down"),
    (r"lower the weight decay", "weight decay", "down"),
    (r"(add|raise)\b[^,;]*weight decay", "weight decay", "up"),
    (r"lower dropout|take augmentation and dropout back", "dropout", "down"),
    (r"(add|raise)\b[^,;]*dropout", "dropout", "up"),
    (r"lower the momentum", "momentum", "down"),
    (r"by tanh", "activation", "tanh"),
    (r"by ReLU|use LeakyReLU|leaky ReLU", "activation", "rectifier"),
    (r"(larger batches|enlarge the batch|batches of 32)", "batch", "up"),
    (r"smaller batches", "batch", "down"),
)
_RECTIFIERS = ("relu", "leakyrelu", "gelu", "silu", "elu", "mish")


def turned_by_words(text: str) -> Turns:
    """Read which knobs a line of advice turns.

    >>> turned_by_words("multiply the learning rate by about 0.03")
    {'learning rate': 'down'}
    """
    turns: Turns = {}
    for pattern, knob, way in _WORDS:
        told = re.search(pattern, text, re.IGNORECASE)
        if told:
            turns.setdefault(knob, way or _way(float(told[1])))
    return turns


def turned_by(fix: Fix) -> Turns:
    """Read which knobs a fix turns.

    >>> turned_by(Fix("larger_batch", {"factor": 4, "lr_factor": 0.5}))
    {'batch': 'up', 'learning rate': 'down'}
    """
    given = fix.parameters
    turns = dict(_FIXES[fix.code](given)) if fix.code in _FIXES else {}
    factor = given.get("lr_factor")
    return turns if factor is None else {**turns, "learning rate": _way(float(factor))}


def _way(factor: float) -> str:
    return "up" if factor > 1 else "down"


def _activation(given: Mapping[str, Any]) -> Turns:
    to = str(given.get("to", "relu")).lower().replace("_", "")
    return {"activation": "rectifier" if to in _RECTIFIERS else to}


def _regularised(given: Mapping[str, Any]) -> Turns:
    """A dropout that is asked for is added; a weight decay may be weaker than the one there was."""
    return {"dropout": "up"} if given.get("dropout") else {}


_FIXES: dict[str, Callable[[Mapping[str, Any]], Turns]] = {
    "scale_lr": lambda given: {"learning rate": _way(float(given["factor"]))},
    "change_activation": _activation,
    "regularise": _regularised,
    "lower_dropout": lambda _given: {"dropout": "down"},
    "lower_momentum": lambda _given: {"momentum": "down"},
    "larger_batch": lambda given: {"batch": _way(float(given.get("factor", 2.0)))},
}


def agreeing(findings: Iterable[RunFinding]) -> list[RunFinding]:
    """Leave out of each finding what contradicts its own fix, or a finding before it."""
    turned: Turns = {}
    kept = []
    for each in findings:
        fix = each.fix if each.fix is not None and _fits(turned_by(each.fix), turned) else None
        for knob, way in ({} if fix is None else turned_by(fix)).items():
            turned.setdefault(knob, way)
        advice = []
        for line in each.advice:
            ways = turned_by_words(line)
            if _fits(ways, turned):
                advice.append(line)
                turned = {**ways, **turned}
        kept.append(msgspec.structs.replace(each, fix=fix, advice=tuple(advice) or (INSTEAD,)))
    return kept


def _fits(ways: Turns, turned: Turns) -> bool:
    return all(turned.get(knob, way) == way for knob, way in ways.items())
