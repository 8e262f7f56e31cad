"""Is one model derived from the other, or were they trained independently?"""

from __future__ import annotations

from collections.abc import Iterator
from math import log10, sqrt
from statistics import median
from typing import TYPE_CHECKING, Any, NamedTuple

from difflens.core.policy import Threshold

from ..answer import Answer
from ..diff import Diff
from ..evidence.records import Evidence
from ..methods.agreement import Agreement, agreements
from ..methods.copies import Copies, copies
from ..methods.direction import direction
from ..methods.kinship import (
    Bar,
    Found,
    Kinship,
    Load,
    Sides,
    kinship,
    loads,
    paired,
    sameness,
    smallest_log10_p,
    spread,
    tests_of,
)
from ..methods.layer_grid import best_of, grid, partner
from ..methods.networks import infos, network
from ..methods.symmetry.groups import groups
from ..methods.symmetry.parts import Limits, gain_beyond_chance
from ..methods.symmetry.slots import Group, Slot
from . import analysis

if TYPE_CHECKING:
    from numpy.typing import NDArray


SEED = 0
_MOST_UNITS, _MOST_ELEMENTS = 1024, 1 << 24  # of chains whose units are looked for in all orders
_LEAST_UNITS = 10  # below that many ranks Student's t is no law of rho


@analysis(
    needs="values",
    thresholds={
        "derived_rho": Threshold(0.5, "median rank correlation above which two models are kin"),
        "derived_log10_p": Threshold(
            -6.0, "log10 of the combined p below which two models are kin"
        ),
        "least_layers": Threshold(
            3, "layers (or tensors) that must speak before a model is derived"
        ),
        "alpha": Threshold(0.01, "combined p below which independence is rejected"),
        "sampled_units": Threshold(512, "units of a layer looked for among all of the other's"),
        "most_layers": Threshold(64, "layers tested, evenly spread"),
        "grid_layers": Threshold(32, "layers of each side in the layer by layer matrix"),
        "grid_units": Threshold(128, "units of a layer in the layer by layer matrix"),
    },
    fields={
        "verdict": "ladder: bits, storage rounding, copied values, effect and p",
        "median_rho": "median over layers of the test that speaks loudest",
        "log10_p": "of the same test, times the number of tests",
        "direction": "what lies beside the weights; two files of weights cannot tell",
        "copied": "tensors of many different values that are the same bits on both sides",
        "u_test": "order of matched units against their own places; p that half of the layers do",
        "match_test": "two matchings of the same units against each other; p as of u_test",
        "gram": "cosines among the units of a layer, on both sides; p as of u_test, by exchange",
        "direct": "centred correlation of matrices in one shape; p as of u_test, by exchange",
        "invariants": "cosine of Q^T K by head, beside that with the next head as what chance"
        " gives",
        "rho": "the tests by layer",
        "layer_matrix": "rho of every left layer (rows) with every right one (columns)",
        "layer_map": "for each right layer the left one it matches best",
    },
)
def lineage(diff: Diff, evidence: Evidence, answer: Answer) -> None:
    """Whether one model comes from the other, layer by layer, and how sure that is."""
    answer.seeded(SEED)
    sides = Sides(
        groups(infos(diff, "left"), network(diff, evidence, "left")),
        groups(infos(diff, "right"), network(diff, evidence, "right")),
    )
    pairs = list(paired(diff, sides))
    copied = copies(diff)
    direct = list(agreements(diff, copied.copied, SEED))
    traces = Traces(list(_layers(diff, pairs, answer)), direct, copied)
    same = sameness(diff)
    names, matrix = ([], None) if same else _grid(diff, sides, answer)
    best = best_of(matrix, answer["derived_rho"]) if matrix else None
    tests = tests_of(
        traces.layers, traces.direct, Bar(answer["derived_rho"], answer["derived_log10_p"])
    )
    word = same or _judged(answer, tests, traces, best)
    if word == "independent_not_rejected":
        gain = gain_beyond_chance(diff, evidence, Limits(_MOST_UNITS, _MOST_ELEMENTS, 0))
        word = "derived" if gain is not None and gain > answer["derived_rho"] else word
    answer.say("verdict", word)
    _say_tests(answer, tests, traces.layers)
    _say_copies(answer, traces.copies, word)
    _say_heads(answer, diff, pairs)
    _say_grid(answer, names, matrix, best, is_same=same is not None)
    _say_direction(answer, diff, evidence, word)


