"""The servers that storage is tested against do what they promise, asked by clients not ours."""

import contextlib
import gzip
import hashlib
import http.client
import json
import os
import random
import re
import ssl
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from threading import Thread
from types import SimpleNamespace
from urllib.parse import urlsplit

import pytest
from hypothesis import given
from hypothesis import strategies as st
from lanes import examples
from storage.conftest import skipping_what_is_missing
from storage.servers.faults import AFTER, BEFORE, INSTEAD
from storage.servers.files import serve_files
from storage.servers.hub import STRANGER, TOKEN, serve_hub
from storage.servers.network import RAY_ENVIRONMENT, RAY_OPTIONS, isolate
from storage.servers.nginx import serve_https

MIB = 1 << 20
DATA = random.Random(21).randbytes(MIB)


@pytest.fixture(scope="module")
def served(tmp_path_factory):
    folder = tmp_path_factory.mktemp("served")
    (folder / "a.bin").write_bytes(DATA)
    (folder / "other name.bin").write_bytes(DATA[::-1])
    (folder / "empty").touch()
    with serve_files(folder) as server:
        yield server


@pytest.fixture
def faulty(folder):
    (folder / "a.bin").write_bytes(DATA)
    (folder / "b.bin").write_bytes(DATA[::-1])
    with serve_files(folder, program="faults") as server:
        yield server


def get(server, path, method="GET", context=None, **headers):
    """Ask once; return the answer and its body."""
    port = server.port
    connection = (
        http.client.HTTPSConnection("127.0.0.1", port, context=context, timeout=10)
        if context
        else http.client.HTTPConnection("127.0.0.1", port, timeout=10)
    )
    with contextlib.closing(connection):
        names = {name.replace("_", "-"): value for name, value in headers.items()}
        connection.request(method, path, headers=names)
        answer = connection.getresponse()
        return answer, answer.read()


# Files.


@examples(100)
@given(first=st.integers(0, MIB + 9), count=st.integers(1, MIB))
def test_a_range_has_the_bytes_that_the_file_has_there(served, first, count):
    answer, body = get(served, "/a.bin", Range=f"bytes={first}-{first + count - 1}")

    if first >= MIB:
        assert (answer.status, answer.getheader("Content-Range")) == (416, f"bytes */{MIB}")
    else:
        last = min(first + count, MIB) - 1
        assert (answer.status, body) == (206, DATA[first : last + 1])
        assert answer.getheader("Content-Range") == f"bytes {first}-{last}/{MIB}"


@pytest.mark.parametrize(
    ("asked", "part"), [("bytes=-7", DATA[-7:]), (f"bytes={MIB - 3}-", DATA[-3:])]
)
def test_a_range_may_be_open_at_one_end(served, asked, part):
    assert get(served, "/a.bin", Range=asked)[1] == part


@pytest.mark.parametrize("asked", ["bytes=1-2,5-6", "lines=1-2", "bytes=x-", "bytes=-"])
def test_a_range_that_is_none_is_answered_with_the_whole_file(served, asked):
    answer, body = get(served, "/a.bin", Range=asked)
    assert (answer.status, body) == (200, DATA)


def test_an_etag_is_the_same_until_the_file_is_replaced(served, folder):
    etag = get(served, "/a.bin", "HEAD")[0].getheader("ETag")
    assert etag == get(served, "/a.bin", Range="bytes=0-1", If_Match=etag)[0].getheader("ETag")
    assert get(served, "/a.bin", If_None_Match=etag)[0].status == 304

    answer, body = get(served, "/a.bin", If_Match='"another"')
    assert (answer.status, body) == (412, b"")

    (folder / "x").write_bytes(b"before")
    with serve_files(folder) as server:
        before = get(server, "/x", "HEAD")[0].getheader("ETag")
        (folder / "new").write_bytes(b"behind")
        (folder / "new").replace(folder / "x")
        assert get(server, "/x", If_Match=before)[0].status == 412


def test_head_says_the_size_and_sends_nothing(served):
    answer, body = get(served, "/a.bin", "HEAD")
    assert (answer.getheader("Content-Length"), body) == (str(MIB), b"")


def test_nothing_outside_the_folder_is_served(served):
    assert [get(served, path)[0].status for path in ("/../conftest.py", "/%2e%2e/x", "/", "/no")] \
        == [404] * 4  # fmt: skip
    assert get(served, "/other%20name.bin")[1] == DATA[::-1]
    assert get(served, "/empty")[1] == b""


