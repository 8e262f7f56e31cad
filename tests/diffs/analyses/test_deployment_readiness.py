import numpy as np
import pytest
from diffs.analyses.scores import correct, examples, rules
from diffs.analyses.small import changed, decoder, nudged
from msgspec.structs import replace

from difflens.core.errors import DifflensError
from difflens.core.policy import MetricRule, Policy
from difflens.diffs.analyses import analysis, ask
from difflens.diffs.analyses.deployment_readiness import GATES, REQUIRED
from difflens.diffs.evidence.records import Activations, Behaviour, Evidence, Latency, Side
from difflens.diffs.story import diff

NAME = "deployment_readiness"
MODEL = decoder(layers=3, width=16)
TUNED = changed(MODEL, nudged, "mlp")
CONFIG = {
    "model_type": "llama", "num_hidden_layers": 3, "hidden_size": 16, "intermediate_size": 32,
    "num_attention_heads": 4, "num_key_value_heads": 4, "vocab_size": 48,
}  # fmt: skip
EXAMPLES = 1200  # in twelve slices
TOKENS = {f"t{i}": i for i in range(48)}
POLICY = Policy(
    thresholds={NAME: {"dtypes": ["F32"], "memory_budget_bytes": 10**9, "latency_slo_ms": 50.0,
                       "lineage": "derived"}},
    metrics={"accuracy": MetricRule(margin=0.15)},
)  # fmt: skip


def complete(**changes) -> Evidence:
    """All that a release asks for, of a model as good as the one before."""
    random = np.random.default_rng(0)
    left, right = correct(random, EXAMPLES, 0.8, 0.02, 0.02)
    clusters = [f"slice {i % 12}" for i in range(EXAMPLES)]
    side = Side(
        config=CONFIG,
        tokens=TOKENS,
        special_tokens={"t0": 0},
        licence="mit",
        latency=tuple(Latency(float(ms)) for ms in random.gamma(9, 2, 120)),
    )
    ran = Behaviour(outputs_shape=(2, 48), outputs_finite=True)
    evidence = Evidence(
        left=replace(side, evals=examples(left, clusters=clusters)),
        right=replace(side, evals=examples(right, clusters=clusters)),
        activations=Activations(ran, ran, 2),
    )
    return replace(evidence, right=replace(evidence.right, **changes))


def asked(right=None, evidence=None, policy=POLICY, left=MODEL, **how):
    return ask(NAME, diff(left, TUNED if right is None else right, **how),
               evidence or complete(), policy)  # fmt: skip


def results(envelope):
    return {each["name"]: each["result"] for each in envelope.fields["gates"]}


def gate(envelope):
    return envelope.fields[analysis[NAME].options["gate"]]


def test_identical_copies_without_evidence_are_never_ready():
    """G1: nothing was shown to be wrong, and nothing to be right."""
    envelope = ask(NAME, diff(MODEL, MODEL))

    assert envelope.fields["readiness"] == "insufficient_evidence"
    assert gate(envelope) is None
    assert envelope.findings == ()
    assert results(envelope)["finite"] == "pass"
    assert {"latency", "quality", "outputs"} <= {
        name for name, word in results(envelope).items() if word == "unknown"
    }
    assert all(each["needs"] for each in envelope.fields["gates"] if each["result"] == "unknown")


def test_a_model_with_all_evidence_is_ready():
    envelope = asked()

    assert envelope.fields["readiness"] == "ready"
    assert gate(envelope) == "passed"
    assert envelope.fields["gates_passed"] == f"{len(REQUIRED)}/{len(REQUIRED)}"
    assert envelope.fields["unknown"] == 0
    assert set(results(envelope)) == set(GATES)


def broken():
    right = dict(TUNED)
    name = "model.layers.1.mlp.up_proj.weight"
    right[name] = right[name].copy()
    right[name][0, 0] = np.inf
    return right


def worse():
    random = np.random.default_rng(1)
    clusters = [f"slice {i % 12}" for i in range(EXAMPLES)]
    right = correct(random, EXAMPLES, 0.8, 0.5, 0.02)[1]
    return examples(right, clusters=clusters)


@pytest.mark.parametrize(
    ("name", "change"),
    [
        ("structure", {"config": CONFIG | {"num_hidden_layers": 4}}),
        ("structure", {"config": CONFIG | {"vocab_size": 64}}),
        ("vocabulary", {"tokens": TOKENS | {"late": 48}}),
        ("vocabulary", {"special_tokens": {"t0": 7}}),
        ("latency", {"latency": tuple(Latency(90.0 + i / 10) for i in range(400))}),
        ("quality", {"evals": worse()}),
        ("slices", {"evals": worse()}),
    ],
)
def test_what_fails_a_gate_names_it(name, change):
    envelope = asked(evidence=complete(**change))

    assert results(envelope)[name] == "fail"
    assert (envelope.fields["readiness"] == "not_ready") == (name in REQUIRED or "evals" in change)
    assert any(each.text.startswith(f"{name}: ") for each in envelope.findings)


def test_numbers_that_are_not_finite_fail_even_where_nothing_changed():
    assert results(asked(broken()))["finite"] == "fail"
    assert results(asked(broken(), left=broken()))["finite"] == "fail"


