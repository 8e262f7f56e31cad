"""Named networks as lists of shapes: what their checkpoints hold, and where kernels are applied."""

from collections.abc import Iterator
from itertools import pairwise
from typing import NamedTuple

from difflens.core.records import TensorInfo


class Part(NamedTuple):
    """A tensor, and at how many positions a forward pass applies it."""

    name: str
    shape: tuple[int, ...]
    positions: int = 1
    dtype: str = "F32"


Parts = Iterator[Part]


def infos(parts: Parts, dtype: str | None = None) -> list[TensorInfo]:
    """Return the tensors as a header has them."""
    return [
        TensorInfo(
            part.name, part.dtype if part.dtype != "F32" else dtype or part.dtype, part.shape
        )
        for part in parts
    ]


def sizes(parts: Parts) -> dict[str, int]:
    """Return what `output_sizes` would say, name by name."""
    return {part.name: part.positions for part in parts if len(part.shape) > 1}


def linear(name: str, outputs: int, inputs: int, positions: int = 1, bias: bool = True) -> Parts:
    yield Part(f"{name}.weight", (outputs, inputs), positions)
    if bias:
        yield Part(f"{name}.bias", (outputs,))


def norm(name: str, width: int) -> Parts:
    yield Part(f"{name}.weight", (width,))
    yield Part(f"{name}.bias", (width,))


def batch_norm(name: str, width: int) -> Parts:
    yield from norm(name, width)
    yield Part(f"{name}.running_mean", (width,))
    yield Part(f"{name}.running_var", (width,))
    yield Part(f"{name}.num_batches_tracked", (), dtype="I64")


