"""`difflens diff` of models in Git revisions: by `REV:PATH`, and by `REV [REV] -- PATH`."""

import json
import shutil
import subprocess
from pathlib import Path

import pytest
from cli.command import assert_refused
from git_repositories import NAME, Git, isolate, weights
from models.small import arrays, write


@pytest.fixture
def git(tmp_path, monkeypatch, difflens):  # noqa: ARG001  it changes the folder first
    isolate(tmp_path, monkeypatch)
    git = Git(tmp_path / "repo")
    monkeypatch.chdir(git.folder)
    for at in (1, 2, 3):
        git.commit(f"{at}", model=weights(at))
    git("tag", "v1", "HEAD~2")
    return git


def rows(difflens, *words: str) -> list[str]:
    """Return the rows of a diff as JSON text, which hold figures of every tensor."""
    outcome = difflens("diff", "-o", "json", *words)
    assert outcome.code in (0, 1), outcome.err
    return sorted(json.dumps(each) for each in json.loads(outcome.out))


@pytest.mark.usefixtures("git")
def test_every_way_to_name_two_revisions_is_the_diff_of_their_files(difflens, tmp_path):
    one, two = (write(tmp_path / f"{at}.safetensors", arrays(**weights(at))) for at in (1, 2))
    expected = rows(difflens, str(one), str(two))

    assert len(expected) == 3
    for words in (
        [f"v1:{NAME}", f"HEAD~1:{NAME}"],
        [f"v1:./{NAME}", f"HEAD~1:{NAME}"],
        ["v1", "HEAD~1", "--", NAME],
        ["v1..HEAD~1", "--", NAME],
        [f"v1:{NAME}", str(two)],
        [str(one), f"HEAD^{{/2}}:{NAME}"],
    ):
        assert rows(difflens, *words) == expected


def test_one_revision_is_compared_with_the_working_tree_and_the_index(git, difflens):
    write(git.folder / NAME, arrays(**weights(9)))
    git("add", NAME)
    write(git.folder / NAME, arrays(**weights(3)))

    assert difflens("diff", "HEAD", "--", NAME).code == 0
    assert difflens("HEAD", "--", NAME).code == 0
    assert difflens("diff", "HEAD~1", "--", NAME).code == 1
    assert difflens("diff", f":{NAME}", NAME).code == 1
    assert difflens("diff", f"HEAD:{NAME}", NAME).code == 0
    assert difflens("diff", f":0:{NAME}", f":{NAME}").code == 0


def test_paths_after_the_dashes_count_from_the_current_folder(git, difflens, monkeypatch):
    below = git.folder / "below"
    below.mkdir()
    monkeypatch.chdir(below)

    assert difflens("diff", "HEAD~1", "--", f"../{NAME}").code == 1
    assert difflens("diff", f"HEAD~1:{NAME}", f"HEAD:../{NAME}").code == 1
    assert difflens("diff", f"HEAD~1:{NAME}", f"HEAD:./{NAME}").code == 2


def test_reports_and_errors_speak_of_revisions_and_not_of_temporary_files(git, difflens):
    (git.folder / "bad.safetensors").write_bytes(bytes(100))
    git.commit("bad")

    report = json.loads(difflens("diff", "v1", "HEAD", "--", NAME, "-o").out or "{}")
    assert report == {}  # options stand before the dashes, as git has it
    found = difflens("diff", "-o", "full-json", "v1", "HEAD", "--", NAME)
    assert json.loads(found.out)["left"]["path"] == f"v1:{NAME}"
    assert json.loads(found.out)["right"]["path"] == f"HEAD:{NAME}"
    assert difflens("diff", "--brief", "v1", "HEAD", "--", NAME).out == (
        f"Files v1:{NAME} and HEAD:{NAME} differ\n"
    )
    assert_refused(difflens("diff", "HEAD:bad.safetensors", NAME), "error: HEAD:bad.safetensors: ")


def test_a_model_in_shards_is_read_from_a_folder_of_a_revision(git, difflens):
    model = weights(1)
    index = {"weight_map": {name: f"{at}.safetensors" for at, name in enumerate(model)}}
    for change in (0, 1):
        for at, (name, values) in enumerate(model.items()):
            write(git.folder / "m" / f"{at}.safetensors", arrays(**{name: values + change}))
        (git.folder / "m" / "model.safetensors.index.json").write_text(json.dumps(index))
        git.commit("shards")

    assert "3 changed, of 3 tensors" in difflens("diff", "HEAD~1:m/", "HEAD:m").out
    assert difflens("diff", "HEAD~1", "--", "m").code == 1
    assert difflens("diff", "HEAD", "--", "m").code == 0
    by_index = "m/model.safetensors.index.json"
    assert "3 changed, of 3 tensors" in difflens("diff", "HEAD~1", "HEAD", "--", by_index).out
    assert difflens("diff", "-r", "HEAD~1", "HEAD", "--", "m").code == 1


