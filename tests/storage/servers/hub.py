"""A stand-in for the hub: models, revisions, listings, and large files at a signed address.

Each folder OWNER/NAME below the folder served is a model, its files the revision `main`. Large
files are kept by another server on another port, as the hub does it: `resolve` redirects there.
The real client, huggingface_hub, is the oracle (test_servers.py).
"""

from __future__ import annotations

import argparse
import hashlib
import json
from collections.abc import Iterator
from email.utils import formatdate
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import parse_qs, unquote, urlsplit

from storage.servers.faults import FaultyServer
from storage.servers.files import (
    UNLIMITED,
    Link,
    Request,
    Response,
    Span,
    answer_bytes,
    context_from,
    options,
    serve_files,
)
from storage.servers.process import Server, serve_commands
from storage.servers.signed import is_valid, refuse_expired, sign

TOKEN = "hf_of_a_test"
STRANGER = "hf_of_somebody_else"  # known, but let in nowhere
_TEXTS = {".json", ".md", ".txt", ".py", ".jinja", ".gitattributes", ""}  # kept in git itself


class File(NamedTuple):
    """A file of a revision."""

    path: Path
    size: int
    oid: str  # of git
    sha256: str | None  # of large files only

    def entry(self, name: str) -> dict[str, Any]:
        """Describe it as a listing does."""
        entry = {"type": "file", "oid": self.oid, "size": self.size, "path": name}
        if self.sha256:
            entry["lfs"] = {"oid": self.sha256, "size": self.size, "pointerSize": 134}
        return entry


class Refused(Exception):
    """A request that is answered with an error of the hub."""

    def __init__(self, status: int, code: str, message: str) -> None:
        """Keep what the headers say."""
        self.response = _json({"error": message}, status)
        self.response.headers |= {"X-Error-Code": code, "X-Error-Message": message}


class Model:
    """A repository: its commits, the names of some, and who may see it."""

    def __init__(self) -> None:
        """Begin without a commit, open to everybody."""
        self.commits: dict[str, dict[str, File]] = {}
        self.names: dict[str, str] = {}
        self.private = self.gated = False

    def commit(self, folder: Path, name: str) -> str:
        """Add a commit of all files in a folder, and let a name point to it."""
        files = {
            path.relative_to(folder).as_posix(): _file(path)
            for path in sorted(folder.rglob("*"))
            if path.is_file()
        }
        text = json.dumps([len(self.commits), [(key, file.oid) for key, file in files.items()]])
        sha = hashlib.sha1(text.encode(), usedforsecurity=False).hexdigest()
        self.commits[sha] = files
        self.names[name] = sha
        return sha

    def find(self, revision: str) -> str:
        """Return the commit that a revision means."""
        sha = self.names.get(revision, revision)
        if sha not in self.commits:
            raise Refused(404, "RevisionNotFound", f"Invalid rev id: {revision}")
        return sha

    def check(self, token: str, *, reads: bool) -> None:
        """Raise where this token may not see the model, or not read its files."""
        if self.private and token != TOKEN:
            if token == STRANGER:
                raise Refused(404, "RepoNotFound", "Repository not found")
            raise Refused(401, "RepoNotFound", "Invalid username or password.")
        if self.gated and reads and token != TOKEN:
            message = "Access to this model is restricted, you must have access and log in."
            raise Refused(403 if token else 401, "GatedRepo", message)


class Storage(FaultyServer):
    """Large files by their hash, at addresses that expire."""

    blobs: dict[str, Path]

    def answer_well(self, request: Request) -> Response:
        """Answer for a signed target; its ETag is not the hash, as in an object store."""
        if not is_valid(request.target, request.path):
            return refuse_expired()
        path = self.blobs[request.path.rpartition("/")[2]]
        etag = hashlib.md5(str(path).encode(), usedforsecurity=False).hexdigest()
        return answer_bytes(request, {"ETag": f'"{etag}-1"'}, Span(path, 0, path.stat().st_size))


