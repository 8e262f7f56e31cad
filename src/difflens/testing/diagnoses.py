"""The laws of diagnoses: a pure function of the history that is silent on healthy runs."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from math import isfinite
from typing import Any, NamedTuple

from difflens.core.policy import Policy, Threshold
from difflens.core.registry import Entry
from difflens.training.diagnoses import Diagnosis, diagnosis
from difflens.training.history.history import Course, History
from difflens.training.records.runs import Layer, RunFinding, RunInfo

from .histories import faulty, healthy, too_little
from .laws import deeds, hold, is_described, registered

_SEVERITIES = ("info", "warning", "critical")


class Case(NamedTuple):
    """A diagnosis under test."""

    entry: Entry

    def findings(self, history: History) -> list[RunFinding]:
        """List what it finds in a fresh copy of the history."""
        return list(self.entry.plugin(_afresh(history), Policy()))


def check_diagnosis(
    plugin: Diagnosis, laws: tuple[Callable[[Case], None], ...] | None = None
) -> None:
    """Check a diagnosis against its contract."""
    case = Case(registered(diagnosis, plugin))
    for law in laws or LAWS:
        law(case)


def it_is_described(case: Case) -> None:
    """It has a summary, its needs, its window, and its thresholds with reasons."""
    is_described(case.entry)
    options = case.entry.options
    needs, thresholds = options.get("needs"), options.get("thresholds")
    hold(isinstance(needs, tuple), f"{case.entry.name}: needs={needs!r}, expected a tuple")
    hold(isinstance(options.get("window"), int), f"{case.entry.name}: it names no window")
    reasoned = isinstance(thresholds, dict) and all(
        isinstance(each, Threshold) and each.why for each in thresholds.values()
    )
    hold(reasoned, f"{case.entry.name}: thresholds= must give each a value and a reason")


def it_is_silent_on_healthy_runs(case: Case) -> None:
    """On a run that learns it finds nothing above info."""
    for name, history in _healthy().items():
        loud = [each.text for each in case.findings(history) if each.severity != "info"]
        hold(not loud, f"{name}: {case.entry.name} says {loud}")


def it_is_silent_where_too_little_is_known(case: Case) -> None:
    """With no frames, or three, it finds nothing."""
    for name, history in too_little().items():
        findings = case.findings(history)
        texts = [each.text for each in findings]
        hold(not findings, f"{name}: {case.entry.name} says {texts}")


def it_is_pure(case: Case) -> None:
    """The same history gives the same findings, without files, programs or sockets."""
    for name, history in _every().items():
        first = case.findings(history)
        with deeds() as done:
            second = case.findings(history)
        hold(first == second, f"{name}: asked twice, {case.entry.name} gave two answers")
        hold(not done, f"{name}: while answering {case.entry.name} did {done}")


def its_findings_show_evidence(case: Case) -> None:
    """A finding has the name of the diagnosis, numbers, a cause, advice and known layers.

    A warning also has a confidence.
    """
    for name, history in _every().items():
        known = {layer.name for layer in history.info.layers}
        for each in case.findings(history):
            where = f"{name}: {case.entry.name}"
            hold(each.name == case.entry.name, f"{where} calls its finding {each.name!r}")
            hold(each.severity in _SEVERITIES, f"{where} has the severity {each.severity!r}")
            hold(_numbers(each.evidence), f"{where} shows no number")
            hold(each.cause and each.advice, f"{where} names no cause, or nothing to try")
            hold(set(each.layers) <= known, f"{where} names layers that are not there")
            sure = each.confidence
            hold(
                each.severity == "info" if sure is None else 0 <= sure <= 1,
                f"{where} has the confidence {sure}",
            )
            hold(_is_within(each, history), f"{where} dates it to step {each.since_step}")


def the_order_of_layers_does_not_matter(case: Case) -> None:
    """Layers with a depth may be recorded in any order."""
    for name, history in _every().items():
        turned = _with_layers(history, lambda layers: layers[::-1], turned=True)
        same = case.findings(history) == case.findings(turned)
        hold(same, f"{name}: {case.entry.name} depends on the order in which layers were recorded")


def the_names_of_layers_do_not_matter(case: Case) -> None:
    """Layers with other names give the same findings with those names."""
    for name, history in _every().items():
        renamed = _with_layers(history, _renamed)
        expected = [
            (each.name, each.severity, each.since_step, tuple(map(_rename, each.layers)))
            for each in case.findings(history)
        ]
        again = [
            (each.name, each.severity, each.since_step, each.layers)
            for each in case.findings(renamed)
        ]
        hold(expected == again, f"{name}: {case.entry.name} depends on the names of layers")


def the_unit_of_the_loss_does_not_matter(case: Case) -> None:
    """A loss in other units gives the same severities; `absolute=True` is an exception."""
    if case.entry.options.get("absolute"):
        return
    for name, history in _every().items():
        for factor in (0.125, 8.0):
            expected = [each.severity for each in case.findings(history)]
            again = [each.severity for each in case.findings(_scaled(history, factor))]
            hold(expected == again, f"{name}: {case.entry.name} depends on the unit of the loss")


@cache
def _healthy() -> dict[str, History]:
    return healthy()


@cache
def _every() -> dict[str, History]:
    return {**healthy(), **faulty()}


def _afresh(history: History) -> History:
    """Copy the parts of a history on which a diagnosis may cache measurements."""
    return history._replace(
        course=_course(history.course),
        recent=_course(history.recent),
        scalars=_course(history.scalars),
        recent_scalars=_course(history.recent_scalars),
    )


def _course(course: Course, info: RunInfo | None = None, **arrays: Any) -> Course:
    return Course(
        info or course.info,
        course.steps,
        course.first_steps,
        course.spans,
        course.wall_times,
        arrays.get("scalars", course._scalars),  # noqa: SLF001  a law may look inside
        arrays.get("layers", course._layers),  # noqa: SLF001
    )


def _with_layers(
    history: History,
    change: Callable[[tuple[Layer, ...]], tuple[Layer, ...]],
    *,
    turned: bool = False,
) -> History:
    info = _replaced(history.info, layers=change(history.info.layers))

    def course(old: Course) -> Course:
        values = old._layers[..., ::-1] if turned else old._layers  # noqa: SLF001
        return _course(old, info, layers=values)

    extremes = history.extremes
    if turned:
        mirrored: Any = [each[:, ::-1] for each in extremes]
        extremes = type(extremes)(*mirrored)
    return history._replace(
        info=info, course=course(history.course), recent=course(history.recent), extremes=extremes
    )


def _scaled(history: History, factor: float) -> History:
    """Return the history of the same run with its loss in other units."""
    info = history.info
    losses = [i for i, name in enumerate(info.scalars) if "loss" in name and name != "loss_scale"]
    grads = [
        i
        for i, name in enumerate(info.fields)
        if name.startswith("grad_") and name[5:] not in ("nonfinite", "zeros")
    ]

    def course(old: Course) -> Course:
        scalars, layers = old._scalars.copy(), old._layers.copy()  # noqa: SLF001
        scalars[..., losses] *= factor
        if old.info.fields:
            layers[..., grads, :] *= factor
        return _course(old, scalars=scalars, layers=layers)

    return history._replace(
        course=course(history.course),
        recent=course(history.recent),
        scalars=course(history.scalars),
        recent_scalars=course(history.recent_scalars),
    )


def _rename(name: str) -> str:
    head, _, role = name.rpartition(".")
    return f"block_{head[::-1]}.{role}"


def _renamed(layers: tuple[Layer, ...]) -> tuple[Layer, ...]:
    return tuple(_replaced(each, name=_rename(each.name)) for each in layers)


def _replaced(record: Any, **changes: Any) -> Any:
    fields = {name: getattr(record, name) for name in record.__struct_fields__}
    return type(record)(**{**fields, **changes})


def _numbers(evidence: dict[str, Any]) -> bool:
    """Is there a number, and is every number finite?"""
    values = [each for each in evidence.values() if isinstance(each, int | float)]
    return bool(values) and all(isfinite(each) for each in values)


def _is_within(each: RunFinding, history: History) -> bool:
    first, last = history.first_step, history.last_step
    if each.since_step is None or first is None or last is None:
        return each.since_step is None
    return first <= each.since_step <= last


LAWS = (
    it_is_described,
    it_is_silent_on_healthy_runs,
    it_is_silent_where_too_little_is_known,
    it_is_pure,
    its_findings_show_evidence,
    the_order_of_layers_does_not_matter,
    the_names_of_layers_do_not_matter,
    the_unit_of_the_loss_does_not_matter,
)
