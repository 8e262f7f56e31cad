"""The codec of patches: what is decoded is what was coded, in C and in NumPy."""

import os
import random
import subprocess
import sys
import zlib
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest
from measure.codec.drawn import KINDS, pair, specials

from difflens.core import crc32c
from difflens.measure.codec import ALWAYS, CHEAP, NEVER, reference

CODECS: list[Any] = [reference]
try:
    from difflens.measure.codec import _codec

    CODECS.append(_codec)
except ImportError:
    CODECS.append(pytest.param(None, marks=pytest.mark.skip("the compiled codec is not built")))

_METHOD, _BACK = 7, 64


@pytest.fixture(params=CODECS, ids=["numpy", "compiled"])
def codec(request: pytest.FixtureRequest) -> ModuleType:
    return request.param


def decoded(
    codec: Any, data: bytes, base: bytes | None, dtype: str, *, size: int = 0, back: bool = False
) -> bytes:
    out = bytearray(b"\xa5" * (size if base is None else len(base)))
    codec.decode(data, base, out, KINDS[dtype], back)
    return bytes(out)


def outcome(codec: Any, data: bytes, base: bytes, dtype: str, back: bool) -> bytes | str:
    """Decode what may be damaged: the bytes, or the sentence that refuses them."""
    try:
        return decoded(codec, data, base, dtype, back=back)
    except ValueError as error:
        return str(error)


@pytest.mark.parametrize("back", [NEVER, CHEAP, ALWAYS])
def test_what_is_decoded_is_what_was_coded(codec, back):
    for seed in range(60):
        dtype, base, target = pair(seed)
        data = codec.encode(base, target, KINDS[dtype], back)

        assert decoded(codec, data, base, dtype) == target
        if data and data[0] & _METHOD in (1, 2) and data[0] & _BACK:
            assert decoded(codec, data, target, dtype, back=True) == base
        else:
            assert back != ALWAYS or not data


def test_chunks_without_a_base_come_back(codec):
    for seed in range(80):
        dtype, _, target = pair(seed)
        data = codec.encode(None, target, KINDS[dtype], NEVER)

        assert decoded(codec, data, None, dtype, size=len(target)) == target
        assert len(data) <= len(target) + 1


def test_nothing_is_written_for_equal_chunks(codec):
    dtype, base, _ = pair(3)

    assert codec.encode(base, base, KINDS[dtype], ALWAYS) == b""
    assert decoded(codec, b"", base, dtype) == base


def test_no_chunk_takes_more_than_its_words_and_a_little():
    for codec in (each for each in CODECS if isinstance(each, ModuleType)):
        for seed in range(300):
            dtype, base, target = pair(seed)
            data = codec.encode(base, target, KINDS[dtype], CHEAP)

            assert len(data) <= len(target) + len(target) // 1000 + 64


@pytest.mark.parametrize("dtype", [name for name in KINDS if KINDS[name][2]])
def test_signed_zeros_and_payloads_of_nan_survive_in_every_direction(codec, dtype):
    values = np.array(specials(dtype), np.uint64).astype(f"<u{KINDS[dtype][0]}")
    base, target = np.repeat(values, len(values)).tobytes(), np.tile(values, len(values)).tobytes()
    data = codec.encode(base, target, KINDS[dtype], ALWAYS)

    assert decoded(codec, data, base, dtype) == target
    assert decoded(codec, data, target, dtype, back=True) == base


def test_c_and_numpy_write_the_same_bytes():
    compiled = pytest.importorskip("difflens.measure.codec._codec")
    methods = set()
    for seed in range(240):
        dtype, base, target = pair(seed)
        for first in (base, None):
            back = seed % 3
            data = compiled.encode(first, target, KINDS[dtype], back)
            methods.add(data[0] & _METHOD if data else None)

            assert data == reference.encode(first, target, KINDS[dtype], back), (seed, dtype)

    assert methods == {None, 0, 1, 2, 3}


