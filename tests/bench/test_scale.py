"""The plan for size: the formula says what a simulation of every request says, and so the page."""

from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bench.scale import LINKS, MEASURED, NODES, TB, Costs, costs_table, seconds, simulate, table

PAGE = Path(__file__).parents[2] / "docs" / "scale.md"


@pytest.mark.parametrize("link", LINKS)
@pytest.mark.parametrize("nodes", [1, 8, 64])
def test_the_formula_says_what_the_simulation_says(nodes, link):
    assert seconds(TB, nodes, link) == pytest.approx(simulate(TB, nodes, link), rel=0.15)


@pytest.mark.slow
@pytest.mark.parametrize("nodes", NODES)
def test_so_it_does_for_ten_terabytes(nodes):
    for link in LINKS:
        told = simulate(10 * TB, nodes, link)
        assert seconds(10 * TB, nodes, link) == pytest.approx(told, rel=0.1)


@given(
    latency=st.floats(0.001, 0.2),
    connection=st.floats(20e6, 500e6),
    transport=st.floats(0.2e-9, 2e-9),
    cores=st.integers(2, 16),
    nodes=st.integers(1, 4),
    link=st.sampled_from(LINKS),
)
@settings(max_examples=10)
def test_other_constants_change_both_alike(*, latency, connection, transport, cores, nodes, link):
    costs = Costs(latency=latency, connection=connection, transport=transport, cores=cores)

    told = simulate(TB // 50, nodes, link, costs)

    assert seconds(TB // 50, nodes, link, costs) == pytest.approx(told, rel=0.3)


def test_more_nodes_or_a_faster_link_are_never_slower():
    for size in (TB, 10 * TB):
        times = [[seconds(size, nodes, link) for nodes in NODES] for link in LINKS]
        assert all(row == sorted(row, reverse=True) for row in times)
        assert all(fast <= slow for slow, fast in zip(*times, strict=True))
    assert MEASURED.at_once == 16


def test_the_page_has_what_the_formula_says():
    text = PAGE.read_text("utf-8")

    assert table() in text
    assert costs_table() in text
