import json as library
from pathlib import Path
from typing import Any

import jsonschema
import pytest
from render.reports import EVERY, every_kind, hostile, nonfinite

from difflens.core.errors import DifflensError
from difflens.core.records import View
from difflens.render.diffs.full_json import full_json, parse, schema

PUBLISHED = Path(__file__).parents[3] / "docs" / "full-report.schema.json"
FINITE = {name: made for name, made in EVERY.items() if name != "nonfinite"}


@pytest.mark.parametrize("made", FINITE.values(), ids=FINITE)
def test_a_report_comes_back_as_it_was(made: Any) -> None:
    report = made()

    assert report == parse(full_json(report, View()))


def test_numbers_that_are_not_finite_come_back_as_unknown() -> None:
    report = parse(full_json(nonfinite(), View()))

    figures, right = report.tensors[0].figures, report.tensors[0].right_stats
    assert figures is not None
    assert right is not None
    assert (figures.relative_l2, figures.cosine, right.mean) == (None, None, None)
    assert report.totals.relative_l2 is None
    assert report.analyses[0].policy == {"threshold": "Infinity", "floor": "-Infinity"}
    assert report.analyses[0].findings[0].evidence == {"good": 1.0, "bad": None}


@pytest.mark.parametrize("made", EVERY.values(), ids=EVERY)
def test_rendering_what_was_read_changes_nothing(made: Any) -> None:
    text = full_json(made(), View())

    assert text == full_json(parse(text), View())


@pytest.mark.parametrize("made", EVERY.values(), ids=EVERY)
def test_every_report_obeys_the_published_schema(made: Any) -> None:
    published = library.loads(PUBLISHED.read_text())

    jsonschema.Draft202012Validator(published).validate(library.loads(full_json(made(), View())))


def test_the_schema_refuses_what_is_no_report() -> None:
    broken = library.loads(full_json(every_kind(), View())) | {"verdict": "fine"}

    with pytest.raises(jsonschema.ValidationError):
        jsonschema.Draft202012Validator(schema()).validate(broken)


def test_the_published_schema_is_current() -> None:
    current = library.dumps(schema(), indent=2) + "\n"

    assert current == PUBLISHED.read_text(), (
        "write it again: PYTHONPATH=src python -c 'from json import dumps; "
        "from difflens.render.diffs.full_json import schema; print(dumps(schema(), indent=2))' "
        "> docs/full-report.schema.json"
    )


def test_the_text_is_printable_ascii_and_starts_with_its_version() -> None:
    text = full_json(hostile(), View())

    assert text.isascii()
    assert text.replace("\n", "").isprintable()
    assert text.startswith('{\n"schema_version": 1,\n')


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("", "not a full-json report"),
        ("[]", "not a full-json report"),
        ('{"schema_version": 1}', "left"),
        ('{"schema_version": 99}', "schema_version 99, this difflens reads 1"),
        ("[" * 100_000, "not a full-json report"),
    ],
)
def test_what_is_no_report_is_refused_in_one_line(text: str, reason: str) -> None:
    with pytest.raises(DifflensError, match=reason):
        parse(text)
