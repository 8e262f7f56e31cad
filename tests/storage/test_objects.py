"""Buckets, on a server that speaks S3."""

import http.server
import json
import pickle
import signal
import socket
import subprocess
import sys
import threading
import time

import pytest

from difflens.core.addresses import locate
from difflens.core.errors import UnreadableFile
from difflens.storage import places
from difflens.storage.stores import STORES

ODD = "a b+c%41#é?.bin"


@pytest.fixture(params=["moto", "s3rver"])
def bucket(request, monkeypatch):
    """A bucket in each of two servers; the settings lead there."""
    store = request.getfixturevalue(request.param)
    for name, value in store.environment().items():
        monkeypatch.setenv(name, value)
    places.forget()
    client = store.client()
    if not any(each["Name"] == "bucket" for each in client.list_buckets()["Buckets"]):
        client.create_bucket(Bucket="bucket")
    for key in (f"m/{ODD}", "m/empty", "m/sub/x"):
        client.put_object(Bucket="bucket", Key=key, Body=key.encode() * (key != "m/empty"))
    yield store
    places.forget()


@pytest.mark.usefixtures("bucket")
def test_files_of_a_bucket_are_read_and_listed():
    folder = locate("s3://bucket/m")

    assert places.names(folder) == [ODD, "empty", "sub"]
    assert places.is_folder(folder)
    assert places.is_folder(folder / "sub")
    assert not places.is_folder(folder / ODD)
    assert places.is_file(folder / ODD)
    assert not places.is_file(folder / "sub")
    assert not places.is_file(folder / "none")
    file = places.open_file(folder / ODD)
    assert file.read(0, file.size) == f"m/{ODD}".encode()
    assert places.open_file(folder / "empty").size == 0


@pytest.mark.usefixtures("bucket")
def test_what_is_not_there_is_one_line():
    with pytest.raises(UnreadableFile, match="s3://bucket/none: no such file"):
        places.open_file(locate("s3://bucket/none"))
    with pytest.raises(UnreadableFile, match="s3://no-bucket/x: no such bucket"):
        places.open_file(locate("s3://no-bucket/x"))
    with pytest.raises(UnreadableFile, match="no such bucket"):
        places.names(locate("s3://no-bucket/x"))


def test_no_credential_is_in_a_pickled_file(bucket):
    file = places.open_file(locate("s3://bucket/m/sub/x"))

    text = pickle.dumps(file) + repr(file).encode() + repr(vars(file)).encode()

    assert bucket.secret.encode() not in text
    assert bucket.key.encode() not in text
    assert b"Signature" not in text


def test_a_wrong_key_is_denied_in_one_line_that_does_not_show_it(moto, monkeypatch):
    for name, value in {**moto.environment(), "AWS_SECRET_ACCESS_KEY": "WRONGSECRET"}.items():
        monkeypatch.setenv(name, value)
    places.forget()
    for action in (places.names, places.open_file):
        with pytest.raises(UnreadableFile, match="denies access: 403") as caught:
            action(locate("s3://bucket/m/sub"))
        assert "WRONGSECRET" not in str(caught.value)
        assert moto.key not in str(caught.value)
    assert not places.is_folder(locate("s3://bucket/m"))
    places.forget()


def test_public_files_are_read_without_credentials(s3rver, monkeypatch):
    client = s3rver.client()
    client.create_bucket(Bucket="public")
    client.put_object(Bucket="public", Key=f"m/{ODD}", Body=b"open")
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_PROFILE"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("AWS_ENDPOINT_URL", s3rver.url)
    monkeypatch.setenv("AWS_SKIP_SIGNATURE", "true")
    places.forget()

    address = locate(f"s3://public/m/{ODD}")
    assert places.names(address.parent) == [ODD]
    assert places.open_file(address).read(0, 4) == b"open"
    link = STORES.store(address).link(address)
    assert "?" not in link.url
    places.forget()


def test_an_empty_key_is_no_key(s3rver, monkeypatch):
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"):
        monkeypatch.setenv(name, "")
    monkeypatch.setenv("AWS_EC2_METADATA_DISABLED", "true")
    monkeypatch.setenv("AWS_SHARED_CREDENTIALS_FILE", "/nowhere")
    monkeypatch.setenv("AWS_CONFIG_FILE", "/nowhere")
    monkeypatch.setenv("AWS_ENDPOINT_URL", s3rver.url)
    monkeypatch.delenv("AWS_PROFILE", raising=False)
    monkeypatch.setattr("boto3.DEFAULT_SESSION", None)
    places.forget()

    address = locate("s3://public/a")
    assert "?" not in STORES.store(address).link(address).url
    places.forget()


def test_who_waits_for_a_listing_hears_ctrl_c(monkeypatch):
    """The store never answers, and obstore would wait for it outside of Python."""
    with socket.create_server(("127.0.0.1", 0)) as silent:
        for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_REGION"):
            monkeypatch.setenv(name, "x")
        monkeypatch.setenv("AWS_ENDPOINT_URL", f"http://127.0.0.1:{silent.getsockname()[1]}")
        argv = [sys.executable, "-m", "difflens", "show", "s3://bucket/m"]
        pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
        with subprocess.Popen(argv, **pipes) as process, silent.accept()[0]:
            process.send_signal(signal.SIGINT)
            began = time.monotonic()
            assert process.wait(20) == 130
            assert time.monotonic() - began < 1


