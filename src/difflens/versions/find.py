"""The story of a search for relatives: all summaries at a glance, then the nearest one by one."""

from __future__ import annotations

from math import sqrt

from difflens.core.dtypes import FLOATS
from difflens.diffs.fingerprints.compare import compare, find_by_hash
from difflens.diffs.fingerprints.records import Fingerprint
from difflens.diffs.fingerprints.summary import Nearness, nearness, summarise
from difflens.diffs.pairing import pair_models
from difflens.measure.sketch.estimate import Estimate

from .records.relatives import Relative, Relatives
from .records.snapshots import ModelSnapshot
from .store import Store

# Models that have nothing to do with each other are at 1, give or take the error of a sketch; so
# near to it a kinship is not told from chance.
_UNRELATED = 0.9


def find_relatives(
    store: Store, model: Fingerprint, limit: int = 5, *, name: str = ""
) -> Relatives:
    """Find the recorded models that are nearest to one; `name` is what that is called."""
    summaries = store.summaries()
    near = nearness(summarise(model), [summary for _, summary in summaries])
    keys = [key for key, _ in summaries]
    nearest = sorted(zip(near, keys, strict=True), key=lambda each: each[0].score)
    related = [each for each in nearest if each[0].score < _UNRELATED][:limit]
    return Relatives(
        model=name or model.model.path,
        searched=len(summaries),
        unsearched=max(0, store.count(ModelSnapshot) - len(summaries)),
        relatives=tuple(_relative(store, model, key, known) for known, key in related),
    )


def _relative(store: Store, model: Fingerprint, key: str, known: Nearness) -> Relative:
    """Compare the model with one that is recorded, tensor by tensor."""
    other = store.fingerprint(key)
    if other is None:  # it was removed meanwhile
        other = Fingerprint(model.model, {}, metadata={})
    about = model.metadata, other.metadata
    pairs = pair_models(model.infos, other.infos, "auto", nodes=(None, None), metadata=about).pairs
    deltas = list(compare(pairs, model, other, find_by_hash(pairs, model, other)))
    both = [each for each in deltas if each.pair.left and each.pair.right]
    measures = [
        (each, measure)
        for each in both
        if each.pair.left and each.pair.left.dtype in FLOATS
        for measure in [each.measured(Estimate)]
        if measure and not measure.is_unknown
    ]
    size = sum(measure.left_square_sum for _, measure in measures)
    moved = sum(measure.square_sum for _, measure in measures)
    errors = [measure.estimated_error for _, measure in measures if measure.estimated_error]
    return Relative(
        key=key,
        same=sum(each.kind == "identical" for each in both),
        moved=sum(each.kind in ("changed", "recast", "uncompared") for each in both),
        lacking=sum(each.pair.right is None or each.kind == "reshaped" for each in deltas),
        further=sum(each.pair.left is None or each.kind == "reshaped" for each in deltas),
        same_architecture=known.is_same_architecture,
        shared=known.shared,
        relative_l2=sqrt(moved / size) if size > 0 else None,
        estimated_error=max(errors, default=None),
    )