def test_a_connection_is_kept_and_everything_is_counted(folder):
    (folder / "a.bin").write_bytes(DATA)
    with (
        serve_files(folder) as server,
        contextlib.closing(http.client.HTTPConnection("127.0.0.1", server.port)) as connection,
    ):
        for number in range(5):
            connection.request("GET", "/a.bin", headers={"Range": f"bytes={number}-{number + 9}"})
            assert connection.getresponse().read() == DATA[number : number + 10]
        counts, requests = server.ask("counts"), server.ask("requests")
        server.ask("reset")
        after = server.ask("counts")

    assert counts == {"requests": 5, "bytes": 50, "connections": 1, "most_open": 1}
    assert after == {"requests": 0, "bytes": 0, "connections": 0, "most_open": 1}
    assert [each["headers"]["range"] for each in requests[:2]] == ["bytes=0-9", "bytes=1-10"]


def test_a_link_has_the_latency_and_the_rate_it_was_told(served):
    count, rate, latency = MIB, 16e6, 0.02
    served.ask("link", latency_seconds=latency, bytes_per_second=rate)
    seconds = []

    def fetch():
        began = time.perf_counter()
        assert get(served, "/a.bin")[1] == DATA
        seconds.append(time.perf_counter() - began)

    threads = [Thread(target=fetch) for _ in range(4)]
    for each in threads:
        each.start()
    for each in threads:
        each.join()
    served.ask("link")

    least = latency + count / rate
    assert len(seconds) == 4
    assert min(seconds) > least * 0.99, "never faster"
    assert min(seconds) < least * 2.5, "and each connection has the whole rate"


def test_https_is_trusted_by_those_who_trust_the_authority(folder, certificates):
    (folder / "a.bin").write_bytes(DATA)
    with serve_files(folder, certificate=certificates.server) as server:
        trusting = ssl.create_default_context(cafile=certificates.authority)
        assert server.url.startswith("https://")
        assert get(server, "/a.bin", context=trusting, Range="bytes=5-600004")[1] == DATA[5:600005]
        with pytest.raises(ssl.SSLCertVerificationError):
            get(server, "/a.bin", context=ssl.create_default_context())


def test_a_server_ends_with_the_test_that_started_it(folder):
    program = (
        "import time; from storage.servers.files import serve_files; from pathlib import Path\n"
        f"print(serve_files(Path({str(folder)!r})).pid, flush=True); time.sleep(60)"
    )
    tests = str(Path(__file__).parents[1])
    with subprocess.Popen(
        [sys.executable, "-c", program], stdout=subprocess.PIPE, text=True,
        env={**os.environ, "PYTHONPATH": tests},
    ) as parent:  # fmt: skip
        assert parent.stdout
        child = int(parent.stdout.readline())
        os.kill(child, 0)
        parent.kill()

    until = time.monotonic() + 10
    while time.monotonic() < until and is_running(child):
        time.sleep(0.01)
    assert not is_running(child)


def is_running(pid):
    """Is this process there, and not a zombie that nobody waits for?"""
    try:
        return b") Z " not in Path(f"/proc/{pid}/stat").read_bytes()
    except FileNotFoundError:
        return False


def test_obstore_reads_ranges_over_http(served):
    from obstore.store import HTTPStore

    store = HTTPStore(served.url, client_options={"allow_http": True})

    assert bytes(store.get_range("a.bin", start=9, length=500)) == DATA[9:509]
    assert [bytes(part) for part in store.get_ranges("a.bin", starts=[1, 900_000], ends=[9, MIB])] \
        == [DATA[1:9], DATA[900_000:]]  # fmt: skip
    assert store.head("a.bin")["e_tag"] == get(served, "/a.bin", "HEAD")[0].getheader("ETag")


def test_an_unknown_command_is_an_error_of_the_test_and_not_the_end_of_the_server(served):
    with pytest.raises(ValueError, match="nonsense"):
        served.ask("nonsense")
    assert get(served, "/a.bin")[0].status == 200


# Faults.


def test_a_fault_falls_on_the_requests_it_names(faulty):
    faulty.ask("fault", kind="status", path="/a*", after=1, times=2)

    assert [get(faulty, "/a.bin")[0].status for _ in range(5)] == [200, 503, 503, 200, 200]
    assert get(faulty, "/b.bin")[0].status == 200

    faulty.ask("fault", kind="status", value=500)
    assert get(faulty, "/b.bin")[0].status == 500
    faulty.ask("clear")
    assert get(faulty, "/b.bin")[0].status == 200


