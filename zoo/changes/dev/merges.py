"""Pairs of the dev part that are merges, with the base and the other models at hand or without."""

from __future__ import annotations

from collections.abc import Callable

from ..edits import average, dare, ema, merged_pair, near, slerp, task_arithmetic, ties
from ..model import Model, stored
from ..pairs import Built, Pair
from ..training import tuned

_NETS = ("gpt", "llama", "mlp", "cnn")


def _two(name: str) -> tuple[Model, Model]:
    """Return two fine-tunes of a base, on two tasks."""
    return (
        tuned(name, seed=1, steps=60, rate=1e-4, task=1),
        tuned(name, seed=2, steps=80, rate=2e-4, task=2),
    )


def _pair(kind: str, id_: str, name: str, build: Callable[[Model], Built]) -> Pair:
    return Pair(f"{id_}-{name}", "dev", name, kind, build)


def _averaged(name: str, dtype: str | None = None) -> Callable[[Model], Built]:
    def build(_: Model) -> Built:
        one, other = (_stored(each, dtype) for each in _two(name))
        return merged_pair(
            "averaged", one, average([one, other], [0.5, 0.5]), {"checkpoint": other}
        )

    return build


def _stored(model: Model, dtype: str | None) -> Model:
    return stored(model, dtype) if dtype else model


def _interpolated(name: str, factor: float, dtype: str | None = None) -> Callable[[Model], Built]:
    """Go from the base towards its fine-tune: between them, or beyond."""

    def build(base: Model) -> Built:
        start, one = _stored(base, dtype), _stored(_two(name)[0], dtype)
        kind = "extrapolated" if factor > 1 else "averaged"
        numbers = {"c": near(factor)} if factor > 1 else {}
        result = average([start, one], [1 - factor, factor])
        return merged_pair(kind, one, result, {"base": start}, numbers)

    return build


def _slerped(name: str, *, known: bool) -> Callable[[Model], Built]:
    def build(_: Model) -> Built:
        one, other = _two(name)
        result = slerp(one, other, 0.5)
        # Where both lie close together, an arc is a line: either name is right.
        return merged_pair(
            "slerp", one, result, {"checkpoint": other} if known else {}, also=("averaged",)
        )

    return build


def _task(name: str) -> Callable[[Model], Built]:
    def build(base: Model) -> Built:
        models = _two(name)
        result = task_arithmetic(base, models, [0.7, 0.4])
        return merged_pair(
            "task_arithmetic", models[0], result, {"base": base, "checkpoint": models[1]}
        )

    return build


def _ties(name: str, density: float) -> Callable[[Model], Built]:
    def build(base: Model) -> Built:
        models = _two(name)
        result = ties(base, models, density)
        return merged_pair("ties", models[0], result, {"base": base, "checkpoint": models[1]})

    return build


def _dare(name: str, drop: float) -> Callable[[Model], Built]:
    def build(base: Model) -> Built:
        one, _ = _two(name)
        return merged_pair("dare", one, dare(base, [one], drop, seed=3), {"base": base})

    return build


def _ema(name: str) -> Callable[[Model], Built]:
    def build(base: Model) -> Built:
        points = [base, *(tuned(name, seed=1, steps=steps) for steps in (20, 40, 60))]
        evidence = {f"checkpoint-{at}": each for at, each in enumerate(points[1:])}
        return merged_pair("ema", points[0], ema(points, 0.6), evidence)

    return build


def _blind(name: str) -> Callable[[Model], Built]:
    """Average with a model that nobody hands over: what moved looks like training."""

    def build(_: Model) -> Built:
        one, other = _two(name)
        return merged_pair("averaged", one, average([one, other], [0.5, 0.5]), {})

    return build


PAIRS = [
    *(_pair("averaged", "averaged", name, _averaged(name)) for name in _NETS),
    _pair("averaged", "averaged-bf16", "gpt", _averaged("gpt", "BF16")),
    *(_pair("averaged", "halfway", name, _interpolated(name, 0.5)) for name in ("gpt", "llama")),
    _pair("averaged", "third-bf16", "llama", _interpolated("llama", 0.3, "BF16")),
    *(_pair("extrapolated", "beyond", name, _interpolated(name, 1.5)) for name in ("gpt", "mlp")),
    *(_pair("slerp", "slerp", name, _slerped(name, known=True)) for name in ("gpt", "llama")),
    *(_pair("task_arithmetic", "task", name, _task(name)) for name in ("gpt", "llama", "mlp")),
    *(_pair("ties", "ties", name, _ties(name, 0.2)) for name in ("gpt", "llama", "cnn")),
    *(_pair("dare", "dare", name, _dare(name, 0.9)) for name in ("gpt", "llama", "mlp")),
    *(_pair("ema", "ema", name, _ema(name)) for name in ("gpt", "llama")),
    *(
        _pair("averaged, not shown", "blind-average", name, _blind(name))
        for name in ("gpt", "llama")
    ),
]
