"""Checks signatures of requests to S3 (AWS Signature Version 4), in headers or addresses."""

import hashlib
import hmac
import re
from collections.abc import Callable, Iterable, Mapping
from datetime import UTC, datetime, timedelta
from typing import Any
from urllib.parse import unquote

_ERROR = (
    '<?xml version="1.0" encoding="UTF-8"?>\n<Error><Code>{}</Code><Message>{}</Message></Error>'
)


class SignedOnly:
    """A WSGI application that passes on what was signed with one key, and refuses the rest."""

    def __init__(self, app: Callable[..., Iterable[bytes]], key: str, secret: str) -> None:
        """Stand before an application."""
        self.app, self.key, self.secret = app, key, secret

    def __call__(self, environ: dict[str, Any], start: Callable[..., Any]) -> Iterable[bytes]:
        """Answer one request."""
        refusal = self.refuse(environ)
        if refusal is None:
            return self.app(environ, start)
        start("403 Forbidden", [("Content-Type", "application/xml")])
        return [_ERROR.format(*refusal).encode()]

    def refuse(self, environ: Mapping[str, Any]) -> tuple[str, str] | None:
        """Return the code and the text of an error, or None if all is well."""
        path, _, query = environ["REQUEST_URI"].partition("?")
        asked = dict(part.partition("=")[::2] for part in query.split("&"))
        words = {name: unquote(value) for name, value in asked.items()}
        signed = re.fullmatch(
            r"AWS4-HMAC-SHA256 Credential=(.+?), ?SignedHeaders=(.+?), ?Signature=(\w+)",
            environ.get("HTTP_AUTHORIZATION", ""),
        )
        if signed:
            credential, headers, signature = signed.groups()
            moment, payload = environ["HTTP_X_AMZ_DATE"], environ["HTTP_X_AMZ_CONTENT_SHA256"]
            expires = 900
        elif "X-Amz-Signature" in words:
            del asked["X-Amz-Signature"]
            credential, headers = words["X-Amz-Credential"], words["X-Amz-SignedHeaders"]
            signature, moment = words["X-Amz-Signature"], words["X-Amz-Date"]
            expires, payload = int(words["X-Amz-Expires"]), "UNSIGNED-PAYLOAD"
        else:
            return "AccessDenied", "Access Denied"
        key, scope = credential.split("/", 1)
        if key != self.key:
            return "InvalidAccessKeyId", "The AWS Access Key Id does not exist in our records."
        lines = [f"{name}:{_header(environ, name)}" for name in headers.split(";")]
        sorted_query = "&".join(f"{name}={value}" for name, value in sorted(asked.items()) if name)
        canonical = [environ["REQUEST_METHOD"], path, sorted_query, *lines, "", headers, payload]
        if not hmac.compare_digest(signature, self._sign("\n".join(canonical), scope, moment)):
            return "SignatureDoesNotMatch", "The request signature does not match."
        signed_at = datetime.strptime(moment, "%Y%m%dT%H%M%SZ").replace(tzinfo=UTC)
        if datetime.now(UTC) > signed_at + timedelta(seconds=expires):
            return "AccessDenied", "Request has expired"
        return None

    def _sign(self, canonical: str, scope: str, moment: str) -> str:
        """Sign a canonical request, as the documentation of S3 describes it."""
        secret = f"AWS4{self.secret}".encode()
        for part in scope.split("/"):
            secret = hmac.digest(secret, part.encode(), "sha256")
        digest = hashlib.sha256(canonical.encode()).hexdigest()
        text = f"AWS4-HMAC-SHA256\n{moment}\n{scope}\n{digest}"
        return hmac.digest(secret, text.encode(), "sha256").hex()


def _header(environ: Mapping[str, Any], name: str) -> str:
    """Return the canonical value of a header: without superfluous spaces."""
    variable = name.upper().replace("-", "_")
    if variable not in ("CONTENT_TYPE", "CONTENT_LENGTH"):
        variable = f"HTTP_{variable}"
    return " ".join(environ.get(variable, "").split())
