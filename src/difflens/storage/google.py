"""Google Cloud Storage."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

from .links import Link
from .objects import OPTIONS, named_link, plain_url, signed_link

_ENDPOINT = "https://storage.googleapis.com"
_KEYS = (
    "GOOGLE_SERVICE_ACCOUNT_KEY", "GOOGLE_SERVICE_ACCOUNT", "GOOGLE_SERVICE_ACCOUNT_PATH",
    "SERVICE_ACCOUNT",
)  # fmt: skip


class Google:
    """Buckets with a key of a service account, with a login of gcloud, or public ones."""

    def __init__(self) -> None:
        """Find the credentials."""
        self._signs = any(os.environ.get(name) for name in _KEYS) or _default_is_key()
        self._provider = None if self._signs else _login()

    def open(self, bucket: str) -> Any:
        """Open a bucket; without credentials only public files can be read."""
        from obstore.store import GCSStore

        if self._signs:
            return GCSStore(bucket, **OPTIONS)
        if self._provider is not None:
            return GCSStore(bucket, credential_provider=self._provider, **OPTIONS)
        return GCSStore(bucket, skip_signature=True, **OPTIONS)

    def link(self, store: Any, bucket: str, key: str) -> Link:
        """Sign the address of a file, or name the login in a header."""
        if self._signs:
            return signed_link(store, key)
        headers = {}
        if self._provider is not None:
            headers["Authorization"] = f"Bearer {self._provider()['token']}"
        return named_link(plain_url(_ENDPOINT, bucket, key), headers)


def _default_is_key() -> bool:
    """Are the default credentials the key of a service account, which can sign?"""
    folder = Path(os.environ.get("CLOUDSDK_CONFIG") or "~/.config/gcloud").expanduser()
    default = folder / "application_default_credentials.json"
    path = Path(os.environ.get("GOOGLE_APPLICATION_CREDENTIALS") or default)
    try:
        return bool(json.loads(path.read_bytes()).get("type") == "service_account")
    except (OSError, ValueError, AttributeError):
        return False


def _login() -> Any:
    """Return the login that google-auth finds; None without it, or without a login."""
    try:
        from obstore.auth.google import GoogleCredentialProvider
    except ImportError:
        return None
    from google.auth.exceptions import GoogleAuthError

    try:
        return GoogleCredentialProvider()
    except GoogleAuthError:
        return None
