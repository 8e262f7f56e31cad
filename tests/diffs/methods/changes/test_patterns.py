import ml_dtypes
import numpy as np
import pytest
from diffs.analyses.small import GENERATORS, changed, decoder, evidence, nudged, poked

from difflens.core.policy import Policy
from difflens.diffs.analyses import analyse
from difflens.diffs.evidence.records import Evidence
from difflens.diffs.methods.changes.patterns import TAGS
from difflens.diffs.story import diff

MODEL = decoder(2, width=128)


def fields(left, right, handed=None, **options):
    compared = diff(left, right, **options)
    return analyse("change_summary", compared, handed or Evidence()).fields


@pytest.mark.parametrize("tag", GENERATORS)
def test_each_kind_of_change_gets_its_own_tag_and_no_other(tag):
    other = GENERATORS[tag](MODEL)

    found = fields(MODEL, other, evidence(tag, MODEL, other))

    assert found["patterns"] == [tag]
    assert found["also"] == []


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("tag", sorted({*GENERATORS} - {"dtype_cast"}))
def test_each_kind_of_change_keeps_its_tag_in_a_coarse_dtype(tag, seed):
    model = decoder(2, ml_dtypes.bfloat16, seed, width=128)
    other = GENERATORS[tag](model)

    assert fields(model, other, evidence(tag, model, other))["patterns"] == [tag]


@pytest.mark.parametrize("tag", GENERATORS)
def test_each_tag_states_the_number_behind_it(tag):
    other = GENERATORS[tag](MODEL)

    found = fields(MODEL, other, evidence(tag, MODEL, other))

    assert found["evidence"][tag]


@pytest.mark.parametrize("tag", GENERATORS)
def test_a_prefix_on_every_name_changes_no_tag_and_no_figure(tag):
    other = GENERATORS[tag](MODEL)
    plain = fields(MODEL, other, evidence(tag, MODEL, other))
    pair = [{f"module.{k}": v for k, v in side.items()} for side in (MODEL, other)]

    wrapped = fields(*pair, evidence(tag, *pair))

    for figure in ("patterns", "also", "evidence", "magnitude", "share_by_role", "layers_changed"):
        assert wrapped[figure] == plain[figure]


@pytest.mark.parametrize("tag", sorted({*GENERATORS} - {"dtype_cast", "pruned", "averaged"}))
def test_swapping_the_sides_keeps_the_tag(tag):
    assert fields(GENERATORS[tag](MODEL), MODEL)["patterns"] == [tag]


def test_there_is_a_generator_for_every_tag():
    assert {*TAGS, "mixed"} == {*GENERATORS}


def test_a_sparse_change_of_the_head_has_both_tags_the_head_first():
    model = decoder()

    found = fields(model, changed(model, poked, "lm_head"))

    assert found["patterns"] == ["head_only"]
    assert found["also"] == ["sparse_delta"]


def test_a_new_head_of_another_size_is_a_change_of_the_head_only():
    model = decoder()
    other = model | {"lm_head.weight": np.zeros((50, 16), np.float32)}

    assert fields(model, other)["patterns"] == ["head_only"]


def test_a_change_within_epsilon_is_called_that():
    model = decoder()

    found = fields(model, changed(model, nudged, "up_proj"), epsilon=1.0)

    assert found["patterns"] == ["within_epsilon"]


def test_a_cast_that_overflows_is_no_mere_cast():
    model = {"a.weight": np.array([1e6, 1.0], np.float32)}
    with np.errstate(over="ignore"):
        other = {"a.weight": model["a.weight"].astype(np.float16)}

    assert "dtype_cast" not in fields(model, other)["patterns"]


def test_a_threshold_of_the_user_is_used_and_echoed():
    model = decoder()
    compared = diff(model, changed(model, nudged, "proj"))
    policy = Policy({"change_summary": {"full_fraction": 0.5}})

    usual = analyse("change_summary", compared)
    lenient = analyse("change_summary", compared, Evidence(), policy)

    assert usual.fields["patterns"] == ["mixed"]
    assert lenient.fields["patterns"] == ["full_finetune"]
    assert lenient.policy["full_fraction"] == {"value": 0.5, "source": "user"}
    assert lenient.policy["sparse_fraction"]["source"] == "default"
