"""Azure Blob Storage; the account is named by `AZURE_STORAGE_ACCOUNT_NAME`."""

from __future__ import annotations

import os
from typing import Any

from .links import Link
from .objects import OPTIONS, named_link, plain_url, signed_link

_VERSION = "2023-11-03"  # of the interface; a login is not accepted without one
_KEYS = ("AZURE_STORAGE_ACCOUNT_KEY", "AZURE_STORAGE_ACCESS_KEY", "AZURE_STORAGE_MASTER_KEY")
_SHARED = ("AZURE_STORAGE_SAS_TOKEN", "AZURE_STORAGE_SAS_KEY")


class Azure:
    """Containers with the account's key, a shared signature, a login, or public ones."""

    def __init__(self) -> None:
        """Find the credentials."""
        self._signs = any(os.environ.get(name) for name in _KEYS)
        values = [os.environ.get(name, "").lstrip("?") for name in _SHARED]
        self._shared = next(filter(None, values), "")
        self._provider = None if self._signs or self._shared else _login()

    def open(self, bucket: str) -> Any:
        """Open a container; without credentials only public files can be read."""
        from obstore.store import AzureStore

        if self._signs or self._shared:
            return AzureStore(bucket, **OPTIONS)
        if self._provider is not None:
            return AzureStore(bucket, credential_provider=self._provider, **OPTIONS)
        return AzureStore(bucket, skip_signature=True, **OPTIONS)

    def link(self, store: Any, bucket: str, key: str) -> Link:
        """Sign the address of a file, or add what was shared, or name the login in a header."""
        if self._signs:
            return signed_link(store, key)
        account = os.environ.get("AZURE_STORAGE_ACCOUNT_NAME", "")
        endpoint = os.environ.get("AZURE_ENDPOINT") or f"https://{account}.blob.core.windows.net"
        url = plain_url(endpoint, bucket, key)
        if self._shared:
            return named_link(f"{url}?{self._shared}")
        headers = {}
        if self._provider is not None:
            token = self._provider()["token"]
            headers = {"Authorization": f"Bearer {token}", "x-ms-version": _VERSION}
        return named_link(url, headers)


def _login() -> Any:
    """Return the login that azure-identity finds; None without that package."""
    try:
        from obstore.auth.azure import AzureCredentialProvider
    except ImportError:
        return None
    return AzureCredentialProvider()
