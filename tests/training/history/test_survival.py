"""What was acknowledged stays, whatever happens to the writer; a long run takes no more memory."""

from pathlib import Path

import pytest
from forking import hammered

HAMMER = Path(__file__).with_name("hammer.py")
few_and_many = pytest.mark.parametrize(
    "rounds", [pytest.param(50, id="ci"), pytest.param(1000, id="full", marks=pytest.mark.slow)]
)


@few_and_many
def test_no_acknowledged_frame_is_lost_to_kill_9(tmp_path, rounds):
    """R01, L1: no frame lost, no gap in the numbers, none torn, every reopening quick."""
    found = hammered(HAMMER, "kills", tmp_path, rounds)

    assert (found["lost"], found["gaps"], found["wrong"]) == (0, 0, [])
    assert found["acknowledged"] > rounds // 5  # on a busy machine many die before they write
    assert found["slowest_s"] < 2


@pytest.mark.parametrize("ranks", [0, 1], ids=["runs", "ranks"])
@pytest.mark.parametrize(
    ("number", "each"),
    [pytest.param(16, 100, id="ci"), pytest.param(16, 2000, id="full", marks=pytest.mark.slow)],
)
def test_processes_write_at_once_and_readers_follow(tmp_path, number, each, ranks):
    """R04, L9: each rank has its own file, so nobody waits for anybody."""
    found = hammered(HAMMER, "writers", tmp_path, number, each, ranks)

    assert found["troubles"] == []
    assert found["followed"] == [f"{each} 0"] * 4
    assert found["right"]


@pytest.mark.skipif(not Path("/proc/self/statm").exists(), reason="no /proc here")
@pytest.mark.parametrize(
    ("frames", "memory"),
    [
        pytest.param(10_000, 4 << 20, id="ci"),
        pytest.param(864_000, 256 << 20, id="a-day", marks=pytest.mark.slow),
    ],
)
def test_a_long_run_takes_no_more_memory_than_a_short_one(tmp_path, frames, memory):
    """L7: 24 hours at ten frames a second, written, followed and gathered."""
    found = hammered(HAMMER, "soak", tmp_path, frames, memory)

    assert (found["frames"], found["dropped"]) == (frames, 0)
    assert found["highest"] == frames - 1
    assert found["growth_bytes"] <= 20 << 20
    assert found["opened"] == 0
    assert found["p99_us"] <= max(5 * found["p50_us"], 1000)