def test_values_at_the_end_of_their_dtype_fail():
    left = {name: value.astype(np.float16) for name, value in MODEL.items()}
    right = {name: value.copy() for name, value in left.items()}
    right["lm_head.weight"][0, 0] = 65504

    assert results(asked(right, left=left))["finite"] == "fail"


def test_outputs_that_break_the_contract_fail():
    def ran(right):
        whole = complete()
        before = Behaviour(outputs_shape=(2, 48), outputs_finite=True)
        return results(asked(evidence=replace(whole, activations=Activations(before, right, 2))))

    assert ran(Behaviour(outputs_shape=(2, 48), outputs_finite=False))["outputs"] == "fail"
    assert ran(Behaviour(outputs_shape=(2, 50), outputs_finite=True))["outputs"] == "fail"
    assert ran(Behaviour())["outputs"] == "unknown"


def thresholds(**changed):
    return replace(POLICY, thresholds={NAME: POLICY.thresholds[NAME] | changed})


@pytest.mark.parametrize(
    ("changed", "name", "word"),
    [
        ({"dtypes": ["BF16"]}, "dtypes", "fail"),
        ({"dtypes": None}, "dtypes", "unknown"),
        ({"memory_budget_bytes": 1000}, "memory", "fail"),
        ({"memory_budget_bytes": None}, "memory", "unknown"),
        ({"latency_slo_ms": None}, "latency", "unknown"),
        ({"latency_quantile": 0.999}, "latency", "unknown"),
        ({"lineage": None}, "lineage", "unknown"),
        ({"slice_examples": 5000}, "slices", "unknown"),
    ],
)
def test_budgets_and_promises_are_the_users(changed, name, word):
    assert results(asked(policy=thresholds(**changed)))[name] == word


def test_a_latency_near_its_promise_is_open():
    values = np.sort([each.ms for each in complete().right.latency])
    near = float(np.quantile(values, 0.95)) + 0.01

    assert results(asked(policy=thresholds(latency_slo_ms=near)))["latency"] == "unknown"


def test_a_stranger_is_not_what_was_declared():
    other = decoder(layers=3, width=16, seed=99)

    assert results(asked(other))["lineage"] != "pass"
    assert results(asked(MODEL))["lineage"] == "pass"


def test_without_settings_weights_alone_are_no_estimate_of_memory():
    envelope = asked(evidence=complete(config=None))

    assert results(envelope)["memory"] == "unknown"
    assert results(envelope)["structure"] == "unknown"
    assert envelope.fields["readiness"] == "insufficient_evidence"


def test_quality_is_held_against_the_margin_of_every_gate_where_none_is_set():
    known, policy = complete(), replace(POLICY, metrics={})
    envelope = asked(policy=policy)
    untimed = (replace(side, latency=()) for side in (known.left, known.right))
    evidence = Evidence(**dict(zip(("left", "right"), untimed, strict=True)))
    test = ask("regression_test", diff(MODEL, MODEL), evidence, policy)

    assert test.fields["verdict"] == "passed"
    assert results(envelope)["quality"] == "pass"
    assert results(envelope)["slices"] == "unknown"


def test_a_model_without_words_needs_no_vocabulary():
    model = {"conv.weight": np.ones((4, 3, 3, 3), np.float32)}
    envelope = ask(NAME, diff(model, model))

    assert results(envelope)["vocabulary"] == "not_applicable"
    assert envelope.fields["gates_passed"] == "2/8"


def test_the_user_says_which_gates_are_required():
    policy = Policy(required=("loads", "finite"))
    envelope = ask(NAME, diff(MODEL, TUNED), policy=policy)

    assert envelope.fields["readiness"] == "ready"
    assert envelope.fields["gates_passed"] == "2/2"


def test_no_required_gate_is_no_readiness():
    envelope = ask(NAME, diff(MODEL, TUNED), policy=Policy(required=()))

    assert envelope.fields["readiness"] == "insufficient_evidence"


def test_headers_alone_leave_the_file_unread():
    envelope = asked(shape_only=True)

    assert results(envelope)["loads"] == results(envelope)["finite"] == "unknown"


def test_nothing_is_not_applicable():
    envelope = ask(NAME, diff({}, {}))

    assert envelope.status == "not_applicable"
    assert gate(envelope) is None


def test_a_level_that_allows_no_test_is_refused():
    with pytest.raises(DifflensError, match="alpha is 2"):
        asked(policy=thresholds(alpha=2))


def test_the_risk_is_that_of_the_assessment():
    pair = diff(MODEL, TUNED)
    evidence = complete()

    readiness = ask(NAME, pair, evidence, POLICY)
    assert (
        readiness.fields["risk"]
        == (ask("risk_assessment", pair, evidence, POLICY).fields["overall_risk_level"])
    )


def test_a_margin_alone_does_not_make_two_numbers_a_test():
    evidence = replace(
        complete(evals=(), metrics={"accuracy": 0.8}),
        left=replace(complete().left, evals=(), metrics={"accuracy": 0.8}),
    )

    assert results(asked(evidence=evidence, policy=rules(accuracy=MetricRule(margin=0.1))))[
        "quality"
    ] == "unknown"  # fmt: skip
