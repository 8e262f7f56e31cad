"""`difflens git`: what git shows and refuses once it is set up, with the real git and git-lfs."""

import os
import re
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest
from cli.command import run
from git_repositories import NAME, Git, has_lfs, isolate, weights
from models.small import arrays, write

from difflens.cli._git_drivers import as_text, show_change
from difflens.cli.demo import make
from difflens.models.folders.listing import suffixes


@pytest.fixture
def git(tmp_path, monkeypatch, difflens):  # noqa: ARG001  it changes the folder first
    isolate(tmp_path, monkeypatch)
    git = Git(tmp_path / "a repo's")
    monkeypatch.chdir(git.folder)
    return git


@pytest.fixture
def ready(git, difflens):
    """Return a repository with two models in its history, where git is set up."""
    git.commit("one", model=weights(1))
    git.commit("two", model=weights(2))
    assert difflens("git", "install").code == 0
    return git


def test_git_diff_prints_the_summary_and_goes_on_whatever_differs(ready):
    write(ready.folder / NAME, arrays(**weights(3)))
    (ready.folder / "other.txt").write_text("hello\n")
    ready("add", "-N", "other.txt")

    shown = ready("diff")

    assert shown.startswith(f"difflens a/{NAME} b/{NAME}\n")
    assert "3 changed, of 3 tensors" in shown
    assert "+hello" in shown
    assert "Binary files" not in shown


def test_git_diff_says_what_difflens_says(ready, difflens, tmp_path):
    left, right = (write(tmp_path / f"{at}" / NAME, arrays(**weights(at))) for at in (1, 2))

    shown = ready("diff", "HEAD~1", "HEAD")

    assert shown.split("\n", 1)[1] == difflens("diff", left, right, "--change-summary").out


def test_added_removed_and_renamed_models_are_outlined(ready):
    ready("mv", NAME, "moved.safetensors")
    ready.commit("moved", new=weights(4))
    ready("rm", "-q", "new.safetensors")
    ready.commit("gone")

    assert "+ added: safetensors, 3 tensors (3 F32)" in ready("diff", "HEAD~2", "HEAD~1")
    assert "- removed: safetensors, 3 tensors (3 F32)" in ready("diff", "HEAD~1", "HEAD")
    renamed = ready("diff", "-M", "HEAD~2", "HEAD")
    assert "rename from model.safetensors\nrename to moved.safetensors\n" in renamed
    assert "every one of 3 tensors is bit-identical" in renamed


def test_git_show_and_log_show_stable_text_and_with_ext_diff_the_summary(ready):
    for words in (["log", "-p", "-1"], ["show"]):
        shown = ready(*words)
        lines = [line for line in shown.splitlines() if line.startswith(("+layers", "-layers"))]
        assert len(lines) == 6
        assert all("sha256=" in line for line in lines)
        assert "difflens a/model" in ready(*words, "--ext-diff")


def test_git_by_way_of_difflens_prints_summaries_everywhere(ready):
    for words in (["show"], ["log", "-p", "-1"], ["diff", "HEAD~1", "HEAD", "--", NAME]):
        shown = run("git", *words, cwd=ready.folder)
        assert shown.code == 0
        assert "3 changed, of 3 tensors" in shown.out
    assert run("git", "diff", "--exit-code", cwd=ready.folder).code == 0
    assert run("git", "show", "--nonsense", cwd=ready.folder).code == 128


def test_the_difftool_compares_files_and_folders(ready):
    write(ready.folder / NAME, arrays(**weights(3)))

    assert "3 changed, of 3" in ready("difftool", "-t", "difflens", "--no-prompt", "HEAD")
    assert "3 changed, of 3" in ready("difftool", "-t", "difflens", "--dir-diff", "HEAD")


