"""Averages of weights (EMA, SWA) in a checkpoint: which weight each of them belongs to."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from functools import cached_property
from typing import TYPE_CHECKING

from difflens.core.records import TensorInfo

from .roles import is_parameter

if TYPE_CHECKING:
    from .state import Holder

Tensors = Mapping[str, TensorInfo]

# Around the names of an average, or of what it is an average of.
_AROUND = frozenset(
    """
    module model state_dict ema_model net network params shadow student generator weights
    online_model model_state_dict _orig_mod ema ema_weights ema_state_dict average_model 0
""".split()
)
_DEEPEST_FRONT = 3  # parts in front of a weight's name that its average may lack
_NOT_WORDS = re.compile(r"[^A-Za-z0-9]+")
_OF_AVERAGES = re.compile(r"[._]?(?:ema|swa|averaged|shadow)[._]?", re.IGNORECASE)


class Weights:
    """The weights beside the averages, indexed once for all holders."""

    def __init__(self, infos: Tensors) -> None:
        """Index nothing yet: most checkpoints have no average."""
        self.infos = infos

    @cached_property
    def ends(self) -> dict[str, list[tuple[str, str]]]:
        """The beginnings and names of the weights, by what follows the beginning."""
        ends: dict[str, list[tuple[str, str]]] = {}
        for weight in self.infos:
            parts = re.split(r"[./]", weight)
            for at in range(min(_DEEPEST_FRONT + 1, len(parts))):
                ends.setdefault(_squashed(parts[at:]), []).append((".".join(parts[:at]), weight))
        return ends

    @cached_property
    def parameters(self) -> list[str]:
        """The names of the parameters, in the order of the file."""
        return [name for name, info in self.infos.items() if is_parameter(name, info.dtype)]


def averages(holder: Holder, tensors: Tensors, weights: Weights) -> dict[str, str | None]:
    """Match the tensors of a holder with weights; empty if most of them have none.

    A number beside the averages, such as how many models are in them, has no weight.
    """
    large = [name for name in holder.members if tensors[name].count > 1]
    found = _by_name(holder, tensors, weights) or _by_order(holder, large, tensors, weights)
    if 2 * len(found.keys() & set(large)) <= len(large):
        return {}
    return {
        name: found.get(name)
        for name in holder.members
        if name in found or tensors[name].count == 1
    }


def _by_name(holder: Holder, tensors: Tensors, weights: Weights) -> dict[str, str]:
    """Match averages with weights whose name is the same behind one common beginning."""
    by_front: dict[str, dict[str, str]] = {}
    for name in holder.members:
        for tail in _tails(holder.rest(name)):
            for front, weight in weights.ends.get(tail, ()):
                if tensors[weight].shape == tensors[name].shape:
                    by_front.setdefault(front, {}).setdefault(name, weight)
    own = _OF_AVERAGES.sub("", holder.name)
    # One layer among others may have such names by chance; a network does not.
    proper = (
        found
        for front, found in by_front.items()
        if not front
        or front == own
        or front.rpartition(".")[2] in _AROUND
        or 2 * len(found) > len(weights.infos)
    )
    return max(proper, key=len, default={})


def _tails(rest: list[str]) -> Iterator[str]:
    """Yield the name of an average with and without the wrappers around it."""
    yield _squashed(rest)
    while len(rest) > 1 and rest[0] in _AROUND:
        rest = rest[1:]
        yield _squashed(rest)


def _squashed(parts: Iterable[str]) -> str:
    """Keep letters and digits: some averages have no dots in their names."""
    return _NOT_WORDS.sub("", "".join(parts))


def _by_order(
    holder: Holder, names: Iterable[str], tensors: Tensors, weights: Weights
) -> dict[str, str]:
    """Match a numbered list of averages with the parameters in their order."""
    lasts = {name: "".join(holder.rest(name)[-1:]) for name in names}
    if not all(each.isdecimal() and len(each) < 10 for each in lasts.values()):
        return {}
    parameters = iter(weights.parameters)
    found = {}
    for name in sorted(lasts, key=lambda each: int(lasts[each])):
        shape = tensors[name].shape
        weight = next((each for each in parameters if tensors[each].shape == shape), None)
        if weight is None:
            return {}
        found[name] = weight
    return found
