"""Amazon S3, and every store that speaks as it does."""

from __future__ import annotations

import os
from typing import Any

from .links import Link
from .objects import OPTIONS, named_link, signed_link

# Made-up keys make the address of a public file; the signature is cut off, nothing is secret.
_MADE_UP = {"access_key_id": "-", "secret_access_key": "-", "skip_signature": True}


class S3:
    """Buckets with the credentials of AWS: variables, profiles, roles of machines."""

    def __init__(self) -> None:
        """Nobody is known yet."""
        self._is_public = False

    def open(self, bucket: str) -> Any:
        """Find the credentials; without any, only public files can be read."""
        from obstore.store import S3Store

        if _has_keys():
            return S3Store(bucket, **OPTIONS)
        provider = _boto3_provider()
        self._is_public = provider is None
        how = _MADE_UP if provider is None else {"credential_provider": provider}
        return S3Store(bucket, **how, **OPTIONS)

    def link(self, store: Any, bucket: str, key: str) -> Link:
        """Sign the address of a file; of a public one, only make it."""
        del bucket
        link = signed_link(store, key)
        return named_link(link.url.partition("?")[0]) if self._is_public else link


def _has_keys() -> bool:
    """Do variables name the credentials, so that nobody need be asked for them?"""
    if os.environ.get("AWS_SKIP_SIGNATURE", "").lower() in ("1", "true"):
        return False
    if os.environ.get("AWS_WEB_IDENTITY_TOKEN_FILE"):
        return True
    return bool(os.environ.get("AWS_ACCESS_KEY_ID")) and "AWS_PROFILE" not in os.environ


def _boto3_provider() -> Any:
    """Return the credentials that boto3 finds (profiles, roles, machines); None without any."""
    if os.environ.get("AWS_SKIP_SIGNATURE", "").lower() in ("1", "true"):
        return None
    try:
        from obstore.auth.boto3 import Boto3CredentialProvider
    except ImportError:
        return None
    try:
        return Boto3CredentialProvider()
    except ValueError:
        return None
