"""The monitor as a whole: what a run holds, and that training never suffers from it."""

import json
import os
import shutil
import signal
import subprocess
import sys
import time
import warnings
from pathlib import Path

import numpy as np
import pytest
from training.hooks.loops import mlp, read, trained, with_layers

from difflens.core.errors import DifflensError, InvalidConfig, RunError
from difflens.training.history import read_history
from difflens.training.hooks.torch import pace

torch = pytest.importorskip("torch")

from difflens.training.story import monitor  # noqa: E402

LOOP = """
import os, sys, torch
from torch import nn
from difflens.training.story import monitor
torch.set_num_threads(1)
model = nn.Sequential(nn.Linear(8, 16), nn.ReLU(), nn.Linear(16, 3))
optimizer = torch.optim.SGD(model.parameters(), 0.1)
x, y = torch.randn(32, 8), torch.randint(0, 3, (32,))
with monitor(model, optimizer, sys.argv[1], every=1, diagnose_every=None) as watch:
    for step in range(int(sys.argv[2])):
        loss = nn.functional.cross_entropy(model(x), y)
        loss.backward(); optimizer.step(); optimizer.zero_grad()
        watch.step(loss)
        if step % 7 == 0 and watch.flush():
            print(step, flush=True)
        if step == 40 and len(sys.argv) > 3:
            exec(sys.argv[3])
"""


def started(folder, steps, then="pass"):
    environment = {**os.environ, "OMP_NUM_THREADS": "1", "PYTHONPATH": os.pathsep.join(sys.path)}
    return subprocess.Popen(
        [sys.executable, "-c", LOOP, str(folder), str(steps), then],
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=environment,
    )  # fmt: skip


def steps_of(folder):
    return [frame.step for frame in read(folder)[0]]


def test_a_run_says_how_it_was_made(tmp_path):
    trained(mlp(), tmp_path / "one", steps=3, optimizer="AdamW")

    history = read_history(tmp_path / "one")
    info = history.info
    assert info.name == "one"
    assert info.framework == f"torch {torch.__version__}"
    assert info.device == "cpu"
    assert info.every == 1
    assert info.optimizer["name"] == "AdamW"
    assert info.optimizer["lr"] == 0.05
    assert info.created.endswith("Z")
    assert [note.what for note in history.notes if note.what != "fact"] == ["begun", "ended"]
    assert history.course.scalar("lr").tolist() == [0.05] * 3


def test_an_existing_run_is_an_error_that_says_what_to_do(tmp_path):
    trained(mlp(), tmp_path / "run", steps=1)
    model = mlp()

    with pytest.raises(RunError) as refused:
        trained(model, tmp_path / "run", steps=1)
    assert "there is a run already" in str(refused.value)
    assert "resume=True" in refused.value.hint
    assert not model[0]._forward_hooks


def test_a_resumed_run_goes_on_with_sequence_and_steps(tmp_path):
    model = mlp()
    optimizer = torch.optim.SGD(model.parameters(), 0.1)
    for resume in (False, True):
        with monitor(model, optimizer, tmp_path / "run", every=1, resume=resume) as watch:
            for _ in range(5):
                model(torch.randn(4, 20)).sum().backward()
                optimizer.step()
                watch.step()

    frames, _ = read(tmp_path / "run")
    assert [frame.sequence for frame in frames] == list(range(10))
    assert [frame.step for frame in frames] == list(range(10))


def test_overwriting_begins_anew(tmp_path):
    trained(mlp(), tmp_path / "run", steps=5)
    trained(mlp(), tmp_path / "run", steps=2, overwrite=True)

    assert steps_of(tmp_path / "run") == [0, 1]


