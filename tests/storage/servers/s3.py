"""Two S3 servers that are not ours, moto and s3rver, and a bucket filled from a folder.

What they do not do, as tried on 2026-11-20:
- moto knows If-Match. It has no check of presigned addresses, so ours stands before it
  (signatures.py), for signed headers and for addresses with an end.
- s3rver (npm) neither checks signatures nor looks at If-Match on GET, and takes `bytes=-7` for
  `bytes=0-7`; its ETags are right, so a client that compares them is safe.
- rclone serve s3 (1.75) was tried and left out: it answers a range with status 200, which object
  stores never do; obstore refuses it.
"""

from __future__ import annotations

import logging
import subprocess
from pathlib import Path
from threading import Thread
from typing import Any, NamedTuple

from storage.servers.process import (
    Foreign,
    MissingProgram,
    Server,
    find_program,
    free_port,
    serve_commands,
)
from storage.servers.signatures import SignedOnly

REGION = "us-east-1"
_KEY, _SECRET = "key-of-a-test", "secret/of+a/test"
_SERVE = """
const S3rver = require(process.argv[1]);
new S3rver({address: '127.0.0.1', port: +process.argv[2], directory: process.argv[3],
            silent: true}).run();
"""


class Store(NamedTuple):
    """Where an S3 server listens, and the key that it knows."""

    url: str
    key: str
    secret: str

    def environment(self) -> dict[str, str]:
        """Return the variables that lead a client here."""
        return {
            "AWS_ENDPOINT_URL": self.url,
            "AWS_ACCESS_KEY_ID": self.key,
            "AWS_SECRET_ACCESS_KEY": self.secret,
            "AWS_REGION": REGION,
            "AWS_DEFAULT_REGION": REGION,
            "AWS_ALLOW_HTTP": "true",
            "AWS_EC2_METADATA_DISABLED": "true",
        }

    def client(self) -> Any:
        """Return a client of boto3."""
        import boto3
        from botocore.config import Config

        return boto3.client(
            "s3", endpoint_url=self.url, region_name=REGION, aws_access_key_id=self.key,
            aws_secret_access_key=self.secret,
            config=Config(
                s3={"addressing_style": "path"}, signature_version="s3v4",
                retries={"max_attempts": 1},
            ),
        )  # fmt: skip

    def fill(self, bucket: str, folder: Path, prefix: str = "") -> None:
        """Make a bucket if it is not there, and put all files of a folder into it."""
        client = self.client()
        if bucket not in {each["Name"] for each in client.list_buckets()["Buckets"]}:
            client.create_bucket(Bucket=bucket)
        for path in sorted(folder.rglob("*")):
            if path.is_file():
                key = prefix + path.relative_to(folder).as_posix()
                client.upload_file(str(path), bucket, key)


def serve_moto() -> tuple[Server, Store]:
    """Start moto; whoever does not sign with the key of the store is refused."""
    server = Server("s3")
    return server, Store(server.url, _KEY, _SECRET)


def serve_s3rver(folder: Path) -> tuple[Foreign, Store]:
    """Start s3rver; what is put into it lies in the folder."""
    node, place, port = find_program("node", "nodejs"), _find_s3rver(), free_port()
    data = folder / "s3rver"
    data.mkdir()
    argv = [node, "-e", _SERVE, str(place), str(port), str(data)]
    server = Foreign(argv, port, folder / "s3rver.log")
    return server, Store(f"http://127.0.0.1:{port}", "S3RVER", "S3RVER")


def _find_s3rver() -> Path:
    npm = find_program("npm", "npm")
    root = subprocess.run([npm, "root", "--global"], capture_output=True, text=True, check=True)
    place = Path(root.stdout.strip()) / "s3rver"
    if not place.is_dir():
        raise MissingProgram("s3rver is not installed (npm install --global s3rver)")
    return place


def main() -> None:
    """Serve moto until the input closes."""
    from moto.moto_server.werkzeug_app import DomainDispatcherApplication, create_backend_app
    from werkzeug.serving import WSGIRequestHandler, make_server

    logging.getLogger("werkzeug").setLevel(logging.CRITICAL)
    WSGIRequestHandler.protocol_version = "HTTP/1.1"  # connections are kept
    moto = DomainDispatcherApplication(create_backend_app)
    server = make_server("127.0.0.1", 0, SignedOnly(moto, _KEY, _SECRET), threaded=True)
    Thread(target=server.serve_forever, daemon=True).start()
    serve_commands({"port": server.port}, {})


if __name__ == "__main__":
    main()
