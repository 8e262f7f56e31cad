"""Three very different pairs of models, each with all kinds of evidence.

An analysis that gives the same answer for all three measures nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any, NamedTuple

from difflens.core.policy import MetricRule, Policy
from difflens.diffs.diff import Diff
from difflens.diffs.evidence.records import (
    Evidence,
    Example,
    Gradients,
    Latency,
    Log,
    Optimizer,
    Past,
    Side,
    Trajectory,
)
from difflens.diffs.story import diff

if TYPE_CHECKING:
    from numpy.random import Generator
    from numpy.typing import NDArray

Arrays = dict[str, Any]


class Situation(NamedTuple):
    """A pair of models with all evidence."""

    left: Arrays
    right: Arrays
    evidence: Evidence
    policy: Policy

    @property
    def diff(self) -> Diff:
        """A new diff of the two."""
        return diff(self.left, self.right)


class _Shape(NamedTuple):
    """The sizes of a small decoder."""

    layers: int
    hidden: int
    heads: int
    key_heads: int
    inner: int
    vocabulary: int

    @property
    def config(self) -> dict[str, Any]:
        """Its config.json."""
        return {
            "model_type": "llama",
            "num_hidden_layers": self.layers,
            "hidden_size": self.hidden,
            "num_attention_heads": self.heads,
            "num_key_value_heads": self.key_heads,
            "intermediate_size": self.inner,
            "vocab_size": self.vocabulary,
            "max_position_embeddings": 128 * self.layers,
            "learning_rate": 10.0**-self.layers,
        }


def situations() -> Iterator[tuple[str, Situation]]:
    """Yield a small fine-tune, a pruning with a grown vocabulary, and a rough rewrite."""
    yield "tuned", _situation(1, _Shape(3, 32, 4, 2, 80, 96), _tuned, good=0.02)
    yield "pruned", _situation(2, _Shape(2, 48, 6, 6, 64, 80), _pruned, good=-0.06)
    yield "rewritten", _situation(3, _Shape(5, 64, 4, 1, 96, 128), _rewritten, good=-0.2)


def _situation(
    seed: int, shape: _Shape, change: Callable[[Arrays, Generator], Arrays], *, good: float
) -> Situation:
    import numpy as np

    random = np.random.default_rng(seed)
    base = decoder(shape, random)
    left = {name: value + _noise(value, random, 0.05) for name, value in base.items()}
    right = change(left, random)
    evidence = Evidence(
        given={"everything": f"situation {seed} of difflens.testing"},
        left=_side(shape, random, 0.8, left),
        right=_side(_grown(shape, right), random, 0.8 + good, right),
        history=_history(random, 0.8, 10 + seed),
        log=_log(random, good),
        gradients=_gradients(random, shape.layers, good),
        runs=_runs(random),
        trajectory=_trajectory(left, right, random, seed),
        base=(diff(base, left), diff(base, right)),
        hardware={"bandwidth_bytes": 1e10 * seed, "peak_flops": 1e12 * seed},
    )
    rules = {"accuracy": MetricRule("higher", margin=0.01 * seed, threshold=0.7)}
    return Situation(left, right, evidence, Policy(metrics=rules))


def decoder(shape: _Shape, random: Generator) -> Arrays:
    """Make a decoder with the names of the Llama family."""
    hidden, inner = shape.hidden, shape.inner
    key_width = hidden // shape.heads * shape.key_heads
    shapes: dict[str, tuple[int, ...]] = {"model.embed_tokens.weight": (shape.vocabulary, hidden)}
    for i in range(shape.layers):
        block = f"model.layers.{i}"
        shapes |= {f"{block}.self_attn.{part}_proj.weight": (hidden, hidden) for part in "qo"}
        shapes |= {f"{block}.self_attn.{part}_proj.weight": (key_width, hidden) for part in "kv"}
        shapes |= {f"{block}.mlp.{part}_proj.weight": (inner, hidden) for part in ("gate", "up")}
        shapes[f"{block}.mlp.down_proj.weight"] = (hidden, inner)
        shapes |= {
            f"{block}.{norm}.weight": (hidden,)
            for norm in ("input_layernorm", "post_attention_layernorm")
        }
    shapes |= {"model.norm.weight": (hidden,), "lm_head.weight": (shape.vocabulary, hidden)}
    return {
        name: (random.normal(0, 0.02 if len(size) > 1 else 0.05, size) + (len(size) == 1)).astype(
            "f4"
        )
        for name, size in shapes.items()
    }


def _noise(value: NDArray[Any], random: Generator, size: float) -> NDArray[Any]:
    noise: NDArray[Any] = random.normal(0, size, value.shape) * value.std()
    return noise.astype(value.dtype)


def _tuned(left: Arrays, random: Generator) -> Arrays:
    return {
        name: value + _noise(value, random, 0.1) if "mlp" in name or "embed" in name else value
        for name, value in left.items()
    }


def _pruned(left: Arrays, random: Generator) -> Arrays:
    import numpy as np

    right = {
        name: np.where(abs(value) < np.median(abs(value)), 0, value).astype("f4")
        if "proj" in name
        else value
        for name, value in left.items()
    }
    for name in ("model.embed_tokens.weight", "lm_head.weight"):
        new = random.normal(0, 0.02, (8, left[name].shape[1]))
        right[name] = np.concatenate([left[name], new]).astype("f4")
    return right


def _rewritten(left: Arrays, random: Generator) -> Arrays:
    right = {
        name: (value * 3 + 5 * _noise(value, random, 1.0)).astype("f2")
        for name, value in left.items()
    }
    right["model.layers.0.mlp.up_proj.weight"][3, 5] = float("nan")
    return right


def _grown(shape: _Shape, right: Arrays) -> _Shape:
    return shape._replace(vocabulary=len(right["model.embed_tokens.weight"]))


def _side(shape: _Shape, random: Generator, accuracy: float, model: Arrays) -> Side:
    scores = random.random(200) < accuracy
    return Side(
        config=shape.config,
        metrics={"accuracy": accuracy, "loss": 2 - accuracy},
        evals=tuple(
            Example(f"q{i}", float(score), "accuracy", f"c{i // 4}")
            for i, score in enumerate(scores)
        ),
        latency=tuple(
            Latency(float(ms), f"r{i % 6}")
            for i, ms in enumerate(random.gamma(9, (2 - accuracy) / 9, 400))
        ),
        tokens={f"token{i}": i for i in range(shape.vocabulary)},
        special_tokens={"<s>": 0, "</s>": 1},
        optimizer=_optimizer(model, random),
        step=100 * shape.layers,
        licence="apache-2.0",
    )


def _optimizer(model: Arrays, random: Generator) -> Optimizer:
    from difflens.measure.chunks import Side as Place
    from difflens.measure.values import Values
    from difflens.models.opening import MemorySource

    arrays = {}
    for index, value in enumerate(model.values()):
        gradient = random.normal(0, 1e-3, value.shape)
        arrays[f"{index}.exp_avg"] = (gradient * 0.3).astype("f4")
        arrays[f"{index}.exp_avg_sq"] = (gradient**2 + 1e-8).astype("f4")
    source = MemorySource(arrays)
    moments: dict[int, dict[str, Any]] = {
        index: {
            key: Values(Place.of(source, source.tensors[f"{index}.{key}"]))
            for key in ("exp_avg", "exp_avg_sq")
        }
        | {"step": 100.0}
        for index in range(len(model))
    }
    group = {
        "lr": 10 ** -random.uniform(2, 5),
        "betas": [0.9, 0.999],
        "eps": 1e-8,
        "weight_decay": 0.01,
        "params": list(range(len(model))),
    }
    return Optimizer((group,), moments, "a situation")


def _history(random: Generator, accuracy: float, length: int) -> tuple[Past, ...]:
    values = accuracy + random.normal(0, 0.01, length)
    return tuple(
        Past(f"v{i}", "accuracy", float(value), f"2026-01-{i + 1:02}T00:00:00")
        for i, value in enumerate(values)
    )


def _log(random: Generator, good: float) -> Log:
    steps = range(0, 600, 10)
    slope = -3 * good
    columns = {
        "loss": [2 + slope * step / 600 + random.normal(0, 0.01) for step in steps],
        "learning_rate": [1e-3 * (1 - step / 800) * (1 + abs(good)) for step in steps],
        "grad_norm": [abs(random.normal(1 + abs(good), 0.1)) for step in steps],
    }
    return Log(
        {
            name: tuple(zip(map(float, steps), map(float, values), strict=True))
            for name, values in columns.items()
        },
        "a situation",
    )


def _gradients(random: Generator, layers: int, good: float) -> Gradients:
    return Gradients(
        {
            f"model.layers.{i}": tuple(
                (float(step), float(abs(random.normal(1, 0.1)) * (1 - good) ** (i * 3)))
                for step in range(0, 400, 4)
            )
            for i in range(layers)
        },
        "a situation",
    )


def _runs(random: Generator) -> tuple[dict[str, Any], ...]:
    strength = random.uniform(0.5, 3)
    return tuple(
        {
            "lr": lr,
            "batch": batch,
            "seed": seed,
            "accuracy": 0.1 * strength * _log10(lr) + random.normal(0, 0.05),
        }
        for lr in (1e-4, 1e-3, 1e-2)
        for batch in (16, 32)
        for seed in range(4)
    )


def _log10(value: float) -> float:
    from math import log10

    return log10(value)


def _trajectory(left: Arrays, right: Arrays, random: Generator, seed: int) -> Trajectory:
    import numpy as np

    names = [
        name
        for name in left
        if left[name].shape == right[name].shape and np.isfinite(right[name]).all()
    ]
    parts = 1 - (0.2 + 0.2 * seed) ** np.arange(7)
    points = {
        name: np.stack(
            [
                left[name] + part * (right[name] - left[name]) + _noise(left[name], random, 1e-4)
                for part in parts
            ]
        )
        .reshape(7, -1)
        .astype("f8")
        for name in names
    }
    moves = {name: ((rows[:, None] - rows[None]) ** 2).sum(-1) for name, rows in points.items()}
    return Trajectory(
        tuple(f"checkpoint-{100 * i}" for i in range(7)),
        tuple(100.0 * i for i in range(7)),
        {name: tuple(map(tuple, move.tolist())) for name, move in moves.items()},
        {name: tuple((rows**2).sum(-1).tolist()) for name, rows in points.items()},
        (0,) * 7,
    )
