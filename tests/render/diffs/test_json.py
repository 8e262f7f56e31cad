import json as library
from typing import Any, NoReturn

import pytest
from render.reports import EVERY, HOSTILE, M, every_kind, hostile, identical, nonfinite, report, row

from difflens.core.records import View
from difflens.render.diffs.json import json


def parsed(text: str) -> Any:
    def refuse(name: str) -> NoReturn:
        raise AssertionError(f"bare {name}")

    return library.loads(text, parse_constant=refuse)


def test_every_kind_has_its_variant_in_the_order_of_the_report() -> None:
    array = parsed(json(every_kind(), View()))

    assert [next(iter(change)) for change in array] == [
        "TensorStatsChanged", "TensorStatsChanged", "TensorStatsChanged",
        "TensorDtypeChanged",
        "TensorDtypeChanged", "TensorStatsChanged",
        "TensorDtypeChanged", "TensorStatsChanged",
        "TensorShapeChanged",
        "TensorShapeChanged", "TensorDtypeChanged",
        "TensorAdded", "TensorRemoved",
        "TensorRenamed",
        "TensorRenamed", "TensorStatsChanged",
        "TensorTied", "TensorNotCompared",
        "MetadataChanged", "MetadataChanged",
        "ChangeSummary", "AnomalyDetection",
    ]  # fmt: skip


def test_the_payloads_are_those_of_the_contract() -> None:
    array = parsed(json(every_kind(), View()))
    first = {next(iter(change)): next(iter(change.values())) for change in reversed(array)}
    known = {"shape": [64, 3], "dtype": "F32", "total_params": 192}
    measured = {"mean": 0.0123, "std": 1.0, "min": -3.0, "max": 3.0, **known}

    moved = M | {"max_abs_index": list(M["max_abs_index"])}
    changed = ["layers.2.weight", measured, measured | {"mean": 0.02}, moved]
    assert changed == first["TensorStatsChanged"]
    assert list(M) == list(first["TensorStatsChanged"][3])
    assert first["TensorShapeChanged"] == ["conv.weight", [64, 3], [32, 3]]
    assert first["TensorDtypeChanged"] == ["cast.equal", "F32", "BF16"]
    assert first["TensorAdded"] == ["head.bias", measured]
    unmeasured = dict.fromkeys(("mean", "std", "min", "max"))
    assert first["TensorRemoved"] == ["old.bias", {**unmeasured, **known}]
    assert first["TensorRenamed"] == ["w", "model.w", "prefix model."]
    assert first["TensorTied"] == ["lm_head.weight", "model.embed_tokens.weight"]
    assert first["TensorNotCompared"] == ["packed", "F6_E2M3 is packed in several ways"]
    assert first["MetadataChanged"] == ["step", "100", "200"]
    assert first["ChangeSummary"][0] == "change_summary"
    assert first["ChangeSummary"][1]["fields"]["layers_changed"] == 3


def test_a_changed_row_without_figures_has_every_field_as_null() -> None:
    (change,) = parsed(json(report(row("w")), View()))

    assert change["TensorStatsChanged"][3] == dict.fromkeys(M)


def test_statistics_that_are_not_finite_are_null_and_user_values_are_spelled() -> None:
    changed, added, analysis = parsed(json(nonfinite(), View()))

    _, _, right, figures = changed["TensorStatsChanged"]
    assert (right["mean"], right["max"], figures["relative_l2"]) == (None, None, None)
    assert figures["right_nonfinite"] == 7
    assert added["TensorAdded"][1]["max"] is None
    answer = analysis["QuantizationAnalysis"][1]
    assert answer["fields"] == {"sqnr": None, "nested": {"deep": [None, 1.0]}}
    assert answer["policy"] == {"threshold": "Infinity", "floor": "-Infinity"}


def test_hostile_names_come_back_as_they_were() -> None:
    array = parsed(json(hostile(), View()))

    names = [change["TensorStatsChanged"][0] for change in array if "TensorStatsChanged" in change]
    assert list(HOSTILE) == names


@pytest.mark.parametrize("made", EVERY.values(), ids=EVERY)
def test_the_text_is_printable_ascii_with_one_change_a_line(made: Any) -> None:
    text = json(made(), View())

    assert text.replace("\n", "").isprintable()
    assert text.isascii()
    array = parsed(text)
    assert text == "[]\n" or text.count("\n") == len(array) + 2


def test_no_difference_is_an_empty_array() -> None:
    assert json(identical(), View()) == "[]\n"
