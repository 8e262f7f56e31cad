"""Files and bytes of Git revisions, in repositories that the real git made."""

import fcntl
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterable
from hashlib import sha256
from pathlib import Path

import pytest
from git_repositories import NAME, Git, isolate, weights
from hypothesis import given
from hypothesis import strategies as st
from lanes import examples

from difflens.core.errors import CorruptFile, GitError
from difflens.storage.git.history import changes
from difflens.storage.git.pointers import read_dvc, read_lfs
from difflens.storage.git.repository import Blob, Repository
from difflens.storage.git.spool import Spool, spool


@pytest.fixture
def git(tmp_path, monkeypatch):
    isolate(tmp_path, monkeypatch)
    return Git(tmp_path / "repo")


def files_of(laid: Spool, side: str, blobs: Iterable[Blob]) -> Path:
    """Lay out one side, and return its folder."""
    laid.lay_out({side: blobs})
    return laid.root(side)


def leftovers(git: Git) -> list[str]:
    """Name what a spool left in the repository."""
    return sorted(str(each) for each in (git.folder / ".git").glob("difflens*/**/*"))


def test_the_files_of_every_revision_come_back_byte_for_byte(git):
    content = [os.urandom(size) for size in (0, 1, 70_000, 3_000_000)]
    for data in content:
        (git.folder / "a b\n\x1b é.bin").write_bytes(data)
        git.commit("one")
    repository = Repository(git.folder)

    with spool(repository) as laid:
        for age, data in enumerate(reversed(content)):
            root = files_of(laid, str(age), repository.files(f"HEAD~{age}", "a b\n\x1b é.bin"))
            assert (root / "a b\n\x1b é.bin").read_bytes() == data
    assert leftovers(git) == []


def test_a_packed_file_of_many_deltas_comes_back_byte_for_byte(git):
    base = bytearray(os.urandom(200_000))
    for at in range(5):
        base[at * 1000] ^= 1
        (git.folder / "w.bin").write_bytes(base)
        git.commit("one")
    git("gc", "-q", "--aggressive")
    repository = Repository(git.folder)

    with spool(repository) as laid:
        root = files_of(laid, "left", repository.files("HEAD~4", "w.bin"))
        expected = bytearray(base)
        for at in range(1, 5):
            expected[at * 1000] ^= 1
        assert (root / "w.bin").read_bytes() == expected


@pytest.mark.parametrize("revision", ["--upload-pack=touch x", "-h", "^HEAD", "", "a\nb", "nope"])
def test_what_is_no_revision_is_refused_and_nothing_else_happens(git, revision):
    git.commit("one", model=weights(1))

    with pytest.raises(GitError):
        Repository(git.folder).commit(revision)


def test_nothing_that_a_repository_configures_is_executed(git, tmp_path, monkeypatch):
    git.commit("one", model=weights(1))
    git.commit("two", model=weights(2))
    bait = tmp_path / "bait"
    bait.write_text(f"#!/bin/sh\ntouch {tmp_path}/executed\ncat\n")
    bait.chmod(0o755)
    for key in (
        "core.fsmonitor", "core.pager", "core.sshCommand", "core.editor", "diff.external",
        "diff.x.textconv", "diff.x.command", "filter.x.smudge", "filter.x.clean", "gpg.program",
        "log.diffMerges", "core.askPass", "credential.helper", "uploadpack.packObjectsHook",
        "pager.log", "pager.ls-tree", "core.alternateRefsCommand",
    ):  # fmt: skip
        git("config", key, str(bait))
    git("config", "--unset", "log.diffMerges")
    git("config", "log.showSignature", "true")
    git("config", "core.attributesFile", str(tmp_path / "attributes"))
    (tmp_path / "attributes").write_text("* diff=x filter=x\n")
    hooks = git.folder / ".git" / "hooks"
    for name in ("post-index-change", "post-checkout", "reference-transaction", "pre-commit"):
        (hooks / name).write_bytes(bait.read_bytes())
        (hooks / name).chmod(0o755)
    monkeypatch.setenv("GIT_EXTERNAL_DIFF", str(bait))
    repository = Repository(git.folder)

    with spool(repository) as laid:
        found = list(changes(repository, NAME))
        files_of(laid, "left", found[0].left)
        files_of(laid, "index", repository.files("", NAME))

    assert len(found) == 2
    assert not (tmp_path / "executed").exists()


def test_a_partial_clone_is_not_asked_to_fetch(git, tmp_path):
    git.commit("one", model=weights(1))
    git.commit("two", model=weights(2))
    git("config", "uploadpack.allowFilter", "true")
    where = tmp_path / "clone"
    subprocess.run(
        ["git", "clone", "-q", "--filter=blob:none", f"file://{git.folder}", str(where)], check=True
    )

    with pytest.raises(GitError):
        Repository(where).files("HEAD~1", NAME)


