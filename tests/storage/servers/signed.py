"""Addresses that carry a signature and a time at which they expire, as object stores give out."""

import hashlib
import hmac
import time
from urllib.parse import parse_qs, quote, urlsplit


def sign(path: str, secret: str, seconds: float) -> str:
    """Return a target for this path that is valid for so many seconds."""
    expires = f"{time.time() + seconds:.3f}"
    return f"{quote(path)}?Expires={expires}&Signature={_signature(path, secret, expires)}"


def is_valid(target: str, path: str, secret: str) -> bool:
    """Was this target signed for this path, and has it not expired?"""
    query = parse_qs(urlsplit(target).query)
    expires, signature = (query.get(name, [""])[0] for name in ("Expires", "Signature"))
    if not hmac.compare_digest(signature, _signature(path, secret, expires)):
        return False
    return time.time() < float(expires)


def _signature(path: str, secret: str, expires: str) -> str:
    return hmac.new(secret.encode(), f"{path}\n{expires}".encode(), hashlib.sha256).hexdigest()
