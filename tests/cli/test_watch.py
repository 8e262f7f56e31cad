"""`difflens watch` in a real terminal, on a run that another process writes."""

import os
import signal
import subprocess
import sys

import numpy as np
import pytest
from cli.terminal import Terminal

from difflens.training.history.writer import RunWriter
from difflens.training.records.runs import Layer, RunInfo

INFO = RunInfo("one", layers=(Layer("first.weight", (2, 2)), Layer("second.weight", (2,))))
BLOCK = np.full((7, 2), 0.5, np.float32)


def feed(writer: RunWriter, steps: range) -> None:
    for step in steps:
        writer.append(step, {"loss": 1.0 / (step + 1)}, BLOCK)


@pytest.fixture
def terminal():
    opened: list[Terminal] = []

    def start(*arguments: str) -> Terminal:
        opened.append(Terminal("watch", *arguments, errors=True))
        return opened[-1]

    yield start
    for each in opened:
        each.close()


def test_it_follows_the_run_and_ends_with_it(tmp_path, terminal):
    with RunWriter(tmp_path / "run", INFO) as writer:
        feed(writer, range(5))
        screen = terminal(str(tmp_path / "run"), "--interval", "0.1")
        assert "step 4" in screen.until("step 4")
        feed(writer, range(5, 40))
        assert "step 39" in screen.until("step 39")
        assert "first.weight" in screen.seen
    assert "ended" in screen.until("ended")
    screen.process.wait(timeout=30)

    assert screen.process.returncode == 0
    assert "\x1b[?1049l" in screen.until("\x1b[?1049l")  # the screen from before is back


def test_interrupting_it_leaves_quietly_and_the_run_goes_on(tmp_path, terminal):
    with RunWriter(tmp_path / "run", INFO) as writer:
        feed(writer, range(5))
        screen = terminal(str(tmp_path / "run"), "--interval", "0.1")
        screen.until("step 4")
        os.kill(screen.process.pid, signal.SIGINT)
        screen.process.wait(timeout=30)
        feed(writer, range(5, 6))

    assert screen.process.returncode == 0
    assert "Traceback" not in screen.until("never")


def test_without_a_terminal_it_looks_once(tmp_path):
    with RunWriter(tmp_path / "run", INFO) as writer:
        feed(writer, range(30))
        done = subprocess.run(
            [sys.executable, "-m", "difflens", "watch", str(tmp_path / "run")],
            capture_output=True, text=True, timeout=60, check=False,
        )  # fmt: skip

    assert done.returncode == 0
    assert "step 29" in done.stdout
    assert "second.weight" in done.stdout


def look(path: object) -> str:
    """Look once, and give what was shown."""
    done = subprocess.run(
        [sys.executable, "-m", "difflens", "watch", "--once", str(path)],
        capture_output=True, text=True, timeout=60, check=True,
    )  # fmt: skip
    return done.stdout


def test_a_run_that_was_killed_is_not_called_running(tmp_path):
    with RunWriter(tmp_path / "run", INFO) as writer:
        feed(writer, range(5))
        alive = look(tmp_path / "run")
        torn = (tmp_path / "run" / "frames-000.dlr").read_bytes()
    (tmp_path / "killed").mkdir()
    (tmp_path / "killed" / "frames-000.dlr").write_bytes(torn)

    assert " · running · " in alive
    assert " · stopped without end · " in look(tmp_path / "killed")


def test_a_log_of_another_program_is_not_called_running(tmp_path):
    log = tmp_path / "log.csv"
    log.write_text("step,loss\n" + "".join(f"{step},1.0\n" for step in range(30)))

    assert " · a log · " in look(log)


def test_the_loss_of_a_long_run_is_the_last_one_and_the_lowest_the_lowest(tmp_path):
    """Points of a long run are means: neither of both is one of them."""
    info = RunInfo("long", layers=(), scalars=("loss",))
    losses = np.tile([1.0, 9.0], 10_000)
    losses[7], losses[-1] = 0.25, 5.0
    with RunWriter(tmp_path / "run", info) as writer:
        for step, loss in enumerate(losses):
            writer.append(step, {"loss": loss}, np.empty((7, 0), np.float32))

    assert "loss 5, lowest 0.25" in look(tmp_path / "run")


@pytest.mark.parametrize("kind", ["missing", "empty folder", "text"])
def test_what_is_no_run_is_refused_in_one_line(tmp_path, kind):
    path = tmp_path / "thing"
    if kind == "empty folder":
        path.mkdir()
    elif kind == "text":
        path.write_bytes(b"\x00\x01 no run")

    done = subprocess.run(
        [sys.executable, "-m", "difflens", "watch", str(path)],
        capture_output=True, text=True, timeout=60, check=False,
    )  # fmt: skip

    assert done.returncode == 2
    assert done.stderr.startswith("difflens: error: ")
    assert "Traceback" not in done.stderr
