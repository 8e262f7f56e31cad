"""A dozen ways in which a file arrives broken."""

from __future__ import annotations

import random

_PAGE = b"<!DOCTYPE html><html><body>404: there is no such model here</body></html>"


def damaged(good: bytes) -> dict[str, bytes]:
    """Give broken copies of a file by what happened to each."""
    noise = random.Random(0)  # noqa: S311  the same noise every time
    inverted = bytes(255 - byte for byte in good[:8])
    return {
        "empty": b"",
        "its first byte alone": good[:1],
        "its first seven bytes": good[:7],
        "the last byte missing": good[:-1],
        "cut in half": good[: len(good) // 2 | 1],
        "the first byte missing": good[1:],
        "a byte too many": good + b"\0",
        "all zeros": bytes(len(good)),
        "all ones": b"\xff" * len(good),
        "a head of inverted bits": inverted + good[8:],
        "noise": b"\xfe" + noise.randbytes(len(good)),
        "a web page": _PAGE,
    }