def test_a_merge_of_two_models_is_refused_and_the_way_out_is_named(ready, difflens):
    ready("checkout", "-q", "-b", "side", "HEAD~1")
    ready.commit("side", model=weights(7))
    ready("checkout", "-q", "main")
    ours = (ready.folder / NAME).read_bytes()

    done = ready.run("merge", "side")

    assert done.returncode == 1
    assert "both sides changed this model" in done.stderr
    assert "CONFLICT (content): Merge conflict in model.safetensors" in done.stdout
    assert (ready.folder / NAME).read_bytes() == ours
    assert ready("diff", "--cached") == "* unmerged: model.safetensors\n"
    # The command that the refusal names works as it stands.
    assert difflens("diff", ":2:model.safetensors", ":3:model.safetensors").code == 1
    ready("checkout", "--theirs", "--", NAME)
    ready("add", NAME)
    ready("commit", "-q", "-m", "merged")


def test_text_under_the_ending_of_a_model_is_shown_and_merged_as_text(ready):
    path = ready.folder / "notes.bin"
    path.write_text("a\nb\nc\nd\ne\n")
    ready.commit("text")
    ready("checkout", "-q", "-b", "side")
    path.write_text("a\nb\nc\nd\nE\n")
    ready.commit("side")
    ready("checkout", "-q", "main")
    path.write_text("A\nb\nc\nd\ne\n")

    assert "-a\n+A\n" in ready("diff")
    ready.commit("main")
    ready("merge", "-q", "side", "-m", "merged")
    assert path.read_text() == "A\nb\nc\nd\nE\n"
    assert "-a\n+A" in ready("log", "-p", "--format=%s", "-1", "HEAD^1")


def test_what_is_no_model_or_broken_is_a_line_and_git_goes_on(ready):
    (ready.folder / "a.safetensors").write_bytes(b"\x00" * 40)
    write(ready.folder / "z.safetensors", arrays(w=[1.0]))
    ready("add", "-A")

    shown = ready("diff", "--cached")

    assert "! cannot be read as a model" in shown
    assert tempfile.gettempdir() not in shown
    assert "+ added: safetensors, 1 tensor" in shown
    ready.commit("both")
    assert "sha256=" in ready("log", "-p", "-1")


def test_links_are_no_models(ready):
    (ready.folder / "link.safetensors").symlink_to("elsewhere")
    ready("add", "-A")

    assert "+elsewhere" in ready("diff", "--cached")


NAMES = [
    "-x",
    "a b",
    "$(touch executed)",
    "é\n\x1b[31m",
    "'\"",
    "`touch executed`",
    ";touch executed;",
]


@pytest.mark.parametrize("name", NAMES)
def test_hostile_names_are_names(ready, name):
    name = f"{name}.safetensors"
    write(ready.folder / name, arrays(**weights(1)))
    ready.commit("one")
    write(ready.folder / name, arrays(**weights(2)))

    shown = ready("diff")

    assert "3 changed, of 3 tensors" in shown
    assert "\x1b" not in shown
    ready("checkout", "-q", "-b", "side")
    ready.commit("side")
    ready("checkout", "-q", "main")
    write(ready.folder / name, arrays(**weights(3)))
    ready.commit("main")
    assert "weights cannot be merged" in ready.run("merge", "side").stderr
    assert not (ready.folder / "executed").exists()


def test_the_code_of_a_repository_is_not_imported(ready):
    for name in ("difflens.py", "click.py", "json.py"):
        (ready.folder / name).write_text("open('executed', 'w')\n")
    write(ready.folder / NAME, arrays(**weights(3)))

    assert "3 changed" in ready("diff", "--", NAME)
    assert not (ready.folder / "executed").exists()


@pytest.mark.usefixtures("git")
def test_git_diff_without_an_index_and_outside_a_repository(difflens, tmp_path, monkeypatch):
    left, right = (
        write(tmp_path / "out" / f"{at}.safetensors", arrays(**weights(at))) for at in (1, 2)
    )
    assert difflens("git", "install", "--global").code == 0
    monkeypatch.chdir(tmp_path / "out")

    done = subprocess.run(
        ["git", "diff", "--no-index", left.name, right.name],
        check=False,
        capture_output=True,
        text=True,
    )

    assert done.returncode == 1
    assert "3 changed, of 3 tensors" in done.stdout