@pytest.mark.parametrize(
    "wrong",
    [
        {"every": 0}, {"every": "often"}, {"every": True}, {"budget": 0.0}, {"budget": 1.5},
        {"ranks": "some"}, {"activations": -1}, {"updates": 0}, {"diagnose_every": 0},
        {"stop_on": "always"},
    ],
)  # fmt: skip
def test_a_setting_without_meaning_is_refused_before_anything_is_made(tmp_path, wrong):
    with pytest.raises(InvalidConfig, match=next(iter(wrong))):
        monitor(mlp(), None, tmp_path / "run", **wrong)
    assert not (tmp_path / "run").exists()


def test_what_is_no_model_is_refused(tmp_path):
    with pytest.raises(DifflensError, match="Module"):
        monitor([1, 2], None, tmp_path / "run")


def test_scalars_of_any_kind_are_kept_capped_or_counted(tmp_path):
    class Stubborn:
        def __float__(self):
            raise ValueError("no")

    model = mlp()
    given = [
        {"good": 1.5, "nan": float("nan"), "inf": float("inf")},
        {"good": np.float32(2.5), "array": np.array(3.5), "tensor": torch.tensor(4.5)},
        {"good": 5, "stubborn": Stubborn(), "text": "x" * 1_000_000, "vector": torch.ones(3)},
        {f"name {i}": float(i) for i in range(100_000)},
        {"good": 7.0},
    ]
    with monitor(model, None, tmp_path / "run", every=1, diagnose_every=None) as watch:
        for scalars in given:
            watch.step(0.5, **scalars)

    frames, info = read(tmp_path / "run")
    assert len(frames) == 5
    good = info.scalars.index("good")
    assert [frame.scalars[good] for frame in (frames[0], *frames[-1:])] == [1.5, 7.0]
    assert np.isnan(frames[0].scalars[info.scalars.index("nan")])
    assert frames[0].scalars[info.scalars.index("inf")] == np.inf
    assert frames[1].scalars[info.scalars.index("tensor")] == 4.5
    assert len(info.scalars) <= 512
    notes = [note for note in read_history(tmp_path / "run").notes if note.what == "dropped"]
    assert notes
    assert notes[-1].data["scalars"] >= 99_000


def test_step_numbers_that_repeat_or_run_backwards_keep_their_order(tmp_path):
    with monitor(mlp(), None, tmp_path / "run", every=1, diagnose_every=None) as watch:
        for number in (5, 5, 3, None, 100):
            watch.step(1.0, step=number)

    frames, _ = read(tmp_path / "run")
    assert [frame.step for frame in frames] == [5, 5, 3, 4, 100]
    assert [frame.sequence for frame in frames] == [0, 1, 2, 3, 4]


def test_a_folder_that_is_removed_is_made_again_and_training_goes_on(tmp_path, monkeypatch):
    from difflens.training.recorder import run_file

    monkeypatch.setattr(run_file, "_LOOK", 0.0)

    def remove(step):
        if step == 5:
            time.sleep(0.2)
            shutil.rmtree(tmp_path / "run")

    trained(mlp(), tmp_path / "run", steps=12, between=remove, compute_reference=False)

    frames, info = read(tmp_path / "run")
    assert [frame.step for frame in frames][-1] == 11
    assert frames[-1].sequence == 11
    assert info.layers[0].depth == 0


def test_a_full_disk_drops_and_counts_and_recording_resumes(tmp_path, monkeypatch):
    real, full = os.pwritev, {"now": False}

    def pwritev(*arguments):
        if full["now"]:
            raise OSError(28, "No space left on device")
        return real(*arguments)

    monkeypatch.setattr(os, "pwritev", pwritev)
    model = mlp()
    with monitor(model, None, tmp_path / "run", every=1, diagnose_every=None) as watch:
        for step in range(10):
            watch.step(float(step))
        assert watch.flush()
        full["now"] = True
        with pytest.warns(RuntimeWarning, match="no space left") as told:  # noqa: PT031  any moment
            for step in range(10, 20):
                watch.step(float(step))
            assert watch.flush()
        full["now"] = False
        for step in range(20, 30):
            watch.step(float(step))
        assert watch.flush()
        assert watch.dropped == 10

    assert len(told) == 1
    assert steps_of(tmp_path / "run") == [*range(10), *range(20, 30)]
    history = read_history(tmp_path / "run")
    assert history.dropped == 10
    assert [note.data["count"] for note in history.notes if note.what == "dropped"][-1] == 10


