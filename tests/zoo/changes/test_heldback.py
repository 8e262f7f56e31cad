"""The held-back part of the change zoo: apart from dev, drawn from fixed seeds, labelled truly."""

import ast
import inspect
from pathlib import Path

import pytest

import zoo.changes
from zoo.changes import edits, heldback_edits
from zoo.changes.bases import WHEELS
from zoo.changes.dev import PAIRS as DEV
from zoo.changes.heldback import PAIRS
from zoo.changes.heldback_bases import HELDBACK_NETWORKS, HELDBACK_WHEELS, RESERVED
from zoo.changes.heldback_check import complaints
from zoo.changes.networks import FAMILIES

FOLDER = Path(zoo.changes.__file__).parent
OWN = sorted(FOLDER.glob("heldback*.py"))
THEIRS = [*sorted((FOLDER / "dev").glob("*.py")), FOLDER / "networks.py", FOLDER / "training.py"]
# Which argument of an edit is its seed, by the edit's name.
PLACES = {
    name: list(inspect.signature(function).parameters).index("seed")
    for module in (edits, heldback_edits)
    for name, function in inspect.getmembers(module, inspect.isfunction)
    if "seed" in inspect.signature(function).parameters
}
GENERATORS = {"default_rng": 0, "manual_seed": 0}  # methods, of NumPy and of torch


def seeds_in(files):
    """Collect the numbers that calls draw from: `seed=7`, or in the place of the seed."""
    return {
        argument.value
        for path in files
        for call in ast.walk(ast.parse(path.read_text()))
        if isinstance(call, ast.Call)
        for argument in _seed_arguments(call)
        if isinstance(argument, ast.Constant) and isinstance(argument.value, int)
    }


def _seed_arguments(call):
    place = PLACES.get(getattr(call.func, "id", ""), GENERATORS.get(getattr(call.func, "attr", "")))
    yield from (each.value for each in call.keywords if each.arg == "seed")
    if place is not None and len(call.args) > place:
        yield call.args[place]


def test_heldback_and_dev_share_no_base_model():
    ours, theirs = {each.base for each in PAIRS}, {each.base for each in DEV}
    files = {(WHEELS[name].package, WHEELS[name].member) for name in theirs & set(WHEELS)}

    assert not ours & theirs
    assert not files & {(each.package, each.member) for each in HELDBACK_WHEELS.values()}
    assert ours <= set(HELDBACK_WHEELS) | RESERVED | set(HELDBACK_NETWORKS)
    assert not set(HELDBACK_NETWORKS) & set(FAMILIES)


def test_heldback_and_dev_share_no_seed():
    ours = seeds_in(OWN) | {seed for _, seed, _ in HELDBACK_NETWORKS.values()}

    assert len(ours) > 60
    assert not ours & seeds_in(THEIRS)
    assert min(ours) > 1000  # dev counts its seeds from nought in loops


def test_the_seed_of_a_call_is_found_by_name_and_by_place(tmp_path):
    path = tmp_path / "pairs.py"
    path.write_text("lora('q', 8, 61)\nprune('q', 0.5)\nnoise(seed=62)\nadd_noise('q', 0.1, 63)\n")

    assert seeds_in([path]) == {61, 62, 63}


def test_heldback_pairs_have_names_of_their_own():
    ids = [each.id for each in PAIRS]

    assert len(ids) >= 110
    assert len(set(ids)) == len(ids)
    assert not set(ids) & {each.id for each in DEV}
    assert {each.part for each in PAIRS} == {"second"}


def test_a_network_of_the_heldback_part_is_the_same_each_time_it_is_trained():
    pytest.importorskip("torch")
    from zoo.changes.heldback_training import trained_network

    first, second = (trained_network("towers", 5, 4) for _ in range(2))

    assert {name: array.tobytes() for name, array in first.items()} == {
        name: array.tobytes() for name, array in second.items()
    }


@pytest.mark.parametrize(
    "pair",
    [each for each in PAIRS if each.base in {"towers", "mender"} and each.kind != "unrelated"],
    ids=lambda pair: pair.id,
)
def test_a_label_is_true_of_the_two_models(pair, tmp_path, monkeypatch):
    pytest.importorskip("torch")
    from zoo.changes.heldback_training import trained_network
    from zoo.changes.model import Model

    monkeypatch.setenv("DIFFLENS_ZOO", str(tmp_path))
    base = Model(trained_network(pair.base, 41_999, 12))

    assert list(complaints(pair.build(base))) == []


def test_a_label_that_is_not_true_is_seen(tmp_path, monkeypatch):
    pytest.importorskip("torch")
    from zoo.changes.heldback_training import trained_network
    from zoo.changes.model import Model

    monkeypatch.setenv("DIFFLENS_ZOO", str(tmp_path))
    pair = next(each for each in PAIRS if each.id == "h-trained-r3-towers")
    built = pair.build(Model(trained_network("towers", 41_999, 12)))
    (label,) = built.expected

    false = built._replace(expected=(label._replace(numbers={"rank": (5.0, 5.0)}),))

    assert any("low_rank" in line for line in complaints(false))
