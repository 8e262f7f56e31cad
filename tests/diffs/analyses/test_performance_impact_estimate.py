import numpy as np
import pytest
from diffs.analyses.small import changed, decoder, nudged

from difflens.diffs.analyses import analyse
from difflens.diffs.evidence.records import Evidence, Side
from difflens.diffs.story import diff


def impact(left, right, evidence=None, **options):
    return analyse(
        "performance_impact_estimate", diff(left, right, **options), evidence or Evidence()
    )


def test_half_precision_halves_time_and_memory_where_memory_bounds():
    model = decoder()
    half = {name: value.astype(np.float16) for name, value in model.items()}

    fields = impact(model, half).fields

    assert (fields["latency_change"], fields["memory_change"]) == (-0.5, -0.5)


def test_the_isotropic_output_error_is_that_of_random_inputs():
    random = np.random.default_rng(0)
    weight = random.normal(size=(256, 256))
    other = weight + random.normal(0, 0.01, weight.shape)
    inputs = random.normal(size=(256, 4000))

    told = impact({"a.weight": weight}, {"a.weight": other}).fields["output_error"]

    outputs = weight @ inputs
    found = np.linalg.norm(other @ inputs - outputs) / np.linalg.norm(outputs)
    assert told["kind"] == "isotropic"
    assert told["max"] == pytest.approx(found, rel=0.01)
    assert told["worst"] == "a.weight"


def test_a_model_against_itself_changes_nothing():
    fields = impact(decoder(), decoder()).fields

    assert fields["latency_change"] == fields["memory_change"] == 0
    assert fields["output_error"]["max"] == 0


def test_quality_is_never_told_from_weights():
    model = decoder()

    envelope = impact(model, changed(model, nudged, "mlp"))

    assert envelope.fields["quality_change"] is None
    (missing,) = (each for each in envelope.missing if each.field == "quality_change")
    assert missing.needs.startswith("--eval-left")


def test_quality_is_the_difference_of_the_metrics_handed_in():
    evidence = Evidence(left=Side(metrics={"loss": 2.0}), right=Side(metrics={"loss": 1.5}))

    told = impact(decoder(), decoder(), evidence).fields["quality_change"]["loss"]

    assert (told["change"], told["direction"]) == (-0.5, "lower")


def test_fewer_layers_are_not_a_fixed_part_of_the_time():
    fields = impact(decoder(4), decoder(2)).fields

    sizes = analyse("inference_speed_estimate", diff(decoder(4), decoder(2))).fields["bytes"]
    assert fields["latency_change"] == pytest.approx(sizes["right"] / sizes["left"] - 1)


def test_headers_alone_tell_sizes_and_no_output_error():
    fields = impact(decoder(4), decoder(2), shape_only=True).fields

    assert fields["memory_change"] < 0
    assert fields["output_error"] is None
