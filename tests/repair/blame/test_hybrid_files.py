"""Blame with a command: hybrids as files, a journal that survives a kill, nothing left behind."""

import json
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest
from models.small import tensor, write
from repair.blame.hybrid_models import LOGGED, fails_where_negative, files, fine_tuned, judge

import difflens
from difflens.core.errors import BlameError, OutputError

UP, DOWN = "layers.3.up_proj.weight", "layers.1.down_proj.weight"
NEGATIVE = fails_where_negative(UP)


def damaged(*names, blocks=6):
    """Make a model whose first numbers are positive, and one where those of some are not."""
    good, bad = fine_tuned(blocks)
    for model in (good, bad):
        for value in model.values():
            value.flat[0] = abs(value.flat[0]) + 0.1
    for name in names:
        bad[name] = -bad[name]
    return good, bad


def identity(path: Path) -> tuple[bytes, int, int]:
    found = path.stat()
    return path.read_bytes(), found.st_mtime_ns, found.st_ino


def test_a_command_is_blamed_and_the_repair_passes(tmp_path):
    good, bad = files(tmp_path, *damaged(UP))
    before = identity(good), identity(bad)
    command, patch = judge(tmp_path, LOGGED + NEGATIVE), tmp_path / "repair.patch"

    result = difflens.blame(good, bad, [*command, "{}"], repair=patch)

    assert (result.verdict, result.repair) == ("found", (UP,))
    assert result.proof == difflens.BlameProof(True, True)
    assert (identity(good), identity(bad)) == before
    difflens.apply_patch(bad, patch, tmp_path / "repaired.safetensors")
    assert (
        subprocess.run([*command, tmp_path / "repaired.safetensors"], check=False).returncode == 0
    )
    paths = (tmp_path / "log").read_text().split()
    assert paths[:2] == [str(good), str(bad)]
    assert all(Path(path).name == "bad.safetensors" for path in paths[2:-1])
    assert not any(Path(path).exists() for path in paths[2:-1])


def test_rows_are_put_back_in_files_too(tmp_path):
    good, bad = damaged()
    bad[UP][3] = -9
    paths = files(tmp_path, good, bad)
    command = judge(tmp_path, f"sys.exit(min(model[{UP!r}]) < -8)")

    result = difflens.blame(*paths, command, repair=tmp_path / "p")

    assert result.culprits[0].rows == {UP: "row 3"}
    difflens.apply_patch(paths[1], tmp_path / "p", tmp_path / "out.safetensors")
    source = difflens.open_model(tmp_path / "out.safetensors")
    data = bytearray(1024)
    source.read_into(UP, 0, 1024, memoryview(data))
    source.close()
    mixed = bad[UP].copy()
    mixed[3] = good[UP][3]
    assert bytes(data) == mixed.tobytes()


def folder_of(path: Path, model, shards: int) -> Path:
    """Write a model as shards with an index, and a config."""
    names = sorted(model)
    parts = [names[at::shards] for at in range(shards)]
    weight_map: dict[str, str] = {}
    for number, part in enumerate(parts):
        shard = f"model-0000{number + 1}-of-0000{shards}.safetensors"
        write(path / shard, {name: tensor(model[name]) for name in part})
        weight_map |= dict.fromkeys(part, shard)
    index = {"metadata": {}, "weight_map": weight_map}
    (path / "model.safetensors.index.json").write_text(json.dumps(index))
    (path / "config.json").write_text('{"hidden_size": 16}')
    return path


def test_a_shard_without_changes_is_linked_and_one_with_changes_is_a_copy(tmp_path):
    good, bad = damaged(UP)
    names = sorted(good)
    first = names.index(UP) % 2
    bad |= {name: good[name] for name in names[1 - first :: 2]}  # those of the other shard
    sides = [folder_of(tmp_path / side, model, 2) for side, model in (("g", good), ("b", bad))]
    body = """
import os
folder = sys.argv[1]
names = sorted(os.listdir(folder))
model = {}
for name in names:
    if name.endswith(".safetensors"):
        model |= read(folder + "/" + name)
links = [os.path.islink(folder + "/" + name) for name in names]
open(log, "a").write(json.dumps([folder, names, links]) + "\\n")
"""
    command = judge(tmp_path, body + NEGATIVE)
    text = (tmp_path / "judge.py").read_text().replace("model = read(sys.argv[1])", "")
    (tmp_path / "judge.py").write_text(text)

    result = difflens.blame(*sides, command)

    assert result.repair == (UP,)
    lines = [json.loads(line) for line in (tmp_path / "log").read_text().splitlines()]
    hybrids = [line for line in lines if not line[0].startswith((str(sides[0]), str(sides[1])))]
    assert hybrids
    for _, names, links in hybrids:
        assert names == sorted(path.name for path in sides[1].iterdir())
        assert links.count(False) == 1


