"""A diff with a fingerprint on one side or both: open, pair, compare."""

from __future__ import annotations

from typing import Any

from difflens.core.errors import DifflensError
from difflens.core.protocols import Engine
from difflens.core.records import Pair
from difflens.engines import start_engine
from difflens.models.opening import Model

from .. import story
from ..diff import Diff
from ..pairing import pair_models
from .compare import compare, prove
from .session import FingerprintSession
from .settings import compare_settings
from .sides import Side, open_side


def diff_estimated(left: Model, right: Model, *, exact: bool, **options: Any) -> Diff:
    """Compare by fingerprints; with `exact`, read the models where hashes differ."""
    before, after = (
        open_side(each, options.get("format"), options.get("limits")) for each in (left, right)
    )
    engine = start_engine(options.get("engine"), options.get("threads"))
    if not exact:
        return _diff_fingerprints(before, after, engine, **options)
    models = before.model(), after.model()
    proved = _prove(before, after, engine)
    compared = story.diff(*models, **options)
    compared.session.proved = proved
    return compared


def _diff_fingerprints(
    left: Side,
    right: Side,
    work: Engine,
    *,
    match: str = "auto",
    path: str | None = None,
    ignore: str | None = None,
    epsilon: float = 0.0,
    shape_only: bool = False,
    **_unused: Any,
) -> Diff:
    if epsilon:
        raise DifflensError(
            "--epsilon looks at every element, and a fingerprint holds none",
            hint="name the models, or add --exact",
        )
    about = left.metadata, right.metadata
    tensors = left.tensors, right.tensors
    pairing = pair_models(
        *tensors, match, nodes=(None, None), metadata=about, path=path, ignore=ignore
    )
    return Diff(
        left.info,
        right.info,
        FingerprintSession(left, right, pairing, work, shape_only=shape_only),
        metadata=compare_settings(*about),
        described={"left": about[0], "right": about[1]},
    )


def _prove(left: Side, right: Side, engine: Engine) -> frozenset[tuple[str, str]]:
    """Name the tensors whose hashes are equal; a model is read for its own."""
    try:
        fingerprints = left.read(engine), right.read(engine)
    finally:
        engine.close()
        left.close()
        right.close()
    common = [(info, right.tensors.get(name)) for name, info in left.tensors.items()]
    pairs = [Pair(info, other) for info, other in common if other]
    return prove(compare(pairs, *fingerprints, {}))
