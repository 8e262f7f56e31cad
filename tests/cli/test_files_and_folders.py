"""Table F of the specification, through the command: odd files, and files that change."""

import json
import os
import random
import shutil
import signal
import socket
import struct
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from cli.command import Outcome, assert_refused, run, start, wait_until_open
from models.small import arrays, write

NOBODY = 65534
GIGABYTE = 10**9
TERABYTE = 10**12


def sparse(path: Path, size_bytes: int) -> Path:
    """Make a model of one tensor of zeros that takes no room on the disk."""
    entry = {"w": {"dtype": "U8", "shape": [size_bytes], "data_offsets": [0, size_bytes]}}
    header = json.dumps(entry).encode()
    path.write_bytes(struct.pack("<Q", len(header)) + header)
    os.truncate(path, 8 + len(header) + size_bytes)
    return path


@pytest.fixture
def good(tmp_path: Path) -> Path:
    return write(tmp_path / "good.safetensors", arrays(w=[1, 2]))


@pytest.fixture
def open_folder() -> Iterator[Path]:
    """Yield a folder that any user may enter, which pytest's own is not."""
    folder = Path(tempfile.mkdtemp(prefix="difflens-"))
    folder.chmod(0o755)
    yield folder
    shutil.rmtree(folder)


def as_nobody(*arguments: str | Path, **how: str) -> Outcome:
    """Run the command as a user who may be refused something: our libraries may be root's own."""
    code = (
        "import os, sys, locale, difflens.cli, difflens.cli.diff, difflens.cli._output,"
        " tempfile, random;"
        "import difflens.diffs.story, difflens.cli._progress, difflens.render.diffs.cli;"
        "from difflens.core import limits; from difflens.models import refusals;"
        "from difflens.models.folders import shards; from difflens.models.formats import source;"
        "list(source);"
        f"os.chdir({how.get('cwd', '/')!r});"
        f"os.geteuid() or (os.setgroups([]), os.setgid({NOBODY}), os.setuid({NOBODY}));"
        "difflens.cli.main(sys.argv[1:])"
    )
    ended = subprocess.run(
        [sys.executable, "-c", code, *arguments],
        capture_output=True,
        text=True,
        timeout=30,
        check=False,
    )
    return Outcome(ended.returncode, ended.stdout, ended.stderr)


class TestWhatIsNoFile:
    def test_a_folder_without_a_model(self, good, tmp_path):
        (tmp_path / "empty").mkdir()

        assert_refused(run(tmp_path / "empty", good), "there is no model in this folder")

    def test_a_folder_whose_models_lie_deeper_is_told_about_r(self, good, tmp_path):
        write(tmp_path / "tree/below/x.safetensors", arrays(w=[1]))

        assert_refused(run(tmp_path / "tree", good), "hint: its sub-folders hold models", "-r")

    def test_a_socket(self, good, tmp_path, monkeypatch):
        monkeypatch.chdir(tmp_path)
        with socket.socket(socket.AF_UNIX) as end:
            end.bind("s.safetensors")

            assert_refused(run("s.safetensors", good), "socket")

    @pytest.mark.parametrize("side", [0, 1])
    def test_a_device_that_never_ends(self, good, side):
        pair = ["/dev/zero", good]

        began = time.monotonic()
        assert_refused(run(pair[side], pair[1 - side]), "a device")

        assert time.monotonic() - began < 5

    def test_a_pipe_nobody_writes_to(self, good, tmp_path):
        os.mkfifo(tmp_path / "pipe.safetensors")

        assert_refused(run(tmp_path / "pipe.safetensors", good), "a pipe")

    @pytest.mark.skipif(not Path("/dev/full").exists(), reason="needs /dev/full")
    def test_a_full_disk_as_output(self, good):
        assert_refused(run(good, good, "--out", "/dev/full"), "/dev/full", "no space left")

    def test_a_folder_as_output(self, good, tmp_path):
        assert_refused(run(good, good, "--out", tmp_path), "is a directory")

    def test_an_output_in_a_folder_that_is_not_there(self, good, tmp_path):
        assert_refused(run(good, good, "--out", tmp_path / "no" / "x"), "no such file")


