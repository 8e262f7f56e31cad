"""The story of a diff: open, pair, measure, analyse, judge. Read this first."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING

from difflens.core.records import Report, Row
from difflens.engines import start_engine
from difflens.models.checkpoint import Checkpoint, open_checkpoint
from difflens.models.computed import derived, nodes_of
from difflens.models.describe import describe, metadata
from difflens.models.opening import Model, open_inputs, place_of, resolve_weights

from .diff import Diff
from .judge import PackedRows, Tally, judge, row
from .pairing import name_filter, pair_models
from .session import Session
from .settings.comparison import Beside, settings_changes
from .settings.files import own_files, with_named_configs

if TYPE_CHECKING:
    from difflens.core.findings import Envelope
    from difflens.core.policy import Policy
    from difflens.core.protocols import Engine, TensorSource

    from .evidence.records import Evidence
    from .state import StateComparison


def diff(
    left: Model,
    right: Model,
    *,
    match: str = "auto",
    epsilon: float = 0.0,
    path: str | None = None,
    ignore: str | None = None,
    threads: int | None = None,
    engine: str | None = None,
    format: str | None = None,  # noqa: A002  the word of the command line
    limits: Mapping[str, int] | None = None,
    shape_only: bool = False,
    always: bool = False,
    discovery: bool = True,
    configs: tuple[str | None, str | None] = (None, None),
) -> Diff:
    """Open two models and pair their tensors; only headers are read until somebody looks.

    `path` keeps tensors whose name contains it, `ignore` leaves out those a regular expression
    finds a match in; `always` asks for statistics of identical tensors too; `discovery` compares
    the config and the tokenizer beside single files as well, `configs` those that were named.
    """
    # Open.
    (left_name, before), (right_name, after) = open_inputs((left, right), format, limits)
    places = place_of(left), place_of(right)
    about = metadata(places[0], before), metadata(places[1], after)
    files = own_files(*places, discovery=discovery)
    if any(configs):
        files = with_named_configs(files, places, configs, limits, discovery=discovery)
    sides = Beside.of(places[0], before, files[0]), Beside.of(places[1], after, files[1])
    settings = settings_changes(*sides, limits)
    nodes = nodes_of(before), nodes_of(after)
    split = _checkpoints(before, after, path, ignore)
    before, after = resolve_weights(split[0].weights, split[1].weights, about)

    # Pair.
    pairing = pair_models(
        before.tensors, after.tensors, match, nodes=nodes, metadata=about, path=path, ignore=ignore
    )
    before = derived(before, ((each.left, each.left_recipe) for each in pairing.pairs))
    after = derived(after, ((each.right, each.right_recipe) for each in pairing.pairs))

    work = start_engine(engine, threads)
    session = Session(
        before, after, pairing, work, epsilon=epsilon, always=always, shape_only=shape_only
    )
    return Diff(
        describe(left_name, before, split[0].state_infos),
        describe(right_name, after, split[1].state_infos),
        session,
        metadata=settings,
        described={"left": about[0], "right": about[1]},
        state=_state(split, path, ignore, engine=work, shape_only=shape_only),
    )


def _state(
    split: tuple[Checkpoint, Checkpoint], *names: str | None, engine: Engine, shape_only: bool
) -> StateComparison | None:
    """Return what compares the state beside the weights; None where there is none."""
    if not any(each.may_hold_state for each in split):
        return None
    from .state import StateComparison

    return StateComparison(*split, *names, engine=engine, shape_only=shape_only)


def _checkpoints(
    left: TensorSource, right: TensorSource, path: str | None, ignore: str | None
) -> tuple[Checkpoint, Checkpoint]:
    """Take the state beside the weights apart, unless `path` asks for nothing but state."""
    sides = open_checkpoint(left), open_checkpoint(right)
    if path is not None:
        chooses = name_filter(path, ignore)
        if not any(chooses([name]) for side in sides for name in side.weights.tensors):
            return Checkpoint(left, left, {}), Checkpoint(right, right, {})
    return sides


def report(
    diff: Diff,
    analyses: Sequence[str] = (),
    evidence: Evidence | None = None,
    policy: Policy | None = None,
    *,
    verify_conversion: bool = False,
    follow: Callable[[Row], None] | None = None,
) -> Report:
    """Measure a diff, ask the analyses, judge, and return all of it as plain data.

    `verify_conversion` asks only whether both are the same model, whatever their formats. Who may
    `follow` is given each row as it is measured; the report then holds no rows.
    """
    answers: list[Envelope] = []
    if analyses:
        from .analyses import analyse, analysis  # none is imported unless one is asked

        names = [analysis[name].name for name in analyses]  # an unknown one stops before the work
        diff.session.keep_bytes()
        diff.expect(kind for name in names for kind in analysis[name].options.get("measures", ()))
        diff.measure()
        answers = [analyse(name, diff, evidence, policy) for name in names]

    # Without an analysis each delta is measured here and let go: there may be a million of them.
    tally, rows = Tally(diff.left, diff.right), PackedRows()
    take = follow or rows.append
    for place, delta in enumerate(diff.stream()):
        tally.add(delta)
        take(row(delta, diff.whole_measures(place)))

    used = evidence.given if evidence and analyses else {}
    judged = judge(diff, tally.totals(), rows.as_tuple(), answers, used)
    if not verify_conversion:
        return judged
    from .judge.conversion import judge_conversion

    return judge_conversion(judged)
