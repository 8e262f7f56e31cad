"""The commands on addresses: the same answers as on this machine, from servers on loopback."""

import json
import shutil
import signal
import time

import numpy as np
import pytest
from buckets import DATA, sample_path  # noqa: F401  a fixture
from cli.command import assert_refused, start
from models.small import arrays, write
from storage.servers.files import serve_files
from storage.servers.hub import TOKEN, serve_hub
from storage.servers.s3 import serve_moto

from difflens.core.addresses import ALLOW_HTTP
from difflens.storage import places

SHARDS = [f"model-{at:05}-of-00003.safetensors" for at in (1, 2, 3)]


@pytest.fixture(autouse=True)
def _no_memory_of_other_servers(monkeypatch):
    monkeypatch.delenv(ALLOW_HTTP, raising=False)
    places.forget()
    yield
    places.forget()


@pytest.fixture(scope="module")
def moto():
    server, store = serve_moto()
    with server:
        yield store


@pytest.fixture
def bucket(moto, monkeypatch):
    """Return what fills the bucket from a folder, and the names the client needs."""
    for name, value in moto.environment().items():
        monkeypatch.setenv(name, value)
    return moto


def sharded(folder, shift=0.0):
    """Write a model in three shards; the second one is shifted. With its config and tokenizer."""
    for at, name in enumerate(SHARDS):
        values = np.full((64, 64), at + 1.0 + shift * (at == 1))
        write(folder / name, arrays(**{f"layers.{at}.weight": values}))
    weight_map = {f"layers.{at}.weight": name for at, name in enumerate(SHARDS)}
    index = json.dumps({"weight_map": weight_map})
    (folder / "model.safetensors.index.json").write_text(index)
    (folder / "config.json").write_text(json.dumps({"hidden_size": 64, "rope_theta": 1e4 + shift}))
    vocabulary = {"model": {"type": "BPE", "vocab": {"a": 0, "b": 1}, "merges": []}}
    (folder / "tokenizer.json").write_text(json.dumps(vocabulary))
    return folder


def changed(path, folder):
    """Copy a sample with its neighbours, and change the last byte of its data."""
    copy = folder / path.parent.name
    shutil.copytree(path.parent, copy)
    return copy / path.name


def test_every_format_is_shown_alike_here_and_over_http(difflens, sample_path, tmp_path):  # noqa: F811
    name = sample_path.relative_to(tmp_path).as_posix()
    with serve_files(tmp_path) as server:
        far = f"{server.url}/{name}"
        there = difflens("show", far, "--stats", "-o", "json", "--allow-http")
    here = difflens("show", sample_path, "--stats", "-o", "json")

    assert there.code == here.code
    assert there.err.replace(far, str(sample_path)) == here.err
    shown = json.loads(there.out.replace(server.url, str(tmp_path)))
    assert shown == json.loads(here.out)
    assert shown["tensors"]


def test_every_format_is_compared_alike_here_and_over_http(
    difflens,
    sample_path,  # noqa: F811
    tmp_path,
):
    other = write(tmp_path / "other.safetensors", DATA)
    name = sample_path.relative_to(tmp_path).as_posix()
    with serve_files(tmp_path) as server:
        sides = f"{server.url}/{name}", f"{server.url}/other.safetensors"
        there = difflens(*sides, "-o", "full-json", "--allow-http")
    here = difflens(sample_path, other, "-o", "full-json")

    assert there.code == here.code
    assert there.err.replace(server.url, str(tmp_path)) == here.err
    assert json.loads(there.out.replace(server.url, str(tmp_path))) == json.loads(here.out)


def test_tensors_that_lie_together_are_fetched_together(difflens, tmp_path):
    for side, shift in (("left", 0.0), ("right", 1.0)):
        model = {f"layers.{at}.weight": np.full((256, 256), at + shift) for at in range(40)}
        write(tmp_path / f"{side}.safetensors", arrays(**model))
    with serve_files(tmp_path) as server:
        sides = [f"{server.url}/{side}.safetensors" for side in ("left", "right")]
        outcome = difflens(*sides, "--allow-http")
        counts = server.ask("counts")

    assert outcome.code == 1
    assert counts["requests"] <= 12
    assert counts["bytes"] <= 1.02 * 2 * 40 * 256 * 256 * 4


def test_sharded_folders_in_a_bucket_are_compared_as_on_disk(difflens, bucket, tmp_path):
    sides = [sharded(tmp_path / "left"), sharded(tmp_path / "right", 0.5)]
    bucket.fill("compared", tmp_path)
    far = "s3://compared"

    there = difflens(f"{far}/left", f"{far}/right", "-o", "full-json", "--all-analyses")
    here = difflens(*sides, "-o", "full-json", "--all-analyses")

    assert there.code == here.code == 1
    compared = json.loads(there.out.replace(far, str(tmp_path)))
    expected = json.loads(here.out)
    for each in compared["analyses"], expected["analyses"]:
        each[:] = [one for one in each if one["name"] != "inference_speed_estimate"]
    assert compared == expected
    assert [row["kind"] for row in compared["tensors"]] == ["identical", "changed", "identical"]


def test_models_below_a_prefix_are_compared_one_by_one(difflens, bucket, tmp_path):
    for side, shift in (("before", 0.0), ("after", 0.5)):
        sharded(tmp_path / side / "a", shift)
        write(tmp_path / side / "b" / "m.safetensors", arrays(w=[1.0]))
    write(tmp_path / "after" / "c.safetensors", arrays(w=[1.0]))
    bucket.fill("deep", tmp_path)

    there = difflens("-r", "s3://deep/before", "s3://deep/after")
    here = difflens("-r", tmp_path / "before", tmp_path / "after")

    assert there.code == here.code == 1
    assert there.out.replace("s3://deep", str(tmp_path)) == here.out


