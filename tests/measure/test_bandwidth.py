import pytest

from difflens.measure import bandwidth


def test_both_figures_are_measured_and_plausible():
    found = bandwidth.hardware(1 << 24)

    assert set(found) == {"bandwidth_bytes", "peak_flops"}
    assert 1e8 < found["bandwidth_bytes"] < 1e13
    assert 1e8 < found["peak_flops"] < 1e15


def test_the_best_round_counts_and_the_first_warms_up(monkeypatch):
    times = iter([0.0, 3.0, 0.0, 2.0, 0.0, 4.0, 0.0, 5.0, 0.0, 6.0])
    monkeypatch.setattr(bandwidth, "perf_counter", lambda: next(times))
    rounds = []

    best = bandwidth._best(lambda: rounds.append(1))

    assert best == 2.0
    assert len(rounds) == 6


def test_bytes_are_those_that_were_read(monkeypatch):
    monkeypatch.setattr(bandwidth, "_best", lambda work: 0.5 if sum(work()) else 0.0)

    assert bandwidth.read_bandwidth(1 << 20, threads=2) == pytest.approx(2 << 20)
