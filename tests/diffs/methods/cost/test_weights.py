"""Published parameter counts (methods 14.3), from shapes as checkpoints hold them."""

import pytest
from diffs.analyses.networks import (
    LLAMA_2_7B,
    LLAMA_3_8B,
    alexnet,
    bert,
    convnext_t,
    densenet121,
    efficientnet_b0,
    gpt2,
    infos,
    llama,
    resnet,
    swin_t,
    vgg16,
    vit,
)

from difflens.core.records import TensorInfo
from difflens.diffs.methods.weights import weights

PUBLISHED = {
    "resnet18": (list(resnet((2, 2, 2, 2), bottleneck=False)), 11_689_512),
    "resnet50": (list(resnet((3, 4, 6, 3), bottleneck=True)), 25_557_032),
    "wide_resnet50_2": (list(resnet((3, 4, 6, 3), bottleneck=True, base=128)), 68_883_240),
    "vgg16": (list(vgg16()), 138_357_544),
    "alexnet": (list(alexnet()), 61_100_840),
    "vit_b_16": (list(vit(16)), 86_567_656),
    "vit_b_32": (list(vit(32)), 88_224_232),
    "densenet121": (list(densenet121()), 7_978_856),
    "efficientnet_b0": (list(efficientnet_b0()), 5_288_548),
    "swin_t": (list(swin_t()), 28_288_354),
    "convnext_t": (list(convnext_t()), 28_589_128),
    "gpt2": (list(gpt2()), 124_439_808),
    "bert_base": (list(bert()), 109_482_240),
    "llama_2_7b": (list(llama(LLAMA_2_7B)), 6_738_415_616),
    "llama_3_8b": (list(llama(LLAMA_3_8B)), 8_030_261_248),
}


@pytest.mark.parametrize("name", PUBLISHED)
def test_published_parameter_counts_are_met_exactly(name):
    parts, count = PUBLISHED[name]

    assert weights(infos(parts)).parameters == count


def test_llama_2_7b_takes_13_477_gigabytes_in_half_precision():
    parts, _ = PUBLISHED["llama_2_7b"]

    assert round(weights(infos(parts, "F16")).bytes / 1e9, 3) == 13.477


def test_wide_resnet_is_published_in_half_precision():
    parts, count = PUBLISHED["wide_resnet50_2"]

    size = weights(infos(parts, "F16")).bytes

    # What is left to 131.82 MiB is the zip around some 300 tensors.
    assert 131.5 < size / 2**20 < 131.82
    assert round(size / count, 1) == 2.0


@pytest.mark.parametrize(("name", "size"), [("resnet18", 44.661), ("resnet50", 97.781)])
def test_published_file_sizes_are_the_bytes_and_a_little_zip(name, size):
    parts, _ = PUBLISHED[name]

    assert size - 0.3 < weights(infos(parts)).bytes / 2**20 < size


def test_a_name_without_storage_of_its_own_is_counted_once():
    table = TensorInfo("wte.weight", "F32", (100, 8))
    head = TensorInfo("lm_head.weight", "F32", (100, 8))

    alone = weights([table, head], ["lm_head.weight"])

    assert (alone.parameters, alone.bytes, alone.repeated_bytes) == (800, 3200, 3200)
    assert alone.has_head


def test_tables_of_words_and_experts_stand_apart_from_what_every_token_reads():
    summed = weights(
        [
            TensorInfo("model.embed_tokens.weight", "F32", (10, 4)),
            TensorInfo("model.layers.0.mlp.experts.0.w1.weight", "F32", (8, 4)),
            TensorInfo("model.layers.0.mlp.shared_experts.w1.weight", "F32", (8, 4)),
        ]
    )

    assert (summed.lookup_parameters, summed.expert_parameters) == (40, 32)
    assert (summed.matrices, summed.read_bytes) == (32, 128)
