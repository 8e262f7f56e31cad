import json

import numpy as np
import pytest
from diffs.analyses.small import GENERATORS, changed, decoder, nudged

from difflens.diffs.analyses import analyse, analysis
from difflens.diffs.story import diff

MODEL = decoder()


def summary(left, right, **options):
    return analyse("change_summary", diff(left, right, **options))


def test_a_model_against_itself_has_no_change_and_no_finding():
    envelope = summary(MODEL, MODEL)

    assert envelope.fields["layers_changed"] == 0
    assert envelope.fields["magnitude"] == 0
    assert envelope.fields["frozen"] == len(MODEL)
    assert envelope.findings == ()


def test_a_model_full_of_nans_is_identical_to_itself():
    broken = {"a.weight": np.full(4, np.nan, np.float32)}

    envelope = summary(broken, broken)

    assert envelope.fields["patterns"] == ["bitwise_identical"]
    assert envelope.findings == ()


def test_layers_are_counted_once_however_many_of_their_tensors_changed():
    envelope = summary(MODEL, changed(MODEL, nudged, "q_proj"))

    assert envelope.fields["layers_changed"] == 3
    assert envelope.fields["frozen"] == len(MODEL) - 6


def test_a_cast_is_rounding_only():
    envelope = summary(MODEL, GENERATORS["dtype_cast"](MODEL))

    assert envelope.fields["rounding_only"] == len(MODEL)
    assert envelope.fields["frozen"] == 0


def test_headers_alone_are_not_enough():
    envelope = summary(MODEL, MODEL, shape_only=True)

    assert envelope.status == "not_enough_information"
    assert set(envelope.fields.values()) == {None}
    assert {each.field for each in envelope.missing} == set(envelope.fields)


@pytest.mark.parametrize("tag", GENERATORS)
def test_every_field_that_is_null_says_what_it_needs(tag):
    envelope = summary(MODEL, GENERATORS[tag](MODEL))

    nulls = {name for name, value in envelope.fields.items() if value is None}
    assert nulls == {each.field for each in envelope.missing}
    assert envelope.status == ("partial" if nulls else "ok")


@pytest.mark.parametrize("tag", GENERATORS)
def test_every_field_says_where_it_comes_from(tag):
    envelope = summary(MODEL, GENERATORS[tag](MODEL))

    assert set(envelope.basis) == set(envelope.fields)
    assert set(envelope.policy) == set(analysis["change_summary"].options["thresholds"])
    assert envelope.assumptions[0].startswith("tags tested: bitwise_identical")


def test_the_envelope_is_plain_json_without_nan_or_infinity():
    other = changed(MODEL, nudged, "mlp")
    other["model.layers.0.mlp.up_proj.weight"][0, 0] = np.inf

    json.dumps(summary(MODEL, other).to_dict(), allow_nan=False)


def test_new_nans_are_findings_with_their_number():
    other = changed(MODEL, nudged, "1.mlp.up_proj")
    other["model.layers.1.mlp.up_proj.weight"].flat[:12] = np.nan

    envelope = summary(MODEL, other)

    (finding,) = envelope.findings
    assert finding.subject == "model.layers.1.mlp.up_proj.weight"
    assert finding.evidence == {"appeared": 12}
    assert "12 elements not finite on both sides are left out of the norms" in envelope.assumptions


def test_a_tensor_that_is_all_zeros_now_is_a_finding():
    """A review that lists the worst named the NaN of one tensor, and not the loss of another."""
    other = changed(MODEL, nudged, "1.mlp.up_proj")
    name = "model.layers.0.mlp.up_proj.weight"
    other[name] = np.zeros_like(other[name])

    (finding,) = summary(MODEL, other).findings

    assert finding.subject == "model.layers.0.mlp.up_proj.weight"
    assert finding.severity == "high"


def test_a_frozen_tensor_more_on_both_sides_moves_no_figure():
    other = changed(MODEL, nudged, "mlp")
    extra = {"stranger.weight": np.ones(1000, np.float32)}
    moving = ("magnitude", "median_relative_l2", "share_by_role", "concentration", "layers_changed")

    plain = summary(MODEL, other).fields
    beside = summary(MODEL | extra, other | extra).fields

    assert [beside[name] for name in moving] == [plain[name] for name in moving]


def test_measuring_identical_tensors_too_changes_nothing():
    other = changed(MODEL, nudged, "mlp")

    assert summary(MODEL, other, always=True) == summary(MODEL, other)