class Hub(FaultyServer):
    """The hub itself."""

    page = 1000  # entries of a listing
    valid_seconds = 3600.0

    def open(self, storage: Storage) -> None:
        """Read what the folder has; large files are served by the storage."""
        self.storage, self.models = storage, dict[str, Model]()
        storage.blobs = {}
        for folder in sorted(self.folder.glob("*/*")):
            self.commit(folder.relative_to(self.folder).as_posix(), str(folder))

    @property
    def commands(self) -> dict[str, Any]:
        """What the test may ask for; `storage_*` is about the large files."""
        storage = {f"storage_{name}": each for name, each in self.storage.commands.items()}
        own = {"commit": self.commit, "protect": self.protect, "configure": self.configure}
        return {**super().commands, **storage, **own}

    def commit(self, model: str, folder: str, revision: str = "main") -> str:
        """Add a commit to a model; return its hash."""
        kept = self.models.setdefault(model, Model())
        sha = kept.commit(Path(folder), revision)
        for file in kept.commits[sha].values():
            if file.sha256:
                self.storage.blobs[file.sha256] = file.path
        return sha

    def protect(self, model: str, *, private: bool = False, gated: bool = False) -> None:
        """Close a model to all but `TOKEN`: hidden, or to be seen and not read."""
        self.models[model].private, self.models[model].gated = private, gated

    def configure(self, page: int = 1000, valid_seconds: float = 3600) -> None:
        """Set how many entries a listing has, and how long a signed address is good for."""
        self.page, self.valid_seconds = page, valid_seconds

    def answer_well(self, request: Request) -> Response:
        """Answer a request of the API, or for a file."""
        parts = [unquote(part) for part in urlsplit(request.target).path.strip("/").split("/")]
        token = request.headers.get("authorization", "").removeprefix("Bearer ")
        try:
            if token not in ("", TOKEN, STRANGER):
                raise Refused(401, "", "Invalid credentials in Authorization header")
            match parts:
                case ["api", "models", owner, name, *rest]:
                    return self._describe(request, f"{owner}/{name}", rest, token)
                case [owner, name, "resolve", revision, *path]:
                    model = self._model(f"{owner}/{name}", token, reads=True)
                    return self._resolve(request, model, revision, "/".join(path))
        except Refused as refused:
            return refused.response
        return _json({"error": "Not Found"}, 404)

    def _describe(self, request: Request, name: str, rest: list[str], token: str) -> Response:
        model = self._model(name, token, reads=False)
        match rest or ["revision", "main"]:
            case ["revision", revision]:
                return self._about(name, model, revision)
            case ["tree", revision, *below]:
                return self._list(request, model, revision, "/".join(below))
            case ["paths-info", revision]:
                wanted = parse_qs(request.body.decode()).get("paths", [])
                entries = _entries(model.commits[model.find(revision)], "", deep=True)
                return _json([entry for entry in entries if entry["path"] in wanted])
        return _json({"error": "Not Found"}, 404)

    def _model(self, name: str, token: str, *, reads: bool) -> Model:
        if name not in self.models:
            status = 404 if token else 401  # the hub does not say whether it is hidden or absent
            raise Refused(status, "RepoNotFound", "Repository not found")
        self.models[name].check(token, reads=reads)
        return self.models[name]

    def _about(self, name: str, model: Model, revision: str) -> Response:
        sha = model.find(revision)
        return _json({
            "_id": sha[:24], "id": name, "modelId": name, "sha": sha, "private": model.private,
            "gated": "manual" if model.gated else False, "disabled": False, "tags": [],
            "downloads": 0, "likes": 0, "createdAt": "2026-01-01T00:00:00.000Z",
            "lastModified": "2026-01-01T00:00:00.000Z",
            "siblings": [{"rfilename": path} for path in model.commits[sha]],
        })  # fmt: skip

    def _list(self, request: Request, model: Model, revision: str, below: str) -> Response:
        query = {key: values[0] for key, values in parse_qs(request.query).items()}
        deep = query.get("recursive", "").lower() in ("true", "1")
        entries = list(_entries(model.commits[model.find(revision)], below, deep=deep))
        if below and not entries:
            raise Refused(404, "EntryNotFound", f"{below} does not exist on {revision}")
        start = int(query.get("cursor", 0))
        stop = start + min(self.page, int(query.get("limit", self.page)))
        response = _json(entries[start:stop])
        if stop < len(entries):
            path = urlsplit(request.target).path
            scheme, host = self.about["scheme"], request.headers["host"]
            words = "&".join(f"{key}={value}" for key, value in query.items() if key != "cursor")
            address = f"{scheme}://{host}{path}?{words}&cursor={stop}"
            response.headers["Link"] = f'<{address}>; rel="next"'
        return response

    def _resolve(self, request: Request, model: Model, revision: str, path: str) -> Response:
        sha = model.find(revision)
        common = {"X-Repo-Commit": sha}
        file = model.commits[sha].get(path)
        if file is None:
            refused = Refused(404, "EntryNotFound", f"{path} does not exist on {revision}")
            refused.response.headers |= common
            raise refused
        if file.sha256 is None:
            headers = {**common, "ETag": f'"{file.oid}"', "Content-Type": "text/plain"}
            return answer_bytes(request, headers, Span(file.path, 0, file.size))
        target = sign(f"/repos/{file.sha256}", self.valid_seconds)
        about = self.storage.about
        return Response(302, {
            **common, "Location": f"{about['scheme']}://127.0.0.1:{about['port']}{target}",
            "X-Linked-ETag": f'"{file.sha256}"', "X-Linked-Size": str(file.size),
            "ETag": f'"{file.oid}"', "Last-Modified": formatdate(0, usegmt=True),
        }, b"Found. Redirecting")  # fmt: skip


