"""Table N of the security specification: arrays and archives of NumPy."""

import io
import os
import resource
import struct
import time
import zipfile
from typing import Literal

import numpy as np
import pytest
from hostile.survival import MANY, cut, damaged, survive, values
from models.formats.test_npy import header

from difflens.core.errors import DifflensError, LimitExceeded
from difflens.models.formats import open_model


class Payload:
    """Unpickling it would make a folder."""

    def __init__(self, path):
        self.path = path

    def __reduce__(self):
        return os.mkdir, (str(self.path),)


def described(descr: str = "'<f8'", shape: str = "(1,)", order: str = "False") -> bytes:
    text = f"{{'descr': {descr}, 'fortran_order': {order}, 'shape': {shape}, }}\n"
    return header(text, 1 if len(text) < 65536 else 2, bytes(8))


REFUSED = {
    "N02 a header of 4 GiB that is not there": (
        b"\x93NUMPY\x02\x00" + b"\xff" * 4 + bytes(20), "its header ends at byte",
    ),
    "N03 no data": (described(shape="(65536, 65536)"), "ends at byte"),
    "N03 a terabyte": (described(shape=f"({2**40},)"), "ends at byte"),
    "N03 below zero": (described(shape="(-1,)"), "integers of at least 0"),
    "N03 a truth": (described(shape="(True,)"), "integers of at least 0"),
    "N03 beyond 63 bits": (described(shape=f"({2**63},)"), "integers of at least 0"),
    "N03 a product beyond 63 bits": (described(shape=f"({2**40}, {2**40}, 0)"), "overflows"),
    "N03 a list": (described(shape="[1]"), "a tuple is wanted"),
    "N03 a number": (described(shape="(1)"), "a tuple is wanted"),
    "N03 a sum": (described(shape="(1+1,)"), "no NumPy header"),
    "N03 rank": (described(shape="(" + "1," * 100 + ")"), "rank"),
    "N04 parentheses": (described(descr="(" * 300 + "'<f4'" + ")" * 300), "nested"),
    "N04 64 kB": (described(shape="(1,)" + " " * 65000), "header too large"),
    "N04 a NUL": (described(descr="'<f\0'"), "no NumPy header"),
    "N04 an expression": (described(descr="__import__('os').mkdir('x')"), "no NumPy header"),
    "N04 a key twice": (
        header("{'descr': '<f8', 'descr': '<f4', 'fortran_order': False, 'shape': ()}"), "twice",
    ),
    "N04 a key too many": (
        header("{'descr': '<f8', 'fortran_order': False, 'shape': (), 'x': 1}"), "must hold",
    ),
    "N04 no map": (header("'<f8'"), "must hold"),
    "N06 no such float": (described(descr="'<f3'"), "none of NumPy's"),
    "N06 no such type": (described(descr="'hello'"), "none of NumPy's"),
    "N06 a type that is a number": (described(descr="4"), "none of NumPy's"),
    "an order that is no truth": (described(order="1"), "True or False"),
    "version 9": (b"\x93NUMPY\x09\x00" + bytes(20), "version 9.0"),
}  # fmt: skip


@pytest.mark.parametrize("case", REFUSED)
@pytest.mark.parametrize("packed", [False, True])
def test_an_array_that_lies_is_refused_at_once(case, packed, tmp_path):
    data, said = REFUSED[case]
    path = tmp_path / ("a.npz" if packed else "a.npy")
    if packed:
        with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as written:
            written.writestr("a.npy", data)
    else:
        path.write_bytes(data)
    began = time.monotonic()

    with pytest.raises(DifflensError, match=said):
        open_model(path)
    assert time.monotonic() - began < 1


def test_n01_objects_are_named_and_never_unpickled(tmp_path):
    marker = tmp_path / "MARKER"
    objects = np.array([Payload(marker)], object)
    np.save(tmp_path / "a.npy", objects)
    np.savez(tmp_path / "a.npz", o=objects, w=np.ones(2))

    with pytest.raises(DifflensError, match="a pickle, which is never loaded"):
        open_model(tmp_path / "a.npy")
    model = open_model(tmp_path / "a.npz")

    assert list(model.tensors) == ["w"]
    assert model.refused == ["o.npy (pickled objects)"]
    assert model.warnings == ["no tensors, left out: 'o: objects'"]
    assert not marker.exists()
    model.close()


