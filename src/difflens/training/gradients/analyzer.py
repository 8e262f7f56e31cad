"""The gradient analyser: from series to layers, from layers to the network, to what to do first."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec
import numpy as np

from difflens.core.errors import InvalidConfig
from difflens.core.findings import Missing
from difflens.stats.decision import benjamini_hochberg

from ..records.gradients import (
    EnhancedLayerGradientAnalysis,
    FlowCharacteristics,
    LayerGradientDetails,
)
from .comparison import comparisons, depth_profile, standings
from .flow import flow, log_norms, no_flow
from .health import health, statistics
from .hierarchy import hierarchy
from .histories import GradientHistory
from .priorities import priorities
from .rules import Case
from .settings import GradientThresholds, depth_of, not_before, reaches
from .signals import LayerSignal, Signals, signals_of_histories, signals_of_run
from .suggestions import suggestions
from .verdicts import NO_VERDICT, Verdict, verdict_on

if TYPE_CHECKING:
    from ..history.history import History

LEAST_WINDOW = 3


class GradientAnalyzer:
    """Says of every layer how its gradient is, and of the network where it goes.

    >>> result = GradientAnalyzer().analyze_gradients({"fc": [0.0] * 20})
    >>> result.layer_details["fc"].health_metrics.overall_health
    'Critical'
    """

    def __init__(
        self,
        depth: str = "standard",
        convergence_window: int = 100,
        stability_threshold: float = 0.8,
        *,
        thresholds: GradientThresholds | None = None,
    ) -> None:
        """Take how far to go, the latest records to look at, and the limits of the rules."""
        self.depth = depth_of(depth)
        self.convergence_window = _window(convergence_window)
        self.stability_threshold = _share(stability_threshold)
        self.thresholds = thresholds or GradientThresholds()

    def analyze_gradients(self, histories: Mapping[str, Any]) -> EnhancedLayerGradientAnalysis:
        """Analyse series that were handed in: layer to a `GradientHistory` or a sequence of norms.

        The order of the mapping is taken for the order of the network, input first.
        """
        signals = signals_of_histories(histories)
        dropped = {
            name: each.dropped
            for name, each in histories.items()
            if isinstance(each, GradientHistory) and each.dropped
        }
        warnings = []
        if dropped:
            warnings.append(
                f"{sum(dropped.values())} records of {len(dropped)} layers had been dropped from "
                "their histories before"
            )
        late = [each.last(self.convergence_window) for each in signals.layers]
        return self._analysis(signals, late, warnings=tuple(warnings))

    def generate_enhanced_analysis(
        self, histories: Mapping[str, Any]
    ) -> EnhancedLayerGradientAnalysis:
        """Do the same as `analyze_gradients`, under its other public name."""
        return self.analyze_gradients(histories)

    def analyze_run(
        self, run: str | Path | History, *, name: str = "", rank: int | None = None
    ) -> EnhancedLayerGradientAnalysis:
        """Analyse a run: its folder, a log that can be read as one, or its history."""
        if isinstance(run, (str, Path)):
            from ..history import read_history

            name = name or str(run)
            run = read_history(run, rank)
        signals = signals_of_run(run)
        latest = signals_of_run(run, recent=True) if signals.thinned else signals
        late = [
            (frames if len(frames.steps) else whole).last(self.convergence_window)
            for frames, whole in zip(latest.layers, signals.layers, strict=True)
        ]
        return self._analysis(
            signals, late, run=name, warnings=_remarks(run, signals), verdict=verdict_on(run)
        )

    def _analysis(
        self,
        signals: Signals,
        late: Sequence[LayerSignal],
        *,
        run: str = "",
        warnings: tuple[str, ...] = (),
        verdict: Verdict = NO_VERDICT,
    ) -> EnhancedLayerGradientAnalysis:
        """Go from layers to the network to priorities; each step reads what those before found."""
        from .network import network_level

        details = self._details(signals, late, verdict)
        network = network_level(
            signals,
            details,
            depth=self.depth,
            window=self.convergence_window,
            stability_threshold=self.stability_threshold,
            limits=self.thresholds,
        )
        if reaches(self.depth, "Standard"):
            network = msgspec.structs.replace(network, depth_profile=depth_profile(signals))
        wide = reaches(self.depth, "Comprehensive")
        groups = hierarchy(signals, details) if wide else None
        steps = signals.steps
        return EnhancedLayerGradientAnalysis(
            layer_details=details,
            network_level_analysis=network,
            gradient_hierarchy=groups,
            optimization_priorities=priorities(details, groups, network, verdict),
            analysis_depth=self.depth,
            convergence_window=self.convergence_window,
            stability_threshold=self.stability_threshold,
            thresholds=self.thresholds.to_dict(),
            run=run,
            records=len(steps),
            first_step=int(steps[0]) if len(steps) else None,
            last_step=int(steps[-1]) if len(steps) else None,
            thinned=signals.thinned,
            missing=() if wide else not_before("Comprehensive", "gradient_hierarchy"),
            warnings=(*warnings, *verdict.remarks(), *_noted(details, verdict)),
        )

    def _details(
        self, signals: Signals, late: Sequence[LayerSignal], verdict: Verdict = NO_VERDICT
    ) -> dict[str, LayerGradientDetails]:
        """Say of every layer all that can be said of it, beside its peers."""
        layers, level = signals.layers, self.thresholds.level
        whole_flows, late_flows = self._flows(layers, tests="Expert"), self._flows(late)
        if reaches(self.depth, "Standard"):
            whole_flows, late_flows = adjusted(whole_flows, level), adjusted(late_flows, level)
        compared = comparisons(layers) if reaches(self.depth, "Standard") else {}
        stands = standings(late)
        details = {}
        for whole, latest in zip(layers, late, strict=True):
            name = whole.name
            case = Case(
                whole,
                latest,
                late_flows[name],
                stands[name],
                self.thresholds,
                self.stability_threshold,
                self.convergence_window,
                signals.thinned,
                verdict,
            )
            judged = health(case, whole_flows[name])
            details[name] = LayerGradientDetails(
                layer_name=name,
                gradient_statistics=statistics(whole),
                flow_characteristics=whole_flows[name],
                health_metrics=judged,
                optimization_suggestions=suggestions(name, judged.risks, stands[name], verdict),
                comparative_analysis=compared.get(name),
                recent_statistics=statistics(latest),
                recent_flow=late_flows[name],
                depth=whole.depth,
                kind=whole.kind,
                parameters=whole.count,
                trainable=whole.trainable,
                missing=_unknown(whole, compared=bool(compared)),
            )
        return details

    def _flows(
        self, layers: Sequence[LayerSignal], tests: str = "Standard"
    ) -> dict[str, FlowCharacteristics]:
        if not reaches(self.depth, "Standard"):
            return {each.name: no_flow() for each in layers}
        tested = tests == "Standard" or reaches(self.depth, "Expert")
        return {each.name: flow(log_norms(each), tests=tested) for each in layers}


def _noted(details: Mapping[str, LayerGradientDetails], verdict: Verdict) -> list[str]:
    """Say that signs were left uncounted, and which count though the loss has not suffered."""
    if not verdict.is_healthy:
        return []
    judged = [each.health_metrics for each in details.values()]
    faults = sum(bool(each.risks) for each in judged)
    notes = sum(bool(each.notes) and not each.risks for each in judged)
    lines = []
    if faults:
        which = "1 layer is" if faults == 1 else f"{faults} layers are"
        lines.append(
            f"diagnose finds no fault in the run: {which} at fault by gradient norms alone"
        )
    if notes:
        which = "1 layer has" if notes == 1 else f"{notes} layers have"
        text = f"{which} signs in their norms that are notes, no faults"
        lines.append(f"diagnose calls the run healthy: {text}")
    return lines


def _unknown(layer: LayerSignal, *, compared: bool) -> tuple[Any, ...]:
    from difflens.core.findings import Missing

    missing = [] if compared else list(not_before("Standard", "comparative_analysis"))
    if layer.depth is None:
        missing.append(Missing("depth", "a run of the monitor", "it was not recorded"))
    if layer.count is None:
        missing.append(Missing("parameters", "a run of the monitor", "the shape was not recorded"))
    return tuple(missing)


def _remarks(history: History, signals: Signals) -> tuple[str, ...]:
    remarks = [*history.damage, *signals.remarks]
    if history.dropped:
        many = "1 frame is" if history.dropped == 1 else f"{history.dropped} frames are"
        remarks.append(f"{many} missing between those that were recorded")
    if signals.thinned:
        remarks.append(
            f"the run is long: {history.frames} frames are told by {len(signals.steps)} points; "
            "its latest frames are read in full"
        )
    return tuple(remarks)


def _window(given: int) -> int:
    if isinstance(given, bool) or not isinstance(given, (int, np.integer)):
        raise InvalidConfig(f"convergence_window is {given!r}, not a whole number")
    if given < LEAST_WINDOW:
        raise InvalidConfig(f"convergence_window is {given}; it is at least {LEAST_WINDOW}")
    return int(given)


def _share(given: float) -> float:
    number = isinstance(given, (int, float, np.number)) and not isinstance(given, bool)
    if not number or not 0 < given <= 1:
        raise InvalidConfig(f"stability_threshold is {given!r}; it lies above 0, at most 1")
    return float(given)


def chosen(result: EnhancedLayerGradientAnalysis, pattern: str) -> EnhancedLayerGradientAnalysis:
    """Leave the layers whose names fit a pattern as of a shell; the network is still the whole."""
    from fnmatch import fnmatchcase

    from difflens.core.errors import UnknownName

    details = {
        name: each for name, each in result.layer_details.items() if fnmatchcase(name, pattern)
    }
    if not details:
        raise UnknownName("layer", pattern, result.layer_details)
    return msgspec.structs.replace(
        result,
        layer_details=details,
        optimization_priorities=tuple(
            each
            for each in result.optimization_priorities
            if each.target_type != "IndividualLayer" or each.target_name in details
        ),
        left_out=len(result.layer_details) - len(details),
    )


def adjusted(
    flows: Mapping[str, FlowCharacteristics], level: float
) -> dict[str, FlowCharacteristics]:
    """Fill q of trend and oscillation, and say which layers oscillate.

    Without this a thousand layers of pure noise would have fifty that oscillate.
    """
    trends = _adjusted({name: each.trend_p for name, each in flows.items()})
    swings = _adjusted({name: each.oscillation_p for name, each in flows.items()})
    made = {}
    for name, each in flows.items():
        swing = swings.get(name)
        filled = msgspec.structs.replace(
            each,
            trend_q=trends.get(name),
            oscillation_q=swing,
            is_oscillating=None if swing is None else swing <= level,
        )
        made[name] = msgspec.structs.replace(filled, missing=_reasons(filled))
    return made


def _adjusted(ps: Mapping[str, float | None]) -> dict[str, float]:
    known = {name: p for name, p in ps.items() if p is not None}
    return dict(zip(known, benjamini_hochberg(list(known.values())), strict=True)) if known else {}


def _reasons(flow: FlowCharacteristics) -> tuple[Missing, ...]:
    """Return the q that is null the reason that its p has."""
    of = {each.field: each for each in flow.missing}
    missing = [each for each in flow.missing if getattr(flow, each.field, None) is None]
    for field in flow.unexplained():
        why = of.get("trend_p" if field == "trend_q" else "oscillation_p")
        missing.append(Missing(field, why.needs if why else "", why.why if why else "not tested"))
    return tuple(missing)
