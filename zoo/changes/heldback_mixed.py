"""Held-back pairs of merges, of optimizer state, and of settings beside the weights."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import cache
from typing import Any

import numpy as np

from .bases import load
from .edits import (
    average,
    configure,
    dare,
    edit_rows,
    ema,
    merged_pair,
    near,
    retoken,
    slerp,
    task_arithmetic,
    ties,
)
from .heldback_bases import SCRIBE_TOKENS
from .heldback_edits import of, trained_label
from .heldback_training import Recipe, fine_tuned, with_optimizer
from .model import Array, Model, as_float, like, stored
from .pairs import Built, Edited, Expected, Pair, Wanted

_ALBERT = "albert.encoder.albert_layer_groups.0.albert_layers.0"
_WORDS = ["model.embed_tokens.weight", "lm_head.weight"]


@cache
def _family(dtype: str) -> tuple[Model, Model, Model]:
    """Return the base of the merges and two fine-tunes of it, in one dtype."""
    base = stored(load("scribe"), dtype)
    one = Recipe(rate=1e-3, steps=20, seed=7501)
    other = Recipe(rate=1e-3, steps=20, data=2, seed=7502)
    tuned = [fine_tuned("scribe", base.tensors, each) for each in (one, other)]
    first, second = (stored(base._replace(tensors=each), dtype) for each in tuned)
    return base, first, second


Merge = Callable[[Model, Model, Model], Model]


def merge(
    name: str,
    kind: str,
    rule: Merge,
    given: Sequence[str],
    numbers: Mapping[str, Wanted] | None = None,
    *,
    dtype: str = "F32",
    also: tuple[str, ...] | None = None,
) -> Pair:
    """Return a pair whose right side was made of the base and two fine-tunes of it."""

    def build(_: Model) -> Built:
        base, one, other = _family(dtype)
        models = {"base": base, "checkpoint": other}
        evidence = {key: models[key] for key in given}
        return merged_pair(
            kind, one, rule(base, one, other), evidence, dict(numbers or {}), also=also
        )

    return Pair(f"h-{name}", "second", "scribe", kind if given else f"{kind}, not shown", build)


MERGES: list[Pair] = [
    merge(
        "averaged-73-27",
        "averaged",
        lambda _, a, b: average([a, b], [0.73, 0.27]),
        ["checkpoint"],
        {"weights": (0.25, 0.75)},
    ),
    merge(
        "averaged-half-bf16",
        "averaged",
        lambda _, a, b: average([a, b], [0.5, 0.5]),
        ["checkpoint"],
        {"weights": (0.49, 0.51)},
        dtype="BF16",
    ),
    merge(
        "slerp-0.35", "slerp", lambda _, a, b: slerp(a, b, 0.35), ["checkpoint"], also=("averaged",)
    ),  # so near each other, the arc is the chord: an average as well
    merge(
        "extrapolated-1.6",
        "extrapolated",
        lambda z, a, _: average([z, a], [-0.6, 1.6]),
        ["base"],
        {"c": near(1.6)},
    ),
    merge(
        "tasks-0.45-0.8",
        "task_arithmetic",
        lambda z, a, b: task_arithmetic(z, [a, b], [0.45, 0.8]),
        ["base", "checkpoint"],
    ),
    merge("ties-30", "ties", lambda z, a, b: ties(z, [a, b], 0.3), ["base", "checkpoint"]),
    merge("dare-70", "dare", lambda z, a, b: dare(z, [a, b], 0.7, 60_421), ["base", "checkpoint"]),
    merge("ema-0.8", "ema", lambda _, a, b: ema([a, b], 0.8), ["checkpoint"]),
    merge("averaged-unsaid", "averaged", lambda _, a, b: average([a, b], [0.6, 0.4]), []),
    merge("forgotten-half", "averaged", lambda z, a, _: average([a, z], [0.55, 0.45]), ["base"]),
]


def _checkpoint(base: Model, steps: int) -> tuple[Model, dict[str, Any]]:
    tensors, optimizer = with_optimizer(
        "glance", base.tensors, Recipe(rate=5e-4, steps=steps, seed=7601)
    )
    return base._replace(tensors=tensors), optimizer


def _resumed(base: Model) -> Built:
    """Weights and moments of a run, some steps apart."""
    (early, first), (late, second) = _checkpoint(base, 4), _checkpoint(base, 14)
    left = early._replace(state={"optimizer": first, "epoch": 1})
    right = late._replace(state={"optimizer": second, "epoch": 2})
    return Built(left, right, (trained_label(left, right), Expected("state_changed", None)))


def _moments_alone(base: Model) -> Built:
    (_, first), (_, second) = _checkpoint(base, 3), _checkpoint(base, 9)
    left = base._replace(state={"optimizer": first, "epoch": 1})
    right = base._replace(state={"optimizer": second, "epoch": 2})
    return Built(left, right, (Expected("state_changed", None),))


def _stripped(base: Model) -> Built:
    """A checkpoint as it is released: the optimizer is gone, every weight is there."""
    trained, optimizer = _checkpoint(base, 3)
    left = trained._replace(state={"optimizer": optimizer, "epoch": 3})
    return Built(
        left, trained, (Expected("state_changed", None, vague=("tensors_removed",), optional=True),)
    )


def _shadow_moved(base: Model) -> Built:
    """An average of weights that is stored beside them moved; they did not."""
    import torch

    def shadow(factor: float) -> dict[str, Array]:
        drift = np.random.default_rng(7602)
        return {
            name: torch.from_numpy(
                like(as_float(array) + factor * drift.standard_normal(array.shape), array)
            )
            for name, array in base.tensors.items()
        }

    left = base._replace(state={"ema_state_dict": shadow(1e-3), "step": 100})
    right = base._replace(state={"ema_state_dict": shadow(3e-3), "step": 200})
    return Built(left, right, (Expected("state_changed", None),))


def _moments_of_voice(base: Model) -> Built:
    """The published moments of `voice`, and what they decay to where gradients are zero."""
    import torch

    weights = {n: a for n, a in base.tensors.items() if not n.startswith("optimizer_state")}
    moments: dict[int, dict[str, Any]] = {}
    for name, array in base.tensors.items():
        if name.startswith("optimizer_state.state."):
            _, _, number, part = name.split(".")
            moments.setdefault(int(number) % 1000, {})[part] = array
    sides = []
    for decay in (1.0, 0.9):
        state = {
            key: {
                part: torch.from_numpy(array * np.float32(decay)) for part, array in parts.items()
            }
            for key, parts in moments.items()
        }
        sides.append(Model(weights, state={"optimizer": {"state": state, "param_groups": []}}))
    return Built(sides[0], sides[1], (Expected("state_changed", None),))


def _kind(name: str, base: str, kind: str, build: Callable[[Model], Built]) -> Pair:
    return Pair(f"h-{name}", "second", base, kind, build)


def _with_new_tokens(model: Model) -> Edited:
    tokens = {**SCRIBE_TOKENS}
    tokens["<think>"] = tokens.pop("<3>")
    tokens["</think>"] = tokens.pop("<4>")
    return retoken(tokens)(model)


STATES: list[Pair] = [
    _kind("run-resumed", "glance", "trained + state_changed", _resumed),
    _kind("moments-alone", "glance", "state_changed", _moments_alone),
    _kind("optimizer-stripped", "glance", "state_changed", _stripped),
    _kind("shadow-moved", "glance", "state_changed", _shadow_moved),
    _kind("moments-of-voice", "voice", "state_changed", _moments_of_voice),
    of("eps-1e-6-to-1e-5", "scribe", "config_changed", configure(rms_norm_eps=1e-5)),
    of("gelu-for-silu", "scribe", "config_changed", configure(hidden_act="gelu")),
    of("heads-5-to-4-in-config", "scribe", "config_changed", configure(num_attention_heads=4)),
    of("tokens-renamed", "scribe", "tokens_changed", _with_new_tokens),
    of(
        "tokens-and-rows",
        "scribe",
        "row_edit + tokens_changed",
        edit_rows(r"embed_tokens", 2, 0.8, 60_431),
        _with_new_tokens,
    ),
]

PAIRS: list[Pair] = [*MERGES, *STATES]
