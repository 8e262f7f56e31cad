"""What kind of network a model is: from its settings, or by rules on names and shapes."""

from __future__ import annotations

import re
from collections.abc import Iterable
from itertools import pairwise
from typing import NamedTuple

from difflens.core.records import TensorInfo

from .network import Network, is_expert
from .roles import is_parameter, role
from .stacks import CAUSAL, CROSS, MASKED_HEAD, WORD_HEAD

_PARTS = frozenset({"attention_q", "attention_k", "attention_v", "attention_o", "attention"})
_STATE_SPACE = ("A_log", "conv1d.weight", "dt_proj.weight")
_RECURRENT = re.compile(r"weight_hh(?:_l[0-9]+(?:_reverse)?)?$")
_ROUTER = re.compile(r"(?:router|gate)\.(?:weight|wg\.weight)$|ffn_gate_inp\.weight$")
_GATES = {3: "gru", 4: "lstm", 1: "rnn"}


class Family(NamedTuple):
    """A kind of network, its basis (`config` or `rules`), and the share of parameters by part."""

    name: str
    basis: str
    shares: dict[str, float]


def family(known: Network, infos: Iterable[TensorInfo]) -> Family:
    """Classify a model; `unknown` if neither settings nor rules apply."""
    every = list(infos)
    shares = _shares(every)
    if known.family:
        return Family(known.family, "config", shares)
    name = _by_rules(every, shares)
    return Family(name, "rules" if name != "unknown" else "no rule fits", shares)


def _by_rules(every: list[TensorInfo], shares: dict[str, float]) -> str:
    names = [info.name for info in every]
    if all(any(name.endswith(part) for name in names) for part in _STATE_SPACE[:2]):
        return "hybrid" if shares.get("attention") else "ssm"
    recurrent = {_gates(info) for info in every if _RECURRENT.search(info.name)}
    if recurrent:
        return "/".join(sorted(recurrent))
    attends = _attends(every)
    if attends and shares.get("convolution", 0.0) > shares.get("patch", 0.0):
        return "hybrid"
    if attends:
        kind = _transformer(every)
        return f"moe {kind}" if _is_mixture(every) else kind
    if shares.get("convolution"):
        return "cnn"
    return "mlp" if _is_perceptron(every) else "unknown"


def _attends(every: list[TensorInfo]) -> bool:
    """Are there queries, keys, values and an output, separate or fused?"""
    roles = {role(info.name) for info in every if len(info.shape) > 1}
    return {"attention_q", "attention_k", "attention_v", "attention_o"} <= roles or (
        {"attention", "attention_o"} <= roles or _is_fused(every)
    )


def _is_fused(every: list[TensorInfo]) -> bool:
    """Is there one matrix for queries, keys and values, three times as long as wide?"""
    return any(
        role(info.name) == "attention"
        and len(info.shape) == 2
        and max(info.shape) == 3 * min(info.shape)
        for info in every
    )


def _transformer(every: list[TensorInfo]) -> str:
    names = [info.name for info in every]
    if any(map(CROSS.search, names)):
        return "encoder-decoder transformer"
    if any(len(info.shape) == 4 and is_parameter(info.name, info.dtype) for info in every):
        return "vision transformer"
    masked = any(map(MASKED_HEAD.search, names))
    if (any(map(WORD_HEAD.search, names)) and not masked) or any(
        name.endswith(CAUSAL) for name in names
    ):
        return "decoder transformer"
    return "transformer"


def _is_mixture(every: list[TensorInfo]) -> bool:
    routed = any(_ROUTER.search(info.name) for info in every)
    return routed and any(is_expert(info.name) for info in every)


def _is_perceptron(every: list[TensorInfo]) -> bool:
    """Does each matrix take the outputs of the one before?"""
    matrices = [info.shape for info in every if len(info.shape) == 2]
    return len(matrices) > 1 and all(before[0] == after[1] for before, after in pairwise(matrices))


def _gates(info: TensorInfo) -> str:
    rows, columns = info.shape if len(info.shape) == 2 else (0, 1)
    return _GATES.get(rows // columns if columns and rows % columns == 0 else 0, "rnn")


def _shares(every: list[TensorInfo]) -> dict[str, float]:
    """Return the share of parameters in attention, convolutions, patch embeddings and the rest."""
    sums = dict.fromkeys(("attention", "convolution", "patch", "other"), 0)
    for info in every:
        if is_parameter(info.name, info.dtype):
            sums[_part(info)] += info.count
    total = sum(sums.values())
    return {part: count / total for part, count in sums.items() if count}


def _part(info: TensorInfo) -> str:
    if len(info.shape) == 4:
        high, wide = info.shape[2:]
        is_patch = high == wide and high >= 8 and info.shape[1] <= 4
        return "patch" if is_patch else "convolution"
    return "attention" if role(info.name) in _PARTS else "other"
