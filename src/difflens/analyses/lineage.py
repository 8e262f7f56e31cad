"""Is one model derived from the other, or were they trained independently?"""

from __future__ import annotations

from collections.abc import Iterator
from math import log10
from statistics import median

from ..answers import Answer, Status
from ..diffs import Diff
from ..evidences import Evidence
from ..measure.scan import Scan
from ..records import Envelope, Policy, Threshold
from . import analysis
from .anatomy.network import infos, network
from .kinship.combined import Found, sameness, tests_of
from .kinship.direction import direction
from .kinship.grid import best_of, grid, partner
from .kinship.invariants import circuits
from .kinship.layers import Kinship, kinship
from .kinship.ranks import bonferroni
from .kinship.sides import Sides, loads, paired, spread
from .symmetry.groups import groups
from .symmetry.slots import Group

NAME = "lineage"
SEED = 0
THRESHOLDS = {
    "derived_rho": Threshold(0.5, "median rank correlation above which two models are kin"),
    "derived_log10_p": Threshold(-6.0, "log10 of the combined p below which two models are kin"),
    "least_layers": Threshold(3, "layers (or tensors) that must speak before a model is derived"),
    "alpha": Threshold(0.01, "combined p below which independence is rejected"),
    "sampled_units": Threshold(512, "units of a layer looked for among all of the other's"),
    "most_layers": Threshold(64, "layers tested, evenly spread"),
    "grid_layers": Threshold(32, "layers of each side in the layer by layer matrix"),
    "grid_units": Threshold(128, "units of a layer in the layer by layer matrix"),
}
_LEAST_UNITS = 10  # below that many ranks Student's t is no law of rho
_BASIS = {
    "verdict": "ladder: bits, storage rounding, median rho and combined p",
    "log10_p": "Bonferroni over u_test and match_test, which depend on each other; direct if alone",
    "median_rho": "median over layers of the test that speaks loudest",
    "u_test": "order of matched units against their own places, Fisher over layers",
    "match_test": "two matchings of the same units against each other, Fisher over layers",
    "direct": "centred correlation of matrices in one shape; p as of iid weights, Bonferroni",
    "invariants": "cosine of Q^T K by head, beside that with the next head as what chance gives",
    "rho": "the tests by layer",
    "layer_matrix": "rho of every left layer (rows) with every right one (columns)",
    "layer_map": "for each right layer the left one it matches best",
    "direction": "what lies beside the weights; two files of weights cannot tell",
}


@analysis(needs=[Scan], thresholds=THRESHOLDS)
def lineage(diff: Diff, evidence: Evidence, policy: Policy) -> Envelope:
    """Whether one model comes from the other, layer by layer, and how sure that is."""
    answer = Answer(NAME, policy, THRESHOLDS)
    answer.seeded(SEED)
    if not diff.has_values or not diff.deltas:
        status: Status = "not_enough_information" if diff.deltas else "not_applicable"
        for field in _BASIS:
            answer.lack(field, needs="tensor values", why="no value was read")
        return answer.envelope(status)
    sides = Sides(
        groups(infos(diff, "left"), network(diff, evidence, "left")),
        groups(infos(diff, "right"), network(diff, evidence, "right")),
    )
    pairs = list(paired(diff, sides))
    layers = list(_layers(diff, pairs, answer))
    tests = tests_of(diff, layers)
    same = sameness(diff)
    word = same or _judged(answer, tests)
    answer.say("verdict", word, basis=_BASIS["verdict"])
    _say_tests(answer, tests, layers)
    _say_heads(answer, diff, pairs)
    _say_grid(answer, diff, sides, is_same=same is not None)
    _say_direction(answer, diff, evidence, word)
    return answer.envelope()


def _layers(diff: Diff, pairs: list[tuple[Group, Group]], answer: Answer) -> Iterator[Kinship]:
    tested = [each for each in pairs if each[0].kind != "heads" and each[0].units >= _LEAST_UNITS]
    for each in spread(tested, answer["most_layers"]):
        found = kinship(each, loads(diff), answer["sampled_units"], SEED)
        if found:
            yield found


def _judged(answer: Answer, tests: dict[str, Found]) -> str:
    """Climb down the ladder; effect and p must both speak before a model is called derived."""
    limits = answer["derived_rho"], answer["derived_log10_p"], answer["least_layers"]
    for test in tests.values():
        p = min(0.0, test.log10_p + log10(len(tests)))
        if test.rho > limits[0] and p < limits[1] and test.spoke >= limits[2]:
            return "derived"
    if not tests:
        return "inconclusive"
    combined = _combined(tests)
    return "inconclusive" if combined < log10(answer["alpha"]) else "independent_not_rejected"


def _combined(tests: dict[str, Found]) -> float:
    """Take the exact tests where there are any: the direct one's p holds for iid weights only."""
    exact = {name: test for name, test in tests.items() if name != "direct"} or tests
    return bonferroni([test.log10_p for test in exact.values()])


def _say_tests(answer: Answer, tests: dict[str, Found], layers: list[Kinship]) -> None:
    needs = "layers of one shape on both sides, with hidden units that may change places"
    why = "nothing that this test can compare is in both models"
    combined = _combined(tests) if tests else None
    answer.either("log10_p", combined, basis=_BASIS["log10_p"], needs=needs, why=why)
    loudest = max((test.rho for test in tests.values()), default=None)
    answer.either("median_rho", loudest, basis=_BASIS["median_rho"], needs=needs, why=why)
    for field in ("u_test", "match_test", "direct"):
        value = tests[field]._asdict() if field in tests else None
        answer.either(field, value, basis=_BASIS[field], needs=needs, why=why)
    rows = [each._asdict() for each in layers] or None
    answer.either("rho", rows, basis=_BASIS["rho"], needs=needs, why=why)
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
        basis=_BASIS["invariants"],
        needs="--config-left/--config-right with the number of heads",
        why="how many heads there are is in no shape, or no attention is laid out in a known way",
    )


def _say_grid(answer: Answer, diff: Diff, sides: Sides, *, is_same: bool) -> None:
    names: list[str] = []
    matrix = None
    if not is_same:
        names, matrix = grid(diff, sides, answer["grid_layers"], answer["grid_units"], SEED)
    why = "the models are the same" if is_same else "there are not two layers of one shape"
    needs = "models that differ" if is_same else "at least two layers of one shape"
    answer.either("layer_matrix", matrix, basis=_BASIS["layer_matrix"], needs=needs, why=why)
    best = best_of(matrix, answer["derived_rho"]) if matrix else None
    answer.either("layer_map", best, basis=_BASIS["layer_map"], needs=needs, why=why)
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
        basis=found.source if found else _BASIS["direction"],
        needs="--base, metadata that names the parent, or training steps" if kin else "kin",
        why="two files of weights cannot tell which came first"
        if kin
        else "there is no descent to give a direction to",
    )
