"""Fresh pairs of merges, of optimizer state, and of settings beside the weights."""

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
    ema,
    merged_pair,
    near,
    retoken,
    slerp,
    task_arithmetic,
    ties,
)
from .fresh_bases import LETTER_TOKENS
from .fresh_edits import of
from .heldback_edits import trained_label
from .heldback_training import Recipe, fine_tuned, with_optimizer
from .model import Array, Model, as_float, like, stored
from .pairs import Built, Edited, Expected, Pair, Wanted

Merge = Callable[[Model, Model, Model], Model]


@cache
def _family(name: str, dtype: str) -> tuple[Model, Model, Model]:
    """Return the base of the merges and two fine-tunes of it, in one dtype."""
    base = stored(load(name), dtype)
    recipes = (
        Recipe(rate=5e-4, steps=25, seed=83_801),
        Recipe(rate=8e-4, steps=20, data=2, seed=83_802),
    )
    tuned = [fine_tuned(name, base.tensors, each) for each in recipes]
    first, second = (stored(base._replace(tensors=each), dtype) for each in tuned)
    return base, first, second


def merge(  # noqa: PLR0917  read as rows of a table
    name: str,
    base: str,
    kind: str,
    rule: Merge,
    shown: Sequence[str],
    numbers: Mapping[str, Wanted] | None = None,
    *,
    dtype: str = "F32",
    also: tuple[str, ...] | None = None,
) -> Pair:
    """Return a pair whose right side was made of the base and two fine-tunes of it."""

    def build(_: Model) -> Built:
        start, one, other = _family(base, dtype)
        models = {"base": start, "checkpoint": other}
        right = rule(start, one, other)
        evidence = {key: models[key] for key in shown}
        return merged_pair(kind, one, right, evidence, dict(numbers or {}), also=also)

    return Pair(f"f-{name}", "fresh", base, kind if shown else f"{kind}, not shown", build)


_BOTH = ["base", "checkpoint"]

MERGES: list[Pair] = [
    merge("averaged-60-40", "quill", "averaged", lambda _, a, b: average([a, b], [0.6, 0.4]),
          ["checkpoint"], {"weights": (0.39, 0.61)}),
    merge("averaged-half", "courier", "averaged", lambda _, a, b: average([a, b], [0.5, 0.5]),
          ["checkpoint"], {"weights": (0.49, 0.51)}),
    merge("averaged-80-20-bf16", "courier", "averaged", lambda _, a, b: average([a, b], [0.8, 0.2]),
          ["checkpoint"], {"weights": (0.19, 0.81)}, dtype="BF16"),
    merge("wise-0.7", "quill", "averaged", lambda z, a, _: average([a, z], [0.7, 0.3]), ["base"]),
    merge("slerp-half", "quill", "slerp", lambda _, a, b: slerp(a, b, 0.5), ["checkpoint"]),
    merge("slerp-0.3-f16", "courier", "slerp", lambda _, a, b: slerp(a, b, 0.3), ["checkpoint"],
          dtype="F16"),
    merge("extrapolated-1.4", "quill", "extrapolated", lambda z, a, _: average([z, a], [-0.4, 1.4]),
          ["base"], {"c": near(1.4)}),
    merge("tasks-0.7-0.5", "quill", "task_arithmetic",
          lambda z, a, b: task_arithmetic(z, [a, b], [0.7, 0.5]), _BOTH),
    merge("tasks-1-1", "courier", "task_arithmetic",
          lambda z, a, b: task_arithmetic(z, [a, b], [1.0, 1.0]), _BOTH),
    merge("ties-20", "quill", "ties", lambda z, a, b: ties(z, [a, b], 0.2), _BOTH),
    merge("ties-50", "courier", "ties", lambda z, a, b: ties(z, [a, b], 0.5), _BOTH),
    merge("dare-90", "quill", "dare", lambda z, a, b: dare(z, [a, b], 0.9, 83_811), _BOTH),
    merge("dare-50", "courier", "dare", lambda z, a, b: dare(z, [a, b], 0.5, 83_812), _BOTH),
    merge("ema-0.95", "quill", "ema", lambda _, a, b: ema([a, b], 0.95), ["checkpoint"]),
    merge("ties-unsaid", "quill", "ties", lambda z, a, b: ties(z, [a, b], 0.35), []),
    merge("averaged-unsaid", "courier", "averaged",
          lambda _, a, b: average([a, b], [0.55, 0.45]), []),
]  # fmt: skip


