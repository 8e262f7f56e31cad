"""What every reader of evidence must refuse, and survive."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hostile.fuzz import mutants

from difflens.core.errors import EvidenceError

Read = Callable[..., Any]
FEW, MANY = 1000, int(os.environ.get("DIFFLENS_FUZZ", "5000"))
mutated = pytest.mark.parametrize(
    "count", [pytest.param(FEW, id="ci"), pytest.param(MANY, id="full", marks=pytest.mark.slow)]
)


def refused(read: Read, path: Path, *words: str) -> EvidenceError:
    """Check that the reader refuses a file in one printable line, which has these words in it."""
    with pytest.raises(EvidenceError) as caught:
        read(path)
    error = caught.value
    assert str(error).startswith(str(path))
    assert all(word in error.reason for word in words), error.reason
    assert f"{error}{error.hint}".isprintable()
    return error


def refuses_bad_files(
    read: Read, folder: Path, suffix: str, *, text: bool = True, any_text: bool = False
) -> None:
    """Hold a reader against what is wrong with any file; `any_text` is one that takes all texts."""
    place = folder / f"evidence{suffix}"
    refused(read, place, "no such file")
    place.mkdir()
    refused(read, place)
    place.rmdir()
    place.symlink_to(folder / "nowhere")
    refused(read, place, "a link to a file that is not there")
    place.unlink()
    os.mkfifo(place)
    refused(read, place, "it is a pipe, not a file")
    place.unlink()
    place.write_bytes(b"")
    refused(read, place)
    place.write_bytes(b"\x00\xff\xfe\x80" * 10)
    refused(read, place)
    if text:
        place.write_bytes(b" \r\n\t\n")
        refused(read, place, "it is empty")
        place.write_bytes(b"id\nab\xe9\n")
        refused(read, place, "line 2, is 0xe9, which is not UTF-8")
        place.write_bytes("id,score\n".encode("utf-16"))
        refused(read, place, "it is UTF-16, UTF-8 is wanted")
        if not any_text:
            place.write_bytes(b"<!DOCTYPE html><html><body>404</body></html>")
            refused(read, place)
        place.write_bytes(b"x" * 200)
        with pytest.raises(EvidenceError, match="too large: 200 bytes, the limit is 100"):
            read(place, {"evidence_bytes": 100})


def survives_mutants(read: Read, good: Path, count: int, *, seed: int = 1) -> None:
    """Read mutants of a good file: a value or `EvidenceError`, nothing else, and both occur."""
    data = good.read_bytes()
    assert read(good)
    said = []
    for each in mutants(data, seed, count):
        good.write_bytes(each)
        try:
            read(good)
        except EvidenceError as error:
            said.append(f"{error}{error.hint}")
    good.write_bytes(data)
    assert 0 < len(said) < count
    assert all(map(str.isprintable, said))
