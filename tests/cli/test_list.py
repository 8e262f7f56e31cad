"""`difflens list`: what this installation can do."""

import pytest
from cli.command import assert_refused

KINDS = {
    "formats": "safetensors",
    "analyses": "change-summary",
    "renderers": "full-json",
    "diagnoses": "vanishing",
    "run-formats": "trainer-state",
    "exports": "parquet",
    "sinks": "prometheus",
}


@pytest.mark.parametrize("kind", KINDS)
def test_each_kind_lists_its_own_with_a_sentence(difflens, kind):
    outcome = difflens("list", kind)

    assert (outcome.code, outcome.err) == (0, "")
    names = [line.split()[0] for line in outcome.lines]
    assert KINDS[kind] in names
    assert names == sorted(names)
    assert all(len(line.split()) > 3 for line in outcome.lines)


def test_without_a_kind_all_are_listed(difflens):
    outcome = difflens("list")

    assert [line[:-1] for line in outcome.lines if not line.startswith(" ")] == list(KINDS)
    for kind in KINDS:
        assert all(f"  {line}" in outcome.lines for line in difflens("list", kind).lines)


def test_every_renderer_listed_can_be_asked_for(difflens, tmp_path):
    from models.small import arrays, write

    write(tmp_path / "m.safetensors", arrays(w=[1]))
    for line in difflens("list", "renderers").lines:
        name = line.split()[0]
        assert difflens("m.safetensors", "m.safetensors", "-o", name).code == 0


def test_another_kind_is_refused_with_the_known_ones(difflens):
    assert_refused(difflens("list", "nope"), *KINDS)