def ask_with(faulty, kind, value=None):
    faulty.ask("clear")
    faulty.ask("fault", kind=kind, value=value)
    return get(faulty, "/a.bin", Range="bytes=100-299", If_Match=ETAG[0])


ETAG = [""]


def check_status(faulty):
    assert ask_with(faulty, "status")[0].status == 503


def check_too_many(faulty):
    answer, _ = ask_with(faulty, "too_many", 2)
    assert (answer.status, answer.getheader("Retry-After")) == (429, "2")


def check_redirect(faulty):
    for target in ("http://10.0.0.1{path}", "http://169.254.169.254/", "{path}"):
        answer, body = ask_with(faulty, "redirect", target)
        location = target.replace("{path}", "/a.bin")
        assert (answer.status, answer.getheader("Location"), body) == (302, location, b"")


def check_login(faulty):
    answer, body = ask_with(faulty, "login")
    assert (answer.status, body[:15]) == (200, b"<!doctype html>")


def check_signed(faulty):
    answer, body = ask_with(faulty, "signed")
    assert (answer.status, b"Request has expired" in body) == (403, True)
    good, past = (faulty.ask("sign", path="/a.bin", seconds=seconds) for seconds in (60, -1))
    assert [get(faulty, target)[0].status for target in (good, past)] == [200, 403]
    assert get(faulty, good.replace("a.bin", "b.bin"))[0].status == 403


def check_no_range(faulty):
    answer, body = ask_with(faulty, "no_range")
    assert (answer.status, body) == (200, DATA)


def check_no_conditions(faulty):
    faulty.ask("fault", kind="no_conditions")
    answer, body = get(faulty, "/a.bin", Range="bytes=0-1", If_Match='"another"')
    assert (answer.status, body) == (206, DATA[:2])


def check_replaced(faulty):
    assert ask_with(faulty, "replaced", "/b.bin")[0].status == 412
    faulty.ask("fault", kind="no_conditions")
    answer, body = get(faulty, "/a.bin", Range="bytes=0-1", If_Match=ETAG[0])
    assert (answer.status, body) == (206, DATA[::-1][:2])
    assert answer.getheader("ETag") == get(faulty, "/b.bin")[0].getheader("ETag") != ETAG[0]


def check_cut(faulty):
    for value, count in ((None, 100), (0, 0), (7, 7)):
        with pytest.raises(http.client.IncompleteRead) as caught:
            ask_with(faulty, "cut", value)
        assert caught.value.partial == DATA[100 : 100 + count]


def check_stall(faulty):
    began = time.monotonic()
    assert ask_with(faulty, "stall", 0.2)[1] == DATA[100:300]
    assert time.monotonic() - began > 0.2


def check_slow_headers(faulty):
    began = time.monotonic()
    assert ask_with(faulty, "slow_headers", 0.2)[1] == DATA[100:300]
    assert time.monotonic() - began > 0.2


def check_content_range(faulty):
    answer, _ = ask_with(faulty, "content_range", "bytes 0-199/7")
    assert (answer.status, answer.getheader("Content-Range")) == (206, "bytes 0-199/7")


def check_shifted(faulty):
    answer, body = ask_with(faulty, "shifted", 3)
    assert answer.getheader("Content-Range") == f"bytes 103-302/{MIB}"
    assert body == DATA[103:303]


def check_weak_etag(faulty):
    assert ask_with(faulty, "weak_etag")[0].getheader("ETag") == f"W/{ETAG[0]}"


def check_no_etag(faulty):
    answer, _ = ask_with(faulty, "no_etag")
    assert answer.getheader("ETag") is None
    assert answer.getheader("Last-Modified")


def check_etag(faulty):
    assert ask_with(faulty, "etag", "nonsense")[0].getheader("ETag") == "nonsense"


def check_no_length(faulty):
    answer, body = ask_with(faulty, "no_length")
    assert (answer.getheader("Content-Length"), body) == (None, DATA[100:300])


def check_chunked(faulty):
    answer, body = ask_with(faulty, "chunked")
    assert (answer.getheader("Transfer-Encoding"), body) == ("chunked", DATA[100:300])


def check_gzip(faulty):
    answer, body = ask_with(faulty, "gzip")
    assert answer.getheader("Content-Encoding") == "gzip"
    assert gzip.decompress(body) == DATA[100:300]