def test_a_subfolder_a_worktree_a_bare_repository_and_a_submodule(ready, tmp_path, monkeypatch):
    ready("worktree", "add", "-q", str(tmp_path / "tree"), "-b", "other")
    (ready.folder / "below").mkdir()
    for folder in (tmp_path / "tree", ready.folder / "below"):
        done = subprocess.run(
            ["git", "diff", "HEAD~1", "HEAD"],
            cwd=folder,
            check=True,
            capture_output=True,
            text=True,
        )
        assert "3 changed, of 3 tensors" in done.stdout
    ready("clone", "-q", "--bare", ".", str(tmp_path / "bare.git"))
    monkeypatch.chdir(tmp_path / "bare.git")
    from difflens import cli

    assert cli._run(["git", "install"]) == 0
    done = subprocess.run(
        ["git", "diff", "HEAD~1", "HEAD"], check=True, capture_output=True, text=True
    )
    assert "3 changed, of 3 tensors" in done.stdout


def test_every_ending_of_a_reader_is_set_up_and_nothing_else(ready):
    for ending in suffixes():
        attributes = ready("check-attr", "diff", "merge", "--", f"x{ending}", f"x{ending}.dvc")
        assert attributes.splitlines()[:3] == [
            f"x{ending}: diff: difflens",
            f"x{ending}: merge: difflens",
            f"x{ending}.dvc: diff: difflens",
        ]
    assert "unspecified" in ready("check-attr", "diff", "--", "x.py")


def state(git: Git) -> dict[str, bytes]:
    """Read what an installation may touch."""
    home = Path(os.environ["HOME"])
    places = [git.folder / ".git" / "config", git.folder / ".git" / "info" / "attributes"]
    places += [path for path in home.rglob("*") if path.is_file()]
    return {str(path): path.read_bytes() for path in places if path.exists()}


BEFORE = {
    "nothing": {},
    "no newline at the end": {"info/attributes": "*.txt text"},
    "settings of others": {
        "info/attributes": "# mine\n*.bin diff=hex merge=ours\n[attr]model -text\n",
        "config": '[diff "hex"]\n\ttextconv = hexdump\n# a remark\n[merge "o"]\n\tdriver = true\n',
    },
    "empty": {"info/attributes": ""},
}


@pytest.mark.parametrize("before", BEFORE)
@pytest.mark.parametrize("scope", ["--local", "--global"])
def test_uninstalling_restores_every_byte(git, difflens, before, scope):
    home = Path(os.environ["HOME"])
    for name, text in BEFORE[before].items():
        path = git.folder / ".git" / name
        path.parent.mkdir(exist_ok=True)
        path.write_text((path.read_text() if name == "config" else "") + text)
        if scope == "--global":
            path = home / (".gitconfig" if name == "config" else ".config/git/attributes")
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text)
    first = state(git)

    assert difflens("git", "install", scope).code == 0
    once = state(git)
    assert difflens("git", "install", scope).code == 0
    assert state(git) == once != first
    assert difflens("git", "install", scope, "--uninstall").code == 0
    assert state(git) == first
    again = difflens("git", "install", scope, "--uninstall")
    assert (again.code, "nothing was set up" in again.out) == (0, True)
    assert state(git) == first


def test_the_user_s_own_line_about_a_file_goes_on_to_count(git, difflens):
    (git.folder / ".git" / "info").mkdir(exist_ok=True)
    (git.folder / ".git" / "info" / "attributes").write_text("*.bin diff=hex\n")

    difflens("git", "install")

    assert "x.bin: diff: hex\nx.bin: merge: difflens" in git(
        "check-attr", "diff", "merge", "--", "x.bin"
    )


