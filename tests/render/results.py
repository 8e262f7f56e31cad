"""Results on versions built by hand: every part filled, hostile names, next to nothing known."""

from collections.abc import Callable
from typing import Any

from difflens.core.escape import visible
from difflens.core.findings import Interval, Missing
from difflens.render.document.document import Document
from difflens.render.versions.ab import ab
from difflens.render.versions.comparison import comparison
from difflens.render.versions.regressions import regressions
from difflens.render.versions.report import report
from difflens.render.versions.snapshot import snapshot_list, snapshot_show
from difflens.render.versions.version_diff import version_diff
from difflens.versions.records.ab import (
    ABTestConclusion,
    ABTestConfig,
    ABTestMetrics,
    ABTestResult,
    FurtherTest,
    SequentialResult,
    StatisticalTestResult,
    SummaryStats,
)
from difflens.versions.records.comparisons import (
    Abilities,
    ArchitectureChange,
    ArchitectureDiff,
    ComparisonSummary,
    ConfigChange,
    LayerChange,
    MetricComparison,
    MetricDelta,
    ModelComparisonResult,
    PairwiseTest,
    ParetoPoint,
    PerformanceComparison,
    PerformanceDelta,
    RankTest,
    StatisticalAnalysis,
    TensorChanges,
    VersionDiff,
    WeightChangesSummary,
)
from difflens.versions.records.regressions import (
    ChangePoint,
    DifferentialDebuggingReport,
    Improvement,
    MetricHistory,
    MetricPoint,
    MetricVerdict,
    Regression,
    RegressionAssessment,
    RegressionDetectionResult,
    RegressionSeverity,
)
from difflens.versions.records.snapshots import (
    ArchitectureInfo,
    DifferentialDebuggingConfig,
    ModelMetrics,
    ModelSnapshot,
    SnapshotLine,
    TensorSummary,
    WeightsSummary,
)

TIME = "2026-01-02T03:04:05Z"


def ranks(*names: str) -> RankTest:
    spread = {name: 1 + 0.9 * place for place, name in enumerate(names)}
    return RankTest(
        mean_ranks=spread, tasks=("digits", "wine", "iris"), chi_square=5.2, f=4.1, p=0.031,
        critical_difference=1.4, groups=(tuple(names[:2]), tuple(names[1:])), note="ties shared",
    )  # fmt: skip


def compared(names: tuple[str, ...] = ("base@1", "tuned@1", "wide@2")) -> ModelComparisonResult:
    accuracy = MetricComparison(
        values={name: 0.90 + place / 100 for place, name in enumerate(names)},
        best_model=names[-1], worst_model=names[0], metric="val_accuracy", direction="higher",
        separated=True, margin=0.008, letters={name: "ab"[place > 0] for place, name in
                                               enumerate(names)}, evidence="evals",
        missing=(Missing("differences", "samples", "no ratio scale"),),
    )  # fmt: skip
    perplexity = MetricComparison(
        values=dict.fromkeys(names, 12.5), metric=names[0], evidence="scalars"
    )
    tests = (
        PairwiseTest(
            metric="val_accuracy", left=names[0], right=names[1], difference=0.01,
            interval=Interval(0.002, 0.018, n=1000), p=0.004, p_adjusted=0.008, effect=0.3,
            effect_name="Hedges g", method="McNemar", paired=True, significant=True,
            word="better", direction="higher",
        ),
        PairwiseTest(metric="val_loss", left=names[0], right=names[1], reason="two single numbers"),
    )  # fmt: skip
    points = tuple(
        ParetoPoint(
            model=name, values={"val_accuracy": 0.9 + place / 100, "inference_latency_ms":
                                10.0 - place}, on_front=place > 0,
            dominated_by=(names[1],) if place == 0 else (),
        )
        for place, name in enumerate(names)
    )  # fmt: skip
    return ModelComparisonResult(
        timestamp=TIME,
        models=names,
        performance_comparison=PerformanceComparison(
            accuracy_comparison=accuracy, custom_comparisons={names[0]: perplexity},
            missing=(Missing("loss_comparison", "--metrics", "no model has val_loss"),),
        ),
        architecture_diff=ArchitectureDiff(
            parameter_diff={names[1]: 1000}, similarity_score=0.87, base=names[0],
            notable_differences=(f"{names[1]} has 1,000 parameters more than {names[0]}",),
            fields={"parameter_count": dict.fromkeys(names, 124_000_000),
                    "num_heads": {names[0]: 12}},
        ),
        statistical_analysis=StatisticalAnalysis(
            tests=tests, ranks=ranks(*names), family_size=2,
            abilities=Abilities(
                abilities={name: float(place) for place, name in enumerate(names)},
                low={names[0]: -1.0}, high={names[0]: 1.0}, apart=((names[-1], names[0]),),
                note="three tasks",
            ),
        ),
        summary=ComparisonSummary(
            best_model=names[-1], criterion="val_accuracy", separated=True,
            key_findings=(f"{names[-1]} is best by val_accuracy: 0.92",),
            recommendations=(f"prefer {names[-1]}",), pareto=points,
            objectives={"val_accuracy": "higher", "inference_latency_ms": "lower"},
        ),
        warnings=(f"{names[0]} was measured on other hardware",),
    )  # fmt: skip


