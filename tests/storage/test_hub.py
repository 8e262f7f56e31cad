"""Models on the hub: pinned, listed, read through signed redirects; against a stand-in."""

import hashlib
import random
import time

import pytest
from storage.servers.hub import STRANGER, TOKEN, serve_hub

from difflens.core.addresses import locate
from difflens.core.errors import UnreadableFile
from difflens.storage import places

WEIGHTS = random.Random(3).randbytes(700_000)


@pytest.fixture
def hub(folder, tmp_path, monkeypatch):
    model = folder / "org" / "model"
    (model / "part").mkdir(parents=True)
    (model / "model.safetensors").write_bytes(WEIGHTS)
    (model / "part" / "b.safetensors").write_bytes(WEIGHTS[::-1])
    (model / "config.json").write_text("{}")
    with serve_hub(folder) as server:
        monkeypatch.setenv("HF_ENDPOINT", server.url)
        monkeypatch.setenv("HF_HOME", str(tmp_path / "home"))
        for name in ("HF_TOKEN", "HF_HUB_OFFLINE", "HF_HUB_CACHE"):
            monkeypatch.delenv(name, raising=False)
        places.forget()
        yield server
        places.forget()


def asked(server):
    return [each["target"].partition("?")[0] for each in server.ask("requests")]


def test_a_model_is_listed_and_read(hub):
    model = locate("hf://org/model")

    assert places.is_folder(model)
    assert places.names(model) == ["config.json", "model.safetensors", "part"]
    assert places.is_folder(model / "part")
    assert not places.is_folder(model / "none")
    assert places.is_file(model / "part" / "b.safetensors")
    assert not places.is_file(model / "none.json")
    assert places.open_file(model / "model.safetensors").read(5, 600_000) == WEIGHTS[5:600_000]
    assert places.open_file(model / "config.json").read(0, 2) == b"{}"
    assert [target.split("/")[-2] for target in asked(hub)[:2]] == ["revision", "tree"]
    assert len(asked(hub)) == 4


def test_a_revision_stays_the_commit_that_it_was(hub, tmp_path):
    model = places.pin(locate("hf://org/model@main"))
    new = tmp_path / "new"
    new.mkdir()
    (new / "model.safetensors").write_bytes(WEIGHTS[::-1])
    commit = hub.ask("commit", model="org/model", folder=str(new))

    assert len(model.root.partition("@")[2]) == 40
    assert places.open_file(model / "model.safetensors").read(0, 100) == WEIGHTS[:100]
    assert places.open_file(model / "model.safetensors").path.root == model.root
    moved = locate(f"hf://org/model@{commit}/model.safetensors")
    assert places.open_file(moved).read(0, 100) == WEIGHTS[::-1][:100]


def test_a_pinned_address_is_not_looked_up(hub):
    pinned = places.pin(locate("hf://org/model"))
    hub.ask("reset")

    assert places.pin(pinned) == pinned
    assert asked(hub) == []


@pytest.mark.usefixtures("hub")
def test_the_hash_of_a_large_file_is_known_without_reading_it():
    model = locate("hf://org/model")

    file = places.open_file(model / "model.safetensors")

    assert file.content_hash == hashlib.sha256(WEIGHTS).hexdigest()
    assert places.open_file(model / "config.json").content_hash is None


def test_all_ranges_use_one_signed_address(hub):
    file = places.open_file(locate("hf://org/model/model.safetensors"))
    hub.ask("reset")

    assert file.read(200_000, 300_000) + file.read(300_000, 400_000) == WEIGHTS[200_000:400_000]
    assert asked(hub) == []


def test_an_address_that_expired_is_signed_again(hub):
    hub.ask("configure", valid_seconds=0.3)
    file = places.open_file(locate("hf://org/model/model.safetensors"))
    hub.ask("storage_fault", kind="signed", value=None)  # checks each target by itself
    hub.ask("reset")
    time.sleep(0.4)

    assert file.read(200_000, 300_000) == WEIGHTS[200_000:300_000]
    assert len(asked(hub)) == 1


def test_a_listing_of_many_pages_is_read_to_its_end(hub):
    hub.ask("configure", page=2)

    assert places.names(locate("hf://org/model")) == ["config.json", "model.safetensors", "part"]


@pytest.mark.parametrize("variable", ["HF_TOKEN", "HUGGINGFACE_HUB_TOKEN"])
def test_a_private_model_is_read_with_the_token_of_the_environment(hub, monkeypatch, variable):
    hub.ask("protect", model="org/model", private=True)
    address = locate("hf://org/model/model.safetensors")
    with pytest.raises(UnreadableFile, match="no such model on the hub, or it is private"):
        places.open_file(address)

    monkeypatch.setenv(variable, TOKEN)
    assert places.open_file(address).read(0, 9) == WEIGHTS[:9]


def test_the_token_of_the_login_is_used(hub, tmp_path):
    hub.ask("protect", model="org/model", private=True)
    (tmp_path / "home").mkdir()
    (tmp_path / "home" / "token").write_text(f"{TOKEN}\n")

    assert places.open_file(locate("hf://org/model/config.json")).size == 2


def test_the_token_goes_to_the_hub_only(hub, monkeypatch):
    monkeypatch.setenv("HF_TOKEN", TOKEN)

    places.open_file(locate("hf://org/model/model.safetensors"))

    assert all("authorization" in each["headers"] for each in hub.ask("requests"))
    stored = hub.ask("storage_requests")
    assert stored
    assert not any("authorization" in each["headers"] for each in stored)


def test_a_gated_model_says_what_to_do(hub, monkeypatch):
    hub.ask("protect", model="org/model", gated=True)
    monkeypatch.setenv("HF_TOKEN", STRANGER)

    with pytest.raises(UnreadableFile, match="agree to terms") as caught:
        places.open_file(locate("hf://org/model/model.safetensors"))
    assert STRANGER not in str(caught.value)


@pytest.mark.usefixtures("hub")
def test_what_is_not_on_the_hub_is_one_line():
    with pytest.raises(UnreadableFile, match="no such model on the hub"):
        places.names(locate("hf://org/none"))
    with pytest.raises(UnreadableFile, match="no such revision"):
        places.names(locate("hf://org/model@none"))
    with pytest.raises(UnreadableFile, match="no such file"):
        places.open_file(locate("hf://org/model/none"))


def test_offline_the_cache_is_read_and_nothing_is_asked(hub, tmp_path, monkeypatch):
    commit = "1" * 40
    folder = tmp_path / "home" / "hub" / "models--org--model"
    (folder / "snapshots" / commit).mkdir(parents=True)
    (folder / "snapshots" / commit / "a.bin").write_bytes(b"cached")
    (folder / "refs").mkdir()
    (folder / "refs" / "main").write_text(commit)
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")

    assert places.pin(locate("hf://org/model")) == folder / "snapshots" / commit
    assert places.open_file(locate("hf://org/model/a.bin")).read(0, 6) == b"cached"
    assert places.open_file(locate(f"hf://org/model@{commit}/a.bin")).size == 6
    with pytest.raises(UnreadableFile, match="not in the cache"):
        places.open_file(locate("hf://org/model@other/a.bin"))
    assert asked(hub) == []


@pytest.mark.usefixtures("hub")
def test_a_token_that_cannot_be_one_is_refused_and_not_shown(monkeypatch):
    monkeypatch.setenv("HF_TOKEN", "secret\nX-Evil: 1")

    with pytest.raises(UnreadableFile, match="characters that no token has") as caught:
        places.names(locate("hf://org/model"))
    assert "secret" not in str(caught.value)