def test_global_attributes_go_where_the_user_keeps_them(git, difflens):
    place = Path(os.environ["HOME"]) / "my attributes"
    git("config", "--global", "core.attributesFile", "~/my attributes")

    assert difflens("git", "install", "--global").code == 0

    assert "*.safetensors diff=difflens" in place.read_text()
    assert "diff: difflens" in git("check-attr", "diff", "--", "x.gguf")


def test_outside_a_repository_only_a_global_installation_is_possible(
    tmp_path, monkeypatch, difflens
):
    isolate(tmp_path, monkeypatch)

    refused = difflens("git", "install")

    assert refused.code == 2
    assert "hint: difflens git install --global" in refused.err
    assert difflens("git", "install", "--global").code == 0


@pytest.fixture
def lfs(git):
    if not has_lfs():
        pytest.skip("git-lfs is not installed")
    git("lfs", "install", "--local")
    git("lfs", "track", "*.safetensors")
    for at in (1, 2):
        git.commit(f"{at}", model=weights(at))
    assert "git-lfs" in git("cat-file", "blob", f"HEAD:{NAME}")
    return git


def test_models_of_lfs_are_compared_by_their_real_bytes(lfs, difflens):
    difflens("git", "install")

    assert "3 changed, of 3 tensors" in lfs("diff", "HEAD~1", "HEAD")
    assert "3 changed, of 3 tensors" in lfs("diff", "HEAD~1", "HEAD", GIT_LFS_SKIP_SMUDGE="1")
    assert "3 changed, of 3 tensors" in run("git", "show", cwd=lfs.folder).out
    assert lfs("log", "-p", "-1").count("sha256=") == 6
    assert difflens("diff", f"HEAD~1:{NAME}", f"HEAD:{NAME}").code == 1
    assert difflens("diff", "HEAD", "--", NAME).code == 0
    assert [line.split()[2] for line in difflens("log", NAME).lines] == ["~", "+"]


def test_models_of_lfs_that_were_not_fetched_are_said_to_be_so(
    lfs, difflens, tmp_path, monkeypatch
):
    where = tmp_path / "clone"
    lfs("clone", "-q", str(lfs.folder), str(where), GIT_LFS_SKIP_SMUDGE="1")
    monkeypatch.chdir(where)
    difflens("git", "install")
    monkeypatch.setenv("GIT_LFS_SKIP_SMUDGE", "1")

    def git(*words: str) -> str:
        return subprocess.run(["git", *words], capture_output=True, text=True, check=True).stdout

    shown = git("diff", "HEAD~1", "HEAD")
    assert "! Git LFS has not fetched its bytes; run: git lfs pull" in shown
    assert git("log", "-p", "-1").count("Git LFS has not fetched") == 2
    refused = difflens("diff", "HEAD~1", "HEAD", "--", NAME)
    assert (refused.code, refused.out) == (2, "")
    assert refused.err.startswith(f"difflens: error: HEAD~1:{NAME}: Git LFS has not fetched")
    assert "hint: run: git lfs pull" in refused.err
    listed = difflens("log", NAME)
    assert (listed.code, listed.out.count("Git LFS has not fetched")) == (2, 2)


def test_models_of_dvc_are_compared_by_their_real_bytes(git, difflens):
    from hashlib import md5

    cache = git.folder / ".dvc" / "cache" / "files" / "md5"
    (git.folder / ".gitignore").write_text(f".dvc\n/{NAME}\n")
    for at in (1, 2, 3):
        data = write(git.folder / NAME, arrays(**weights(at))).read_bytes()
        digest = md5(data, usedforsecurity=False).hexdigest()
        if at < 3:
            (cache / digest[:2]).mkdir(parents=True, exist_ok=True)
            (cache / digest[:2] / digest[2:]).write_bytes(data)
        (git.folder / f"{NAME}.dvc").write_text(
            f"outs:\n- md5: {digest}\n  size: {len(data)}\n  hash: md5\n  path: {NAME}\n"
        )
        git.commit(f"{at}")
    difflens("git", "install")

    assert "3 changed, of 3 tensors" in git("diff", "HEAD~2", "HEAD~1")
    assert "DVC has not fetched its bytes; run: dvc pull" in git("diff", "HEAD~1", "HEAD")
    assert difflens("diff", f"HEAD~2:{NAME}", f"HEAD~1:{NAME}").code == 1
    assert difflens("diff", "HEAD~1", "--", NAME).code == 1
    refused = difflens("diff", "HEAD", "--", NAME)
    assert (refused.code, "hint: run: dvc pull" in refused.err) == (2, True)
    assert [line.split()[2] for line in difflens("log", NAME).lines] == ["!", "~", "+"]


