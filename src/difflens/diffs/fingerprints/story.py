"""The story of a diff by fingerprints: open, pair, compare; or which models to read after all."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from difflens.core.errors import DifflensError
from difflens.core.records import Pair
from difflens.engines.threads import Threads
from difflens.models.opening import Model

from ..diff import Diff
from ..pairing import Pairing, pair_models
from .compare import compare, proved
from .session import FingerprintSession
from .settings import compare_settings
from .sides import Side, open_side


class Asked(NamedTuple):
    """What a diff was asked for, as far as fingerprints can do it."""

    match: str = "auto"
    path: str | None = None
    ignore: str | None = None
    threads: int | None = None
    format: str | None = None
    limits: Mapping[str, int] | None = None


class Exact(NamedTuple):
    """The models to read for exact figures, and the pairs that need not be read."""

    left: Model
    right: Model
    proved: frozenset[tuple[str, str]]


def diff_fingerprints(
    left: Model, right: Model, asked: Asked, *, epsilon: float = 0.0, shape_only: bool = False
) -> Diff:
    """Compare two models of which one at least is a fingerprint; distances are estimates."""
    if epsilon:
        raise DifflensError(
            "--epsilon looks at every element, and a fingerprint holds none",
            hint="name the models, or add --exact",
        )
    before, after = _open(left, asked), _open(right, asked)
    pairing = _pair(before, after, asked)
    session = FingerprintSession(
        before, after, pairing, threads=asked.threads, shape_only=shape_only
    )
    return Diff(
        before.info,
        after.info,
        session,
        metadata=compare_settings(before.metadata, after.metadata),
        described={"left": before.metadata, "right": after.metadata},
    )


def exact_models(left: Model, right: Model, asked: Asked) -> Exact:
    """Compare the hashes of both sides, and return the models for what these leave open."""
    before, after = _open(left, asked), _open(right, asked)
    models = before.model(), after.model()
    engine = Threads(asked.threads)
    try:
        fingerprints = before.read(engine), after.read(engine)
    finally:
        engine.close()
        before.close()
        after.close()
    pairs = [Pair(info, after.tensors[name])
             for name, info in before.tensors.items() if name in after.tensors]  # fmt: skip
    return Exact(*models, proved(compare(pairs, *fingerprints, {})))


def _open(model: Model, asked: Asked) -> Side:
    return open_side(model, asked.format, asked.limits)


def _pair(left: Side, right: Side, asked: Asked) -> Pairing:
    return pair_models(
        left.tensors,
        right.tensors,
        asked.match,
        nodes=(None, None),
        metadata=(left.metadata, right.metadata),
        path=asked.path,
        ignore=asked.ignore,
    )