class Traces(NamedTuple):
    """What one model may have left in the other: units in place, weights in place, values."""

    layers: list[Kinship]
    direct: list[Agreement]
    copies: Copies


def _layers(diff: Diff, pairs: list[tuple[Group, Group]], answer: Answer) -> Iterator[Kinship]:
    tested = [each for each in pairs if each[0].kind != "heads" and each[0].units >= _LEAST_UNITS]
    for each in spread(tested, answer["most_layers"]):
        found = kinship(each, loads(diff), answer["sampled_units"], SEED)
        if found:
            yield found


def _judged(
    answer: Answer, tests: dict[str, Found], traces: Traces, best: list[dict[str, Any]] | None
) -> str:
    """Climb down the ladder: values that were copied, then effect and p together, then p alone."""
    least = answer["least_layers"]
    if traces.copies.copied:
        return "derived"
    for test in tests.values():
        p = min(0.0, test.log10_p + log10(len(tests)))
        is_far = test.rho > answer["derived_rho"] and p < answer["derived_log10_p"]
        if (is_far and test.spoke >= least) or test.kin >= least:
            return "derived"
    if sum(each["from"] is not None for each in best or ()) >= least:
        return "derived"
    smallest = smallest_log10_p(traces.layers, traces.direct)
    if smallest is None or smallest < log10(answer["alpha"]):
        return "inconclusive"
    return "independent_not_rejected"


def _say_tests(answer: Answer, tests: dict[str, Found], layers: list[Kinship]) -> None:
    needs = "layers of one shape on both sides, with hidden units that may change places"
    why = "nothing that this test can compare is in both models"
    loudest = min(tests.values(), key=lambda test: (test.log10_p, -test.rho), default=None)
    combined = min(0.0, loudest.log10_p + log10(len(tests))) if loudest else None
    answer.either("log10_p", combined, needs=needs, why=why)
    answer.either("median_rho", loudest.rho if loudest else None, needs=needs, why=why)
    for field in ("u_test", "match_test", "gram", "direct"):
        value = tests[field]._asdict() if field in tests else None
        answer.either(field, value, needs=needs, why=why)
    rows = [each._asdict() for each in layers] or None
    answer.either("rho", rows, needs=needs, why=why)
    answer.assume(
        "units of a layer are exchangeable before training; gates, fused halves and experts are"
        " taken apart, other blocks inside a layer would not be seen"
    )
    if any(each.sampled < each.units for each in layers):
        answer.assume("of large layers a sample of units is looked for, drawn with the seed")


def _say_heads(answer: Answer, diff: Diff, pairs: list[tuple[Group, Group]]) -> None:
    attentions = spread([each for each in pairs if each[0].kind == "heads"], answer["most_layers"])
    found = list(filter(None, (circuits(each, loads(diff)) for each in attentions)))
    own = [cosine for each in found for cosine in each.own]
    other = [cosine for each in found for cosine in each.other]
    value = None
    if own:
        value = {
            "median_cosine": median(own),
            "median_with_next_head": median(other) if other else None,
            "heads": len(own),
        }
    answer.either(
        "invariants",
        value,
        needs="--config-left/--config-right with the number of heads",
        why="how many heads there are is in no shape, or no attention is laid out in a known way",
    )


def _say_copies(answer: Answer, found: Copies, word: str) -> None:
    why = "no tensor of the right model holds enough different values to prove anything"
    value = found.to_dict() if found.of else None
    answer.either("copied", value, needs="float tensors of 256 values at least", why=why)
    if value and word == "derived" and 0 < len(found.copied) < len(found.of):
        numbers = {key: float(value[key]) for key in ("tensors", "of", "share")}
        answer.find("", f"copied bit for bit: {value['text']}", numbers)


