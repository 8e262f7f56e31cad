"""Why a stack of layers passes on too little of a signal, and the remedy that follows from it."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from ...records.runs import Fix
from .degrees import NEARLY, SHORT
from .fading import BOUNDED, are_the_models
from .gates import bias_of, gates, has_rectifiers, in_series, open_bias
from .layers import initial_scales
from .norms import small_gains
from .sight import Sight

_FAR_OUT = 4.0  # size of a gate's first bias: highways start at 1 to 3 below zero
_USUAL = (
    "initialise with xavier (tanh) or kaiming (ReLU)",
    "add residual connections",
    "put normalisation between the layers",
)

_RECTIFY = "replace sigmoid or tanh by ReLU or GELU"
_ANOTHER = {"tanh": "replace the sigmoid by tanh, which fits weights as small as these"}


class Why(NamedTuple):
    """The cause in words, what to try, and what is at fault: places of gates, or names of norms."""

    cause: str
    advice: tuple[str, ...]
    fix: Fix
    gates: list[int]
    norms: list[str]


def why(seen: Sight, columns: Any) -> Why:
    """Tell what the layers of a stack have in common that passes on a part only."""
    norms, found = small_gains(seen), gates(seen.layers, columns)
    # The first of two factors, or an entry, has no non-linearity of its own.
    kinds = [kind for each in columns if (kind := seen.layers.of(int(each)).activation)]
    bounded = bool(kinds) and kinds[0] in BOUNDED
    if norms:
        said = ("start the gains of norms at one", *_USUAL)
        return Why("the gains of its norm start near zero", said, _drawn(bounded), found, norms)
    if found:
        said = (
            "start the gates open: with biases above zero, the more so the more of them",
            *_USUAL,
        )
        return Why("its gate is shut", said, _opened(seen, columns[found]), found, [])
    if bounded or (not kinds and _are_sigmoids(seen)):
        fix = _fitted(seen, bounded)
        said = (_ANOTHER.get(str(fix.parameters.get("to")), _RECTIFY), *_USUAL)
        return Why("its non-linearity saturates", said, fix, [], [])
    fix = _ask_for_norms(seen, columns) or _fitted(seen, bounded)
    return Why("its weights are small", _USUAL, fix, [], [])


def _opened(seen: Sight, columns: Any) -> Fix:
    """Ask for gates that start open; of many in a row, for a way past them.

    Steps move each of them, and a product of many does not stay near one however it starts. So
    many gates were built with a way past them, as highways are; where their biases start far out,
    these are at fault, and half open is where both ways are used.
    """
    series, far_out = in_series(seen.layers, columns), bias_of(seen, columns) > _FAR_OUT
    if series > SHORT and not far_out:
        return Fix("add_residual")
    scheme = "kaiming" if has_rectifiers(seen) else "xavier"
    bias = open_bias(series) if series <= SHORT else 0.0
    return Fix("reinitialise", {"scheme": scheme, "layers": [], "gate_bias": bias})


def _ask_for_norms(seen: Sight, columns: Any) -> Fix | None:
    """Ask for norms in a deep stack of filters that has none.

    Whatever takes from the signal on the way (weights, a shortcut that passes on a part), a norm
    holds its size; weights of the right size mend weights alone.
    """
    layers = [seen.layers.of(int(column)) for column in columns]
    filters = sum("conv" in layer.kind.lower() for layer in layers)
    if filters <= SHORT or seen.history.fact("norm_layers"):
        return None
    return Fix("add_normalisation", {"kind": "batch"})


def _fitted(seen: Sight, bounded: bool) -> Fix:
    """Ask for weights that fit the non-linearity, or for one that fits the weights.

    ReLU halves what passes and wants weights of kaiming; smaller ones (xavier, and what frameworks
    take by default) fit tanh, which passes small numbers on as they are.
    """
    if _are_sigmoids(seen):
        scales = initial_scales(seen.layers)
        small = len(scales) > 0 and float(np.nanmedian(scales)) < NEARLY
        return Fix("change_activation", {"to": "tanh" if small else "relu"})
    return _drawn(bounded)


def _are_sigmoids(seen: Sight) -> bool:
    """Does some layer end in a sigmoid? Where no layer has a non-linearity, are all sigmoids?"""
    kinds = [kind for layer in seen.history.info.layers if (kind := layer.activation)]
    return any("igmoid" in kind for kind in kinds) if kinds else are_the_models(seen)


def _drawn(bounded: bool) -> Fix:
    return Fix("reinitialise", {"scheme": "xavier" if bounded else "kaiming", "layers": []})