def test_a_loop_faster_than_its_disk_drops_and_counts(tmp_path, monkeypatch):
    from difflens.training.recorder import recorder

    monkeypatch.setattr(recorder, "MOST_WAITING", 64)
    monkeypatch.setattr(recorder, "_LOOK", 30.0)
    real = os.pwritev

    def slow(*arguments):
        time.sleep(0.002)
        return real(*arguments)

    monkeypatch.setattr(os, "pwritev", slow)
    begun = time.perf_counter()
    with monitor(mlp(), None, tmp_path / "run", every=1, diagnose_every=None) as watch:
        for step in range(1000):
            watch.step(float(step))
        took = time.perf_counter() - begun

    assert took < 2.0
    kept = len(read(tmp_path / "run")[0])
    assert kept + watch.dropped == 1000


def test_a_fork_of_the_loop_records_nothing(tmp_path):
    """Workers of a data loader are forks, hooks and all."""
    fork = (
        "child = os.fork()\n"
        "if not child:\n"
        "    watch.step(9.0); watch.close(); os._exit(0)\n"
        "assert os.waitpid(child, 0)[1] == 0"
    )
    process = started(tmp_path / "run", 60, fork)
    _, errors = process.communicate(timeout=60)

    assert process.returncode == 0, errors
    frames, info = read(tmp_path / "run")
    assert [frame.step for frame in frames] == list(range(60))
    assert 9.0 not in [frame.scalars[info.scalars.index("loss")] for frame in frames]


@pytest.mark.parametrize(
    ("then", "code"),
    [
        ("sys.exit(3)", 3),
        ("os.kill(os.getpid(), 15)", -signal.SIGTERM),
        ("os.kill(os.getpid(), 2)", -signal.SIGINT),
        ("raise ValueError('theirs')", 1),
    ],
)
def test_what_waits_is_kept_when_the_process_is_told_to_go(tmp_path, then, code):
    process = started(tmp_path / "run", 1000, then)
    process.communicate(timeout=60)

    assert process.returncode == code
    assert steps_of(tmp_path / "run") == list(range(41))


def killed(folder, seed):
    """Kill a loop at a random moment; give what it had acknowledged, and what is there."""
    process = started(folder, 100_000)
    acknowledged = int(process.stdout.readline())
    time.sleep(float(np.random.default_rng(seed).uniform(0, 0.3)))
    process.kill()
    said = process.communicate(timeout=30)[0].split()
    return int(said[-1]) if said else acknowledged, steps_of(folder)


@pytest.mark.parametrize("seed", range(3))
def test_a_killed_loop_loses_only_what_was_not_acknowledged(tmp_path, seed):
    acknowledged, steps = killed(tmp_path / "run", seed)

    assert steps == list(range(len(steps)))
    assert len(steps) > acknowledged


@pytest.mark.slow
def test_killed_two_hundred_times_it_never_loses_an_acknowledged_frame(tmp_path):
    for seed in range(200):
        acknowledged, steps = killed(tmp_path / str(seed), seed)
        assert steps == list(range(len(steps)))
        assert len(steps) > acknowledged


def test_a_frame_is_on_disk_within_two_seconds_without_a_flush(tmp_path):
    with monitor(mlp(), None, tmp_path / "run", every=1, diagnose_every=None) as watch:
        watch.step(1.0)
        until = time.monotonic() + 2.0
        while time.monotonic() < until and not steps_of(tmp_path / "run"):
            time.sleep(0.02)
        assert steps_of(tmp_path / "run") == [0]