@pytest.mark.parametrize("kind", sorted({*INSTEAD, *BEFORE, *AFTER}))
def test_every_fault_does_what_its_name_says(faulty, kind):
    ETAG[0] = get(faulty, "/a.bin", "HEAD")[0].getheader("ETag")
    globals()[f"check_{kind}"](faulty)
    faulty.ask("clear")
    assert get(faulty, "/a.bin", Range="bytes=100-299")[1] == DATA[100:300]


def test_no_fault_has_an_unknown_name(faulty):
    with pytest.raises(ValueError, match="no fault is called haste"):
        faulty.ask("fault", kind="haste")


# S3.


@pytest.fixture(params=["moto", "s3rver"])
def store(request, folder):
    (folder / "sub").mkdir()
    (folder / "sub" / "a.bin").write_bytes(DATA)
    (folder / "b.txt").write_text("b")
    made = request.getfixturevalue(request.param)
    made.fill(f"bucket-{os.getpid()}", folder, "models/")
    return made


def test_a_bucket_has_what_the_folder_has(store):
    bucket, client = f"bucket-{os.getpid()}", store.client()

    listing = client.list_objects_v2(Bucket=bucket, Prefix="models/")["Contents"]
    part = client.get_object(Bucket=bucket, Key="models/sub/a.bin", Range="bytes=10-29")

    assert [(each["Key"], each["Size"]) for each in listing] == [
        ("models/b.txt", 1), ("models/sub/a.bin", MIB)
    ]  # fmt: skip
    assert (part["ContentRange"], part["Body"].read()) == (f"bytes 10-29/{MIB}", DATA[10:30])
    assert part["ETag"] == client.head_object(Bucket=bucket, Key="models/sub/a.bin")["ETag"]


def test_obstore_reads_ranges_of_both_stores(store):
    from obstore.store import S3Store

    remote = S3Store(
        f"bucket-{os.getpid()}", endpoint=store.url, access_key_id=store.key,
        secret_access_key=store.secret, region="us-east-1", virtual_hosted_style_request=False,
        client_options={"allow_http": True},
    )  # fmt: skip

    assert bytes(remote.get_range("models/sub/a.bin", start=3, length=70)) == DATA[3:73]
    assert (
        remote.head("models/sub/a.bin")["e_tag"].strip('"')
        == hashlib.md5(DATA, usedforsecurity=False).hexdigest()
    )


def test_moto_takes_addresses_that_are_signed_and_have_not_expired(moto, folder):
    (folder / "a b+c").write_bytes(b"1234")
    moto.fill("presigned", folder)

    def ask(store, seconds=60):
        words = {"Bucket": "presigned", "Key": "a b+c"}
        return store.client().generate_presigned_url("get_object", words, seconds)

    def read(address):
        place = urlsplit(address)
        return get(
            SimpleNamespace(port=place.port), f"{place.path}?{place.query}", Range="bytes=1-2"
        )

    def code(address):
        answer, body = read(address)
        return answer.status, re.search(rb"<Code>(\w+)<", body)[1].decode()

    answer, body = read(ask(moto))
    assert (answer.status, body) == (206, b"23")
    assert code(ask(moto, seconds=-1)) == (403, "AccessDenied")
    assert code(ask(moto).replace("a%20b", "a%20c")) == (403, "SignatureDoesNotMatch")
    assert code(ask(moto._replace(secret="no"))) == (403, "SignatureDoesNotMatch")
    assert code(ask(moto._replace(key="nobody"))) == (403, "InvalidAccessKeyId")
    assert code(f"{moto.url}/presigned/a%20b%2Bc") == (403, "AccessDenied")


def test_moto_refuses_who_cannot_sign_and_who_asks_for_another_version(moto, folder):
    from botocore.exceptions import ClientError

    (folder / "a").write_bytes(b"1234")
    moto.fill("guarded", folder)
    for client, words, code in (
        (moto._replace(secret="no").client(), {}, "SignatureDoesNotMatch"),
        (moto.client(), {"IfMatch": '"another"'}, "PreconditionFailed"),
    ):
        with pytest.raises(ClientError) as caught:
            client.get_object(Bucket="guarded", Key="a", **words)
        assert caught.value.response["Error"]["Code"] == code


# nginx.


def test_nginx_serves_ranges_over_tls(folder, tmp_path, certificates):
    (folder / "a.bin").write_bytes(DATA)
    context = ssl.create_default_context(cafile=certificates.authority)
    with skipping_what_is_missing():
        server = serve_https(folder, tmp_path, certificates)
    with server:
        answer, body = get(server, "/a.bin", context=context, Range="bytes=1-300000")
        again, _ = get(server, "/a.bin", context=context, If_Match='"another"')

    assert (answer.status, body) == (206, DATA[1:300001])
    assert again.status == 412
    assert not is_running(server.pid)


