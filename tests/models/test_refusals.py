from pathlib import Path

import pytest

from difflens.models.refusals import is_text, looks_like, refusal

POINTER = b"version https://git-lfs.github.com/spec/v1\noid sha256:ab\nsize 12\n"


def _refuse(head: bytes):
    return refusal(head, Path("m.bin"), len(head))


@pytest.mark.parametrize(
    ("head", "reason", "hint"),
    [
        (b"", "the file is empty", "download"),
        (b"short", "too short: the file has 5 bytes", "download"),
        (POINTER, "this is a Git LFS pointer, not a model", "git lfs pull"),
        (b"outs:\n- md5: 1\n  path: m.bin\n", "this is a DVC pointer, not a model", "dvc pull"),
        (b"meta: 1\nouts:\n- path: m.bin\n", "this is a DVC pointer", "dvc pull"),
        (b"<html><body>", "this is an HTML page, not a model", "login"),
        (b"<?xml version='1.0'?><Error>", "this is an XML response, not a model", "login"),
        (b'{"error": "no \\u001b such"}', "error body, not a model: 'no \\x1b such'", "login"),
        (b'{"detail": {"code": 4}}', "JSON error body", "login"),
    ],
)
def test_what_is_no_model_is_refused_politely(head, reason, hint):
    error = _refuse(head)

    assert error
    assert reason in error.reason
    assert hint in error.hint


@pytest.mark.parametrize(
    "head",
    [
        (123).to_bytes(8, "little") + b'{"error": 1}',
        b'{"weights": 1}',
        b'{"error": cut off in the middle',
        b"\x80\x02}q\x00.....",
        b"just some text",
    ],
)
def test_what_might_be_a_model_is_left_to_the_readers(head):
    assert _refuse(head) is None


def test_a_long_json_file_is_not_read_to_find_an_error_in_it():
    assert refusal(b'{"error": "x"}', Path("m"), 10_000) is None


@pytest.mark.parametrize(
    ("head", "name"),
    [
        (b"PK\x03\x04", "a zip archive"),
        (b"\x1f\x8b\x08", "gzip data"),
        (b"\x80\x04\x95\x00", "a pickle"),
        (b"\x89HDF\r\n\x1a\n", "HDF5"),
        (b"GGUF\x03\0\0\0", "GGUF"),
        (b"\x08\x07\x12\x04onnx", "ONNX"),
        (b"\x89PNG\r\n\x1a\n", "a png picture"),
        (b"\x7fELF", "an ELF program"),
        (bytes(257) + b"ustar", "a tar archive"),
        (b'{"a": 1}', "JSON text"),
        ("größe".encode(), "text"),
        (bytes(20), None),
    ],
)
def test_the_first_bytes_tell_what_it_is(head, name):
    assert name == looks_like(head)


def test_text_cut_inside_a_character_is_still_text():
    assert is_text("größe".encode()[:3])
    assert not is_text(b"gr\xff\xffe")
    assert not is_text(b"")