def _checkpoint(task: str, base: Model, steps: int) -> tuple[Model, dict[str, Any]]:
    recipe = Recipe(rate=3e-4, steps=steps, seed=83_821)
    tensors, optimizer = with_optimizer(task, base.tensors, recipe)
    return base._replace(tensors=tensors), optimizer


def _resumed(task: str) -> Callable[[Model], Built]:
    def build(base: Model) -> Built:
        (early, first), (late, second) = (_checkpoint(task, base, steps) for steps in (5, 20))
        left = early._replace(state={"optimizer": first, "global_step": 500})
        right = late._replace(state={"optimizer": second, "global_step": 2000})
        return Built(left, right, (trained_label(left, right), Expected("state_changed", None)))

    return build


def _moments_alone(base: Model) -> Built:
    (_, first), (_, second) = (_checkpoint("pulse", base, steps) for steps in (2, 7))
    left = base._replace(state={"optimizer": first, "global_step": 20})
    right = base._replace(state={"optimizer": second, "global_step": 70})
    return Built(left, right, (Expected("state_changed", None),))


def _stripped(base: Model) -> Built:
    """A checkpoint as it is released: the optimizer is gone, every weight is there."""
    trained, optimizer = _checkpoint("courier", base, 3)
    left = trained._replace(state={"optimizer": optimizer, "global_step": 3})
    gone = Expected("state_changed", None, vague=("tensors_removed",), optional=True)
    return Built(left, trained, (gone,))


def _shadow(base: Model, share: float) -> dict[str, Array]:
    import torch

    rng = np.random.default_rng(83_822)
    return {
        name: torch.from_numpy(
            like(as_float(array) * (1 + share * rng.standard_normal(array.shape)), array)
        )
        for name, array in base.tensors.items()
    }


def _shadow_moved(base: Model) -> Built:
    """An average of weights that is stored beside them moved; they did not."""
    left = base._replace(state={"ema": _shadow(base, 0.002), "global_step": 100})
    right = base._replace(state={"ema": _shadow(base, 0.004), "global_step": 300})
    return Built(left, right, (Expected("state_changed", None),))


def _with_thoughts(model: Model) -> Edited:
    tokens = {**LETTER_TOKENS, "<|im_start|>": 96, "<|im_end|>": 97}
    del tokens["<|96|>"], tokens["<|97|>"]
    return retoken(tokens)(model)


STATES: list[Pair] = [
    Pair("f-run-resumed-glide", "fresh", "glide", "trained + state_changed", _resumed("glide")),
    Pair("f-run-resumed-crowd", "fresh", "crowd", "trained + state_changed", _resumed("crowd")),
    Pair("f-moments-alone", "fresh", "pulse", "state_changed", _moments_alone),
    Pair("f-optimizer-stripped", "fresh", "courier", "state_changed", _stripped),
    Pair("f-shadow-moved", "fresh", "quill", "state_changed", _shadow_moved),
    of("theta-500000-to-1000000", "crowd", "config_changed", configure(rope_theta=1_000_000.0)),
    of("experts-per-token-2-to-1", "crowd", "config_changed", configure(num_experts_per_tok=1)),
    of("eps-quill", "quill", "config_changed", configure(layer_norm_eps=1e-6)),
    of("gelu-to-relu-quill", "quill", "config_changed", configure(hidden_act="relu")),
    of("chat-tokens", "quill", "tokens_changed", _with_thoughts),
]

PAIRS: list[Pair] = [*MERGES, *STATES]