def _json(value: Any, status: int = 200) -> Response:
    headers = {"Content-Type": "application/json; charset=utf-8"}
    return Response(status, headers, json.dumps(value).encode())


def _file(path: Path) -> File:
    """Hash a file: as git does it, and large ones as LFS does it, too."""
    size, large = path.stat().st_size, path.suffix not in _TEXTS
    with path.open("rb") as file:
        sha256 = hashlib.file_digest(file, "sha256").hexdigest() if large else None
    content = (
        f"version https://git-lfs.github.com/spec/v1\noid sha256:{sha256}\nsize {size}\n".encode()
        if large
        else path.read_bytes()
    )
    blob = b"blob %d\0" % len(content) + content
    return File(path, size, hashlib.sha1(blob, usedforsecurity=False).hexdigest(), sha256)


def _entries(files: dict[str, File], below: str, *, deep: bool) -> Iterator[dict[str, Any]]:
    """List what lies below a folder; without `deep`, what lies in it."""
    prefix, folders = f"{below}/" if below else "", set[str]()
    for name, file in files.items():
        if not name.startswith(prefix):
            continue
        *above, _ = name.removeprefix(prefix).split("/")
        for depth in range(1, len(above) + 1 if deep else min(2, len(above) + 1)):
            folder = prefix + "/".join(above[:depth])
            if folder not in folders:
                folders.add(folder)
                oid = hashlib.sha1(folder.encode(), usedforsecurity=False).hexdigest()
                yield {"type": "directory", "oid": oid, "size": 0, "path": folder}
        if deep or not above:
            yield file.entry(name)


def serve_hub(folder: Path, link: Link = UNLIMITED, *, certificate: Path | None = None) -> Server:
    """Start a hub of the models in a folder; its `url` is meant for HF_ENDPOINT."""
    return serve_files(folder, link, certificate=certificate, program="hub")


def main() -> None:
    """Serve until the input closes."""
    words = options(argparse.ArgumentParser(description=__doc__))
    link, context = Link(words.latency, words.rate), context_from(words.certificate)
    storage, hub = Storage(words.folder, link, context), Hub(words.folder, link, context)
    hub.open(storage)
    storage.start()
    hub.start()
    serve_commands({**hub.about, "storage_port": storage.about["port"]}, hub.commands)


if __name__ == "__main__":
    main()
