"""Every hostile file through the command itself: one line, exit code 2, nothing else happens."""

import os
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest
from hostile.files import CASES, GOOD, MARKER, Case, model, pickle_after
from hostile.watched import NOBODY, Outcome, Server, audit, environment

PARAMS = [
    pytest.param(case, id=case.id, marks=[pytest.mark.slow] if case.slow else []) for case in CASES
]
LINE = re.compile(r"difflens: error: (?s:.+): (?s:.+)")
# `org` is what the standard library's copy asks for, to see whether it runs on Java.
LIBRARIES = {"difflens", "click", "msgspec", "org"} | sys.stdlib_module_names
NEVER = {"pickle", "marshal", "ctypes", "subprocess", "torch", "numpy"}


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    running = Server(tmp_path_factory.mktemp("watched"))
    yield running
    running.close()


@pytest.fixture
def place() -> Iterator[Path]:
    """Yield a folder that others may look into, which pytest's own is not."""
    folder = Path(tempfile.mkdtemp(prefix="hostile-"))
    folder.chmod(0o755)
    yield folder
    shutil.rmtree(folder)


@pytest.mark.parametrize("case", PARAMS)
def test_a_hostile_file_earns_one_line_and_nothing_happens(case: Case, server, place):
    (place / "case").mkdir()
    path = case.build(place / "case")
    good = place / "good.safetensors"
    good.write_bytes(GOOD)
    before = listing(place)
    user = NOBODY if case.needs_user and os.geteuid() == 0 else None
    header_only = () if case.read_all else ("--shape-only",)
    commands = [("check", path), (path, good), (good, path)]
    if case.most_open or case.slow:  # the other way round costs as much and tells no more
        commands.pop()
    if not case.read_all:  # a terabyte of zeros would take the night
        commands = [("show", path), (path, good, *header_only)]

    for arguments in commands:
        outcome = server.run(
            *arguments,
            cwd=place,
            most_open=case.most_open,
            user=user,
            limit=120 if case.slow else 40,
        )

        assert_earned(case, outcome)
        assert_nothing_happened(outcome)
        if not case.slow:
            assert outcome.busy < 10
            assert outcome.megabytes < 300
    assert before == listing(place)
    assert not list(place.rglob(MARKER))


def listing(folder: Path) -> list[tuple[str, int, int]]:
    return sorted(
        (str(path), path.lstat().st_size, path.lstat().st_mtime_ns) for path in folder.rglob("*")
    )


def assert_earned(case: Case, outcome: Outcome) -> None:
    assert "Traceback" not in outcome.stderr
    lines = outcome.stderr.split("\n")
    assert lines.pop() == ""
    assert all(line.isprintable() for line in lines), lines
    assert outcome.code in {"reject": {2}, "open": {0, 1}, "bounded": {0, 1, 2}}[case.outcome]
    if outcome.code == 2:
        assert outcome.stdout == ""
        assert LINE.fullmatch(lines[0])
        assert case.word in lines[0]
        assert "a fault of difflens itself" not in lines[0]
        assert len(lines) == 1 or (len(lines) == 2 and lines[1].startswith("hint: "))
    else:
        assert outcome.stdout
        assert all(line.startswith("difflens: warning: ") for line in lines)
        assert all(line.isprintable() for line in outcome.stdout.splitlines())


def assert_nothing_happened(outcome: Outcome) -> None:
    assert outcome.events == []
    assert outcome.imports <= LIBRARIES
    assert not outcome.imports & NEVER


def test_the_watch_sees_what_a_payload_would_do(tmp_path):
    """The tests above prove nothing if the hook is deaf."""
    code = (
        "import os, pickle, subprocess; "
        f"pickle.loads(b'cos\\nmkdir\\n(V{tmp_path / MARKER}\\ntR.'); "
        "os.system('true'); subprocess.run(['true']); open('x', 'w')"
    )
    subprocess.run(
        [sys.executable, "-c", code], env=environment(tmp_path), cwd=tmp_path, check=True
    )

    events, imports = audit((tmp_path / "audit.log").read_text().splitlines())
    seen = {event.partition(" ")[0] for event in events}
    assert {"pickle.find_class", "os.mkdir", "os.system", "subprocess.Popen", "open"} <= seen
    assert "pickle" in imports


def test_a_child_that_dies_is_seen_as_a_signal(server, tmp_path):
    path = tmp_path / "endless.safetensors"
    path.write_bytes(model({"a": {"dtype": "U8", "shape": [10**13], "data_offsets": [0, 10**13]}}))
    os.truncate(path, path.stat().st_size + 10**13)

    assert server.run("check", path, cwd=tmp_path, limit=1).code == -14


FAITHFUL = {
    "S01-empty", "S02-length-2-to-64", "S07-appended-pickle", "S13-[NaN]", "S24-lfs",
    "X04-'/etc/hostname'", "X09-deep", "F01-pipe", "F02-not-utf-8", "F02-escape",
}  # fmt: skip


@pytest.mark.parametrize(
    "case", [case for case in CASES if case.id in FAITHFUL], ids=lambda c: c.id
)
@pytest.mark.parametrize(
    "start", [["-m", "difflens"], [str(Path(sys.executable).parent / "difflens")]]
)
def test_so_it_does_from_the_first_to_the_last_breath_of_the_process(case, start, tmp_path):
    watch, folder = tmp_path / "watch", tmp_path / "case"
    watch.mkdir()
    folder.mkdir()
    path = case.build(folder)
    before = listing(folder)

    ended = subprocess.run(
        [sys.executable, *start, "check", path],
        env=environment(watch),
        capture_output=True,
        text=True,
        timeout=20,
        cwd=tmp_path,
        check=False,
    )

    events, _ = audit((watch / "audit.log").read_text().splitlines())
    assert_earned(case, Outcome(ended.returncode, ended.stdout, ended.stderr, 0, 0, 0, [], set()))
    assert before == listing(folder)
    assert events == []


def test_modules_that_lie_in_the_working_folder_are_not_imported(tmp_path):
    path = pickle_after(tmp_path)
    for name in ("json", "msgspec", "click", "numpy", "safetensors", "ml_dtypes", "yaml"):
        (tmp_path / f"{name}.py").write_text(f"import os\nos.mkdir({str(tmp_path / MARKER)!r})\n")

    ended = subprocess.run(
        [Path(sys.executable).parent / "difflens", path.name, path.name, "-o", "yaml"],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
    )

    assert (ended.returncode, ended.stdout) == (2, "")
    assert "trailing bytes" in ended.stderr
    assert not (tmp_path / MARKER).exists()