def test_n01_an_object_field_is_an_object(tmp_path):
    path = tmp_path / "a.npy"
    path.write_bytes(described(descr="[('a', '<f4'), ('b', [('c', '|O')])]"))

    with pytest.raises(DifflensError, match="never loaded"):
        open_model(path)


def test_n07_what_is_no_array_is_skipped_and_a_false_array_is_not(tmp_path):
    path = tmp_path / "a.npz"
    with zipfile.ZipFile(path, "w") as written:
        written.writestr("readme.txt", "x")
        written.writestr("folder/", "")
    assert values(path) == {}

    with zipfile.ZipFile(path, "a") as written:
        written.writestr("false.npy", "x")
    with pytest.raises(DifflensError, match=r"'false\.npy' is called an array and is none"):
        open_model(path)


def bomb(path, size: int) -> None:
    head = io.BytesIO()
    np.lib.format.write_array_header_1_0(
        head, {"descr": "<f4", "fortran_order": False, "shape": (size // 4,)}
    )
    with (
        zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED, compresslevel=1) as written,
        written.open("a.npy", "w", force_zip64=True) as member,
    ):
        member.write(head.getvalue())
        for _ in range(size >> 20):
            member.write(bytes(1 << 20))


def streamed(path, size: int) -> None:
    with pytest.raises(LimitExceeded, match="the limit is 100 times"):
        open_model(path, limits={"zip_bytes": size - 1})
    model = open_model(path, limits={"zip_ratio": 2000})
    buffer = bytearray(1 << 20)
    for start in range(0, size, size >> 4):
        buffer[:] = b"x" * len(buffer)
        model.read_into("a", start, start + len(buffer), memoryview(buffer))
        assert not any(buffer)
    model.close()


def test_n08_zeros_are_told_or_streamed(tmp_path):
    bomb(tmp_path / "a.npz", 1 << 26)

    streamed(tmp_path / "a.npz", 1 << 26)


@pytest.mark.slow
def test_n08_a_gigabyte_of_zeros_is_told_or_streamed_in_little_memory(tmp_path):
    bomb(tmp_path / "a.npz", 1 << 30)
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss

    streamed(tmp_path / "a.npz", 1 << 30)

    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 300_000  # kB


def reference(data: bytes, found: dict[str, bytes]) -> bool:
    """Does NumPy read the same, where it reads it at all?"""
    try:
        theirs = np.load(io.BytesIO(data))
    except Exception:  # noqa: BLE001  it fails in any way
        return True
    theirs = theirs.astype(theirs.dtype.newbyteorder("<"))
    return all(theirs.tobytes() == mine for mine in found.values())


def good(descr: str = "<f4", order: Literal["C", "F"] = "C") -> bytes:
    stream = io.BytesIO()
    np.save(stream, np.arange(12).reshape(3, 4).astype(descr, order=order))
    return stream.getvalue()


def test_an_array_cut_at_any_byte_is_refused(tmp_path):
    assert survive(cut(good()), tmp_path / "a.npy") == 0


@pytest.mark.parametrize(("descr", "order"), [("<f4", "C"), (">i2", "F"), ("|b1", "C")])
def test_hundreds_of_mutants_give_clean_errors_or_right_values(descr, order, tmp_path):
    survive(damaged(good(descr, order), 1, 400), tmp_path / "a.npy", reference)


@pytest.mark.slow
def test_thousands_of_mutants(tmp_path):
    survive(damaged(good(), 2, MANY), tmp_path / "a.npy", reference)


def test_every_length_field_is_checked_before_it_is_believed(tmp_path):
    path = tmp_path / "a.npy"
    for length in (0, 1, 127, 128, 65535, 2**31, 2**32 - 1):
        for version in (1, 2, 3):
            width = "<H" if version == 1 else "<I"
            if version > 1 or length < 65536:
                data = b"\x93NUMPY" + bytes([version, 0]) + struct.pack(width, length)
                path.write_bytes(data + b"{'descr': '<f4'")
                with pytest.raises(DifflensError):
                    open_model(path)