def test_a_profile_is_found_by_boto3(moto, tmp_path, monkeypatch):
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"):
        monkeypatch.delenv(name, raising=False)
    (tmp_path / "credentials").write_text(
        f"[mine]\naws_access_key_id = {moto.key}\naws_secret_access_key = {moto.secret}\n"
    )
    (tmp_path / "config").write_text("[profile mine]\nregion = us-east-1\n")
    monkeypatch.setenv("AWS_SHARED_CREDENTIALS_FILE", str(tmp_path / "credentials"))
    monkeypatch.setenv("AWS_CONFIG_FILE", str(tmp_path / "config"))
    monkeypatch.setenv("AWS_PROFILE", "mine")
    monkeypatch.setenv("AWS_ENDPOINT_URL", moto.url)
    monkeypatch.setattr("boto3.DEFAULT_SESSION", None)  # it remembers other files
    client = moto.client()
    client.create_bucket(Bucket="profiled")
    client.put_object(Bucket="profiled", Key="a", Body=b"x")
    places.forget()

    assert places.names(locate("s3://profiled")) == ["a"]
    assert places.open_file(locate("s3://profiled/a")).read(0, 1) == b"x"
    places.forget()


def test_a_file_of_google_is_asked_for_with_a_signature(s3rver, tmp_path, monkeypatch):
    """Another server stands in for Google's: it takes the signature and does not check it."""
    from cryptography.hazmat.primitives import serialization
    from cryptography.hazmat.primitives.asymmetric import rsa

    key = rsa.generate_private_key(65537, 2048).private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    )
    account = {"type": "service_account", "client_email": "a@b", "private_key_id": "1"}
    path = tmp_path / "key.json"
    path.write_text(
        json.dumps({**account, "private_key": key.decode(), "gcs_base_url": s3rver.url})
    )
    client = s3rver.client()
    client.create_bucket(Bucket="google")
    client.put_object(Bucket="google", Key=f"m/{ODD}", Body=b"signed")
    monkeypatch.setenv("GOOGLE_SERVICE_ACCOUNT", str(path))
    places.forget()

    address = locate(f"gs://google/m/{ODD}")
    assert places.open_file(address).read(0, 6) == b"signed"
    assert "X-Goog-Signature=" in STORES.store(address).link(address).url
    places.forget()


AZURE = {
    "AZURE_STORAGE_ACCOUNT_NAME": "account",
    "AZURE_STORAGE_ACCOUNT_KEY": "a2V5a2V5a2V5a2V5a2V5a2V5a2V5a2V5",
}


@pytest.mark.parametrize(
    ("settings", "query"),
    [
        (AZURE, "sig="),
        ({**AZURE, "AZURE_STORAGE_ACCOUNT_KEY": "", "AZURE_STORAGE_SAS_TOKEN": "?sv=1&sig=x"},
         "sv=1&sig=x"),
        ({**AZURE, "AZURE_STORAGE_ACCOUNT_KEY": ""}, None),
    ],
)  # fmt: skip
def test_a_file_of_azure_is_asked_for_with_what_proves_who_asks(settings, query, monkeypatch):
    for name, value in settings.items():
        if value:
            monkeypatch.setenv(name, value)
    places.forget()
    address = locate("az://container/m/a b.bin")

    link = STORES.store(address).link(address)

    plain, _, text = link.url.partition("?")
    assert plain == "https://account.blob.core.windows.net/container/m/a%20b.bin"
    assert query in text if query else text == ""
    places.forget()


def test_a_bucket_in_another_region_says_which(server_elsewhere, monkeypatch):
    for name, value in {
        "AWS_ENDPOINT_URL": server_elsewhere,
        "AWS_ACCESS_KEY_ID": "a",
        "AWS_SECRET_ACCESS_KEY": "b",
    }.items():
        monkeypatch.setenv(name, value)
    monkeypatch.delenv("AWS_REGION", raising=False)
    monkeypatch.delenv("AWS_PROFILE", raising=False)
    places.forget()

    with pytest.raises(UnreadableFile, match="in another region") as caught:
        places.open_file(locate("s3://bucket/a"))
    assert caught.value.hint == "set AWS_REGION=eu-west-1"
    with pytest.raises(UnreadableFile, match="in another region"):
        places.names(locate("s3://bucket/a"))
    places.forget()


@pytest.fixture
def server_elsewhere():
    """A server that answers as S3 does in the wrong region."""

    class Elsewhere(http.server.BaseHTTPRequestHandler):
        def do_GET(self):
            body = b"<Error><Code>AuthorizationHeaderMalformed</Code></Error>"
            self.send_response(400)
            self.send_header("x-amz-bucket-region", "eu-west-1")
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *arguments):
            pass

    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Elsewhere) as server:
        thread = threading.Thread(target=server.serve_forever, args=(0.01,))
        thread.start()
        yield f"http://127.0.0.1:{server.server_port}"
        server.shutdown()
        thread.join()