def test_two_unreadable_files_have_different_texts(tmp_path, capsys):
    texts = []
    for at in (1, 2):
        path = tmp_path / "m.safetensors"
        path.write_bytes(bytes(100) + bytes([at]))
        as_text(str(path))
        texts.append(capsys.readouterr().out)

    assert texts[0] != texts[1]
    assert not any(str(tmp_path) in text for text in texts)


def test_a_fault_of_ours_does_not_stop_git(tmp_path, capsys, monkeypatch):
    path = write(tmp_path / "m.safetensors", arrays(w=[1.0]))
    monkeypatch.setattr("difflens.cli._git_drivers._models", lambda *_: 1 / 0)

    show_change(("m", str(path), "1", "100644", str(path), "2", "100644"))

    assert "! a fault of difflens itself: ZeroDivisionError" in capsys.readouterr().out


def test_a_reader_who_has_seen_enough_is_no_failure(ready):
    for at in range(20):
        write(ready.folder / f"{at}.safetensors", arrays(**weights(at)))
    ready("add", "-A")

    words = ["sh", "-c", "git --no-pager diff --cached | head -1"]
    done = subprocess.run(words, check=True, capture_output=True, text=True)

    assert done.stdout.startswith("difflens a/0.safetensors")
    assert "difflens" not in done.stderr


def test_colours_follow_git(ready):
    write(ready.folder / NAME, arrays(**weights(3)))

    assert "\x1b[" in ready("-c", "color.ui=always", "diff")
    assert "\x1b[" not in ready("-c", "color.ui=false", "diff")
    assert sys.executable in ready("config", "diff.difflens.command")


def test_the_recipe_can_be_typed_as_it_stands(tmp_path, monkeypatch):
    isolate(tmp_path, monkeypatch)
    page = Path(__file__).parents[2] / "docs" / "recipes" / "git.md"
    blocks = re.findall(r"^```sh\n(.*?)^```$", page.read_text(), re.DOTALL | re.MULTILINE)
    program = 'set -e\ndifflens() { python -P -m difflens "$@"; }\n' + "".join(blocks)
    make(tmp_path)

    done = subprocess.run(
        ["bash", "-c", program], cwd=tmp_path, check=False, capture_output=True, text=True
    )

    assert done.returncode == 0, done.stderr
    assert len(blocks) == 7
    assert "a rank-8 LoRA merged into q_proj and v_proj of all 6 layers" in done.stdout
    assert "weights cannot be merged by lines" in done.stderr
    assert done.stdout.count("difflens a/model.safetensors b/model.safetensors") == 2


def test_models_of_a_submodule_are_shown_from_above(ready, difflens, tmp_path):
    difflens("git", "install", "--global")
    above = Git(tmp_path / "above")
    allowed = ["-c", "protocol.file.allow=always"]
    above(*allowed, "submodule", "add", "-q", str(ready.folder), "sub")
    above.commit("one")
    (ready.folder / "note").write_text("x")
    ready.commit("three", model=weights(3))
    subprocess.run(["git", *allowed, "pull", "-q"], cwd=above.folder / "sub", check=True)

    assert "3 changed, of 3 tensors" in above("diff", "--submodule=diff")
    assert "Subproject commit" in above("diff")
