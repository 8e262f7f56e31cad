"""`difflens snapshot`: versions are recorded from real files, listed by page, shown, removed."""

import json
import subprocess
from pathlib import Path

import pytest
import yaml
from cli.command import InProcess, assert_refused
from models.small import arrays, write

from difflens.versions.records.snapshots import ModelSnapshot


@pytest.fixture(autouse=True)
def _no_store_of_the_user(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("DIFFLENS_STORE", raising=False)


def recorded(difflens: InProcess, name: str, version: str, *options: str) -> None:
    done = difflens("snapshot", "add", name, "--version", version, *options)
    assert done.code == 0, done.err


def shown(difflens: InProcess, key: str) -> ModelSnapshot:
    return ModelSnapshot.from_json(difflens("snapshot", "show", key, "-o", "json").out)


def test_a_snapshot_is_made_of_the_files_that_are_handed_in(
    difflens: InProcess, tmp_path: Path
) -> None:
    write(tmp_path / "m.safetensors", arrays(w=[[1, 0], [3, 4]]))
    Path("m.json").write_text('{"val_accuracy": 0.9, "f1": 0.8}')
    Path("t.json").write_text('{"learning_rate": 0.1, "optimizer": "adam", "warmup": 10}')
    Path("e.csv").write_text("id,score,metric\na,1,exact\nb,0,exact\n")
    Path("s.csv").write_text("seed,metric,value\n0,f1,0.7\n1,f1,0.9\n")
    Path("l.txt").write_text("10\n11\n")
    Path("c.json").write_text('{"vocab_size": 32000, "num_attention_heads": 8}')

    done = difflens(
        "snapshot", "add", "base", "--version", "1.0", "--weights", "m.safetensors",
        "--metrics", "m.json", "--training", "t.json", "--eval", "e.csv", "--replicates", "s.csv",
        "--latency", "l.txt", "--config", "c.json", "--dataset", "wiki", "--data", "e.csv",
        "--hardware", "cpu", "--precision", "F32", "--commit", "4d5e6f7", "--meta", "owner=me",
    )  # fmt: skip

    assert (done.code, done.err) == (0, "")
    assert done.out == "recorded base@1.0: 4 parameters, 4 metrics, .difflens/store.db\n"
    found = shown(difflens, "base@1.0")
    assert (found.metrics.val_accuracy, found.metrics.custom_metrics) == (0.9, {"f1": 0.8})
    assert found.training_config.learning_rate == 0.1
    assert found.training_config.settings == {"warmup": 10}
    assert (found.weights_summary.zero_count, found.weights_summary.max) == (1, 4.0)
    assert found.weights_summary.source == str(tmp_path / "m.safetensors")
    assert found.architecture.parameter_count == 4
    assert found.architecture.vocab_size == 32000
    assert found.replicates == {"f1": (0.7, 0.9)}
    assert found.replicate_ids == ("0", "1")
    assert [each.score for each in found.evals] == [1, 0]
    assert [each.ms for each in found.latency_samples] == [10, 11]
    assert (found.evaluation.n, found.evaluation.dataset) == (2, "wiki")
    assert (found.evaluation.fingerprint or "").startswith("sha256:")
    assert (found.commit_hash, found.metadata) == ("4d5e6f7", {"owner": "me"})


def test_commit_auto_asks_git(difflens: InProcess, tmp_path: Path) -> None:
    who = ["-c", "user.name=n", "-c", "user.email=e"]
    for words in (["init", "-q"], [*who, "commit", "-q", "--allow-empty", "-m", "x"]):
        subprocess.run(["git", *words], cwd=tmp_path, check=True)
    head = subprocess.run(
        ["git", "rev-parse", "HEAD"], cwd=tmp_path, check=True, capture_output=True, text=True
    )

    recorded(difflens, "base", "1", "--commit", "auto")

    assert shown(difflens, "base").commit_hash == head.stdout.strip()


def test_commit_auto_outside_a_repository_is_one_line(difflens: InProcess) -> None:
    done = difflens("snapshot", "add", "base", "--version", "1", "--commit", "auto")

    assert_refused(done, "commit: git says")


def test_versions_are_kept_and_a_name_alone_is_the_newest(difflens: InProcess) -> None:
    for version in ("1", "2", "10"):
        recorded(difflens, "base", version)

    assert shown(difflens, "base").version == "10"
    assert shown(difflens, "base@1").version == "1"


def test_a_version_is_not_overwritten_unless_asked(difflens: InProcess) -> None:
    recorded(difflens, "base", "1")

    again = difflens("snapshot", "add", "base", "--version", "1", "--meta", "a=b")

    assert_refused(again, "base@1 is already recorded")
    recorded(difflens, "base", "1", "--meta", "a=b", "--replace")
    assert shown(difflens, "base").metadata == {"a": "b"}


def test_keep_drops_the_older_versions_of_that_name_alone(difflens: InProcess) -> None:
    for version in ("1", "2"):
        recorded(difflens, "other", version)
        recorded(difflens, "base", version)

    done = difflens("snapshot", "add", "base", "--version", "3", "--keep", "2")

    assert done.lines[-1] == "no longer kept: base@1"
    listed = json.loads(difflens("snapshot", "list", "-o", "json").out)["snapshots"]
    assert sorted((each["name"], each["version"]) for each in listed) == [
        ("base", "2"), ("base", "3"), ("other", "1"), ("other", "2"),
    ]  # fmt: skip


def test_a_list_goes_on_where_its_last_page_ended(difflens: InProcess) -> None:
    for version in range(5):
        recorded(difflens, "base", str(version))

    seen: list[str] = []
    after: list[str] = []
    while True:
        page = json.loads(difflens("snapshot", "list", "--limit", "2", "-o", "json", *after).out)
        seen += [each["version"] for each in page["snapshots"]]
        if page["next_after"] is None:
            break
        after = ["--after", str(page["next_after"])]

    assert seen == ["4", "3", "2", "1", "0"]
    first = difflens("snapshot", "list", "--limit", "2")
    assert first.lines[-1].startswith("2 snapshots; more: --after ")


def test_a_list_of_one_name_has_no_other(difflens: InProcess) -> None:
    recorded(difflens, "base", "1")
    recorded(difflens, "other", "1")

    lines = difflens("snapshot", "list", "other").lines

    assert [line.split()[0] for line in lines if " 1 " in line] == ["other"]


def test_removing_a_name_removes_all_its_versions(difflens: InProcess) -> None:
    for version in ("1", "2"):
        recorded(difflens, "base", version)
    recorded(difflens, "other", "1")

    done = difflens("snapshot", "remove", "base", "-o", "json")

    assert json.loads(done.out) == {"removed": ["base@1", "base@2"]}
    assert_refused(difflens("snapshot", "show", "base"), "no snapshot is called 'base'")
    assert shown(difflens, "other").version == "1"


def test_removing_a_version_leaves_the_others(difflens: InProcess) -> None:
    for version in ("1", "2"):
        recorded(difflens, "base", version)

    done = difflens("snapshot", "remove", "base@2")

    assert done.lines[0] == "removed 1 snapshot from .difflens/store.db"
    assert shown(difflens, "base").version == "1"


def test_the_store_is_where_the_option_or_the_environment_says(
    difflens: InProcess, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    recorded(difflens, "named", "1", "--store", "sqlite:///one.db")
    monkeypatch.setenv("DIFFLENS_STORE", str(tmp_path / "two.db"))
    recorded(difflens, "told", "1")

    assert {path.name for path in tmp_path.iterdir()} >= {"one.db", "two.db"}
    assert "told" in difflens("snapshot", "list").out
    assert "named" in difflens("snapshot", "list", "--store", "one.db").out
    assert not (tmp_path / ".difflens").exists()


def test_no_store_is_made_by_looking(difflens: InProcess, tmp_path: Path) -> None:
    done = difflens("snapshot", "list")

    assert_refused(done, ".difflens/store.db: there is no store")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("words", "reason"),
    [
        (("add", "base"), "missing option '--version'"),
        (("add", " ", "--version", "1"), "name is empty"),
        (("add", "a@b", "--version", "1"), "'@' separates a name from its version"),
        (("add", "a", "--version", ""), "version is empty"),
        (("add", "a", "--version", "1", "--meta", "x"), "--meta takes K=V, not x"),
        (("add", "a", "--version", "1", "--keep", "0"), "'--keep'"),
        (("add", "a", "--version", "1", "--weights", "nowhere.pt"), "nowhere.pt: no such file"),
        (("add", "a", "--version", "1", "--metrics", "bad.json"), "bad.json"),
        (("add", "a", "--version", "1", "--metrics", "high.json"), "val_accuracy is 90"),
        (("add", "a", "--version", "1", "--replicates", "uneven.csv"), "no value for seed '1'"),
        (("add", "a", "--version", "1", "--replicates", "twice.csv"), "stands there already"),
        (("add", "a", "--version", "1", "--store", "mysql://x/y"), "is no store that is known"),
        (("add", "a", "--version", "1", "--store", "."), "is a folder"),
        (("list", "--limit", "0"), "'--limit'"),
        (("nonsense",), "no such command 'nonsense'"),
    ],
)
def test_what_cannot_be_done_is_one_line(
    words: tuple[str, ...], reason: str, difflens: InProcess, tmp_path: Path
) -> None:
    (tmp_path / "bad.json").write_text("[1]")
    (tmp_path / "high.json").write_text('{"val_accuracy": 90}')
    (tmp_path / "uneven.csv").write_text("seed,metric,value\n0,a,1\n1,b,1\n0,b,1\n")
    (tmp_path / "twice.csv").write_text("seed,metric,value\n0,a,1\n0,a,2\n")

    assert_refused(difflens("snapshot", *words), reason)


def test_a_name_that_is_nearly_right_is_suggested(difflens: InProcess) -> None:
    recorded(difflens, "bert-base", "1")

    assert_refused(difflens("snapshot", "show", "bert-bas"), "did you mean bert-base?")


@pytest.mark.parametrize("output", ["cli", "json", "yaml", "markdown"])
@pytest.mark.parametrize("words", [("show", "base"), ("list",), ("remove", "base")])
def test_every_command_writes_every_output_to_a_file(
    words: tuple[str, ...], output: str, difflens: InProcess
) -> None:
    recorded(difflens, "base", "1")

    done = difflens("snapshot", *words, "-o", output, "--out", "result")

    assert (done.code, done.out, done.err) == (0, "", "")
    text = Path("result").read_text()
    assert "base" in text
    if output in ("json", "yaml"):
        assert yaml.safe_load(text)
