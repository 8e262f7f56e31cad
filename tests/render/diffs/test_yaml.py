import json as json_library
from typing import Any

import pytest
import yaml as library
from hypothesis import given
from hypothesis import strategies as st
from render.reports import EVERY, changed, every_kind, report, row

from difflens.core.records import View
from difflens.render.diffs.json import json
from difflens.render.diffs.yaml import yaml


@pytest.mark.parametrize("made", EVERY.values(), ids=EVERY)
def test_a_safe_loader_reads_the_data_of_json(made: Any) -> None:
    shown = made()

    assert json_library.loads(json(shown, View())) == library.safe_load(yaml(shown, View()))


@given(st.text(), st.text(alphabet=st.characters()), st.floats(allow_nan=False))
def test_any_name_and_any_number_come_back(name: str, reason: str, number: float) -> None:
    rows = [changed(name, relative_l2=number), row(name, "uncompared", skipped=reason)]
    shown = report(*rows)

    assert json_library.loads(json(shown, View())) == library.safe_load(yaml(shown, View()))


def test_lists_are_plain_and_keys_keep_their_order() -> None:
    text = yaml(every_kind(), View())

    assert "&id" not in text
    assert text.startswith("- TensorStatsChanged:\n  - layers.2.weight\n  - mean: 0.0123\n    std:")
