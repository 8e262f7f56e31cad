"""Recognises files that are not models: pointers, web pages, error bodies, other containers."""

import json
import re

from difflens.core.addresses import Location
from difflens.core.errors import INCOMPLETE, CorruptFile, ModelError, UnknownFormat
from difflens.core.escape import for_terminal, visible

_LFS = b"version https://git-lfs.github.com/spec/"
_DVC = re.compile(rb"^outs:\s*\n\s*- (?:md5|etag|hash|size|path):", re.MULTILINE)
_PAGE_HINT = "the server sent a page instead of the file; a login or a token may be missing"
_ERROR_KEYS = ("error", "message", "detail", "errors", "Error", "Message")

# The first bytes of files that users pass by mistake.
_MAGIC: tuple[tuple[int, bytes, str], ...] = (
    (0, b"PK\x03\x04", "a zip archive"),
    (0, b"PK\x05\x06", "an empty zip archive"),
    (0, b"\x1f\x8b", "gzip data"),
    (0, b"\x89HDF\r\n\x1a\n", "HDF5"),
    (0, b"GGUF", "GGUF"),
    (0, b"FUGG", "big-endian GGUF"),
    (0, b"\x93NUMPY", "a numpy array"),
    (0, b"7z\xbc\xaf\x27\x1c", "a 7z archive"),
    (0, b"Rar!\x1a\x07", "a rar archive"),
    (0, b"\xfd7zXZ\x00", "xz data"),
    (0, b"\x28\xb5\x2f\xfd", "zstd data"),
    (0, b"BZh", "bzip2 data"),
    (257, b"ustar", "a tar archive"),
    (0, b"\x89PNG\r\n\x1a\n", "a png picture"),
    (0, b"\xff\xd8\xff", "a jpeg picture"),
    (0, b"%PDF-", "a pdf document"),
    (0, b"\x7fELF", "an ELF program"),
    (0, b"MZ\x90\x00", "a Windows program"),
    (0, b"ARROW1", "an Arrow file"),
    (0, b"PAR1", "a Parquet file"),
    (0, b"SQLite format 3\x00", "an SQLite database"),
    (4, b"TFL3", "a TensorFlow Lite model"),
)
_PICKLE = re.compile(rb"\x80[\x02-\x05][\x95(c}\]X\x8c\x8a]", re.DOTALL)
_ONNX = re.compile(rb"\x08[\x01-\x14][\x12\x1a\x22\x3a]", re.DOTALL)
_CONTROL = re.compile(rb"[\x00-\x08\x0b\x0e-\x1a\x1c-\x1f]")


def refusal(head: bytes, path: Location, size: int) -> ModelError | None:
    """Return the error to raise if these first bytes are certainly not a model."""
    where = visible(str(path))
    if not size:
        return CorruptFile(where, "the file is empty", hint=INCOMPLETE)
    if size < 8:
        reason = f"too short: the file has {size} bytes, a model has at least 8"
        return CorruptFile(where, reason, hint=INCOMPLETE)
    if head.startswith(_LFS):
        return UnknownFormat(
            where, "this is a Git LFS pointer, not a model", hint="run: git lfs pull"
        )
    return _text_refusal(head, where, size) if is_text(head) else None


def looks_like(head: bytes) -> str | None:
    r"""Name the kind of file that begins with these bytes; None if it is unknown.

    >>> looks_like(b"\x7fELF\x02\x01\x01")
    'an ELF program'
    """
    for offset, magic, name in _MAGIC:
        if head.startswith(magic, offset):
            return name
    if _PICKLE.match(head):
        return "a pickle"
    if _ONNX.match(head) and b"onnx" in head[:400].lower():
        return "ONNX"
    if is_text(head):
        return "JSON text" if head.lstrip()[:1] in (b"{", b"[") else "text"
    return None


def is_text(head: bytes) -> bool:
    """Is this readable text?

    A safetensors file is not: its first eight bytes are a length, whose upper half is zeros.
    """
    if not head or _CONTROL.search(head):
        return False
    try:
        head.decode("utf-8")
    except UnicodeDecodeError as error:
        # The head may end in the middle of a character.
        return len(head) - error.start < 4 and error.reason == "unexpected end of data"
    return True


def _text_refusal(head: bytes, where: str, size: int) -> ModelError | None:
    if _DVC.search(head):
        return UnknownFormat(where, "this is a DVC pointer, not a model", hint="run: dvc pull")
    start = head.lstrip()[:200].lower()
    if start.startswith((b"<!doctype html", b"<html", b"<head")):
        return UnknownFormat(where, "this is an HTML page, not a model", hint=_PAGE_HINT)
    if start.startswith(b"<?xml"):
        return UnknownFormat(where, "this is an XML response, not a model", hint=_PAGE_HINT)
    return _error_body(head, where, size)


def _error_body(head: bytes, where: str, size: int) -> ModelError | None:
    if size > len(head) or not head.lstrip().startswith(b"{"):
        return None
    try:
        body = json.loads(head)
    except (ValueError, RecursionError):
        return None
    message = next((body[key] for key in _ERROR_KEYS if key in body), None)
    if message is None:
        return None
    text = message if isinstance(message, str) else json.dumps(message)
    reason = f"this is a JSON error body, not a model: '{for_terminal(text, 80)}'"
    return UnknownFormat(where, reason, hint=_PAGE_HINT)