@pytest.mark.long
def test_c_and_numpy_agree_about_damage():
    compiled = pytest.importorskip("difflens.measure.codec._codec")
    refused = 0
    for seed in range(150):
        dtype, base, target = pair(seed)
        data = damaged(compiled.encode(base, target, KINDS[dtype], seed % 3), random.Random(seed))
        for back in (False, True):
            first, second = (
                outcome(each, data, base, dtype, back) for each in (compiled, reference)
            )

            assert first == second, (seed, dtype, data[:20])
            refused += isinstance(first, str)

    assert refused > 50


def damaged(data: bytes, chance: random.Random) -> bytes:
    """Flip bits, or cut."""
    copy = bytearray(data or b"\0")
    for _ in range(chance.choice((1, 1, 2, 5))):
        copy[chance.randrange(len(copy))] ^= 1 << chance.randrange(8)
    return bytes(copy[: chance.randrange(len(copy) + 1)] if chance.random() < 0.2 else copy)


@pytest.mark.slow
def test_a_hundred_thousand_damaged_chunks_are_refused_or_decoded():
    compiled = pytest.importorskip("difflens.measure.codec._codec")
    for seed in range(5000):
        dtype, base, target = pair(seed)
        data = compiled.encode(base, target, KINDS[dtype], seed % 3)
        chance = random.Random(seed)
        for _ in range(20):
            outcome(compiled, damaged(data, chance), base, dtype, chance.random() < 0.3)


@pytest.mark.parametrize("level", ["baseline", "avx2", "avx512"])
def test_every_set_of_instructions_writes_the_same_bytes(level):
    pytest.importorskip("difflens.measure.codec._codec")
    program = (
        "import zlib; from measure.codec.drawn import KINDS, pair\n"
        "from difflens.measure.codec import _codec as c\n"
        "s = 0\n"
        "for seed in range(300):\n"
        "    d, a, b = pair(seed); p = c.encode(a, b, KINDS[d], seed % 3); s = zlib.crc32(p, s)\n"
        "    o = bytearray(len(b)); c.decode(p, a, o, KINDS[d], False); assert o == b\n"
        "print(c.NAME, s)"
    )
    tests = Path(__file__).parents[2]
    path = os.pathsep.join([str(tests), *filter(None, [os.environ.get("PYTHONPATH")])])
    done = subprocess.run(
        [sys.executable, "-c", program],
        env=os.environ | {"DIFFLENS_LEVEL": level, "PYTHONPATH": path},
        capture_output=True,
        text=True,
        check=False,
    )
    if "cannot run the loops" in done.stderr:
        pytest.skip(f"this processor has no {level}")
    total = 0
    for seed in range(300):
        dtype, base, target = pair(seed)
        total = zlib.crc32(_codec.encode(base, target, KINDS[dtype], seed % 3), total)

    assert done.stdout.split() == [level, str(total)], done.stderr


def test_the_checksum_is_that_of_the_house(codec):
    for size in (0, 1, 7, 8, 9, 4096, 100_003):
        data = np.random.default_rng(size).bytes(size)

        assert codec.crc32c(data) == crc32c.crc32c(data)
        assert codec.crc32c(data[5:], codec.crc32c(data[:5])) == crc32c.crc32c(data)


@pytest.mark.parametrize("kind", [(3, 0, 0), (2, 7, 9), (4, -1, 0), (8, 40, 23), (0, 0, 0)])
def test_a_kind_of_words_that_cannot_be_is_refused(codec, kind):
    with pytest.raises(ValueError, match="no chunk of"):
        codec.encode(b"\0" * 24, b"\1" * 24, kind, 0)
    with pytest.raises(ValueError, match="no chunk of"):
        codec.decode(b"\1", b"\0" * 24, bytearray(24), kind, False)


def test_chunks_of_other_sizes_are_refused(codec):
    with pytest.raises(ValueError, match="another size"):
        codec.encode(b"\0" * 4, b"\0" * 8, KINDS["F32"], 0)
    with pytest.raises(ValueError, match="another size"):
        codec.decode(b"", b"\0" * 4, bytearray(8), KINDS["F32"], False)
    with pytest.raises(ValueError, match="no chunk of"):
        codec.encode(b"\0" * 6, b"\0" * 6, KINDS["F32"], 0)