# The hub.


@pytest.fixture
def models(folder):
    model = folder / "org" / "model"
    (model / "sub").mkdir(parents=True)
    (model / "config.json").write_text('{"model_type": "test"}')
    for number in range(5):
        (model / f"model-{number}.safetensors").write_bytes(DATA[number:])
    (model / "sub" / "weights.bin").write_bytes(DATA[:99])
    return folder


@pytest.fixture
def hub(models):
    with serve_hub(models) as server:
        yield server


@pytest.fixture
def api(hub):
    from huggingface_hub import HfApi

    return HfApi(endpoint=hub.url, token=False)


def test_the_client_of_the_hub_finds_commit_and_files(api, hub, models):
    info = api.model_info("org/model")
    hub.ask("configure", page=2)
    tree = list(api.list_repo_tree("org/model", recursive=True))

    assert info.sha == api.model_info("org/model", revision=info.sha).sha
    assert {each.rfilename for each in info.siblings} == set(api.list_repo_files("org/model"))
    files = {each.path: each for each in tree if hasattr(each, "size")}
    assert len(files) == 7
    for name, each in files.items():
        data = (models / "org/model" / name).read_bytes()
        assert each.size == len(data)
        assert (each.lfs and each.lfs.sha256) == (
            None if name == "config.json" else hashlib.sha256(data).hexdigest()
        )
    assert [each.path for each in tree if each not in files.values()] == ["sub"]
    below = api.list_repo_tree("org/model", "sub")
    assert [each.path for each in below] == ["sub/weights.bin"]
    assert "sub" in [each.path for each in api.list_repo_tree("org/model")]


def test_the_client_of_the_hub_asks_about_single_files(api):
    (entry,) = api.get_paths_info("org/model", ["model-0.safetensors", "absent"])
    assert (entry.path, entry.size) == ("model-0.safetensors", MIB)
    assert entry.lfs.sha256 == hashlib.sha256(DATA).hexdigest()


def test_the_client_of_the_hub_downloads_a_whole_model(api, models, tmp_path):
    made = Path(api.snapshot_download("org/model", cache_dir=tmp_path))
    original = models / "org/model"
    files = [each.relative_to(original) for each in original.rglob("*") if each.is_file()]
    assert len(files) == 7
    assert all((made / name).read_bytes() == (original / name).read_bytes() for name in files)


def test_the_hub_and_its_storage_have_faults_too(hub, api, tmp_path):
    from huggingface_hub.errors import HfHubHTTPError

    hub.ask("storage_fault", kind="cut", times=1)
    path = api.hf_hub_download("org/model", "model-2.safetensors", cache_dir=tmp_path)
    assert Path(path).read_bytes() == DATA[2:]
    hub.ask("fault", kind="status", value=500)
    with pytest.raises(HfHubHTTPError):
        api.model_info("org/model")


@pytest.mark.parametrize("name", ["config.json", "model-3.safetensors", "sub/weights.bin"])
def test_the_client_of_the_hub_downloads_what_was_put_there(api, hub, models, tmp_path, name):
    data = (models / "org/model" / name).read_bytes()

    path = Path(api.hf_hub_download("org/model", name, cache_dir=tmp_path))

    assert path.read_bytes() == data
    assert api.model_info("org/model").sha in path.parts
    assert (hub.ask("storage_counts")["bytes"] == len(data)) is (name != "config.json")


def test_the_client_of_the_hub_is_led_here_by_its_variable(hub, tmp_path):
    program = "import huggingface_hub as h; print(h.hf_hub_download('org/model', 'config.json'))"
    environment = {"HF_ENDPOINT": hub.url, "HF_HOME": str(tmp_path), "HF_HUB_DISABLE_XET": "1"}
    done = subprocess.run(
        [sys.executable, "-c", program], env={**os.environ, **environment},
        capture_output=True, text=True, check=True,
    )  # fmt: skip
    assert json.loads(Path(done.stdout.strip()).read_text()) == {"model_type": "test"}


