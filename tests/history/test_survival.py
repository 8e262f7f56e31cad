"""What was acknowledged stays, whatever happens to the writer; a long run takes no more memory."""

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

HAMMER = Path(__file__).with_name("hammer.py")
few_and_many = pytest.mark.parametrize(
    "rounds", [pytest.param(50, id="ci"), pytest.param(1000, id="full", marks=pytest.mark.slow)]
)


def hammer(*arguments: object) -> dict[str, Any]:
    command = [sys.executable, HAMMER, *map(str, arguments)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    print(done.stdout)  # noqa: T201  the figures of the slow lane go into the note
    return json.loads(done.stdout)  # type: ignore[no-any-return]


@few_and_many
def test_no_acknowledged_frame_is_lost_to_kill_9(tmp_path, rounds):
    """R01, L1: no frame lost, no gap in the numbers, none torn, every reopening quick."""
    found = hammer("kills", tmp_path, rounds)

    assert (found["lost"], found["gaps"], found["wrong"]) == (0, 0, [])
    assert found["acknowledged"] > rounds
    assert found["slowest_s"] < 2


@pytest.mark.parametrize("ranks", [0, 1], ids=["runs", "ranks"])
@pytest.mark.parametrize(
    ("number", "each"),
    [pytest.param(16, 100, id="ci"), pytest.param(16, 2000, id="full", marks=pytest.mark.slow)],
)
def test_processes_write_at_once_and_readers_follow(tmp_path, number, each, ranks):
    """R04, L9: each rank has its own file, so nobody waits for anybody."""
    found = hammer("writers", tmp_path, number, each, ranks)

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
    found = hammer("soak", tmp_path, frames, memory)

    assert (found["frames"], found["dropped"]) == (frames, 0)
    assert found["highest"] == frames - 1
    assert found["growth_bytes"] <= 20 << 20
    assert found["opened"] == 0
    assert found["p99_us"] <= max(5 * found["p50_us"], 1000)
