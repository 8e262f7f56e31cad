"""How much memory the two models take: as stored, while they answer, while they are trained."""

from __future__ import annotations

from typing import Any, Literal

from ..answers import Answer
from ..diffs import Diff
from ..evidences import Evidence
from ..records import Envelope, Policy, Threshold
from . import analysis
from .anatomy.network import Network, infos, network
from .cost import memory
from .cost.shared import shared
from .cost.weights import Weights, weights

NAME = "memory_analysis"
THRESHOLDS = {
    "tokens": Threshold(2048, "tokens a sequence holds in the estimate"),
    "batch": Threshold(1, "sequences at once in the estimate"),
    "cache_bits": Threshold(16, "bits of one number in cache and activations"),
    "lora_rank": Threshold(16, "rank of the adapters in the training estimate"),
}
EXCLUDED = ("CUDA context", "allocator fragmentation", "framework overhead", "attention workspace")
_MB = 1e6
_FIELDS = (
    "delta", "delta_bytes", "gpu_est", "efficiency", "bytes", "parameters", "breakdown", "scope",
    "kv_bytes_per_token", "training",
)  # fmt: skip
Side = Literal["left", "right"]
_SIDES: tuple[Side, Side] = ("left", "right")


@analysis(needs=[], thresholds=THRESHOLDS)
def memory_analysis(diff: Diff, evidence: Evidence, policy: Policy) -> Envelope:
    """How many bytes both models take, and an estimate of what they need on a device."""
    answer = Answer(NAME, policy, THRESHOLDS)
    if not diff.pairs:
        for field in _FIELDS:
            answer.lack(field, needs="tensors", why="neither model holds any")
        return answer.envelope("not_applicable")
    known = {side: network(diff, evidence, side) for side in _SIDES}
    summed = {side: weights(infos(diff, side), shared(diff, side)) for side in _SIDES}
    tables = {side: _breakdown(answer, summed[side], known[side]) for side in _SIDES}
    _stored(answer, summed, tables["right"])
    _estimated(answer, tables, known)
    _trained(answer, diff, summed, known)
    answer.assume(f"not in the estimate: {', '.join(EXCLUDED)}")
    _assumptions(answer, diff, summed)
    return answer.envelope()


def _stored(answer: Answer, summed: dict[Side, Weights], estimate: dict[str, int]) -> None:
    left, right = summed["left"], summed["right"]
    exact = left.exact and right.exact
    sure = "exact" if exact else "none_available: sizes of scales are supposed, see assumptions"
    change = right.bytes - left.bytes
    over = "bytes of the stored tensors, shared storages once"
    answer.say("delta", change / _MB, basis=f"right - left, MB = 10^6 {over}", uncertainty=sure)
    answer.say(
        "gpu_est",
        sum(estimate.values()) / _MB,
        basis="sum of the right model's breakdown, MB; lower bound",
        uncertainty="none_available: arithmetic, no measurement",
    )
    answer.either(
        "efficiency",
        right.parameters / right.weight_bytes if right.weight_bytes else None,
        basis="parameters / their bytes in the right model: M / MB (0.25 is F32, 0.5 16 bits)",
        uncertainty=sure,
        needs="float parameters",
        why="the right model holds none",
    )
    answer.say("delta_bytes", change, basis=f"right - left, {over}", uncertainty=sure)
    answer.say(
        "bytes", {side: each.bytes for side, each in summed.items()}, basis=over, uncertainty=sure
    )
    answer.say(
        "parameters",
        {side: each.parameters for side, each in summed.items()},
        basis="elements of float tensors that are no buffers",
        uncertainty="exact",
    )


def _estimated(
    answer: Answer, tables: dict[Side, dict[str, int]], known: dict[Side, Network]
) -> None:
    answer.say(
        "breakdown",
        tables,
        basis="bytes by formula: weights as stored; cache 2 L n_kv d_head T b; activations"
        " b T (2 d + d_ff); workspace: one position's logits in float32",
        uncertainty="none_available: arithmetic, a lower bound",
    )
    answer.say(
        "scope",
        {
            side: "+".join(table) if len(table) > 1 else "weights_only"
            for side, table in tables.items()
        },
        basis="the parts of the estimate that could be computed",
    )
    each = {side: memory.cache_per_token(known[side], answer["cache_bits"]) for side in _SIDES}
    answer.either(
        "kv_bytes_per_token",
        each if all(value is not None for value in each.values()) else None,
        basis=f"2 L n_kv d_head bytes at {answer['cache_bits']} bits",
        uncertainty="exact",
        needs="--config-left/--config-right",
        why="the number of heads is in no weight",
    )


def _breakdown(answer: Answer, summed: Weights, known: Network) -> dict[str, int]:
    """Give the parts whose numbers are known; without settings the weights alone."""
    tokens, batch, bits = answer["tokens"], answer["batch"], answer["cache_bits"]
    parts: dict[str, int | None] = {"weights": summed.bytes}
    if known.has_settings:
        parts["kv_cache"] = memory.cache(known, tokens, batch, bits)
        parts["activations"] = memory.activations(known, tokens, batch, bits)
        parts["workspace"] = memory.logits(known, batch)
    return {name: value for name, value in parts.items() if value is not None}


def _trained(
    answer: Answer, diff: Diff, summed: dict[Side, Weights], known: dict[Side, Network]
) -> None:
    rank = answer["lora_rank"]
    tables: dict[str, Any] = {}
    for side in _SIDES:
        count = summed[side].parameters
        adapters = memory.adapter_parameters(infos(diff, side), rank)
        table = {
            "mixed_precision_adam": memory.MIXED_ADAM * count,
            "adam_8bit": memory.ADAM_8BIT * count,
            "lora": summed[side].bytes + memory.MIXED_ADAM * adapters,
        }
        kept = memory.training_activations(known[side], answer["tokens"], answer["batch"])
        tables[side] = table | ({"activations": kept} if kept else {})
    answer.say(
        "training",
        tables,
        basis="bytes: 16 a parameter (2 + 2 + 12, Rajbhandari et al. 2020), 10 with 8-bit moments"
        f" (2 + 2 + 4 + 2); lora: stored weights + 16 a parameter of rank-{rank} adapters on every"
        " matrix; activations s b h L (34 + 5 a s / h) and less (Korthikanti et al. 2022)",
        uncertainty="none_available: arithmetic, no measurement",
    )


def _assumptions(answer: Answer, diff: Diff, summed: dict[Side, Weights]) -> None:
    for side in _SIDES:
        if not summed[side].exact:
            answer.assume(f"{side}: scales and zero points are counted as their writers store them")
        if summed[side].repeated_bytes:
            names = ", ".join(shared(diff, side))
            answer.assume(f"{side}: {names} holds what the embedding holds and is counted once")