class TestNamesAndLinks:
    def test_a_link_to_nothing(self, good, tmp_path):
        (tmp_path / "link").symlink_to("nowhere")

        assert_refused(run(tmp_path / "link", good), "a link to a file that is not there")

    def test_links_that_go_round(self, good, tmp_path):
        (tmp_path / "a").symlink_to("b")
        (tmp_path / "b").symlink_to("a")

        assert_refused(run(tmp_path / "a", good), "too many links")

    def test_a_link_to_a_model_is_that_model(self, good, tmp_path):
        (tmp_path / "link").symlink_to(good)

        assert run(tmp_path / "link", good).code == 0

    def test_a_file_this_user_may_not_read(self, open_folder):
        path = write(open_folder / "locked.safetensors", arrays(w=[1]))
        path.chmod(0)

        assert_refused(as_nobody(path, path), "permission denied", str(path))

    def test_a_folder_this_user_may_not_enter(self, open_folder):
        path = write(open_folder / "locked" / "x.safetensors", arrays(w=[1]))
        path.parent.chmod(0)

        assert_refused(as_nobody(path, path), "permission denied")
        path.parent.chmod(0o700)

    def test_a_name_of_300_bytes(self, good, tmp_path):
        assert_refused(run(tmp_path / ("x" * 300), good), "the name is too long")

    def test_a_name_that_is_no_text(self, good, tmp_path):
        name = os.fsdecode(b"\xff\xfe.safetensors")

        assert_refused(run(tmp_path / name, good), "\\xff\\xfe.safetensors", "no such file")

    def test_a_name_that_commands_the_terminal(self, good, tmp_path):
        assert_refused(run(tmp_path / "a\x1b[2J\nb", good), "a\\x1b[2J\\x0ab: no such file")

    def test_models_with_such_names_are_compared_all_the_same(self, tmp_path):
        names = [os.fsdecode(b"\xff.safetensors"), "\x1b[2J\n.safetensors"]
        left, right = (write(tmp_path / name, arrays(w=[n])) for n, name in enumerate(names))

        brief, full = run(left, right, "--brief"), run(left, right, "-o", "full-json")

        assert (brief.code, brief.err) == (1, "")
        assert brief.out.endswith(
            "\\xff.safetensors and " + f"{tmp_path}/\\x1b[2J\\x0a.safetensors differ\n"
        )
        assert json.loads(full.out)["right"]["path"] == str(right)