def test_a_large_file_lies_at_an_address_that_expires(hub):
    storage = SimpleNamespace(port=hub.about["storage_port"])

    def redirect(valid_seconds):
        hub.ask("configure", valid_seconds=valid_seconds)
        answer, _ = get(hub, "/org/model/resolve/main/model-0.safetensors", "HEAD")
        location = urlsplit(answer.getheader("Location"))
        assert (answer.status, location.port) == (302, storage.port)
        return answer, f"{location.path}?{location.query}"

    answer, target = redirect(60)
    assert hub.port != storage.port
    assert answer.getheader("X-Linked-ETag") == f'"{hashlib.sha256(DATA).hexdigest()}"'
    assert answer.getheader("X-Linked-Size") == str(MIB)
    part, body = get(storage, target, Range="bytes=3-5")
    assert (part.status, body) == (206, DATA[3:6])
    assert get(storage, target, If_Match='"another"')[0].status == 412
    assert get(storage, target.replace("Expires=1", "Expires=2"))[0].status == 403
    _, target = redirect(0)
    assert get(storage, target)[0].status == 403


def test_a_revision_stays_what_it_was_when_main_moves_on(hub, api, tmp_path):
    before = api.model_info("org/model").sha
    (tmp_path / "next").mkdir()
    (tmp_path / "next" / "new.safetensors").write_bytes(b"new")
    after = hub.ask("commit", model="org/model", folder=str(tmp_path / "next"))
    hub.ask("commit", model="org/model", folder=str(tmp_path / "next"), revision="refs/pr/1")

    assert api.model_info("org/model").sha == after != before
    assert api.list_repo_files("org/model") == ["new.safetensors"]
    assert api.list_repo_files("org/model", revision="refs/pr/1") == ["new.safetensors"]
    assert "config.json" in api.list_repo_files("org/model", revision=before)


def test_what_is_hidden_gated_or_absent_is_told_as_the_hub_tells_it(hub, api, tmp_path):
    from huggingface_hub import errors

    def download(model="org/model", name="config.json", **words):
        return api.hf_hub_download(model, name, cache_dir=tmp_path, **words)

    hub.ask("protect", model="org/model", private=True)
    for token in (None, STRANGER):
        with pytest.raises(errors.RepositoryNotFoundError):
            api.model_info("org/model", token=token)
    assert api.model_info("org/model", token=TOKEN).private

    hub.ask("protect", model="org/model", gated=True)
    assert api.model_info("org/model").gated == "manual"
    for token in (None, STRANGER):
        with pytest.raises(errors.GatedRepoError):
            download(token=token)
    assert Path(download(token=TOKEN)).exists()

    hub.ask("protect", model="org/model")
    with pytest.raises(errors.RevisionNotFoundError):
        download(revision="nowhere")
    with pytest.raises(errors.RemoteEntryNotFoundError):
        download(name="nothing.bin")
    with pytest.raises(errors.RepositoryNotFoundError):
        download("org/nothing")


def test_the_client_of_the_hub_sends_its_token_to_the_hub_alone(hub, api, tmp_path):
    api.hf_hub_download("org/model", "model-1.safetensors", token=TOKEN, cache_dir=tmp_path)

    sent = [each["headers"].get("authorization") for each in hub.ask("requests")]
    assert set(sent) == {f"Bearer {TOKEN}"}
    (request,) = hub.ask("storage_requests")
    assert "authorization" not in request["headers"]


# A network of its own.


def test_a_command_can_have_a_network_of_its_own():
    program = (
        "import json, socket; names = [name for _, name in socket.if_nameindex()]\n"
        "with socket.create_server(('127.0.0.1', 0)) as here:\n"
        "    socket.create_connection(here.getsockname()).close()\n"
        "print(json.dumps(names))"
    )
    with skipping_what_is_missing():
        argv = isolate([sys.executable, "-c", program])
    done = subprocess.run(argv, capture_output=True, text=True, check=True)
    assert json.loads(done.stdout) == ["lo"]


@pytest.mark.long
def test_ray_starts_in_a_network_of_its_own():
    program = (
        "import json, sys, ray\n"
        "ray.init(log_to_driver=False, _temp_dir=sys.argv[1], **json.loads(sys.argv[2]))\n"
        "print(ray.get([ray.remote(lambda x: x * x).remote(x) for x in range(9)]))"
    )
    with tempfile.TemporaryDirectory(prefix="ray-") as home:  # its sockets need a short path
        with skipping_what_is_missing():
            argv = isolate([sys.executable, "-c", program, home, json.dumps(RAY_OPTIONS)])
        environment = {**os.environ, **RAY_ENVIRONMENT}
        done = subprocess.run(argv, capture_output=True, text=True, check=False, env=environment)
    assert done.stdout.splitlines()[-1:] == [str([x * x for x in range(9)])], done.stderr
