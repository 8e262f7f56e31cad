"""Gates about the service: it fits into memory, it is in time, its outputs are what they were."""

from __future__ import annotations

from ...stats.quantiles import least_samples, quantile
from .. import analyse
from .gate import Asked, Gate

_MB = 1e6


def memory(asked: Asked) -> Gate:
    """The estimate of what the right model needs fits the budget."""
    budget = asked.answer["memory_budget_bytes"]
    estimate = analyse("memory_analysis", asked.diff, asked.evidence, asked.policy)
    parts = (estimate.fields["breakdown"] or {}).get("right", {})
    if budget is None:
        needs = "[deployment_readiness] memory_budget_bytes in --policy"
        return Gate("memory", "unknown", "no budget was set", needs)
    total = sum(parts.values())
    said = f"{total / _MB:.6g} MB ({'+'.join(parts)}) of {budget / _MB:.6g} MB"
    if total > budget:
        return Gate("memory", "fail", said)
    if "kv_cache" not in parts and "activations" not in parts:
        return Gate("memory", "unknown", f"{said}: weights alone", "--config-right")
    return Gate("memory", "pass", f"{said}, a lower bound")


def latency(asked: Asked) -> Gate:
    """The upper confidence limit of the latency's quantile is within what was promised."""
    promised, q = asked.answer["latency_slo_ms"], asked.answer["latency_quantile"]
    if promised is None:
        needs = "[deployment_readiness] latency_slo_ms in --policy"
        return Gate("latency", "unknown", "no latency was promised", needs)
    samples = [each.ms for each in asked.evidence.right.latency]
    if not samples:
        return Gate("latency", "unknown", "nothing was timed", "--latency-right")
    level = 1 - asked.answer["alpha"]
    found = quantile(samples, q, 2 * level - 1)  # one-sided: each limit at the level itself
    said = f"p{100 * q:g} {found.value:.4g} ms of {len(samples)} samples, {promised:g} ms promised"
    if found.low is not None and found.low > promised:
        return Gate("latency", "fail", f"{said}; at least {found.low:.4g} ms")
    if found.high is None:
        least = least_samples(q, level, sides=1)
        return Gate("latency", "unknown", said, f"{least} samples in --latency-right")
    if found.high <= promised:
        return Gate("latency", "pass", f"{said}; at most {found.high:.4g} ms")
    return Gate("latency", "unknown", f"{said}; up to {found.high:.4g} ms is possible",
                "more samples in --latency-right")  # fmt: skip


def outputs(asked: Asked) -> Gate:
    """On the sample inputs the right model gives finite outputs of the shape that left gives."""
    ran = asked.evidence.activations
    if ran is None:
        why = "no model was run"
        return Gate("outputs", "unknown", why, "--sample and --model-code")
    after, before = ran.right, ran.left
    if after.outputs_shape is None or after.outputs_finite is None:
        why = after.reasons.get("outputs", "the right model gave no outputs")
        return Gate("outputs", "unknown", why, "--model-code whose model gives outputs")
    if not after.outputs_finite:
        return Gate("outputs", "fail", f"outputs of {ran.examples} examples are not all finite")
    if before.outputs_shape is not None and before.outputs_shape != after.outputs_shape:
        said = f"shape {list(before.outputs_shape)} became {list(after.outputs_shape)}"
        return Gate("outputs", "fail", said)
    said = f"finite, of shape {list(after.outputs_shape)}, on {ran.examples} examples"
    return Gate("outputs", "pass", said)
