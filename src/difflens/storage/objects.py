"""Buckets of object stores. obstore lists them and signs addresses; the bytes are read by us.

obstore finds the credentials as the provider's own tools do, and they never leave it: what we see
is a signed address of one file, valid for an hour.
"""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from datetime import timedelta
from typing import Any
from urllib.parse import urlsplit

from difflens.core.addresses import Address
from difflens.core.errors import MissingExtra, UnreadableFile
from difflens.core.escape import visible

from .links import Link
from .stores import Entry

_VALID = timedelta(hours=1)
_STATUS = re.compile(r"status code: (\d{3})")
_CODE = re.compile(r"<Code>([A-Za-z0-9]{1,60})</Code>")
_RETRIES = {"max_retries": 5, "retry_timeout": timedelta(seconds=30)}


class Bucket:
    """One bucket, with the credentials that this machine has for it."""

    def __init__(self, address: Address) -> None:
        """Find out who we are; without credentials only public files can be read."""
        self._store, self._signed = _open(address)

    def link(self, address: Address) -> Link:
        """Sign the address of one file."""
        import obstore

        try:
            url: str = obstore.sign(self._store, "GET", address.key, _VALID)
        except Exception as error:  # noqa: BLE001  obstore has errors of many kinds
            raise _unreadable(address, error) from None
        if not self._signed:
            url = url.partition("?")[0]
        return Link(url, named=frozenset({urlsplit(url).hostname or ""}))

    def entries(self, folder: Address) -> Mapping[str, Entry]:
        """List what lies directly in a folder."""
        import obstore

        try:
            listing = obstore.list_with_delimiter(self._store, folder.key or None)
        except Exception as error:  # noqa: BLE001  the same
            raise _unreadable(folder, error) from None
        entries = {path.rpartition("/")[2]: Entry(None) for path in listing["common_prefixes"]}
        for each in listing["objects"]:
            name = each["path"].rpartition("/")[2]
            if each["path"] != folder.key:  # some tools write an empty object for a folder
                entries[name] = Entry(each["size"])
        return entries


def _open(address: Address) -> tuple[Any, bool]:
    """Return obstore's object for a bucket, and whether its addresses are signed."""
    try:
        from obstore import store
    except ImportError:
        raise MissingExtra(f"reading {address.scheme}://", "cloud") from None
    options: dict[str, Any] = {"allow_http": True, "timeout": timedelta(seconds=30)}
    common: dict[str, Any] = {"client_options": options, "retry_config": _RETRIES}
    if address.scheme == "s3":
        return _open_s3(store.S3Store, address.root, common)
    kind: Any = store.GCSStore if address.scheme == "gs" else store.AzureStore
    return kind(address.root, **common), True


def _open_s3(kind: Any, bucket: str, common: dict[str, Any]) -> tuple[Any, bool]:
    variables = os.environ
    keys = "AWS_ACCESS_KEY_ID" in variables and "AWS_PROFILE" not in variables
    if keys or variables.get("AWS_WEB_IDENTITY_TOKEN_FILE"):
        return kind(bucket, **common), True
    provider = _boto3_provider()
    if provider is not None:
        return kind(bucket, credential_provider=provider, **common), True
    # Made-up keys make the address; the signature is cut off, and nothing secret is involved.
    made_up = {"access_key_id": "-", "secret_access_key": "-"}
    return kind(bucket, skip_signature=True, **made_up, **common), False


def _boto3_provider() -> Any:
    """Return the credentials that boto3 finds (profiles, roles, machines); None without any."""
    try:
        from obstore.auth.boto3 import Boto3CredentialProvider
    except ImportError:
        return None
    try:
        return Boto3CredentialProvider()
    except ValueError:
        return None


def _unreadable(address: Address, error: Exception) -> UnreadableFile:
    """Describe an error of obstore in one line: its own text may hold anything."""
    where = visible(str(address))
    text = str(error)
    code, status = _CODE.search(text), _STATUS.search(text)
    if code and code[1] == "NoSuchBucket":
        return UnreadableFile(where, "no such bucket")
    if isinstance(error, FileNotFoundError):
        return UnreadableFile(where, "no such file")
    if status:
        shown = f"{status[1]} {code[1]}" if code else status[1]
        if status[1] in ("401", "403"):
            return UnreadableFile(where, f"the server denies access: {shown}")
        return UnreadableFile(where, f"the server answered {shown}")
    return UnreadableFile(
        where, "the object store cannot be reached, or its settings are incomplete"
    )