def test_two_folders_of_models_name_the_revision_that_lacks_one(git, difflens):
    write(git.folder / "m" / "a.safetensors", arrays(w=[1.0]))
    git.commit("a")
    write(git.folder / "m" / "b.safetensors", arrays(w=[1.0]))
    git.commit("b")

    shown = difflens("diff", "-r", "HEAD~1:m", "HEAD:m")

    assert "Only in HEAD:m: b.safetensors" in shown.out
    assert str(git.folder) not in shown.out
    (git.folder / "m" / "b.safetensors").write_bytes(bytes(40))
    git.commit("broken")
    broken = difflens("diff", "-r", "HEAD~1:m", "HEAD:m")
    assert "difflens: error: HEAD:m/b.safetensors: " in broken.err


def test_the_config_beside_a_model_is_that_of_its_revision(git, difflens):
    for rope in (10_000, 500_000):
        (git.folder / "config.json").write_text(json.dumps({"rope_theta": rope}))
        git.commit("config")

    assert "rope_theta" in difflens("diff", "HEAD~1", "HEAD", "--", NAME).out


@pytest.mark.usefixtures("git")
def test_what_exists_as_a_file_is_a_file(difflens):
    shutil.copy(NAME, "v1:x")
    Path("HEAD").mkdir()

    assert difflens("diff", "v1:x", NAME).code == 0
    assert difflens("diff", NAME, "--", NAME).code == 0  # no revision has the name of the first
    assert difflens("diff", "--", NAME, "v1:x").code == 0
    assert difflens("diff", "HEAD", "--", NAME).code == 0  # git decides where both exist


@pytest.mark.parametrize(
    ("words", "reason"),
    [
        (["nope:model.safetensors", NAME], "nope: this is no revision here"),
        (["HEAD:nope.bin", NAME], "HEAD:nope.bin: that revision holds no such file"),
        (["HEAD:../x", NAME], "outside the repository"),
        (["HEAD:/etc/passwd", NAME], "outside the repository"),
        (["nope", "--", NAME], "nope: this is no revision"),
        (["HEAD", "HEAD", "HEAD", "--", NAME], "one or two revisions"),
        (["HEAD..HEAD", "HEAD", "--", NAME], "one or two revisions"),
        (["HEAD", "--", NAME, NAME], "one path"),
        (["HEAD", "--", "nope.bin"], "no such file"),
        ([NAME, NAME, NAME], "a diff takes two models"),
        (["--", "--output=executed:m", NAME], "cannot be called like this"),
        (["HEAD:", "HEAD~1:"], "different"),
    ],
)
@pytest.mark.usefixtures("git")
def test_mistakes_are_one_clear_line(difflens, words, reason):
    if words[0] == "HEAD:":  # the whole of a revision is a folder like any other
        assert difflens("diff", "-q", *words).code == 1
        return
    assert_refused(difflens("diff", *words), reason)


def test_outside_a_repository_a_colon_is_a_part_of_a_path(tmp_path, monkeypatch, difflens):
    isolate(tmp_path, monkeypatch)

    assert_refused(
        difflens("diff", "v1:m.safetensors", "m.safetensors"), "v1:m.safetensors: no such"
    )


def test_nothing_is_left_in_the_repository(git, difflens):
    before = {path for path in git.folder.rglob("*") if ".git/objects" not in str(path)}

    difflens("diff", "v1", "HEAD", "--", NAME)
    difflens("diff", "v1:nope", NAME)
    difflens("log", NAME)

    assert {path for path in git.folder.rglob("*") if ".git/objects" not in str(path)} == before
    assert git("status", "--porcelain") == ""


def test_a_shallow_clone_says_how_to_get_more(git, difflens, tmp_path, monkeypatch):
    where = tmp_path / "shallow"
    subprocess.run(
        ["git", "clone", "-q", "--depth=1", f"file://{git.folder}", str(where)], check=True
    )
    monkeypatch.chdir(where)

    assert_refused(difflens("diff", "HEAD~1", "--", NAME), "git fetch --unshallow")
