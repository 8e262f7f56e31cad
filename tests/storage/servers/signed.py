"""Addresses that carry a signature and a time at which they expire, as object stores give out."""

import hashlib
import hmac
import secrets
import time
from urllib.parse import parse_qs, quote, urlsplit

from storage.servers.files import Response

_SECRET = secrets.token_bytes(16)  # of this process: it signs for nobody else
_EXPIRED = (
    b'<?xml version="1.0" encoding="UTF-8"?>\n'
    b"<Error><Code>AccessDenied</Code><Message>Request has expired</Message></Error>"
)


def sign(path: str, seconds: float) -> str:
    """Return a target for this path that is valid for so many seconds."""
    expires = f"{time.time() + seconds:.3f}"
    return f"{quote(path)}?Expires={expires}&Signature={_signature(path, expires)}"


def is_valid(target: str, path: str) -> bool:
    """Was this target signed for this path, and has it not expired?"""
    query = parse_qs(urlsplit(target).query)
    expires, signature = (query.get(name, [""])[0] for name in ("Expires", "Signature"))
    if not hmac.compare_digest(signature, _signature(path, expires)):
        return False
    return time.time() < float(expires)


def refuse_expired() -> Response:
    """Answer as S3 answers for an address that is no longer valid."""
    return Response(403, {"Content-Type": "application/xml"}, _EXPIRED)


def _signature(path: str, expires: str) -> str:
    return hmac.new(_SECRET, f"{path}\n{expires}".encode(), hashlib.sha256).hexdigest()
