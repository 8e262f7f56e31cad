"""How the architectures of two models differ: their kinds, their modules, their shapes."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from typing import Any

from difflens.core.records import TensorInfo
from difflens.models.anatomy.family import Family, family
from difflens.models.anatomy.network import Network
from difflens.models.anatomy.places import Edit, edits, modules, short
from difflens.models.anatomy.roles import role

from ..answer import Answer
from ..diff import Diff
from ..evidence.records import Evidence
from ..methods.networks import infos, network
from ..methods.weights import elements, is_weight
from . import analysis

_MOST_FINDINGS = 10  # the rest stands in `edits`
_NUMBERS = tuple(
    """
    layers heads kv_heads head_dim hidden ffn vocab experts experts_per_token context
""".split()
)


@analysis(
    needs="tensors",
    fields={
        "type1": "",
        "type2": "",
        "differences": "modules (tensors sharing a prefix) added, removed or reshaped after"
        " matching",
        "similarity": "weighted Jaccard: sum of min / sum of max of parameters over (role, shape)",
        "renamed": "tensors paired under two names; not counted as differences",
        "dtype_changes": "tensors by change of dtype; not counted as differences",
        "edits": "the differences, folded where they repeat from block to block",
        "param_table": "elements of float tensors that are no buffers, by role as names tell it",
        "network1": "",
        "network2": "",
        "shares1": "",
        "shares2": "",
    },
)
def architecture_comparison(diff: Diff, evidence: Evidence, answer: Answer) -> None:
    """What kind of network each model is, and which modules were added, removed or reshaped."""
    kinds = {
        number: family(network(diff, evidence, side), infos(diff, side))
        for number, side in (("1", "left"), ("2", "right"))
    }
    for number, kind in kinds.items():
        answer.say(f"type{number}", kind.name, basis=kind.basis)
    found = edits(modules(diff.deltas))
    _edits(answer, diff, found)
    _tables(answer, diff)
    for number, kind in kinds.items():
        _numbers(
            answer, number, kind, network(diff, evidence, "left" if number == "1" else "right")
        )
    if diff.has_values:  # headers alone are told, and nothing is found in them
        for edit in sorted(found, key=lambda each: -abs(each.parameters))[:_MOST_FINDINGS]:
            answer.find(
                "",
                f"{short(edit.what)}: {edit.parameters:+} parameters",
                {"modules": edit.modules, "tensors": edit.tensors, "parameters": edit.parameters},
                "medium",
            )


def _numbers(answer: Answer, number: str, kind: Family, known: Network) -> None:
    said = {name: getattr(known, name) for name in _NUMBERS}
    numbers = {name: value for name, value in said.items() if value is not None}
    sources = "; ".join(sorted({known.basis[name] for name in numbers}))
    answer.say(f"network{number}", numbers, basis=sources or "nothing tells a number")
    answer.say(
        f"shares{number}",
        kind.shares,
        basis="part of the parameters: attention matrices, kernels, patch embedding, rest",
        uncertainty="exact",
    )


def _edits(answer: Answer, diff: Diff, found: list[Edit]) -> None:
    answer.say("differences", sum(edit.modules for edit in found), uncertainty="exact")
    answer.say("edits", [edit.to_dict() for edit in found], uncertainty="exact")
    casts = Counter(
        f"{delta.pair.left.dtype} -> {delta.pair.right.dtype}"
        for delta in diff.deltas
        if delta.pair.left and delta.pair.right and delta.pair.left.dtype != delta.pair.right.dtype
    )
    answer.say("dtype_changes", dict(sorted(casts.items())), uncertainty="exact")
    answer.say("renamed", sum(delta.pair.renamed for delta in diff.deltas), uncertainty="exact")


def _tables(answer: Answer, diff: Diff) -> None:
    left, right = (_parameters(infos(diff, side)) for side in ("left", "right"))
    answer.say("param_table", _by_role(left, right), uncertainty="exact")
    answer.either(
        "similarity",
        _similarity(left, right),
        uncertainty="exact",
        needs="float parameters",
        why="neither model holds any",
    )


def _parameters(every: Iterable[TensorInfo]) -> Counter[tuple[str, tuple[int, ...]]]:
    """Count parameters by role and shape."""
    counts: Counter[tuple[str, tuple[int, ...]]] = Counter()
    for info in every:
        if is_weight(info):
            counts[role(info.name), info.shape] += elements(info)
    return counts


def _similarity(
    left: Counter[tuple[str, tuple[int, ...]]], right: Counter[tuple[str, tuple[int, ...]]]
) -> float | None:
    larger = (left | right).total()
    return (left & right).total() / larger if larger else None


def _by_role(
    left: Counter[tuple[str, tuple[int, ...]]], right: Counter[tuple[str, tuple[int, ...]]]
) -> list[dict[str, Any]]:
    sums: list[Counter[str]] = [Counter(), Counter()]
    for total, side in zip(sums, (left, right), strict=True):
        for (part, _), count in side.items():
            total[part] += count
    before, after = sums
    rows = [
        {"role": part, "left": before[part], "right": after[part]}
        for part in sorted(before | after)
    ]
    return [*rows, {"role": "all", "left": before.total(), "right": after.total()}]