def test_settings_that_differ_can_be_to_blame(tmp_path):
    good, bad = damaged()
    sides = [folder_of(tmp_path / side, model, 1) for side, model in (("g", good), ("b", bad))]
    (sides[1] / "config.json").write_text('{"hidden_size": 17}')
    command = ["grep", "-q", "16", "{}/config.json"]

    result = difflens.blame(*sides, command)

    assert (result.verdict, result.repair) == ("found", ("file config.json",))


def test_a_hard_linked_hybrid_is_never_edited(tmp_path):
    good, bad = files(tmp_path, *damaged(UP, DOWN))
    body = """
import os, hashlib
n = len(os.listdir(log + ".d"))
os.link(sys.argv[1], f"{log}.d/{n}")
open(f"{log}.sums", "a").write(hashlib.sha256(open(sys.argv[1], "rb").read()).hexdigest() + "\\n")
"""
    (tmp_path / "log.d").mkdir()
    command = judge(tmp_path, body + fails_where_negative(UP, DOWN).replace("all", "any"))
    before = identity(good)[0], identity(bad)[0]

    result = difflens.blame(good, bad, command)

    import hashlib

    sums = (tmp_path / "log.sums").read_text().split()
    links = sorted((tmp_path / "log.d").iterdir(), key=lambda path: int(path.name))
    assert result.repair == (DOWN, UP)
    assert [hashlib.sha256(path.read_bytes()).hexdigest() for path in links] == sums
    assert (identity(good)[0], identity(bad)[0]) == before


def test_a_hybrid_that_the_command_changed_is_made_anew(tmp_path):
    good, bad = files(tmp_path, *damaged(UP, DOWN))
    body = fails_where_negative(UP, DOWN).replace("all", "any").replace("sys.exit(", "bad = (")
    spoil = (
        "\nif 'hybrids' in sys.argv[1]: open(sys.argv[1], 'r+b').write(bytes(64))\nsys.exit(bad)"
    )

    result = difflens.blame(good, bad, judge(tmp_path, body + spoil))

    assert result.repair == (DOWN, UP)


def test_a_model_of_another_layout_is_written_anew(tmp_path):
    good, bad = damaged(UP)
    bad["extra.weight"] = np.ones((2, 2), "f4")
    paths = files(tmp_path, good, bad)

    result = difflens.blame(*paths, judge(tmp_path, NEGATIVE), repair=tmp_path / "p")

    assert (result.verdict, result.repair) == ("found", (UP,))
    difflens.apply_patch(paths[1], tmp_path / "p", tmp_path / "out.safetensors")


def start(folder: Path, *options: str) -> subprocess.Popen[bytes]:
    arguments: list[str | Path] = [
        "blame",
        folder / "good.safetensors",
        folder / "bad.safetensors",
        *options,
    ]
    command = [sys.executable, "-S", "-E", str(folder / "judge.py")]
    return subprocess.Popen(
        [sys.executable, "-m", "difflens", *arguments, "--", *command],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )


def runs(folder: Path) -> int:
    log = folder / "log"
    return len(log.read_text().splitlines()) if log.exists() else 0


def wait_for(condition, seconds: float = 60) -> None:
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end
        time.sleep(0.02)


def test_a_killed_blame_goes_on_where_it_ended(tmp_path):
    files(tmp_path, *damaged(UP, DOWN))
    # Logged at its end: only runs that were completed count.
    body = fails_where_negative(UP, DOWN).replace("all", "any").replace("sys.exit(", "bad = (")
    judge(tmp_path, f"{body}\ntime.sleep(0.2)\n{LOGGED}sys.exit(bad)")
    journal = tmp_path / "journal"
    acknowledged = 0
    for wanted in (2, 4):
        process = start(tmp_path, "--resume", str(journal))
        wait_for(lambda wanted=wanted: runs(tmp_path) >= wanted)
        process.send_signal(signal.SIGKILL)
        process.communicate()
        lines = journal.read_bytes().splitlines(keepends=True)
        acknowledged = sum(line.endswith(b"\n") for line in lines) - 1
        assert acknowledged >= wanted - 1
        time.sleep(1)  # a command that outlived the kill ends by itself
    killed = runs(tmp_path)
    with journal.open("ab") as file:
        file.write(b'{"hybrid": "to')  # a line that was cut

    process = start(tmp_path, "--resume", str(journal), "-o", "json")
    out, _ = process.communicate()

    result = json.loads(out)
    assert (process.returncode, result["repair"]) == (0, [DOWN, UP])
    assert runs(tmp_path) - killed == result["evaluations"] - acknowledged
    entries = [json.loads(line) for line in journal.read_text().splitlines()[1:]]
    keys = [(each["hybrid"], each["fresh"]) for each in entries]
    assert len(keys) == len(set(keys)) == result["evaluations"]
    assert not (tmp_path / "journal.scratch").exists()


