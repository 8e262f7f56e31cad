"""Quantised weights: packed here by plain loops from what the schemes say, decoded as they mean."""

import json
import time
from concurrent.futures import ThreadPoolExecutor
from itertools import pairwise
from typing import Any

import ml_dtypes
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from difflens.core.errors import CorruptFile
from difflens.core.records import TensorInfo
from difflens.models import computed
from difflens.models.opening import MemorySource
from difflens.models.quantised.weights import decode_quantised

Arrays = dict[str, Any]


def values(source: Any, name: str, step: int = 1000) -> Any:
    """Read a tensor in steps that fit nothing."""
    info = source.tensors[name]
    assert info.dtype == "F32"
    raw = bytearray(info.size_bytes)
    for start in range(0, len(raw), step):
        stop = min(start + step, len(raw))
        assert source.read_into(name, start, stop, memoryview(raw)[start:stop]) == stop - start
    return np.frombuffer(raw, np.float32).reshape(info.shape)


def opened(arrays: Arrays, **settings: Any) -> Any:
    return decode_quantised(
        MemorySource(arrays), {"config.json: quantization_config": json.dumps(settings)}
    )


def packed(numbers: list[int], bits: int) -> list[int]:
    """Put integers one after another into 32-bit words, the lowest bits first."""
    stream = 0
    for place, number in enumerate(numbers):
        assert 0 <= number < 1 << bits
        stream |= number << place * bits
    words = -(-len(numbers) * bits // 32)
    return [(stream >> 32 * word) & 0xFFFFFFFF for word in range(words)]


def words(rows: list[list[int]]) -> Any:
    return np.array(rows, np.uint32).view(np.int32)


def gptq(generator: Any, bits: int, inputs: int, outputs: int, groups: int, **more: Any) -> Any:
    """Return the parts of a GPTQ weight and the weight, made element by element."""
    index = more.get("index", [place * groups // inputs for place in range(inputs)])
    off = 0 if more.get("second") else 1
    q = generator.integers(0, 1 << bits, (inputs, outputs))
    zero = generator.integers(0, 1 << bits, (groups, outputs))
    scale = generator.uniform(0.01, 1, (groups, outputs)).astype(np.float16)
    weight = np.empty((outputs, inputs), np.float32)
    for i in range(inputs):
        for o in range(outputs):
            group = index[i]
            step = np.float32(scale[group, o])
            weight[o, i] = step * np.float32(int(q[i, o]) - int(zero[group, o]))
    stored = (zero - off) % (1 << bits)
    arrays = {
        "a.up.qweight": words([packed(list(column), bits) for column in q.T.tolist()]).T.copy(),
        "a.up.qzeros": words([packed(row, bits) for row in stored.tolist()]),
        "a.up.scales": scale,
        "a.up.g_idx": np.array(index, np.int32),
    }
    return arrays, weight


@pytest.mark.parametrize("bits", [2, 3, 4, 8])
@pytest.mark.parametrize("second", [False, True])
def test_gptq_is_decoded(bits, second):
    arrays, weight = gptq(np.random.default_rng(bits), bits, 64, 96, 4, second=second)
    source = opened(arrays, checkpoint_format="gptq_v2" if second else "gptq")

    assert list(source.tensors) == ["a.up.weight"]
    info = source.tensors["a.up.weight"]
    assert (info.shape, info.stored) == ((96, 64), f"GPTQ int{bits} g16")
    assert np.array_equal(values(source, "a.up.weight"), weight)
    assert source.warnings == []


def test_gptq_inputs_may_be_in_any_group():
    generator = np.random.default_rng(5)
    index = generator.permutation([place // 16 for place in range(64)]).tolist()
    arrays, weight = gptq(generator, 4, 64, 32, 4, index=index)

    assert np.array_equal(values(opened(arrays), "a.up.weight"), weight)


def test_gptq_groups_need_not_be_named():
    arrays, weight = gptq(np.random.default_rng(6), 4, 64, 32, 2)
    del arrays["a.up.g_idx"]

    assert np.array_equal(values(opened(arrays), "a.up.weight"), weight)


def test_the_settings_of_a_gptq_file_of_its_own_count():
    arrays, weight = gptq(np.random.default_rng(7), 4, 32, 32, 1, second=True)
    source = decode_quantised(
        MemorySource(arrays), {"quantize_config.json: checkpoint_format": '"gptq_v2"'}
    )

    assert np.array_equal(values(source, "a.up.weight"), weight)


def test_a_group_that_does_not_exist_is_a_clean_error():
    arrays, _ = gptq(np.random.default_rng(8), 4, 32, 32, 2)
    arrays["a.up.g_idx"][3] = 7

    with pytest.raises(CorruptFile, match="groups 0 to 7"):
        values(opened(arrays), "a.up.weight")


def test_awq_is_decoded():
    generator = np.random.default_rng(1)
    inputs, outputs, groups = 32, 24, 4
    q = generator.integers(0, 16, (inputs, outputs))
    zero = generator.integers(0, 16, (groups, outputs))
    scale = generator.uniform(0.01, 1, (groups, outputs)).astype(np.float16)

    def row(numbers: list[int]) -> list[int]:
        found = []
        for begin in range(0, len(numbers), 8):
            word = 0
            for place, bit in enumerate([0, 4, 1, 5, 2, 6, 3, 7]):
                word |= numbers[begin + place] << 4 * bit
            found.append(word)
        return found

    weight = np.empty((outputs, inputs), np.float32)
    for i in range(inputs):
        for o in range(outputs):
            step = int(q[i, o]) - int(zero[i // 8, o])
            weight[o, i] = np.float32(scale[i // 8, o]) * np.float32(step)
    source = opened({
        "a.qweight": words([row(line) for line in q.tolist()]),
        "a.qzeros": words([row(line) for line in zero.tolist()]),
        "a.scales": scale,
        "a.bias": np.zeros(outputs, np.float16),
    })  # fmt: skip

    assert {name: info.stored for name, info in source.tensors.items()} == {
        "a.weight": "AWQ int4 g8",
        "a.bias": None,
    }
    assert np.array_equal(values(source, "a.weight"), weight)


@pytest.mark.parametrize("bits", range(1, 9))
@pytest.mark.parametrize("zeros", ["none", "packed", "plain"])
def test_compressed_tensors_are_decoded(bits, zeros):
    generator = np.random.default_rng(bits)
    outputs, inputs, groups = 40, 64, 4
    low, middle = -(1 << bits - 1), 1 << bits - 1
    q = generator.integers(low, -low, (outputs, inputs))
    zero = generator.integers(low, -low, (outputs, groups)) * (zeros != "none")
    scale = generator.uniform(0.01, 1, (outputs, groups)).astype(np.float32)
    weight = np.empty((outputs, inputs), np.float32)
    for o in range(outputs):
        for i in range(inputs):
            weight[o, i] = scale[o, i // 16] * np.float32(q[o, i] - zero[o, i // 16])
    arrays = {
        "a.weight_packed": words([packed(row, bits) for row in (q + middle).tolist()]),
        "a.weight_scale": scale,
        "a.weight_shape": np.array([outputs, inputs]),
    }
    if zeros == "packed":
        columns = [packed(row, bits) for row in (zero.T + middle).tolist()]
        arrays["a.weight_zero_point"] = words(columns).T.copy()
    elif zeros == "plain":
        arrays["a.weight_zero_point"] = zero.astype(np.int8)
    source = opened(arrays)

    assert source.tensors["a.weight"].stored == f"compressed-tensors int{bits} g16"
    assert list(source.tensors) == ["a.weight"]
    assert np.array_equal(values(source, "a.weight"), weight)


@pytest.mark.parametrize("shape", [(6, 1), (1,), (6, 4)])
def test_compressed_tensors_may_have_one_scale_a_row_or_one_in_all(shape):
    generator = np.random.default_rng(0)
    q = generator.integers(-8, 8, (6, 20))
    scale = generator.uniform(0.01, 1, shape).astype(np.float32)
    arrays = {
        "a.weight_packed": words([packed([each + 8 for each in row], 4) for row in q.tolist()]),
        "a.weight_scale": scale,
        "a.weight_shape": np.array([6, 20]),
    }
    spread = np.repeat(np.broadcast_to(scale, (6, shape[-1])), 20 // shape[-1], axis=1)

    assert np.array_equal(values(opened(arrays), "a.weight"), q.astype(np.float32) * spread)


def test_the_settings_say_how_many_bits_where_several_fit():
    q = np.random.default_rng(0).integers(0, 8, (2, 8))
    arrays = {
        "a.weight_packed": words([packed(row, 3) for row in q.tolist()]),
        "a.weight_scale": np.ones((2, 1), np.float32),
        "a.weight_shape": np.array([2, 8]),
    }
    source = opened(arrays, config_groups={"group_0": {"weights": {"num_bits": 3}}})

    assert np.array_equal(values(source, "a.weight"), q - 4)


def test_compressed_tensors_in_activation_order_are_decoded():
    generator = np.random.default_rng(3)
    q, index = generator.integers(0, 16, (4, 32)), generator.permutation(np.arange(32) // 8)
    scale = generator.uniform(0.1, 1, (4, 4)).astype(np.float32)
    arrays = {
        "a.weight_packed": words([packed(row, 4) for row in q.tolist()]),
        "a.weight_scale": scale,
        "a.weight_shape": np.array([4, 32]),
        "a.weight_g_idx": index.astype(np.int32),
    }

    assert np.array_equal(
        values(opened(arrays), "a.weight"), (q - 8).astype(np.float32) * scale[:, index]
    )


@pytest.mark.parametrize("kind", ["float8_e4m3fn", "float8_e5m2", "int8"])
@pytest.mark.parametrize(
    ("scales", "said"),
    [
        ((), "tensor"), ((1,), "tensor"), ((300,), "row"), ((300, 1), "row"),
        ((3, 2), "blocks of 128x128"), ((300, 5), "blocks of 1x40"),
    ],
)  # fmt: skip
@pytest.mark.parametrize("ending", ["weight_scale", "weight_scale_inv"])
def test_scales_are_multiplied_with(kind, scales, said, ending):
    generator = np.random.default_rng(2)
    scale = generator.uniform(0.1, 2, scales).astype(np.float32)
    weight = generator.integers(-100, 100, (300, 200)).astype(getattr(ml_dtypes, kind, kind))
    wanted = np.empty(weight.shape, np.float32)
    over = scale if scale.ndim == 2 else scale.reshape(-1, 1)
    for o in range(300):
        for i in range(200):
            line = 0 if len(over) == 1 else o if len(over) == 300 else o // 128
            column = {1: 0, 2: i // 128, 5: i // 40}[over.shape[1]]
            wanted[o, i] = np.float32(weight[o, i]) * over[line, column]
    arrays = {"a.weight": weight, f"a.{ending}": scale, "a.input_scale": np.ones(1, np.float32)}
    source = opened(arrays)

    assert list(source.tensors) == ["a.weight", "a.input_scale"]
    assert source.tensors["a.weight"].stored.endswith(f"scaled by {said}")
    assert np.array_equal(values(source, "a.weight"), wanted)


@pytest.mark.parametrize("kind", ["float8_e4m3fn", "int8"])
@pytest.mark.parametrize("shape", [(6, 1), (1,), (6, 4)])
def test_the_parts_of_torchao_are_one_weight(kind, shape):
    """It saves an object of qdata, scale and, for integers, zero_point."""
    random = np.random.default_rng(3)
    stored = random.integers(-100, 100, (6, 32)).astype(getattr(ml_dtypes, kind, np.int8))
    scale = random.uniform(0.01, 0.1, shape).astype("f4")
    arrays = {"a.weight.qdata": stored, "a.weight.scale": scale, "a.bias": np.ones(6, "f4")}
    wide = stored.astype("f4")
    if kind == "int8":
        arrays["a.weight.zero_point"] = np.full(shape, 3, np.int8)
        wide = wide - 3
    source = opened(arrays)

    spread = np.repeat(scale, 32 // shape[-1], axis=1) if shape == (6, 4) else scale
    assert set(source.tensors) == {"a.weight", "a.bias"}
    assert np.allclose(values(source, "a.weight"), wide * spread)


def test_experts_have_scales_of_their_own():
    generator = np.random.default_rng(2)
    weight = generator.normal(size=(3, 8, 6)).astype(ml_dtypes.float8_e4m3fn)
    for shape in [(3, 1, 1), (3, 8, 1), (3, 8, 2), (3, 2, 3), (1, 8, 1)]:
        scale = generator.uniform(0.1, 2, shape).astype(np.float32)
        spread = scale
        for axis, length in enumerate(weight.shape):
            spread = np.repeat(spread, length // shape[axis], axis)
        source = opened({"a.weight": weight, "a.weight_scale": scale})

        assert np.array_equal(values(source, "a.weight"), weight.astype(np.float32) * spread)


def test_integers_with_a_zero_point_are_decoded():
    generator = np.random.default_rng(2)
    weight = generator.integers(-128, 128, (5, 7)).astype(np.int8)
    zero = generator.integers(-128, 128, (5, 1)).astype(np.int8)
    scale = generator.uniform(0.1, 1, (5, 1)).astype(np.float32)
    source = opened({"a.weight": weight, "a.weight_scale": scale, "a.weight_zero_point": zero})

    wanted = (weight.astype(np.float32) - zero.astype(np.float32)) * scale
    assert list(source.tensors) == ["a.weight"]
    assert np.array_equal(values(source, "a.weight"), wanted)


def nf4(generator: Any, shape: tuple[int, int], block: int, *, nested: bool) -> Any:
    """Return the parts of a bitsandbytes weight and the weight, made element by element."""
    count = shape[0] * shape[1]
    blocks = -(-count // block)
    table = np.sort(generator.uniform(-1, 1, 16)).astype(np.float32)
    codes = generator.integers(0, 16, count)
    state: dict[str, Any] = {"quant_type": "nf4", "blocksize": block, "shape": list(shape)}
    arrays: Arrays = {}
    absmax = generator.uniform(0.1, 3, blocks).astype(np.float32)
    if nested:
        inner = generator.uniform(-1, 1, 256).astype(np.float32)
        outer = generator.uniform(0.1, 1, -(-blocks // 256)).astype(np.float32)
        quantised = generator.integers(0, 256, blocks).astype(np.uint8)
        state |= {"nested_blocksize": 256, "nested_offset": 1.25, "nested_dtype": "float32"}
        for place in range(blocks):
            absmax[place] = inner[quantised[place]] * outer[place // 256] + np.float32(1.25)
        arrays = {"a.weight.nested_absmax": outer, "a.weight.nested_quant_map": inner}
    weight = np.empty(count, np.float32)
    raw = np.zeros(-(-count // 2), np.uint8)
    for place in range(count):
        weight[place] = table[codes[place]] * absmax[place // block]
        raw[place // 2] |= codes[place] << (0 if place % 2 else 4)
    blob = np.frombuffer(json.dumps(state).encode(), np.uint8)
    arrays |= {
        "a.weight": raw.reshape(-1, 1),
        "a.weight.absmax": quantised if nested else absmax,
        "a.weight.quant_map": table,
        "a.weight.quant_state.bitsandbytes__nf4": blob,
    }
    return arrays, weight.reshape(shape)


@pytest.mark.parametrize("nested", [False, True])
@pytest.mark.parametrize("shape", [(33, 65), (300, 64)])
def test_bitsandbytes_codes_are_looked_up(nested, shape):
    arrays, weight = nf4(np.random.default_rng(4), shape, 64, nested=nested)
    source = opened(arrays)

    said = "bitsandbytes nf4, double quantised" if nested else "bitsandbytes nf4"
    assert list(source.tensors) == ["a.weight"]
    assert source.tensors["a.weight"].stored == said
    assert np.array_equal(values(source, "a.weight"), weight)


@pytest.mark.parametrize(
    ("blob", "reason"),
    [
        (b"{", "not JSON"), (b"[" * 60_000, "not JSON"), (b"[]", "lacks a shape"),
        (b'{"shape": [-1, 4], "blocksize": 64}', "lacks a shape"),
        (b'{"shape": [3, 65], "blocksize": 64}', "are not the size of"),
        (b'{"shape": [33, 65], "blocksize": 63}', "lacks a shape"),
        (b'{"shape": [33, 65], "blocksize": 128}', "block maxima"),
        (b'{"shape": [33, 65], "blocksize": 64, "nested_offset": NaN}', "not a finite number"),
        (b" " * 70_000, "takes 70000 bytes"),
    ],
)  # fmt: skip
def test_a_state_that_does_not_fit_leaves_the_weight_alone(blob, reason):
    arrays, _ = nf4(np.random.default_rng(4), (33, 65), 64, nested=False)
    arrays["a.weight.quant_state.bitsandbytes__nf4"] = np.frombuffer(blob, np.uint8)
    source = opened(arrays)

    assert list(source.tensors) == list(arrays)
    assert len(source.warnings) == 1
    assert reason in source.warnings[0]


def test_bitsandbytes_integers_have_a_maximum_a_row():
    generator = np.random.default_rng(4)
    weight = generator.integers(-127, 128, (9, 11)).astype(np.int8)
    rows = generator.uniform(0.1, 3, 9).astype(np.float32)
    arrays = {"a.weight": weight, "a.SCB": rows, "a.weight_format": np.zeros((), np.uint8)}
    source = opened(arrays)

    assert list(source.tensors) == ["a.weight"]
    assert np.allclose(values(source, "a.weight"), weight * rows[:, None] / 127, rtol=3e-7)
    arrays["a.weight_format"] = np.ones((), np.uint8)
    assert "weight_format" in opened(arrays).warnings[0]


FP4 = [0.0, 0.5, 1.0, 1.5, 2.0, 3.0, 4.0, 6.0, -0.0, -0.5, -1.0, -1.5, -2.0, -3.0, -4.0, -6.0]


@pytest.mark.parametrize("lead", [(5,), (2, 37), ()])
@pytest.mark.parametrize("kind", ["uint8", "float8_e8m0fnu"])
def test_mxfp4_is_decoded_and_experts_are_turned(lead, kind):
    generator = np.random.default_rng(9)
    blocks = generator.integers(0, 256, (*lead, 3, 16)).astype(np.uint8)
    scales = generator.integers(0, 252, (*lead, 3)).astype(np.uint8)
    weight = np.empty((*lead, 96), np.float32)
    for place in np.ndindex(*lead, 96):
        *row, element = place
        octet = int(blocks[(*row, element // 32, element % 32 // 2)])
        number = FP4[octet >> 4 if element % 2 else octet & 15]
        weight[place] = number * 2.0 ** (int(scales[(*row, element // 32)]) - 127)
    stored = scales.view(getattr(ml_dtypes, kind, kind))
    source = opened({"a.up_proj_blocks": blocks, "a.up_proj_scales": stored})

    wanted = weight.transpose(0, 2, 1) if len(lead) == 2 else weight
    assert source.tensors["a.up_proj"].stored == "MXFP4"
    assert np.array_equal(values(source, "a.up_proj"), wanted)


@pytest.mark.parametrize("is_divided", [True, False])
def test_nvfp4_is_decoded(is_divided):
    generator = np.random.default_rng(9)
    octets = generator.integers(0, 256, (6, 16)).astype(np.uint8)
    scales = generator.uniform(0.5, 200, (6, 2)).astype(ml_dtypes.float8_e4m3fn)
    total = np.array([2.5], np.float32)
    weight = np.empty((6, 32), np.float32)
    for o in range(6):
        for i in range(32):
            octet = int(octets[o, i // 2])
            factor = np.float32(scales[o, i // 16])
            factor = factor / total[0] if is_divided else factor * total[0]
            weight[o, i] = np.float32(FP4[octet >> 4 if i % 2 else octet & 15]) * factor
    names = ("weight_packed", "weight_global_scale") if is_divided else ("weight", "weight_scale_2")
    source = opened({f"a.{names[0]}": octets, "a.weight_scale": scales, f"a.{names[1]}": total})

    assert list(source.tensors) == ["a.weight"]
    assert np.array_equal(values(source, "a.weight"), weight)


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        ({"a.up.scales": None}, "there is no 'a.up.scales'"),
        ({"a.up.qzeros": np.zeros((3, 12), np.int32)}, "do not fit 2, 3, 4 or 8 bits"),
        ({"a.up.g_idx": np.zeros(5, np.int32)}, "g_idx has shape [5]"),
        ({"a.up.scales": np.zeros((4, 50), np.float16)}, "its scheme is unknown"),
        ({"a.up.weight": np.zeros(2, np.float32)}, "the file holds"),
        ({"a.up.qweight": np.zeros((8, 96, 1), np.int32)}, "expected 2 dimensions"),
    ],
)
def test_parts_that_disagree_stay_as_they_are_with_a_warning(change, reason):
    arrays, _ = gptq(np.random.default_rng(0), 4, 64, 96, 4)
    arrays = {name: each for name, each in (arrays | change).items() if each is not None}
    source = opened(arrays)

    assert list(source.tensors) == list(arrays)
    assert len(source.warnings) == 1
    assert (
        "undecodable quantisation, compared as it is stored: 'a.up.qweight'" in source.warnings[0]
    )
    assert reason in source.warnings[0]


@pytest.mark.parametrize(
    ("name", "shape"),
    [("a.q_weight", (4, 4)), ("a.W_q", (4, 4)), ("a.weight_packed", (4, 4)), ("qweight", (4,))],
)
def test_packed_integers_of_an_unknown_scheme_are_named(name, shape):
    source = opened({name: np.zeros(shape, np.int32)})

    assert list(source.tensors) == [name]
    assert source.tensors[name].dtype == "I32"
    assert "undecodable quantisation" in source.warnings[0]
    assert name in source.warnings[0]


def test_many_weights_with_the_same_fault_share_a_warning():
    arrays = {f"layers.{number}.qweight": np.zeros((1, 1), np.int32) for number in range(50)}
    for number in range(50):
        arrays[f"layers.{number}.scales"] = np.zeros((1, 3), np.float16)
        arrays[f"layers.{number}.qzeros"] = np.zeros((1, 3), np.int32)
    source = opened(arrays)

    assert len(source.warnings) == 1
    assert "and 45 more" in source.warnings[0]


def test_ordinary_tensors_are_left_alone():
    arrays = {
        "a.weight": np.zeros((2, 2), np.float32), "a.weight_scale": np.ones(1, np.float32),
        "b.res_blocks": np.zeros((2, 16), np.float32), "c.layer_scale": np.ones(4, np.float32),
        "d.weight": np.zeros((2, 2), ml_dtypes.float8_e4m3fn),
        "e.num_blocks": np.zeros(16, np.uint8), "k_scale": np.ones(1, np.float32),
    }  # fmt: skip
    plain = MemorySource(arrays)
    source = decode_quantised(
        plain, {"config.json: quantization_config": "{", "config.json: a": "1"}
    )

    assert source is plain
    assert source.warnings == []


def test_a_million_names_take_no_time():
    class Many(MemorySource):
        def __init__(self) -> None:
            super().__init__({})
            info = TensorInfo("a", "F32", (1,))
            names = (f"model.layers.{number}.self_attn.q_proj.weight" for number in range(10**6))
            self.tensors = dict.fromkeys(names, info)

    source = Many()
    begin = time.process_time()

    assert decode_quantised(source, {}) is source
    assert time.process_time() - begin < 0.5


def test_what_only_some_sources_have_shines_through():
    arrays, _ = gptq(np.random.default_rng(0), 4, 32, 32, 1)
    plain = MemorySource(arrays | {"norm": np.ones(3, np.float32)})
    plain.refused = ["os.system"]
    source: Any = decode_quantised(plain, {})

    assert source.refused == ["os.system"]
    assert not hasattr(source, "verify")
    assert not hasattr(source.encoding("norm"), "place")
    assert not hasattr(source.encoding("a.up.weight"), "place")
    assert values(source, "norm").tolist() == [1, 1, 1]
    source.confirm()
    source.close()


@given(
    cuts=st.lists(st.integers(0, 30_000), max_size=6),
    strip=st.sampled_from([1, 50, 64, 1000, 10**6]),
    scheme=st.sampled_from(["gptq", "nf4"]),
)
def test_any_range_may_be_asked_for(cuts, strip, scheme):
    generator = np.random.default_rng(0)
    if scheme == "gptq":
        arrays, weight = gptq(generator, 3, 32, 64, 2)
    else:
        arrays, weight = nf4(generator, (33, 65), 64, nested=True)
    name = "a.up.weight" if scheme == "gptq" else "a.weight"
    edges = sorted({0, weight.nbytes, *(cut % (weight.nbytes + 1) for cut in cuts)})

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(computed, "_STRIP", strip)
        source = opened(arrays)
        found = b""
        for start, stop in pairwise(edges):
            part = bytearray(stop - start)
            source.read_into(name, start, stop, memoryview(part))
            found += part
    assert found == weight.tobytes()


def test_threads_may_read_at_once(monkeypatch):
    monkeypatch.setattr(computed, "_STRIP", 1024)
    monkeypatch.setattr(computed, "_CACHED", 2)
    arrays, weight = gptq(np.random.default_rng(0), 4, 64, 256, 4)
    source, wanted = opened(arrays), weight.tobytes()

    def read(start: int) -> bool:
        part = bytearray(700)
        source.read_into("a.up.weight", start, start + 700, memoryview(part))
        return bytes(part) == wanted[start : start + 700]

    with ThreadPoolExecutor(8) as pool:
        assert all(pool.map(read, range(0, len(wanted) - 700, 333)))