def conv(
    name: str,
    outputs: int,
    inputs: int,
    kernel: int,
    size: int,
    *,
    groups: int = 1,
    bias: bool = False,
) -> Parts:
    yield Part(f"{name}.weight", (outputs, inputs // groups, kernel, kernel), size * size)
    if bias:
        yield Part(f"{name}.bias", (outputs,))


def resnet(blocks: tuple[int, ...], *, bottleneck: bool, base: int = 64) -> Parts:
    """He et al. 2016, on 224 x 224; `base` is the width inside a bottleneck (128 is wide)."""
    yield from conv("conv1", 64, 3, 7, 112)
    yield from batch_norm("bn1", 64)
    inputs, size, before = 64, 56, 56
    for stage, count in enumerate(blocks):
        planes, size = 64 << stage, 56 >> stage
        for index in range(count):
            name = f"layer{stage + 1}.{index}"
            outputs = planes * (4 if bottleneck else 1)
            if bottleneck:
                width = planes * base // 64
                first = before if index == 0 else size
                yield from conv(f"{name}.conv1", width, inputs, 1, first)
                yield from batch_norm(f"{name}.bn1", width)
                yield from conv(f"{name}.conv2", width, width, 3, size)
                yield from batch_norm(f"{name}.bn2", width)
                yield from conv(f"{name}.conv3", outputs, width, 1, size)
                yield from batch_norm(f"{name}.bn3", outputs)
            else:
                yield from conv(f"{name}.conv1", planes, inputs, 3, size)
                yield from batch_norm(f"{name}.bn1", planes)
                yield from conv(f"{name}.conv2", planes, planes, 3, size)
                yield from batch_norm(f"{name}.bn2", planes)
            if index == 0 and inputs != outputs:
                yield from conv(f"{name}.downsample.0", outputs, inputs, 1, size)
                yield from batch_norm(f"{name}.downsample.1", outputs)
            inputs = outputs
        before = size
    yield from linear("fc", 1000, inputs)


def vgg16() -> Parts:
    """Simonyan & Zisserman 2015."""
    inputs, size, index = 3, 224, 0
    for count, width in ((2, 64), (2, 128), (3, 256), (3, 512), (3, 512)):
        for _ in range(count):
            yield from conv(f"features.{index}", width, inputs, 3, size, bias=True)
            inputs, index = width, index + 2
        size, index = size // 2, index + 1
    for place, (outputs, taken) in {0: (4096, 25088), 3: (4096, 4096), 6: (1000, 4096)}.items():
        yield from linear(f"classifier.{place}", outputs, taken)


def alexnet() -> Parts:
    """Krizhevsky 2014, as torchvision has it."""
    rows = ((0, 64, 3, 11, 55), (3, 192, 64, 5, 27), (6, 384, 192, 3, 13), (8, 256, 384, 3, 13))
    for place, outputs, inputs, kernel, size in (*rows, (10, 256, 256, 3, 13)):
        yield from conv(f"features.{place}", outputs, inputs, kernel, size, bias=True)
    for place, (outputs, taken) in {1: (4096, 9216), 4: (4096, 4096), 6: (1000, 4096)}.items():
        yield from linear(f"classifier.{place}", outputs, taken)


def vit(patch: int, width: int = 768, layers: int = 12, image: int = 224) -> Parts:
    """Dosovitskiy et al. 2021, as torchvision names it."""
    side = image // patch
    tokens = side * side + 1
    yield Part("class_token", (1, 1, width), 0)
    yield from conv("conv_proj", width, 3, patch, side, bias=True)
    yield Part("encoder.pos_embedding", (1, tokens, width), 0)
    for index in range(layers):
        name = f"encoder.layers.encoder_layer_{index}"
        yield from norm(f"{name}.ln_1", width)
        yield Part(f"{name}.self_attention.in_proj_weight", (3 * width, width), tokens)
        yield Part(f"{name}.self_attention.in_proj_bias", (3 * width,))
        yield from linear(f"{name}.self_attention.out_proj", width, width, tokens)
        yield from norm(f"{name}.ln_2", width)
        yield from linear(f"{name}.mlp.0", 4 * width, width, tokens)
        yield from linear(f"{name}.mlp.3", width, 4 * width, tokens)
    yield from norm("encoder.ln", width)
    yield from linear("heads.head", 1000, width)


def densenet121() -> Parts:
    """Huang et al. 2017: growth 32, blocks of 6, 12, 24 and 16."""
    yield from conv("features.conv0", 64, 3, 7, 112)
    yield from batch_norm("features.norm0", 64)
    width, size, blocks = 64, 56, (6, 12, 24, 16)
    for number, count in enumerate(blocks, 1):
        for index in range(1, count + 1):
            name = f"features.denseblock{number}.denselayer{index}"
            yield from batch_norm(f"{name}.norm1", width)
            yield from conv(f"{name}.conv1", 128, width, 1, size)
            yield from batch_norm(f"{name}.norm2", 128)
            yield from conv(f"{name}.conv2", 32, 128, 3, size)
            width += 32
        if number < len(blocks):
            name = f"features.transition{number}"
            yield from batch_norm(f"{name}.norm", width)
            yield from conv(f"{name}.conv", width // 2, width, 1, size)
            width, size = width // 2, size // 2
    yield from batch_norm("features.norm5", width)
    yield from linear("classifier", 1000, width)


def efficientnet_b0() -> Parts:
    """Tan & Le 2019: expansion, kernel, stride, inputs, outputs, blocks of each stage."""
    yield from conv("features.0.0", 32, 3, 3, 112)
    yield from batch_norm("features.0.1", 32)
    rows = (
        (1, 3, 1, 32, 16, 1), (6, 3, 2, 16, 24, 2), (6, 5, 2, 24, 40, 2), (6, 3, 2, 40, 80, 3),
        (6, 5, 1, 80, 112, 3), (6, 5, 2, 112, 192, 4), (6, 3, 1, 192, 320, 1),
    )  # fmt: skip
    size = 112
    for stage, (expansion, kernel, stride, first, outputs, count) in enumerate(rows, 1):
        for index in range(count):
            inputs, before = (first, size) if index == 0 else (outputs, size)
            size = size // stride if index == 0 else size
            name, wide, place = f"features.{stage}.{index}.block", inputs * expansion, 0
            if expansion > 1:
                yield from conv(f"{name}.0.0", wide, inputs, 1, before)
                yield from batch_norm(f"{name}.0.1", wide)
                place = 1
            yield from conv(f"{name}.{place}.0", wide, wide, kernel, size, groups=wide)
            yield from batch_norm(f"{name}.{place}.1", wide)
            squeezed = max(1, inputs // 4)
            yield from conv(f"{name}.{place + 1}.fc1", squeezed, wide, 1, 1, bias=True)
            yield from conv(f"{name}.{place + 1}.fc2", wide, squeezed, 1, 1, bias=True)
            yield from conv(f"{name}.{place + 2}.0", outputs, wide, 1, size)
            yield from batch_norm(f"{name}.{place + 2}.1", outputs)
    yield from conv("features.8.0", 1280, 320, 1, size)
    yield from batch_norm("features.8.1", 1280)
    yield from linear("classifier.1", 1000, 1280)


def swin_t() -> Parts:
    """Liu et al. 2021: windows of 7, depths 2, 2, 6 and 2."""
    width, size = 96, 56
    yield from conv("features.0.0", width, 3, 4, size, bias=True)
    yield from norm("features.0.2", width)
    for stage, (count, heads) in enumerate(((2, 3), (2, 6), (6, 12), (2, 24))):
        tokens = size * size
        for index in range(count):
            name = f"features.{2 * stage + 1}.{index}"
            yield from norm(f"{name}.norm1", width)
            yield Part(f"{name}.attn.relative_position_bias_table", (169, heads), 0)
            yield Part(f"{name}.attn.relative_position_index", (2401,), dtype="I64")
            yield from linear(f"{name}.attn.qkv", 3 * width, width, tokens)
            yield from linear(f"{name}.attn.proj", width, width, tokens)
            yield from norm(f"{name}.norm2", width)
            yield from linear(f"{name}.mlp.0", 4 * width, width, tokens)
            yield from linear(f"{name}.mlp.3", width, 4 * width, tokens)
        if stage < 3:
            name = f"features.{2 * stage + 2}"
            yield from linear(f"{name}.reduction", 2 * width, 4 * width, tokens // 4, bias=False)
            yield from norm(f"{name}.norm", 4 * width)
            width, size = 2 * width, size // 2
    yield from norm("norm", width)
    yield from linear("head", 1000, width)


def convnext_t() -> Parts:
    """Liu et al. 2022: depths 3, 3, 9 and 3."""
    widths = (96, 192, 384, 768)
    yield from conv("features.0.0", 96, 3, 4, 56, bias=True)
    yield from norm("features.0.1", 96)
    for stage, (count, width) in enumerate(zip((3, 3, 9, 3), widths, strict=True)):
        size = 56 >> stage
        for index in range(count):
            name = f"features.{2 * stage + 1}.{index}"
            yield Part(f"{name}.layer_scale", (width, 1, 1), 0)
            yield from conv(f"{name}.block.0", width, width, 7, size, groups=width, bias=True)
            yield from norm(f"{name}.block.2", width)
            yield from linear(f"{name}.block.3", 4 * width, width, size * size)
            yield from linear(f"{name}.block.5", width, 4 * width, size * size)
    for stage, (inputs, outputs) in enumerate(pairwise(widths)):
        name = f"features.{2 * stage + 2}"
        yield from norm(f"{name}.0", inputs)
        yield from conv(f"{name}.1", outputs, inputs, 2, 28 >> stage, bias=True)
    yield from norm("classifier.0", 768)
    yield from linear("classifier.2", 1000, 768)


def llama(config: dict[str, int]) -> Parts:
    """Touvron et al. 2023, as transformers names it."""
    hidden, ffn, vocab = (config[key] for key in ("hidden_size", "intermediate_size", "vocab_size"))
    keys = hidden // config["num_attention_heads"] * config["num_key_value_heads"]
    yield Part("model.embed_tokens.weight", (vocab, hidden))
    for index in range(config["num_hidden_layers"]):
        name = f"model.layers.{index}"
        for part, width in (("q", hidden), ("k", keys), ("v", keys), ("o", hidden)):
            yield Part(f"{name}.self_attn.{part}_proj.weight", (width, hidden))
        for part in ("gate", "up"):
            yield Part(f"{name}.mlp.{part}_proj.weight", (ffn, hidden))
        yield Part(f"{name}.mlp.down_proj.weight", (hidden, ffn))
        yield Part(f"{name}.input_layernorm.weight", (hidden,))
        yield Part(f"{name}.post_attention_layernorm.weight", (hidden,))
    yield Part("model.norm.weight", (hidden,))
    yield Part("lm_head.weight", (vocab, hidden))


def gpt2(layers: int = 12, width: int = 768, vocab: int = 50257) -> Parts:
    """Radford et al. 2019, as transformers names it, its causal masks among it."""
    yield Part("wte.weight", (vocab, width))
    yield Part("wpe.weight", (1024, width))
    for index in range(layers):
        name = f"h.{index}"
        yield from norm(f"{name}.ln_1", width)
        yield Part(f"{name}.attn.bias", (1, 1, 1024, 1024))
        yield from _turned(f"{name}.attn.c_attn", width, 3 * width)
        yield from _turned(f"{name}.attn.c_proj", width, width)
        yield from norm(f"{name}.ln_2", width)
        yield from _turned(f"{name}.mlp.c_fc", width, 4 * width)
        yield from _turned(f"{name}.mlp.c_proj", 4 * width, width)
    yield from norm("ln_f", width)


def bert(layers: int = 12, width: int = 768) -> Parts:
    """Devlin et al. 2019, as transformers names it, with its pooler."""
    yield Part("embeddings.word_embeddings.weight", (30522, width))
    yield Part("embeddings.position_embeddings.weight", (512, width))
    yield Part("embeddings.token_type_embeddings.weight", (2, width))
    yield from norm("embeddings.LayerNorm", width)
    for index in range(layers):
        name = f"encoder.layer.{index}"
        for part in ("query", "key", "value"):
            yield from linear(f"{name}.attention.self.{part}", width, width)
        yield from linear(f"{name}.attention.output.dense", width, width)
        yield from norm(f"{name}.attention.output.LayerNorm", width)
        yield from linear(f"{name}.intermediate.dense", 4 * width, width)
        yield from linear(f"{name}.output.dense", width, 4 * width)
        yield from norm(f"{name}.output.LayerNorm", width)
    yield from linear("pooler.dense", width, width)


def _turned(name: str, inputs: int, outputs: int) -> Parts:
    yield Part(f"{name}.weight", (inputs, outputs))
    yield Part(f"{name}.bias", (outputs,))


LLAMA_2_7B = {
    "hidden_size": 4096, "intermediate_size": 11008, "vocab_size": 32000, "num_hidden_layers": 32,
    "num_attention_heads": 32, "num_key_value_heads": 32, "max_position_embeddings": 4096,
}  # fmt: skip
LLAMA_3_8B = LLAMA_2_7B | {
    "intermediate_size": 14336, "vocab_size": 128256, "num_key_value_heads": 8,
}  # fmt: skip
