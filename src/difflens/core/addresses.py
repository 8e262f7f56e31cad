"""Addresses of remote files, which cannot be read yet: the error names the command to download."""

import re
from pathlib import PurePosixPath

from .errors import UnreadableFile
from .escape import visible

# A path object turns the two slashes into one.
_ADDRESS = re.compile(r"([a-z][a-z0-9+.-]+):/{1,2}(?!/)(.+)", re.DOTALL)
_HUB = re.compile(r"(?:www\.)?(?:huggingface\.co|hf\.co)/(.+)")
_REVISION_IN_ADDRESS = {"blob", "resolve", "tree"}


def address_error(path: str) -> UnreadableFile | None:
    """Return the error for an address such as `hf://org/model`; None if this is a local path.

    >>> print(address_error("s3://bucket/model.gguf").hint)
    download it first: aws s3 cp s3://bucket/model.gguf .
    >>> address_error("models/a.gguf")
    """
    match = _ADDRESS.fullmatch(path)
    if match is None:
        return None
    scheme, rest = match.groups()
    command = _download(scheme, rest.rstrip("/"))
    hint = f"download it first: {visible(command)}" if command else "download it first"
    where = visible(f"{scheme}://{rest}")
    return UnreadableFile(where, "remote files cannot be read yet, only local ones", hint=hint)


def _download(scheme: str, rest: str) -> str:
    """Return the command that downloads an address; the empty string for an unknown scheme."""
    import shlex  # for an error alone

    address = shlex.quote(f"{scheme}://{rest}")
    is_file = bool(PurePosixPath(rest).suffix)
    name = shlex.quote(PurePosixPath(rest).name)
    if scheme == "hf":
        return _hub_download(rest)
    if scheme == "s3":
        return f"aws s3 cp {address} ." if is_file else f"aws s3 cp --recursive {address} {name}"
    if scheme == "gs":
        return f"gcloud storage cp {'' if is_file else '--recursive '}{address} ."
    if scheme in ("http", "https"):
        hub = _HUB.fullmatch(rest)
        return _hub_download(hub.group(1)) if hub else f"curl -LO {address}"
    return ""


def _hub_download(rest: str) -> str:
    """Return the command for `org/model`, `org/model@revision` or `org/model/file`."""
    import shlex

    parts = rest.split("/")
    model, _, revision = "/".join(parts[:2]).partition("@")
    files = parts[2:]
    if files and files[0] in _REVISION_IN_ADDRESS:
        revision, files = "".join(files[1:2]), files[2:]
    words = ["hf", "download", model, *(["/".join(files)] if files else [])]
    if revision and revision != "main":
        words += ["--revision", revision]
    return shlex.join([*words, "--local-dir", model.rpartition("/")[2]])
