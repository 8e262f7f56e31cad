"""What must not matter to an analysis: the order of the sides, names, strangers, a common scale."""

import json
import re
from functools import cache

import numpy as np
import pytest

from difflens.diffs.analyses import analysis, ask
from difflens.diffs.evidence.records import Evidence
from difflens.diffs.story import diff
from difflens.testing.situations import situations

NAMES = [entry.name for entry in analysis.ours()]
every_analysis = pytest.mark.parametrize("name", NAMES)


@cache
def models():
    """The first situation: a small decoder whose MLP and embedding moved."""
    _, first = next(situations())
    return first.left, first.right


def asked(name, left, right, evidence=None):
    envelope = ask(name, diff(left, right), evidence or Evidence())
    return json.loads(json.dumps(envelope.to_dict()))


def numbers(value, path=""):
    """Yield every number of an answer with the way to it."""
    if isinstance(value, bool) or value is None or isinstance(value, str):
        return
    if isinstance(value, dict):
        for key, part in value.items():
            yield from numbers(part, f"{path}.{key}")
    elif isinstance(value, list):
        for at, part in enumerate(value):  # a list may be ordered by what is measured
            name = part.get("name") if isinstance(part, dict) else None
            yield from numbers(part, f"{path}[{name or at}]")
    else:
        yield path, value


@every_analysis
def test_a_model_against_itself_moved_by_nothing(name):
    left, _ = models()
    told = asked(name, left, left)

    assert told["findings"] == []
    distances = [
        (path, value)
        for path, value in numbers(told["fields"])
        if path.rpartition(".")[2] in {"relative_l2", "magnitude", "rel_l2", "semantic_drift"}
    ]
    assert [each for each in distances if abs(each[1]) > 1e-12] == []


@every_analysis
def test_names_do_not_matter_where_they_mean_the_same(name):
    left, right = models()
    wrapped = [{f"module.{key}": value for key, value in side.items()} for side in (left, right)]

    plain = json.dumps(asked(name, left, right))
    told = json.dumps(asked(name, *wrapped)).replace("module.", "")

    assert json.loads(told) == json.loads(plain)


# Of the whole model by their meaning, so that one more tensor counts in them.
COUNTED = {
    "change_summary": {"layers", "frozen", "sentence", "evidence", "patterns", "also"},
    "memory_analysis": {"bytes", "gpu_est", "breakdown", "training"},
}


@every_analysis
def test_an_unrelated_tensor_moves_no_number_of_another(name):
    left, right = models()
    stranger = {"unrelated.running_mean": np.ones(7, np.float32)}

    plain = asked(name, left, right)["fields"]
    told = asked(name, left | stranger, right | stranger)["fields"]

    free = COUNTED.get(name.replace("-", "_"), set())
    before = {
        path: value for path, value in numbers(plain) if re.split(r"[.\[]", path)[1] not in free
    }
    after = dict(numbers(told))
    moved = {
        path: (value, after.get(path))
        for path, value in before.items()
        if after.get(path) != pytest.approx(value, rel=1e-9, abs=1e-12)
        and not path.endswith("].of")  # of how many tensors: the stranger is one of them
    }
    assert moved == {}


# What is measured in units of the weights.
SCALED = re.compile(
    r"[.](edge|noise_edge|sigma_bulk|x_min|singular_values|subspace_\w+|norm|update_norm|l2)\b"
)


@every_analysis
def test_a_common_scale_leaves_what_is_free_of_scale(name):
    left, right = models()
    doubled = [{key: value * 4 for key, value in side.items()} for side in (left, right)]

    plain = asked(name, left, right)["fields"]
    told = asked(name, *doubled)["fields"]

    after = dict(numbers(told))
    moved = {
        path: (value, after.get(path))
        for path, value in numbers(plain)
        if not SCALED.search(path) and after.get(path) != pytest.approx(value, rel=1e-6, abs=1e-9)
    }
    assert moved == {}


# By the last word of their way: the same whichever side is left, or with its sign turned.
SAME_BOTH_WAYS = {
    "cosine", "symmetric_l2", "rank_above_noise", "effective_rank", "stable_rank", "ari", "ami",
    "similarity", "nearest_neighbor_consistency", "semantic_drift", "cka", "diagonal_mean",
    "mean_similarity", "median_rho", "differences", "circuit_cosine", "layers_changed",
}  # fmt: skip
TURNED = {"delta", "delta_bytes"}


def leaf(path):
    return re.sub(r"\[.*?\]", "", path).rpartition(".")[2]


def mirrored(path):
    """Return the way to the same figure of the other side."""
    swapped = {"left": "right", "right": "left"}
    return re.sub(r"\b(left|right)\b", lambda found: swapped[found[1]], path)


@every_analysis
def test_swapping_the_sides_flips_signs_and_keeps_sizes(name):
    left, right = models()

    one, other = (dict(numbers(asked(name, *sides)["fields"]))
                  for sides in ((left, right), (right, left)))  # fmt: skip

    wrong = {
        path: (value, other[mirrored(path)])
        for path, value in one.items()
        if mirrored(path) in other
        and "top_movers" not in path  # ordered by the move relative to left
        and leaf(path) in SAME_BOTH_WAYS | TURNED
        and other[mirrored(path)]
        != pytest.approx(-value if leaf(path) in TURNED else value, rel=1e-6, abs=1e-9)
    }
    assert wrong == {}


def test_enough_figures_are_held_to_the_swap():
    left, right = models()

    found = {
        leaf(path) for name in NAMES for path, _ in numbers(asked(name, left, right)["fields"])
    }
    assert found >= {"cosine", "rank_above_noise", "ari", "semantic_drift", "delta"}