def ab_result(left: str = "left.csv", right: str = "right.csv") -> ABTestResult:
    stats = SummaryStats(mean=0.9, std_dev=0.3, min=0.0, q25=0.8, median=1.0, q75=1.0, max=1.0,
                         n=1000)  # fmt: skip
    arm = ABTestMetrics(sample_size=1000, metrics={right: (1.0, 0.0)}, summary_stats={right: stats})
    test = StatisticalTestResult(
        test_type="McNemar", statistic=4.4, p_value=0.036, p_adjusted=0.036, effect_size=0.1,
        effect_name="odds", confidence_interval=(0.001, 0.023), difference=0.012, n_a=1000,
        n_b=1000, paired=True, verdict="b_better", metric=right, direction="higher",
        effect_interval=Interval(0.01, 0.2),
        further=(FurtherTest(test_type="permutation", p_value=0.04, estimate=0.012,
                             estimate_name="mean", confidence_interval=(0.0, 0.02), note=left),),
        assumptions=(f"examples of {left} are independent",), note="exact",
    )  # fmt: skip
    return ABTestResult(
        config=ABTestConfig(name="test", model_a=visible(left), model_b=visible(right)),
        model_a_results=arm, model_b_results=arm, statistical_tests={right: test},
        conclusion=ABTestConclusion(
            winner=right, confidence=0.95, practical_significance=True,
            recommendation=f"take {right}", summary=f"{right} is better than {left} by 0.012",
            verdict="b_better", rule="p < 0.05 and the interval leaves out 0", underpowered=True,
            minimal_detectable_effect=0.02, required_sample_size=1200,
        ),
        sequential=SequentialResult(method="always valid", low=0.0, high=0.03, looks=10,
                                    stopped_at=500, note=left),
        end_time=TIME, warnings=(f"{left} has duplicates",),
    )  # fmt: skip


def changed(left: str = "base@1", right: str = "base@2") -> VersionDiff:
    return VersionDiff(
        timestamp=TIME, from_version="1", to_version="2", from_model=left, to_model=right,
        performance_delta=PerformanceDelta(
            accuracy_delta=-0.02,
            deltas={
                left: MetricDelta(metric=left, left=0.9, right=0.88, difference=-0.02,
                                  relative=-0.022, direction="higher", margin=0.008,
                                  change="worse", interval=Interval(-0.03, -0.01), note=right),
                "val_loss": MetricDelta(metric="val_loss", left=0.5, right=0.4,
                                        difference=-0.1, change="improved"),
            },
            missing=(Missing("latency_delta", "--metrics", "not recorded"),),
        ),
        architecture_changes=(ArchitectureChange(
            change_type="Layer Count", description=f"12 -> 14 in {right}", field="layer_count"),),
        config_changes=(ConfigChange(parameter=left, old_value="0.1", new_value=None,
                                     impact="less decay", kind="removed"),),
        metadata_changes=(ConfigChange(parameter="owner", old_value=None, new_value=right,
                                       kind="added"),),
        weight_changes=WeightChangesSummary(
            avg_magnitude=1e-3, max_change=0.1, significant_change_ratio=0.9, basis="elements",
            relative_l2=0.02, cosine=0.999,
            layers=(LayerChange(name=left, kind="changed", relative_l2=0.02, cosine=0.99,
                                max_abs=0.1, changed_fraction=1.0),),
            tensors=TensorChanges(added=(right,), renamed={left: right}, changed=3, identical=5),
        ),
        facts={"commit": [left, right]},
    )  # fmt: skip


def regressed(
    current: str = "base@2", baseline: str = "base@1", *, passed: bool | None = False
) -> RegressionDetectionResult:
    return RegressionDetectionResult(
        timestamp=TIME, current=current, baseline=baseline,
        regressions=(Regression(
            metric=current, current_value=0.7, previous_value=0.9, magnitude=0.2,
            severity=RegressionSeverity.CRITICAL, interval=Interval(0.17, 0.23), margin=0.008,
            statistical=True, basis="evals", rule="0.17 is 21 margins", note=baseline,
            possible_causes=(f"learning_rate 0.1 -> 1.0 in {current}",),
            suggested_fixes=("set learning_rate back to 0.1 and compare",),
        ),),
        improvements=(Improvement(metric="model_size_mb", current_value=90.0,
                                  previous_value=100.0, magnitude=10.0, margin=5.0),),
        overall_assessment=RegressionAssessment(
            health_score=0.3, critical_regressions=1, improvements=1,
            recommendation=f"do not ship {current}", by_severity={"Critical": 1}, checked=3,
            inconclusive=1, unknown=1, passed=passed,
        ),
        verdicts=(MetricVerdict(metric=current, current_value=0.7, previous_value=0.9,
                                outcome="regressed", direction="higher", degradation=0.2,
                                interval=Interval(0.17, 0.23), margin=0.008, p_adjusted=1e-9,
                                basis="evals", statistical=True, note=baseline),
                  MetricVerdict(metric="odd")),
        observed_changes=(f"learning_rate in {current}",),
        histories=(course_of(current, baseline, 9),),
        warnings=(f"{current} is older than {baseline}",),
    )  # fmt: skip