def test_a_fast_loop_is_sampled_and_the_run_says_so(tmp_path, monkeypatch):
    monkeypatch.setattr(pace, "FREE", 1e-9)  # no reading is cheap enough for every step
    model = torch.nn.Linear(4, 4)
    optimizer = torch.optim.SGD(model.parameters(), 0.1)
    with monitor(model, optimizer, tmp_path / "run", budget=0.001, diagnose_every=None) as watch:
        for _ in range(600):
            model(torch.randn(2, 4)).sum().backward()
            optimizer.step()
            optimizer.zero_grad()
            watch.step(1.0)

    history = read_history(tmp_path / "run")
    assert history.frames == 600
    assert pace.WATCH <= len(with_layers(read(tmp_path / "run")[0])) < 400
    notes = [note for note in history.notes if note.what == "sampling"]
    assert notes[0].data["every"] > 1
    assert notes[0].data["budget"] == 0.001
    assert history.info.every == "auto"


def test_a_scalar_given_on_a_step_that_is_passed_over_is_kept_at_its_own_step(tmp_path):
    with monitor(mlp(), None, tmp_path / "run", every=4, diagnose_every=None) as watch:
        for step in range(9):
            watch.step(float(step), **({"val_loss": 0.25} if step == 6 else {}))

    frames, info = read(tmp_path / "run")
    assert [frame.step for frame in frames] == list(range(9))
    assert [frame.step for frame in with_layers(frames)] == [0, 4, 8]
    place = info.scalars.index("val_loss")  # frames before it was known have no place for it
    values = {frame.step: frame.scalars[place] for frame in frames if place < len(frame.scalars)}
    assert [step for step, value in values.items() if value == 0.25] == [6]
    assert 7 in values


def test_the_monitor_writes_nothing_but_its_run(tmp_path):
    trained(mlp(), tmp_path / "run", steps=2)

    assert [each.name for each in tmp_path.rglob("*") if each.is_file()] == ["frames-000.dlr"]


@pytest.mark.slow
def test_two_hundred_thousand_steps_take_no_more_memory(tmp_path):
    model = torch.nn.Linear(4, 4)
    optimizer = torch.optim.SGD(model.parameters(), 1e-4)
    x, sizes = torch.randn(2, 4), []
    page = os.sysconf("SC_PAGE_SIZE")
    with monitor(model, optimizer, tmp_path / "run", every=1, diagnose_every=None) as watch:
        for step in range(200_000):
            model(x).square().sum().backward()
            optimizer.step()
            optimizer.zero_grad()
            watch.step(1.0)
            if step % 1000 == 0:
                watch.flush()
                sizes.append(int(Path("/proc/self/statm").read_text().split()[1]) * page)
    grown = max(sizes[20:]) - sizes[20]

    assert grown <= 20 << 20, json.dumps(sizes[::20])
    assert len(read(tmp_path / "run")[0]) + watch.dropped == 200_000


@pytest.mark.parametrize("wrong", ["abc", [1, 2], torch.ones(3)], ids=["text", "list", "vector"])
def test_a_loss_that_is_no_number_is_told_once(tmp_path, wrong):
    with warnings.catch_warnings(record=True) as heard:
        warnings.simplefilter("always")
        with monitor(mlp(), None, tmp_path / "run", every=1, diagnose_every=None) as watch:
            for _ in range(5):
                watch.step(loss=wrong)

    told = [str(each.message) for each in heard if "loss is a" in str(each.message)]
    kind = type(wrong).__name__
    assert told == [
        f"difflens: loss is a {kind}, not one number: it is not recorded; give step() one number"
    ]


def test_a_scalar_that_was_not_measured_at_a_step_is_no_trouble(tmp_path):
    with warnings.catch_warnings(record=True) as heard:
        warnings.simplefilter("always")
        with monitor(mlp(), None, tmp_path / "run", every=1, diagnose_every=None) as watch:
            watch.step(loss=0.5, val_loss=None)

    assert not [each for each in heard if "val_loss" in str(each.message)]