class Writer:
    """Someone who does something to a file while it is read."""

    def __init__(self, path: Path, twin: Path) -> None:
        self.path, self.twin = path, twin

    def truncate(self) -> None:
        os.truncate(self.path, self.path.stat().st_size // 2)

    def rewrite(self) -> None:
        with self.path.open("r+b") as stream:
            for place in range(4096, self.path.stat().st_size, 1 << 22):
                stream.seek(place)
                stream.write(b"other values")

    def rename(self) -> None:
        self.twin.replace(self.path)


def read_while(what: str, folder: Path, size_bytes: int, delay: float) -> Outcome:
    """Compare two models of zeros while somebody changes the left one."""
    left, right, twin = (folder / f"{name}.safetensors" for name in ("left", "right", "twin"))
    for path in (left, right, twin):
        path.unlink(missing_ok=True)
        sparse(path, size_bytes)
    with twin.open("r+b") as stream:
        stream.seek(-5, os.SEEK_END)
        stream.write(b"other")
    process = start(left, right)
    assert wait_until_open(process, left)
    time.sleep(delay)
    getattr(Writer(left, twin), what)()
    out, err = process.communicate(timeout=60)
    return Outcome(process.returncode, out, err)


WHOLE = "identical: the one tensor holds the same bits\n"


def assert_right_or_refused(outcome: Outcome, what: str) -> None:
    """Check that the result is the old file's, whole, or that there is none; never a signal."""
    if outcome.code == 0:
        assert outcome.err == ""
        assert outcome.out.endswith(WHOLE)
    else:
        assert what != "rename"
        assert_refused(outcome, "left.safetensors: changed while reading")


@pytest.mark.skipif(sys.platform != "linux", reason="looks into /proc")
@pytest.mark.parametrize("delay", [0.0, 0.1])
@pytest.mark.parametrize("what", ["truncate", "rewrite", "rename"])
def test_a_file_that_changes_while_read_gives_the_old_result_or_none(tmp_path, what, delay):
    outcome = read_while(what, tmp_path, GIGABYTE, delay)

    assert_right_or_refused(outcome, what)


@pytest.mark.slow
@pytest.mark.skipif(sys.platform != "linux", reason="looks into /proc")
@pytest.mark.parametrize("what", ["truncate", "rewrite", "rename"])
def test_of_200_files_that_change_while_read_none_gives_a_wrong_result(tmp_path, what):
    chance = random.Random(what)
    outcomes = [
        read_while(what, tmp_path, GIGABYTE // 2, chance.uniform(0, 0.25)) for _ in range(200)
    ]

    for outcome in outcomes:
        assert_right_or_refused(outcome, what)
    if what != "rename":
        assert any(outcome.code == 2 for outcome in outcomes)


@pytest.mark.parametrize(
    "arguments",
    [("L", "R"), ("check", "L"), ("show", "L", "--stats"), ("show", "L", "--stable"),
     ("L", "R", "--out", "report.json", "-o", "json"), ("L", "R", "--threads", "1"),
     ("L", "E")],
    ids=" ".join,
)  # fmt: skip
def test_a_terabyte_can_be_stopped_at_once_and_leaves_nothing(tmp_path, arguments):
    paths = {"L": sparse(tmp_path / "left.safetensors", TERABYTE)}
    paths["R"] = sparse(tmp_path / "right.safetensors", TERABYTE)
    paths["E"] = write(tmp_path / "empty.safetensors", {})
    before = sorted(tmp_path.iterdir())
    process = start(*(paths.get(word, word) for word in arguments), cwd=tmp_path)
    assert wait_until_open(process, paths["L"])
    time.sleep(0.5)

    process.send_signal(signal.SIGINT)
    began = time.monotonic()
    out, err = process.communicate(timeout=30)

    assert time.monotonic() - began < 10
    assert (process.returncode, out) == (130, "")
    assert err in {"", "\n"}  # an end of line after the terminal's own ^C
    assert before == sorted(tmp_path.iterdir())


def test_an_interrupted_write_leaves_no_temporary_file(tmp_path, monkeypatch):
    from difflens.cli._output import emit

    def interrupt(_descriptor: int) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("os.fsync", interrupt)
    with pytest.raises(KeyboardInterrupt):
        emit("text", str(tmp_path / "report.txt"))

    assert list(tmp_path.iterdir()) == []


def test_headers_of_a_terabyte_pair_are_compared_without_reading_it(tmp_path):
    left, right = (sparse(tmp_path / f"{side}.safetensors", TERABYTE) for side in "lr")

    began = time.monotonic()
    outcome = run(left, right, "--shape-only")

    assert outcome.code == 0
    assert time.monotonic() - began < 5


@pytest.mark.parametrize("how", ["itself", "hard link", "link"])
def test_a_model_and_its_other_name_are_identical(good, tmp_path, how):
    other = good if how == "itself" else tmp_path / "other.safetensors"
    if how == "hard link":
        other.hardlink_to(good)
    elif how == "link":
        other.symlink_to(good)

    outcome = run(good, other)

    assert outcome.code == 0
    assert outcome.out.endswith(WHOLE)


def test_an_empty_model_against_a_real_one_is_all_added_or_all_removed(good, tmp_path):
    empty = write(tmp_path / "empty.safetensors", {})

    assert run(empty, good).out.startswith("+ w: F32 [2]\n1 tensor: 1 added; 0 -> 2 parameters\n")
    assert run(good, empty).out.startswith("- w: F32 [2]\n1 tensor: 1 removed; 2 -> 0 parameters\n")


def pickled(path: Path, settings: dict[str, float]) -> Path:
    """Save settings as the trainer of Hugging Face saves its arguments."""
    import torch

    torch.save(settings, path)
    return path


def test_a_pair_without_tensors_is_not_called_identical(tmp_path):
    """Two `training_args.bin`: settings and no weight, equal or not."""
    pickles = [pickled(tmp_path / name, {"lr": rate})
               for name, rate in (("a.bin", 0.1), ("b.bin", 0.2), ("c.bin", 0.1))]  # fmt: skip
    for other in pickles[1:]:
        outcome = run(pickles[0], other)

        assert outcome.code == 2
        assert "identical" not in outcome.out
        assert "nothing to compare: neither side holds a tensor" in outcome.out
        assert "nothing to compare" in outcome.err
        assert run(pickles[0], other, "--verify-conversion").code == 2
        assert run(pickles[0], other, "--shape-only").code == 2
        assert "hold no tensors" in run(pickles[0], other, "--brief").out
    assert run(*pickles[:2], "--exit-zero").code == 2


def test_a_file_without_tensors_does_not_decide_over_a_folder(tmp_path):
    folders = [tmp_path / side for side in ("left", "right")]
    for folder in folders:
        folder.mkdir()
        pickled(folder / "training_args.bin", {"lr": 0.1})
    alone = run(*folders, "-r")
    for folder in folders:
        write(folder / "model.safetensors", arrays(w=[1, 2]))

    assert alone.code == 2
    assert "no pair of files holds a tensor" in alone.err
    assert run(*folders, "-r").code == 0


def many(path: Path, value: float) -> Path:
    return write(path, arrays(**{f"layer{n}.weight": [value] for n in range(5000)}))


class TestTheWorldAround:
    def test_a_reader_that_has_seen_enough_ends_it_quietly(self, tmp_path):
        left, right = many(tmp_path / "l.safetensors", 1), many(tmp_path / "r.safetensors", 2)
        command = (
            f'{sys.executable} -m difflens "$0" "$1" -v 2>err | head -1; echo ${{PIPESTATUS[0]}}'
        )

        ended = subprocess.run(
            ["bash", "-c", command, left, right],
            cwd=tmp_path,
            capture_output=True,
            text=True,
            timeout=30,
            check=True,
        )

        first, code = ended.stdout.splitlines()
        assert first.startswith("~ layer0.weight: ")
        assert code == "141"
        assert (tmp_path / "err").read_text() == ""

    @pytest.mark.parametrize("unbuffered", ["", "1"])
    def test_a_reader_that_goes_away_is_not_told_that_something_differs(self, tmp_path, unbuffered):
        left, right = many(tmp_path / "l.safetensors", 1), many(tmp_path / "r.safetensors", 2)
        process = start(left, right, "-v", env={**os.environ, "PYTHONUNBUFFERED": unbuffered})
        assert process.stdout
        assert process.stderr

        first = process.stdout.readline()
        process.stdout.close()

        assert first.startswith("~ layer0.weight: ")
        assert (process.wait(timeout=30), process.stderr.read()) == (141, "")
        process.stderr.close()

    @pytest.mark.skipif(not Path("/dev/full").exists(), reason="needs /dev/full")
    @pytest.mark.parametrize("size", ["small", "large"])
    def test_a_full_stdout_is_one_line_and_exit_code_2(self, tmp_path, size):
        make = many if size == "large" else lambda path, v: write(path, arrays(w=[v]))
        left, right = make(tmp_path / "l.safetensors", 1), make(tmp_path / "r.safetensors", 2)

        with Path("/dev/full").open("w") as full:
            outcome = run(left, right, "-v", stdout=full)

        assert_refused(outcome, "no space left on device")

    @pytest.mark.parametrize("arguments", [["--help"], ["--version"], ["list"]])
    @pytest.mark.skipif(not Path("/dev/full").exists(), reason="needs /dev/full")
    def test_so_is_a_full_stdout_of_the_small_commands(self, arguments):
        with Path("/dev/full").open("w") as full:
            assert_refused(run(*arguments, stdout=full), "no space left on device")

    def test_a_closed_stdout_is_one_line_and_exit_code_2_unless_nothing_is_said(self, good):
        closed = f'{sys.executable} -m difflens "$0" "$0" $1 >&-'
        outcomes = [
            subprocess.run(
                ["bash", "-c", closed, good, option], capture_output=True, text=True, check=False
            )
            for option in ("", "-q")
        ]

        assert [(each.returncode, each.stderr) for each in outcomes] == [
            (2, "difflens: error: stdout: it is closed\n"),
            (0, ""),
        ]

    def test_a_closed_stderr_still_leaves_the_exit_code(self, good):
        command = f'{sys.executable} -m difflens "$0" nowhere 2>&-'

        assert subprocess.run(["bash", "-c", command, good], check=False).returncode == 2

    def test_no_home_and_no_temporary_folder(self, good):
        bare = {"PATH": os.environ["PATH"], "TMPDIR": "/nowhere"}

        outcome = run(good, good, env=bare)

        assert (outcome.code, outcome.err) == (0, "")

    def test_output_needs_no_temporary_folder_but_its_own(self, good, tmp_path):
        bare = {"PATH": os.environ["PATH"], "TMPDIR": "/nowhere"}

        outcome = run(good, good, "--out", "report.txt", env=bare, cwd=tmp_path)

        assert (outcome.code, outcome.out, outcome.err) == (0, "", "")
        assert (tmp_path / "report.txt").read_text().endswith(WHOLE)

    def test_a_working_folder_one_cannot_write_to(self, open_folder):
        left, right = (write(open_folder / f"{n}.safetensors", arrays(w=[n])) for n in (1, 2))

        outcome = as_nobody(left.name, right.name, cwd=str(open_folder))
        refused = as_nobody(left.name, right.name, "--out", "x", cwd=str(open_folder))

        assert (outcome.code, outcome.err) == (1, "")
        assert outcome.out.startswith("~ w: ")
        assert_refused(refused, "x: permission denied")

    def test_a_working_folder_that_is_gone(self, good, tmp_path):
        command = (
            f'mkdir gone && cd gone && rmdir ../gone && {sys.executable} -m difflens "$0" "$0"'
        )

        ended = subprocess.run(
            ["bash", "-c", command, good], cwd=tmp_path, capture_output=True, text=True, check=False
        )

        assert "Traceback" not in ended.stderr
        assert ended.returncode in {0, 2}

    @pytest.mark.parametrize(
        "locale",
        [{"LANG": "C"}, {"LC_ALL": "POSIX"},
         {"LC_ALL": "C", "PYTHONCOERCECLOCALE": "0", "PYTHONUTF8": "0"}],
        ids=["plain", "posix", "ascii"],
    )  # fmt: skip
    def test_a_terminal_that_knows_ascii_alone_shows_codes(self, tmp_path, locale):
        left = write(tmp_path / "größe.safetensors", arrays(**{"größe.層": [1]}))
        right = write(tmp_path / "b.safetensors", arrays(**{"größe.層": [2]}))
        bare = {"PATH": os.environ["PATH"], **locale}

        for renderer in ("cli", "json", "full-json", "yaml", "csv", "html"):
            outcome = run(left, right, "-o", renderer, env=bare)

            assert (outcome.code, outcome.err) == (1, "")
        text = run(left, right, env=bare).out
        assert "größe.層" in text or "gr\\xf6\\xdfe.\\u5c64" in text