def test_a_journal_of_something_else_is_refused(tmp_path):
    good, bad = files(tmp_path, *damaged(UP))
    command, journal = judge(tmp_path, NEGATIVE), tmp_path / "journal"
    difflens.blame(good, bad, command, resume=journal)

    with pytest.raises(BlameError, match="belongs to another check"):
        difflens.blame(good, bad, [*command, "--all"], resume=journal)
    before = identity(good)
    with pytest.raises(BlameError, match="not a journal"):
        difflens.blame(good, bad, command, resume=good)
    assert identity(good) == before
    with pytest.raises(OutputError):
        difflens.blame(good, bad, command, resume=tmp_path / "no" / "journal")


def test_a_folder_of_somebody_else_is_not_emptied(tmp_path):
    good, bad = files(tmp_path, *damaged(UP))
    (tmp_path / "journal.scratch").mkdir()
    (tmp_path / "journal.scratch" / "thesis").touch()

    with pytest.raises(OutputError, match="hybrids would be written there"):
        difflens.blame(good, bad, judge(tmp_path, NEGATIVE), resume=tmp_path / "journal")
    assert (tmp_path / "journal.scratch" / "thesis").exists()


def test_two_runs_cannot_share_a_journal(tmp_path):
    good, bad = files(tmp_path, *damaged(UP))
    journal = tmp_path / "journal"
    nested = [sys.executable, "-m", "difflens", "blame", str(good), str(bad)]
    arguments = [*nested, "--resume", str(journal), "--", "true"]
    body = f"import subprocess\ndone = subprocess.run({arguments!r}, capture_output=True)\n"
    command = judge(tmp_path, f"{body}open(log, 'wb').write(done.stderr)\n{NEGATIVE}")

    assert difflens.blame(good, bad, command, resume=journal).repair == (UP,)
    assert "another run writes this journal" in (tmp_path / "log").read_text()


def test_an_interrupt_ends_the_command_and_its_children(tmp_path):
    files(tmp_path, *damaged(UP))
    judge(
        tmp_path,
        "import subprocess\nchild = subprocess.Popen(['sleep', '600'])\n"
        "open(log, 'w').write(str(child.pid))\nchild.wait()",
    )
    process = start(tmp_path, "-j", "2")
    wait_for(lambda: (tmp_path / "log").exists() and (tmp_path / "log").read_text())
    child = int((tmp_path / "log").read_text())
    process.send_signal(signal.SIGINT)
    process.communicate()

    assert process.returncode == 130
    wait_for(lambda: not alive(child))


def alive(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().split()[2] != "Z"
    except OSError:
        return False


def test_a_command_that_takes_too_long_has_failed(tmp_path):
    good, bad = files(tmp_path, *damaged(UP))
    command = judge(tmp_path, f"time.sleep(60 * (model[{UP!r}][0] < 0))")

    result = difflens.blame(good, bad, command, timeout=3.0)

    assert result.repair == (UP,)


def test_several_commands_run_at_once_with_the_same_answer(tmp_path):
    good, bad = files(tmp_path, *damaged(UP, DOWN))
    command = judge(tmp_path, fails_where_negative(UP, DOWN).replace("all", "any"))

    one, many = (difflens.blame(good, bad, command, jobs=jobs) for jobs in (1, 3))

    assert one.repair == many.repair == (DOWN, UP)
    assert one.cause == many.cause


def test_numbers_are_found_in_what_is_printed(tmp_path):
    good, bad = files(tmp_path, *damaged(UP))
    printed = f"print('step 7 loss: 3e-1\\nscore =', model[{UP!r}][0], '\\ndone')"
    command = judge(tmp_path, printed)

    last = difflens.blame(good, bad, command, threshold=0.0)
    named = difflens.blame(good, bad, command, metric="score =", threshold=0.0)
    grouped = difflens.blame(good, bad, command, metric=r"score = (\S+)")

    assert last.repair == named.repair == grouped.repair == (UP,)
    with pytest.raises(BlameError, match="nothing that --metric finds"):
        difflens.blame(good, bad, command, metric="accuracy")
    with pytest.raises(BlameError, match="no regular expression"):
        difflens.blame(good, bad, command, metric="(")


def test_a_command_that_cannot_judge_is_no_answer(tmp_path):
    good, bad = files(tmp_path, *damaged(UP, DOWN))
    body = f"u, d = (model[name][0] < 0 for name in {(UP, DOWN)!r})\nsys.exit(125 * (u != d) or u)"

    result = difflens.blame(good, bad, judge(tmp_path, body))

    assert set(result.repair) == {UP, DOWN}
