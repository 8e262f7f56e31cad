"""Bytes as stored: against the readers' own tables, and against what packages really write."""

import numpy as np
import pytest
import torch
from models.test_quantised_packages import package

from difflens.core.records import TensorInfo
from difflens.diffs.methods.weights import BLOCKS, OPAQUE_BLOCKS, elements, stored
from difflens.models.gguf import blocks as gguf_blocks


def test_blocks_are_those_that_the_reader_decodes():
    assert {name: tuple(sizes) for name, *sizes in gguf_blocks._DECODED.values()} == BLOCKS


def test_opaque_blocks_are_those_that_the_reader_hands_on():
    assert {name: tuple(sizes) for name, *sizes in gguf_blocks._OPAQUE.values()} == OPAQUE_BLOCKS


def test_an_opaque_block_has_the_bytes_of_its_shape_and_more_weights_than_bytes_or_fewer():
    info = TensorInfo("w", "U8", (4, 292), "Q8_K")

    assert stored(info).bytes == 4 * 292
    assert elements(info) == 4 * 256


@pytest.mark.parametrize("nested", [False, True])
@pytest.mark.filterwarnings("ignore")
def test_bitsandbytes_takes_what_we_count(nested):
    functional = package("bitsandbytes.functional")
    codes, state = functional.quantize_4bit(
        torch.zeros(256, 1024), blocksize=64, quant_type="nf4", compress_statistics=nested
    )
    parts = {"codes": codes, **state.as_dict(packed=True)}
    written = sum(
        part.numel() * part.element_size() for name, part in parts.items() if "state" not in name
    )
    said = "bitsandbytes nf4" + (", double quantised" if nested else "")

    assert stored(TensorInfo("w", "F32", (256, 1024), said)).bytes == written


def test_gptq_takes_its_words_scales_zeros_and_group_index():
    rows, columns, groups = 256, 1024, 8
    arrays = [
        np.zeros((columns * 4 // 32, rows), np.int32),
        np.zeros((groups, rows * 4 // 32), np.int32),
        np.zeros((groups, rows), np.float16),
        np.zeros(columns, np.int32),
    ]

    info = TensorInfo("w", "F32", (rows, columns), "GPTQ int4 g128")

    assert stored(info).bytes == sum(array.nbytes for array in arrays)
    assert not stored(info).exact


@pytest.mark.parametrize(
    ("said", "size"),
    [
        (None, 4 * 256 * 512),
        ("Q4_0", 256 * 512 * 18 // 32),
        ("AWQ int4 g128", 256 * 512 // 2 + 4 * 256 * 2 + 4 * 256 // 2),
        ("compressed-tensors int8", 256 * 512 + 2 * 256),
        ("bitsandbytes int8", 256 * 512 + 4 * 256),
        ("int8 scaled by row", 256 * 512 + 4 * 256),
        ("F8_E4M3 scaled by tensor", 256 * 512 + 4),
        ("F8_E4M3 scaled by blocks of 128x128", 256 * 512 + 4 * 2 * 4),
        ("qint8", 256 * 512),
        ("BF16 + LoRA rank 8", 2 * (256 * 512 + 8 * (256 + 512))),
        ("F32 big-endian", 4 * 256 * 512),
    ],
)
def test_every_scheme_has_its_size(said, size):
    assert stored(TensorInfo("w", "F32", (256, 512), said)).bytes == size


def test_four_bits_and_a_quarter_are_nearly_two_parameters_a_byte():
    info = TensorInfo("w", "F32", (4096, 4096), "MXFP4")

    assert info.count / stored(info).bytes == pytest.approx(1.88, abs=0.01)