def test_check_and_snapshot_take_addresses(difflens, bucket, tmp_path):
    sharded(tmp_path / "good")
    write(tmp_path / "bad" / "m.safetensors", arrays(w=[np.nan, 1.0]))
    bucket.fill("checked", tmp_path)

    assert difflens("check", "s3://checked/good").code == 0
    assert difflens("check", "s3://checked/bad/m.safetensors").code == 1
    assert_refused(difflens("check", "s3://checked/none.safetensors"), "no such file")
    added = difflens("snapshot", "add", "model", "--version", "1", "--weights", "s3://checked/good")
    assert added.code == 0
    shown = difflens("snapshot", "show", "model@1", "-o", "json").out
    assert '"s3://checked/good"' in shown


def test_a_report_names_the_commit_that_was_read_and_no_token(difflens, tmp_path, monkeypatch):
    sharded(tmp_path / "org" / "left")
    sharded(tmp_path / "org" / "right", 0.5)
    with serve_hub(tmp_path) as server:
        monkeypatch.setenv("HF_ENDPOINT", server.url)
        monkeypatch.setenv("HF_TOKEN", TOKEN)
        monkeypatch.setenv("HF_HOME", str(tmp_path / "home"))
        outcome = difflens("hf://org/left", "hf://org/right@main", "-o", "full-json", "--debug")
        text = difflens("hf://org/left", "hf://org/right@main").out

    report = json.loads(outcome.out)
    assert outcome.code == 1
    for side in ("left", "right"):
        name, _, commit = report[side]["path"].partition("@")
        assert name == f"hf://org/{side}"
        assert len(commit) == 40
        assert f"{side}: hf://org/{side}@{commit}\n" in text
    assert TOKEN not in outcome.out + outcome.err


def test_shards_of_one_hash_on_the_hub_are_not_read(difflens, tmp_path, monkeypatch):
    sharded(tmp_path / "org" / "left")
    shutil.copytree(tmp_path / "org" / "left", tmp_path / "org" / "right")
    for side, value in (("left", 0.0), ("right", 1.0)):
        large = arrays(**{"layers.1.weight": np.full((600, 600), value)})
        write(tmp_path / "org" / side / SHARDS[1], large)
    with serve_hub(tmp_path) as server:
        monkeypatch.setenv("HF_ENDPOINT", server.url)
        monkeypatch.setenv("HF_HOME", str(tmp_path / "home"))
        outcome = difflens("hf://org/left", "hf://org/right")

    assert outcome.code == 1
    assert "3 tensors: 1 changed, 2 identical" in outcome.out


def test_http_is_refused_until_it_is_allowed(difflens, tmp_path):
    write(tmp_path / "m.safetensors", arrays(w=[1.0]))
    with serve_files(tmp_path) as server:
        refused = difflens("show", f"{server.url}/m.safetensors")
        assert server.ask("counts")["requests"] == 0
        allowed = difflens("show", f"{server.url}/m.safetensors", "--allow-http")

    assert_refused(refused)
    assert "--allow-http" in refused.err
    assert allowed.code == 0


@pytest.mark.parametrize("command", ["show", "check"])
def test_a_signed_address_is_read_and_its_signature_is_not_shown(difflens, tmp_path, command):
    write(tmp_path / "m.safetensors", arrays(w=[1.0]))
    with serve_files(tmp_path) as server:
        address = f"{server.url}/m.safetensors?X-Signature=secret"
        outcome = difflens(command, address, "--allow-http", "--debug", "-o", "json")
        failed = difflens(command, address.replace("m.s", "n.s"), "--allow-http", "--debug")

    assert outcome.code == 0
    assert failed.code == 2
    assert "secret" not in outcome.out + outcome.err + failed.out + failed.err


@pytest.mark.parametrize(
    "arguments", [("patch", "create"), ("blame",), ("bisect",)], ids=lambda each: each[0]
)
def test_commands_that_write_or_run_models_want_them_here(difflens, arguments):
    outcome = difflens(*arguments, "s3://bucket/a.safetensors", "s3://bucket/b.safetensors")

    assert outcome.code == 2
    assert outcome.out == ""


@pytest.mark.parametrize("moment", ["opening", "reading"])
def test_ctrl_c_ends_within_a_second_while_the_server_stalls(tmp_path, moment):
    for side, value in (("a", 1.0), ("b", 2.0)):
        write(tmp_path / f"{side}.safetensors", arrays(w=np.full(2_000_000, value)))
    with serve_files(tmp_path, program="faults") as server:
        after = 0 if moment == "opening" else 2  # the first request for each is the header
        for side in "ab":
            path = f"/{side}.safetensors"
            server.ask("fault", kind="stall", value=60, path=path, after=after // 2)
        sides = [f"{server.url}/{side}.safetensors" for side in "ab"]
        process = start(*sides, "--allow-http")
        while server.ask("counts")["requests"] <= after:
            time.sleep(0.01)
            assert process.poll() is None
        time.sleep(0.3)
        process.send_signal(signal.SIGINT)
        began = time.monotonic()
        out, err = process.communicate(timeout=30)

    assert time.monotonic() - began < 1
    assert (process.returncode, out, err.strip()) == (130, "", "")
