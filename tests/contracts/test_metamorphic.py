"""What must not matter to an analysis: the order of the sides, names, strangers, a common scale."""

import json
from functools import cache

import numpy as np
import pytest

from difflens.analyses import analysis, ask
from difflens.evidences import Evidence
from difflens.pipeline import diff
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
        for at, part in enumerate(value):
            yield from numbers(part, f"{path}[{at}]")
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
        if any(word in path for word in ("relative_l2", "magnitude", "rel_l2", "drift"))
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
}


@every_analysis
def test_an_unrelated_tensor_moves_no_number_of_another(name):
    left, right = models()
    stranger = {"unrelated.running_mean": np.ones(7, np.float32)}

    plain = asked(name, left, right)["fields"]
    told = asked(name, left | stranger, right | stranger)["fields"]

    free = COUNTED.get(name.replace("-", "_"), set())
    before = {path: value for path, value in numbers(plain) if path.split(".")[1] not in free}
    after = dict(numbers(told))
    moved = {
        path: (value, after.get(path))
        for path, value in before.items()
        if after.get(path) != pytest.approx(value, rel=1e-9, abs=1e-12)
    }
    assert moved == {}


# What is measured in units of the weights, or of left alone.
SCALED: dict[str, set[str]] = {}


@every_analysis
def test_a_common_scale_leaves_what_is_free_of_scale(name):
    left, right = models()
    doubled = [{key: value * 4 for key, value in side.items()} for side in (left, right)]

    plain = asked(name, left, right)["fields"]
    told = asked(name, *doubled)["fields"]

    free = SCALED.get(name.replace("-", "_"), set())
    after = dict(numbers(told))
    moved = {
        path: (value, after.get(path))
        for path, value in numbers(plain)
        if path.split(".")[1].partition("[")[0] not in free
        and after.get(path) != pytest.approx(value, rel=1e-6, abs=1e-9)
    }
    assert moved == {}