def course_of(model: str, metric: str, count: int = 12, first: str = "v0") -> MetricHistory:
    points = tuple(
        MetricPoint(version=first if at == 0 else f"v{at}", timestamp=TIME,
                    value=0.8 + at / 100 - (0.15 if at > 7 else 0),
                    low=0.78 + at / 100 - (0.15 if at > 7 else 0),
                    high=0.82 + at / 100 - (0.15 if at > 7 else 0))
        for at in range(count)
    )  # fmt: skip
    changes = (ChangePoint(version="v8", before=0.84, after=0.74, p=0.01),) if count > 8 else ()
    return MetricHistory(model=model, metric=metric, direction="higher", points=points,
                         change_points=changes, slope=0.01, trend_p=0.2, left_out=3,
                         limits=Interval(0.7, 0.9), alarms=(first,), note="seeds")  # fmt: skip


def reported(names: tuple[str, ...] = ("base@1", "tuned@1", "wide@2")) -> Any:
    comparison_ = compared(names)
    return DifferentialDebuggingReport(
        timestamp=TIME, config=DifferentialDebuggingConfig(), total_models=15, total_names=3,
        comparison_count=1, ab_test_count=1, version_diff_count=1, regression_detection_count=1,
        recent_comparisons=(comparison_,), recent_regressions=(regressed(names[1], names[0]),),
        model_summary={"best_accuracy_model": names[0], "best_accuracy_value": 0.92,
                       "total_models": 15},
        recent_ab_tests=(ab_result(names[0], names[1]),),
        recent_version_diffs=(changed(names[0], names[1]),),
        histories=(course_of(names[0], "val_accuracy", first=names[1]),
                   course_of(names[1], names[0], 3), course_of("one", "point", 1)),
        pareto=comparison_.summary.pareto, ranks=ranks(*names), dropped={names[0]: 2},
        store=names[0],
    )  # fmt: skip


def snapshot(name: str = "base", text: str = "plain") -> ModelSnapshot:
    return ModelSnapshot(
        name=name, version="1", timestamp=TIME, id="00000000-0000-4000-8000-000000000000",
        commit_hash="4d5e6f7", metadata={text: text},
        metrics=ModelMetrics(val_accuracy=0.9, custom_metrics={"f1": 0.8, "broken": "NaN"}),
        architecture=ArchitectureInfo(parameter_count=1000, kind=text),
        weights_summary=WeightsSummary(
            mean=0.0, percentiles={"p50": 0.0}, source=text, size_bytes=4000,
            tensors=(TensorSummary(name=text, dtype="F32", shape=(2, 3), count=6,
                                   sha256="ab" * 32),),
        ),
        replicates={"f1": (0.79, 0.81)},
    )  # fmt: skip


def listed(name: str = "base", more: int | None = 7) -> Document:
    metrics = {name: 0.9, "a": 1, "b": 2, "c": 3, "d": 4}
    line = SnapshotLine(name=name, version=name, id="1", timestamp=TIME, position=7,
                        parameter_count=10**6, metrics=metrics)  # fmt: skip
    return snapshot_list([line], more)


SNEAKY = (
    "<script>alert(1)</script><img src=x onerror=alert(1)> | `a` [b](https://c) @all #1 \x1b[31m"
)
NAMES = (SNEAKY, "</td></svg></style>\" onmouseover='alert(1)' {{ 7*7 }}", "bidi\u202egnp\u200b")

EVERY: dict[str, Callable[[], Document]] = {
    "compare": lambda: comparison(compared()),
    "compare_many": lambda: comparison(compared(tuple(f"m{at}@1" for at in range(12)))),
    "ab": lambda: ab(ab_result()),
    "version_diff": lambda: version_diff(changed()),
    "regressions": lambda: regressions(regressed()),
    "report": lambda: report(reported()),
    "snapshot_list": listed,
    "snapshot_show": lambda: snapshot_show(snapshot()),
    "empty_version_diff": lambda: version_diff(VersionDiff(from_version="1", to_version="2")),
    "empty_report": lambda: report(DifferentialDebuggingReport(
        config=DifferentialDebuggingConfig(), total_models=0, comparison_count=0, ab_test_count=0,
        version_diff_count=0, regression_detection_count=0)),
}  # fmt: skip
HOSTILE_ONES: dict[str, Callable[[], Document]] = {
    "compare": lambda: comparison(compared(NAMES)),
    "ab": lambda: ab(ab_result(*NAMES[:2])),
    "version_diff": lambda: version_diff(changed(*NAMES[:2])),
    "regressions": lambda: regressions(regressed(*NAMES[:2])),
    "report": lambda: report(reported(NAMES)),
    "snapshot_list": lambda: listed(NAMES[0]),
    "snapshot_show": lambda: snapshot_show(snapshot("base", NAMES[0])),
}
