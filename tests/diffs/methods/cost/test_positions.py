"""Multiply-adds that torchvision publishes (methods 14.3), from shapes and output sizes."""

import pytest
from diffs.analyses.networks import infos, sizes
from diffs.methods.cost.test_weights import PUBLISHED

from difflens.core.records import TensorInfo
from difflens.diffs.analyses.inference_speed_estimate import multiply_adds, patch_multiply_adds
from difflens.models.anatomy.network import Network

# In thousands of millions; torchvision's "GFLOPS" are multiply-adds.
KERNELS = {
    "resnet18": 1.814,
    "resnet50": 4.089,
    "wide_resnet50_2": 11.398,
    "vgg16": 15.47,
    "alexnet": 0.714,
    "densenet121": 2.834,
    "convnext_t": 4.456,
    "efficientnet_b0": 0.386,
}


@pytest.mark.parametrize("name", KERNELS)
def test_published_multiply_adds_follow_from_shapes_and_output_sizes(name):
    parts, _ = PUBLISHED[name]

    found = multiply_adds(infos(parts), sizes(parts))

    assert found / 1e9 == pytest.approx(KERNELS[name], abs=0.0011)


@pytest.mark.parametrize(("name", "published"), [("vit_b_16", 17.564), ("vit_b_32", 4.409)])
def test_a_vision_transformer_needs_its_heads_and_the_image_alone(name, published):
    parts, _ = PUBLISHED[name]
    known = Network(layers=12, heads=12, head_dim=64)

    found = patch_multiply_adds(infos(parts), known, 224, 224)

    assert found / 1e9 == pytest.approx(published, abs=0.001)


def test_windowed_attention_adds_what_its_windows_multiply():
    parts, _ = PUBLISHED["swin_t"]
    stages = ((2, 96, 56), (2, 192, 28), (6, 384, 14), (2, 768, 7))
    windows = sum(count * 2 * 49 * width * size * size for count, width, size in stages)

    matrices = multiply_adds(infos(parts), sizes(parts))

    assert (matrices + windows) / 1e9 == pytest.approx(4.491, abs=0.001)


def test_a_kernel_whose_output_size_nobody_says_leaves_the_sum_unknown():
    kernel = TensorInfo("conv.weight", "F32", (8, 3, 3, 3))

    assert multiply_adds([kernel], {"other.*": 4}) is None


def test_a_network_of_many_kernels_is_no_vision_transformer():
    parts, _ = PUBLISHED["resnet18"]

    assert patch_multiply_adds(infos(parts), Network(12, None, 12, 12, 64), 224, 224) is None