def test_git_s_own_variables_count_from_where_they_were_set(git, tmp_path, monkeypatch):
    git.commit("one", model=weights(1))
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    monkeypatch.chdir(git.folder)
    monkeypatch.setenv("GIT_DIR", ".git")
    monkeypatch.setenv("GIT_WORK_TREE", str(git.folder))

    assert [each.path for each in Repository(elsewhere).files("HEAD", NAME)] == [NAME]


@pytest.mark.parametrize("path", ["../x", "/etc/passwd", "a/../../x", "..", "./../x"])
def test_a_path_outside_the_repository_is_refused(git, path):
    with pytest.raises(GitError, match="outside"):
        Repository(git.folder).path_of(path, from_top=True)


def test_paths_count_from_the_folder_or_from_the_top_as_in_git(git):
    below = git.folder / "below"
    below.mkdir()
    repository = Repository(below)

    assert repository.path_of("m.bin") == "below/m.bin"
    assert repository.path_of("../m.bin") == "m.bin"
    assert repository.path_of("m.bin", from_top=True) == "m.bin"
    assert repository.path_of("./m.bin", from_top=True) == "below/m.bin"
    assert repository.path_of("..") == ""


def test_a_bare_repository_and_a_further_worktree_are_read(git, tmp_path):
    git.commit("one", model=weights(1))
    git("worktree", "add", "-q", str(tmp_path / "tree"), "-b", "other")
    git("clone", "-q", "--bare", str(git.folder), str(tmp_path / "bare.git"))

    for folder in (tmp_path / "tree", tmp_path / "bare.git"):
        repository = Repository(folder)
        with spool(repository) as laid:
            assert (files_of(laid, "left", repository.files("HEAD", NAME)) / NAME).is_file()


def test_links_and_submodules_hold_no_bytes_of_a_model(git, tmp_path):
    other = Git(tmp_path / "other")
    other.commit("one", model=weights(1))
    git("-c", "protocol.file.allow=always", "submodule", "add", "-q", str(other.folder), "sub")
    (git.folder / "link.safetensors").symlink_to("/etc/passwd")
    git.commit("one", model=weights(1))

    paths = [each.path for each in Repository(git.folder).files("HEAD", "")]
    assert paths == [".gitmodules", NAME]
    assert [each.path for each in Repository(git.folder / "sub").files("HEAD", "")] == [NAME]


SPOOL = """
import sys, time
from pathlib import Path
from difflens.storage.git.repository import Repository
from difflens.storage.git.spool import spool
repository = Repository(Path(sys.argv[1]))
with spool(repository) as laid:
    laid.lay_out({"left": repository.files("HEAD", "")})
    print("ready", flush=True)
    time.sleep(60)
"""


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP, signal.SIGINT, signal.SIGKILL])
def test_nothing_is_left_of_a_process_that_was_ended(git, number):
    git.commit("one", model=weights(1))
    process = subprocess.Popen(
        [sys.executable, "-c", SPOOL, str(git.folder)],
        stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True,
    )  # fmt: skip
    assert process.stdout is not None
    assert process.stdout.readline() == "ready\n"
    assert leftovers(git)

    process.send_signal(number)
    process.communicate(timeout=30)

    if number == signal.SIGKILL:  # nobody can clean up then: the next one does
        assert leftovers(git)
        with spool(Repository(git.folder)):
            assert len(list((git.folder / ".git" / "difflens").iterdir())) == 1
    assert leftovers(git) == []


def test_the_folder_of_a_living_process_is_left_alone(git):
    git.commit("one", model=weights(1))
    repository = Repository(git.folder)

    with spool(repository) as first:
        root = files_of(first, "left", repository.files("HEAD", NAME))
        with spool(repository):
            pass
        assert (root / NAME).is_file()


def test_a_repository_that_may_not_be_written_to_is_read(git, tmp_path, monkeypatch):
    git.commit("one", model=weights(1))
    (git.folder / ".git" / "difflens").write_bytes(b"in the way")
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))

    with spool(Repository(git.folder)) as laid:
        assert laid.folder.is_relative_to(tmp_path)
        assert not laid.folder.is_relative_to(git.folder)
    assert list(tmp_path.glob("difflens*")) == []


def test_too_little_room_is_said_before_anything_is_written(git, monkeypatch):
    git.commit("one", model=weights(1))
    repository = Repository(git.folder)
    monkeypatch.setattr("shutil.disk_usage", lambda _: type("Usage", (), {"free": 10}))

    with spool(repository) as laid, pytest.raises(GitError, match="10 are free"):
        files_of(laid, "left", repository.files("HEAD", NAME))


