"""A tiny bench measures every row; nothing is said about its times."""

from __future__ import annotations

import json
import os
import signal
import statistics
import subprocess
import sys
import time
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
ROWS = {
    *("help", "help-imports", "diff-imports", "memory", "memory-large", "shape-only"),
    *(f"{dtype}-{peer}" for dtype in ("f32", "bf16")
      for peer in ("changed", "identical", "pread", "numpy")),
    *(f"{what}-speed" for what in ("f64", "f16", "f8_e4m3", "mixed")),
    *("many", "many-memory", "many-json"),
    *("pytorch-f32", "pytorch-bf16", "gguf-f16", "gguf-q4_k"),
    *("spectra", "analyses-gpt2", "analyses-llama"),
    *(f"summary-{what}" for what in ("cast", "rounded", "scaled", "pruned", "one", "biases")),
    *(f"summary-{what}" for what in ("tuned", "noise", "lora", "pruned-bf16", "tuned-bf16")),
    *("analyses-gpt2-memory", "analyses-llama-memory"),
    *(f"store-{what}" for what in ("list", "show", "compare", "version-diff", "report")),
    "run-record", "run-analysed", "run-memory",
    *(f"remote-{what}" for what in ("raw", "link", "cpu", "latency", "memory", "memory-files")),
    *(f"remote-{what}" for what in ("tls", "bytes", "bytes-analyses", "shapes", "shapes-bytes")),
    "remote-shapes-cpu", "ray-speed", "ray-memory", "git-diff", "git-diff-lfs",
    *(f"fingerprint-{what}" for what in ("made", "diff", "find")), "sketch-error",
}  # fmt: skip


def bench(*arguments: str, code: int = 0) -> subprocess.CompletedProcess[str]:
    done = subprocess.run(
        [sys.executable, "-m", "bench", "--tiny", *arguments],
        cwd=ROOT, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == code, done.stderr
    return done


def left_behind() -> set[Path]:
    return {path for path in (ROOT / ".bench").glob("run-*") if str(os.getpid()) not in path.name}


@pytest.fixture(scope="module")
def results(tmp_path_factory):
    path = tmp_path_factory.mktemp("bench") / "results.json"
    done = bench("--json", str(path))
    return json.loads(path.read_text()), done.stdout


def test_every_row_is_measured(results):
    found, table = results
    missing = tuple(line.split(":")[0] for line in found["missing"])
    measured = {row["name"] for row in found["rows"]}
    assert measured == {
        row
        for row in ROWS
        if not any(row == name or row.startswith(f"{name}-") for name in missing)
    }
    assert all(row["name"] in table for row in found["rows"])


def test_numbers_are_positive(results):
    for row in results[0]["rows"]:
        assert row["figure"] > 0 or row["unit"] in ("modules", "files")
        assert row["met"] is (None if row["bar"] is None else row["figure"] <= row["bar"])
        if row["unit"] == "x":
            assert row["figure"] == pytest.approx(row["ours_seconds"] / row["peer_seconds"])
            middle = statistics.median if row["name"].startswith("remote-") else min
            assert middle(row["ours_runs"]) == row["ours_seconds"]
            assert middle(row["peer_runs"]) == row["peer_seconds"]


def test_it_says_where_it_ran(results):
    assert all(results[0][key] for key in ("date", "cpu", "cores", "kernel", "python", "system"))


def test_a_missed_bar_is_loud_and_fails_only_when_strict(tmp_path):
    """Starting Python takes longer than cmp on a mebibyte, whatever the machine."""
    arguments = ("--only", "f32-changed", "--json", str(tmp_path / "results.json"))
    assert "MISSED: f32-changed" in bench(*arguments).stdout
    assert "MISSED: f32-changed" in bench(*arguments, "--strict", code=1).stdout


def test_markdown_is_a_table(tmp_path):
    out = bench("--markdown", "--only", "*imports", "--json", str(tmp_path / "r.json")).stdout
    assert out.startswith("| what |")
    assert "Measured by `make bench`" in out


def test_an_unknown_name_is_answered_with_the_known_ones():
    assert "f32-changed" in bench("--only", "nonsense", code=2).stderr


def test_the_plain_script_and_difflens_compute_the_same_figures(tmp_path):
    subprocess.run(
        [sys.executable, "-m", "bench.files", "BF16", str(tmp_path), str(1 << 16)],
        cwd=ROOT, check=True,
    )  # fmt: skip
    sides = [str(tmp_path / "left.safetensors"), str(tmp_path / "right.safetensors")]
    script = [sys.executable, str(ROOT / "bench" / "plain_numpy.py"), *sides]
    plain = {}
    for line in subprocess.run(script, capture_output=True, check=True).stdout.splitlines():
        plain.update(json.loads(line))
    command = [sys.executable, "-m", "difflens", *sides, "-o", "full-json", "--exit-zero"]
    ours = json.loads(subprocess.run(command, capture_output=True, check=True).stdout)
    assert len(ours["tensors"]) == len(plain) == 16
    for row in ours["tensors"]:
        theirs = plain[row["name"]]
        pair, figures = theirs["pair"], row["figures"]
        assert pair["bit_equal"] == pair["value_equal"] == figures["bit_equal_count"] == 0
        assert pair["max_abs"] == figures["max_abs"]
        assert [pair["max_at"]] == figures["max_abs_index"]
        assert pair["sign_flips"] == figures["sign_flips"]
        assert pair["square_sum"] == pytest.approx(figures["l2"] ** 2, rel=1e-10)
        for side in ("left", "right"):
            plain_side, our_side = theirs[side], row[f"{side}_stats"]
            for figure in ("min", "max", "mean", "std", "zeros", "nan"):
                assert plain_side[figure] == pytest.approx(our_side[figure], rel=1e-10)
            assert plain_side["kurtosis"] + 3 == pytest.approx(our_side["kurtosis"], rel=1e-9)


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_an_interrupted_bench_leaves_no_files(number):
    before = left_behind()
    child = subprocess.Popen(
        [sys.executable, "-m", "bench", "--quick", "--only", "f32-numpy"],
        cwd=ROOT, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
    )  # fmt: skip
    while not any((ROOT / ".bench").glob(f"run-{child.pid}-*/F32-*/left.safetensors")):
        assert child.poll() is None
        time.sleep(0.01)
    child.send_signal(number)
    assert child.wait(60) == 130
    assert left_behind() <= before