def _grid(diff: Diff, sides: Sides, answer: Answer) -> tuple[list[str], dict[str, Any] | None]:
    return grid(diff, sides, answer["grid_layers"], answer["grid_units"], SEED)


def _say_grid(
    answer: Answer,
    names: list[str],
    matrix: dict[str, Any] | None,
    best: list[dict[str, Any]] | None,
    *,
    is_same: bool,
) -> None:
    why = "the models are the same" if is_same else "there are not two layers of one shape"
    needs = "models that differ" if is_same else "at least two layers of one shape"
    answer.either("layer_matrix", matrix, needs=needs, why=why)
    answer.either("layer_map", best, needs=needs, why=why)
    moved = [each for each in best or () if each["from"] not in {None, partner(names, each)}]
    if moved and matrix:
        text = f"{len(moved)} layers of the right model match a left layer in another place"
        numbers = {"layers": float(len(moved)), "least_rho": min(each["rho"] for each in moved)}
        answer.find("", text, numbers, "medium")


def _say_direction(answer: Answer, diff: Diff, evidence: Evidence, word: str) -> None:
    kin = word in {"derived", "same_up_to_rounding"}
    found = direction(diff, evidence) if kin else None
    answer.either(
        "direction",
        found.word if found else None,
        basis=found.source if found else "",
        needs=evidence.lacking(
            "--base", instead="metadata that names the parent, or training steps"
        )
        if kin
        else "kin",
        why="two files of weights cannot tell which came first"
        if kin
        else "there is no descent to give a direction to",
    )


# cos(Q_l^T K_l, Q_r^T K_r) = <Q_l Q_r^T, K_l K_r^T> / sqrt(<Q_l Q_l^T, K_l K_l^T> ...), so that
# only matrices of the head's own size are made (the invariants of HuRef, Zeng et al. 2023).


class Circuits(NamedTuple):
    """Cosines of the query-key product of each head with its partner, and with the next head."""

    own: list[float]
    other: list[float]


def circuits(groups: tuple[Group, Group], loads: tuple[Load, Load]) -> Circuits | None:
    """Compare the heads of one attention; None if they are laid out in no known way."""
    left, right = (_heads(group, load) for group, load in zip(groups, loads, strict=True))
    if left is None or right is None or left[0].shape != right[0].shape:
        return None
    count = len(left[0])
    own = [_cosine(left, right, i, i) for i in range(count)]
    other = [_cosine(left, right, i, (i + 1) % count) for i in range(count)] if count > 1 else []
    return Circuits([c for c in own if c is not None], [c for c in other if c is not None])


def _heads(group: Group, load: Load) -> tuple[NDArray[Any], NDArray[Any]] | None:
    """Return queries and keys as [heads, head size, in], a key for every query."""
    import numpy as np

    query, key, fused = group.slot("q"), group.slot("k"), group.slot("qkv")
    if fused:
        whole = _shaped(load(fused), fused)
        return whole[0], whole[1]
    if not (query and key):
        return None
    queries, keys = _shaped(load(query), query)[0], _shaped(load(key), key)[0]
    return queries, np.repeat(keys, query.units // key.units, axis=0)


def _shaped(array: NDArray[Any], slot: Slot) -> NDArray[Any]:
    import numpy as np

    moved = np.moveaxis(array, slot.axis, 0)
    return moved.reshape(slot.blocks, slot.units, slot.inner, -1)


def _cosine(left: Any, right: Any, i: int, j: int) -> float | None:
    inner = _product((left[0][i], left[1][i]), (right[0][j], right[1][j]))
    sizes = [
        _product((side[0][at], side[1][at]), (side[0][at], side[1][at]))
        for side, at in ((left, i), (right, j))
    ]
    whole = sqrt(max(0.0, sizes[0])) * sqrt(max(0.0, sizes[1]))
    value = inner / whole if whole > 0 else float("nan")
    return max(-1.0, min(1.0, value)) if value == value else None  # noqa: PLR0124  NaN


def _product(left: Any, right: Any) -> float:
    import numpy as np

    queries, keys = left[0] @ right[0].T, left[1] @ right[1].T
    return float((queries.astype(np.float64) * keys).sum())