def test_a_damaged_object_is_an_error_and_not_a_short_file(git):
    (git.folder / NAME).write_bytes(os.urandom(100_000))
    git.commit("one")
    repository = Repository(git.folder)
    (blob,) = repository.files("HEAD", NAME)
    loose = git.folder / ".git" / "objects" / blob.oid[:2] / blob.oid[2:]
    data = loose.read_bytes()
    loose.chmod(0o644)
    loose.write_bytes(data[: len(data) // 2])

    with spool(repository) as laid, pytest.raises(GitError, match="git wrote"):
        files_of(laid, "left", [blob])
    assert leftovers(git) == []


def lfs_pointer(data: bytes) -> bytes:
    """Write the pointer of some bytes."""
    digest = sha256(data).hexdigest()
    head = "version https://git-lfs.github.com/spec/v1"
    return f"{head}\noid sha256:{digest}\nsize {len(data)}\n".encode()


def commit_of_tree(git: Git, *entries: tuple[str, str]) -> None:
    """Commit a tree as an attacker writes it: any names, none of them checked."""
    raw = b"".join(b"100644 %s\0%s" % (n.encode(), bytes.fromhex(oid)) for n, oid in entries)
    words = ["git", "hash-object", "-t", "tree", "-w", "--literally", "--stdin"]
    tree = subprocess.run(words, cwd=git.folder, input=raw, capture_output=True, check=True)
    git("update-ref", "HEAD", git("commit-tree", "-m", "x", tree.stdout.decode().strip()).strip())


@pytest.mark.parametrize(
    "path",
    ["../evil.bin", "a/../../evil.bin", "/evil.bin", "..", "./evil.bin", "a//b", ".", "a/.."],
)
def test_a_tree_cannot_make_us_write_elsewhere(git, path):
    git.commit("one", model=weights(1))
    oid = git("rev-parse", f"HEAD:{NAME}").strip()
    commit_of_tree(git, (path, oid), (NAME, oid))

    with pytest.raises(GitError, match="leads out of it"):
        Repository(git.folder).files("HEAD", "")
    assert list(git.folder.rglob("evil*")) == []


def test_a_name_that_stands_twice_in_a_tree_overwrites_nothing(git):
    data = os.urandom(5000)
    stored = fetched_by_lfs(git, data)
    (git.folder / "pointer").write_bytes(lfs_pointer(data))
    (git.folder / "other").write_bytes(os.urandom(5000))
    git.commit("one")
    oids = [git("rev-parse", f"HEAD:{name}").strip() for name in ("pointer", "other")]
    for order in (oids, oids[::-1]):
        commit_of_tree(git, ("m.bin", order[0]), ("m.bin", order[1]))
        repository = Repository(git.folder)
        with spool(repository) as laid, pytest.raises(GitError, match="cannot be laid out"):
            files_of(laid, "left", repository.files("HEAD", "m.bin"))
    assert stored.read_bytes() == data


def fetched_by_lfs(git: Git, data: bytes) -> Path:
    """Put an object where git-lfs keeps it."""
    digest = sha256(data).hexdigest()
    stored = git.folder / ".git" / "lfs" / "objects" / digest[:2] / digest[2:4] / digest
    stored.parent.mkdir(parents=True)
    stored.write_bytes(data)
    return stored


def test_what_lfs_fetched_is_linked_and_what_it_did_not_is_named(git):
    data = os.urandom(5000)
    (git.folder / "m.bin").write_bytes(lfs_pointer(data))
    git.commit("one")
    repository = Repository(git.folder)
    blobs = repository.files("HEAD", "m.bin")
    with spool(repository) as laid, pytest.raises(GitError, match="LFS has not fetched") as error:
        files_of(laid, "left", blobs)
    assert "git lfs pull" in error.value.hint
    stored = fetched_by_lfs(git, data)

    with spool(repository) as laid:
        found = files_of(laid, "left", blobs) / "m.bin"
        assert found.read_bytes() == data
        assert found.samefile(stored)
    assert stored.read_bytes() == data

    stored.write_bytes(data[:-1])
    with spool(repository) as laid, pytest.raises(GitError, match="has not the 5000 bytes"):
        files_of(laid, "left", blobs)


@given(st.binary(max_size=300))
@examples(200)
def test_only_a_whole_pointer_is_one(data):
    assert read_lfs(data) is None
    pointer = read_lfs(lfs_pointer(data))
    assert pointer is not None
    assert (pointer.digest, pointer.size) == (sha256(data).hexdigest(), len(data))
    assert read_lfs(lfs_pointer(data) + data + b"x") is None


@pytest.mark.parametrize(
    "text",
    [
        "", "outs: []", "outs: 3", "- 1", "outs: [{path: m, md5: ../../etc/passwd}]",
        "outs: [{path: /etc/m, md5: " + "a" * 32 + "}]",
        "outs: [{path: ../m, md5: " + "a" * 32 + "}]",
        "outs: [{path: m}]", "!!python/object/apply:os.mkdir [executed]",
        "outs: [{path: m, md5: 5}]", "[" * 5000, "outs: [{path: 3, md5: " + "a" * 32 + "}]",
    ],
)  # fmt: skip
def test_a_dvc_file_is_read_strictly(text):
    with pytest.raises(CorruptFile):
        read_dvc(text.encode(), "m.dvc")


@pytest.mark.parametrize("place", ["files/md5/", ""])
def test_a_file_and_a_folder_in_the_cache_of_dvc_are_found(git, place):
    cache = git.folder / ".dvc" / "cache" / place

    def store(digest: str, data: bytes) -> None:
        path = cache / digest[:2] / digest[2:]
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(data)

    one, two, both = "a" * 32, "b" * 32, f"{'c' * 32}.dir"
    store(one, b"1")
    store(two, b"22")
    store(both, f'[{{"md5":"{one}","relpath":"x"}},{{"md5":"{two}","relpath":"s/y"}}]'.encode())
    (git.folder / ".gitignore").write_text(".dvc\n")
    (git.folder / "m.dvc").write_text(f"outs:\n- md5: {one}\n  size: 1\n  hash: md5\n  path: m\n")
    (git.folder / "f.dvc").write_text(f"outs:\n- md5: {both}\n  size: 3\n  path: f\n")
    git.commit("one")
    repository = Repository(git.folder)

    with spool(repository) as laid:
        files = [*repository.files("HEAD", "m.dvc"), *repository.files("HEAD", "f.dvc")]
        root = files_of(laid, "left", files)
        read = [(root / name).read_bytes() for name in ("m", "f/x", "f/s/y")]
    assert read == [b"1", b"1", b"22"]


def test_history_follows_renames_with_and_without_a_change(git):
    git.commit("one", first=weights(1))
    git("mv", "first.safetensors", "second.safetensors")
    git.commit("moved")
    (git.folder / "second.safetensors").unlink()
    git.commit("moved and trained", third=weights(3))
    git.commit("unrelated", unrelated=weights(5))
    git.commit("trained", third=weights(4))

    found = list(changes(Repository(git.folder), "third.safetensors"))

    assert [(each.subject, each.left_path.partition(".")[0]) for each in found] == [
        ("trained", "third"), ("moved and trained", "second"), ("moved", "first"), ("one", "first"),
    ]  # fmt: skip
    assert not found[-1].left


def test_history_lists_what_a_side_branch_did_once(git):
    git.commit("one", model=weights(1))
    git("checkout", "-q", "-b", "side")
    git.commit("two", model=weights(2))
    git("checkout", "-q", "main")
    git.commit("other", other=weights(9))
    git("merge", "-q", "--no-ff", "-m", "merged", "side")

    assert [each.subject for each in changes(Repository(git.folder), NAME)] == ["two", "one"]


def test_history_of_a_folder_and_of_what_was_removed(git):
    (git.folder / "m").mkdir()
    for at in range(2):
        (git.folder / "m" / "w.bin").write_bytes(bytes([at]))
        git.commit(f"{at}")
    git("rm", "-q", "-r", "m")
    git.commit("gone")

    found = list(changes(Repository(git.folder), "m"))
    assert [(each.subject, len(each.left), len(each.right)) for each in found] == [
        ("gone", 1, 0), ("1", 1, 1), ("0", 0, 1),
    ]  # fmt: skip


def test_a_path_without_history_is_an_error(git):
    git.commit("one", model=weights(1))

    with pytest.raises(GitError, match="no commit"):
        list(changes(Repository(git.folder), "nope.bin"))


def test_git_that_is_not_installed_is_one_clear_error(tmp_path, monkeypatch):
    monkeypatch.setenv("PATH", str(tmp_path))

    with pytest.raises(GitError, match="not installed"):
        Repository(tmp_path)


def test_sweeping_waits_for_nobody(git):
    home = git.folder / ".git" / "difflens" / "x"
    home.mkdir(parents=True)
    lock = os.open(home / "lock", os.O_CREAT | os.O_RDWR)
    fcntl.flock(lock, fcntl.LOCK_EX)
    began = time.monotonic()

    with spool(Repository(git.folder)):
        pass

    assert time.monotonic() - began < 5
    assert Path(home).is_dir()
    os.close(lock)
