"""How much memory the two models take: as stored, while they answer, while they are trained."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Literal

from difflens.core.policy import Threshold
from difflens.models.anatomy.network import Network

from ..answer import Answer
from ..diff import Diff
from ..evidence.records import Evidence
from ..methods import roofline
from ..methods.networks import infos, network
from ..methods.weights import Weights, shared, weights
from . import analysis

EXCLUDED = ("CUDA context", "allocator fragmentation", "framework overhead", "attention workspace")
_MB = 1e6
Side = Literal["left", "right"]
_SIDES: tuple[Side, Side] = ("left", "right")


@analysis(
    needs="tensors",
    thresholds={
        "tokens": Threshold(2048, "tokens a sequence holds in the estimate, if it can"),
        "batch": Threshold(1, "sequences at once in the estimate"),
        "cache_bits": Threshold(16, "bits of one number in cache and activations"),
        "lora_rank": Threshold(16, "rank of the adapters in the training estimate"),
    },
    fields={
        "delta": "",
        "gpu_est": "sum of the right model's breakdown, MB; lower bound",
        "bytes": "",
        "parameters": "elements of float tensors that are no buffers",
        "efficiency": "parameters / their bytes in the right model: M / MB (0.25 is F32, 0.5 16"
        " bits)",
        "scope": "the parts of the estimate that could be computed",
        "kv_bytes_per_token": "",
        "delta_bytes": "",
        "breakdown": "bytes by formula: weights as stored; cache 2 L n_kv d_head T b, of decoders"
        " alone; cross_cache: the same for what an encoder beside it read; activations"
        " b T (2 d + d_ff); workspace: one position's logits in float32, of an encoder all"
        " positions', where there is a head over the vocabulary; T no more than the positions",
        "training": "",
    },
)
def memory_analysis(diff: Diff, evidence: Evidence, answer: Answer) -> None:
    """How many bytes both models take, and an estimate of what they need on a device."""
    known = {side: network(diff, evidence, side) for side in _SIDES}
    summed = {side: weights(infos(diff, side), shared(diff, side)) for side in _SIDES}
    tables = {side: _breakdown(answer, summed[side], known[side]) for side in _SIDES}
    _stored(answer, summed, tables["right"])
    _estimated(answer, tables, known)
    _trained(answer, diff, summed, known)
    _positions(answer, known)
    answer.assume(f"not in the estimate: {', '.join(EXCLUDED)}")
    _assumptions(answer, diff, summed)


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
        uncertainty="none_available: arithmetic, no measurement",
    )
    answer.either(
        "efficiency",
        right.parameters / right.weight_bytes if right.weight_bytes else None,
        uncertainty=sure,
        needs="float parameters",
        why="the right model holds none",
    )
    answer.say("delta_bytes", change, basis=f"right - left, {over}", uncertainty=sure)
    answer.say(
        "bytes", {side: each.bytes for side, each in summed.items()}, basis=over, uncertainty=sure
    )
    answer.say(
        "parameters", {side: each.parameters for side, each in summed.items()}, uncertainty="exact"
    )


def _estimated(
    answer: Answer, tables: dict[Side, dict[str, int]], known: dict[Side, Network]
) -> None:
    answer.say("breakdown", tables, uncertainty="none_available: arithmetic, a lower bound")
    answer.say(
        "scope",
        {
            side: "+".join(table) if len(table) > 1 else "weights_only"
            for side, table in tables.items()
        },
    )
    each = {side: roofline.cache_per_token(known[side], answer["cache_bits"]) for side in _SIDES}
    answer.either(
        "kv_bytes_per_token",
        each if all(value is not None for value in each.values()) else None,
        basis=f"2 L n_kv d_head bytes at {answer['cache_bits']} bits",
        uncertainty="exact",
        **_lacking_cache(known.values()),
    )


def _lacking_cache(networks: Iterable[Network]) -> dict[str, str]:
    """Say why there is no cache: nothing is written token by token, or the heads are unknown."""
    if any(each.kind == "encoder" for each in networks):
        why = "an encoder reads all tokens at once and keeps no keys and values"
        return {"needs": "a decoder on both sides", "why": why}
    return {"needs": "--config-left/--config-right", "why": "the number of heads is in no weight"}


def _positions(answer: Answer, known: dict[Side, Network]) -> None:
    """Say where fewer tokens are counted than were asked for."""
    for side, each in known.items():
        tokens = each.tokens(answer["tokens"])
        if tokens < answer["tokens"] and each.has_settings:
            answer.assume(f"{side}: {tokens} tokens, its positions hold no more")


def _breakdown(answer: Answer, summed: Weights, known: Network) -> dict[str, int]:
    """Return the parts whose numbers are known; without settings the weights alone."""
    tokens, batch, bits = answer["tokens"], answer["batch"], answer["cache_bits"]
    parts: dict[str, int | None] = {"weights": summed.bytes}
    if known.has_settings:
        parts["kv_cache"] = roofline.cache(known, tokens, batch, bits)
        parts["cross_cache"] = roofline.cross_cache(known, tokens, batch, bits)
        parts["activations"] = roofline.activations(known, tokens, batch, bits)
        parts["workspace"] = roofline.logits(known, tokens, batch)
    return {name: value for name, value in parts.items() if value is not None}


def _trained(
    answer: Answer, diff: Diff, summed: dict[Side, Weights], known: dict[Side, Network]
) -> None:
    rank = answer["lora_rank"]
    tables: dict[str, Any] = {}
    for side in _SIDES:
        count = summed[side].parameters
        adapters = roofline.adapter_parameters(infos(diff, side), rank)
        table = {
            "mixed_precision_adam": roofline.MIXED_ADAM * count,
            "adam_8bit": roofline.ADAM_8BIT * count,
            "lora": summed[side].bytes + roofline.MIXED_ADAM * adapters,
        }
        kept = roofline.training_activations(known[side], answer["tokens"], answer["batch"])
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
