"""No key, token or signature is in anything that a command writes, whatever goes wrong."""

import os
import struct
import subprocess
import sys

import pytest
from storage.servers.files import serve_files
from storage.servers.hub import TOKEN, serve_hub


def model(last):
    """Return a small model as safetensors."""
    header = b'{"w":{"dtype":"F32","shape":[4],"data_offsets":[0,16]}}'
    return struct.pack("<Q", len(header)) + header + struct.pack("<4f", 1, 2, 3, last)


def written_by(*arguments, folder, environment):
    """Run a command; return all that it wrote, to files too."""
    folder.mkdir(exist_ok=True)
    argv = [sys.executable, "-m", "difflens", *map(str, arguments)]
    done = subprocess.run(
        argv, cwd=folder, env={**os.environ, **environment}, capture_output=True, check=False
    )
    files = [path.read_bytes() for path in folder.rglob("*") if path.is_file()]
    return done.returncode, b"\n".join([done.stdout, done.stderr, *files])


def assert_absent(text, *secrets):
    assert [each for each in secrets if each.encode() in text] == []


@pytest.mark.parametrize("right", ["b.safetensors", "none.safetensors"])
def test_a_diff_of_a_bucket_shows_no_key_and_no_signature(moto, tmp_path, right):
    client = moto.client()
    client.create_bucket(Bucket="secrets")
    for name, last in (("a", 4.0), ("b", 5.0)):
        client.put_object(Bucket="secrets", Key=f"{name}.safetensors", Body=model(last))

    code, text = written_by(
        "s3://secrets/a.safetensors", f"s3://secrets/{right}", "-o", "full-json", "--debug",
        folder=tmp_path / "here", environment=moto.environment(),
    )  # fmt: skip

    assert code == (1 if right == "b.safetensors" else 2)
    assert_absent(text, moto.secret, moto.key, "Signature", "X-Amz")


@pytest.mark.parametrize("fault", [None, "status", "cut", "login", "gzip"])
def test_a_diff_of_presigned_addresses_shows_no_signature(folder, tmp_path, fault):
    (folder / "a.safetensors").write_bytes(model(4.0))
    (folder / "b.safetensors").write_bytes(model(5.0))
    with serve_files(folder, program="faults") as server:
        server.ask("fault", kind="signed")
        urls = [
            server.url + server.ask("sign", path=f"/{name}.safetensors", seconds=60)
            for name in "ab"
        ]
        if fault:
            value, times = (
                (418, None) if fault == "status" else (None, 2 if fault == "cut" else None)
            )
            server.ask("fault", kind=fault, path="/b*", value=value, times=times)
        code, text = written_by(
            *urls, "-o", "full-json", "--debug", "--allow-http",
            folder=tmp_path / "here", environment={},
        )  # fmt: skip

    assert code == (1 if fault in (None, "cut") else 2)
    assert_absent(text, *(url.rpartition("=")[2] for url in urls), "Signature")


@pytest.mark.parametrize("name", ["a", "none"])
def test_a_diff_of_the_hub_shows_no_token_and_no_signature(folder, tmp_path, name):
    (folder / "org" / "a").mkdir(parents=True)
    (folder / "org" / "a" / "model.safetensors").write_bytes(model(4.0))
    with serve_hub(folder) as server:
        code, text = written_by(
            "hf://org/a", f"hf://org/{name}", "-o", "full-json", "--debug",
            folder=tmp_path / "here",
            environment={"HF_ENDPOINT": server.url, "HF_TOKEN": TOKEN, "HF_HOME": str(tmp_path)},
        )  # fmt: skip
        tokens = [each["headers"].get("authorization") for each in server.ask("requests")]

    assert code == (0 if name == "a" else 2)
    assert f"Bearer {TOKEN}" in tokens
    assert_absent(text, TOKEN, "Bearer", "Signature")
