"""The networks that are converted: ten families, small, seeded, fresh or briefly trained."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import torch
from torch import Tensor, nn

STATES = ("fresh", "trained")
_STEPS = 6  # of training: enough to move every bias and every gain


class Network(NamedTuple):
    """A model, the module that is exported for it, and inputs for that module."""

    model: nn.Module
    exported: nn.Module
    inputs: tuple[Tensor, ...]


class _Residual(nn.Module):
    """Two convolutions with batch norm, and a shortcut around them."""

    def __init__(self, inside: int, outside: int, stride: int) -> None:
        super().__init__()
        self.conv1 = nn.Conv2d(inside, outside, 3, stride, 1, bias=False)
        self.bn1 = nn.BatchNorm2d(outside)
        self.conv2 = nn.Conv2d(outside, outside, 3, 1, 1, bias=False)
        self.bn2 = nn.BatchNorm2d(outside)
        self.downsample: nn.Module = nn.Identity()
        if stride > 1 or inside != outside:
            self.downsample = nn.Sequential(
                nn.Conv2d(inside, outside, 1, stride, bias=False), nn.BatchNorm2d(outside)
            )

    def forward(self, x: Tensor) -> Tensor:
        y = torch.relu(self.bn1(self.conv1(x)))
        return torch.relu(self.bn2(self.conv2(y)) + self.downsample(x))


class _Resnet(nn.Module):
    """A stem, two stages of two blocks, and a classifier."""

    def __init__(self) -> None:
        super().__init__()
        self.conv1 = nn.Conv2d(3, 8, 3, 1, 1, bias=False)
        self.bn1 = nn.BatchNorm2d(8)
        self.layer1 = nn.Sequential(_Residual(8, 8, 1), _Residual(8, 8, 1))
        self.layer2 = nn.Sequential(_Residual(8, 16, 2), _Residual(16, 16, 1))
        self.fc = nn.Linear(16, 16)

    def forward(self, x: Tensor) -> Tensor:
        y = self.layer2(self.layer1(torch.relu(self.bn1(self.conv1(x)))))
        return self.fc(y.mean((2, 3)))


class _Tagger(nn.Module):
    """An embedding, three layers of LSTM, and a classifier of each word."""

    def __init__(self) -> None:
        super().__init__()
        self.embedding = nn.Embedding(20, 8)
        self.rnn = nn.LSTM(8, 8, num_layers=3, batch_first=True)
        self.proj = nn.Linear(8, 8)
        self.head = nn.Linear(8, 8)

    def forward(self, ids: Tensor) -> Tensor:
        return self.head(torch.tanh(self.proj(self.rnn(self.embedding(ids))[0])))


class Logits(nn.Module):
    """What an exporter is given for a transformer: tensors in, logits out."""

    def __init__(self, model: nn.Module, names: tuple[str, ...]) -> None:
        """Keep the names of the inputs."""
        super().__init__()
        self.model, self._names = model, names

    def forward(self, *inputs: Tensor) -> Tensor:
        """Compute the logits."""
        found = self.model(**dict(zip(self._names, inputs, strict=True)))
        return found.logits


class Wrapped(nn.Module):
    """A wrapper with a name of its own, as services have them."""

    def __init__(self, model: nn.Module) -> None:
        """Keep the model under another name."""
        super().__init__()
        self.served = model

    def forward(self, *inputs: Tensor) -> Any:
        """Compute what the model does."""
        return self.served(*inputs)


def _mlp() -> Network:
    parts: list[nn.Module] = []
    for _ in range(3):
        parts += [nn.Linear(16, 16), nn.ReLU()]
    model = nn.Sequential(*parts, nn.Linear(16, 4))
    return Network(model, model, (torch.randn(4, 16),))


def _cnn() -> Network:
    parts: list[nn.Module] = []
    for inside in (3, 8, 8):
        parts += [nn.Conv2d(inside, 8, 3, padding=1), nn.BatchNorm2d(8), nn.ReLU()]
    parts += [nn.AdaptiveAvgPool2d(2), nn.Flatten(), nn.Linear(32, 32), nn.ReLU()]
    model = nn.Sequential(*parts, nn.Linear(32, 4))
    return Network(model, model, (torch.randn(2, 3, 8, 8),))


def _resnet() -> Network:
    model = _Resnet()
    return Network(model, model, (torch.randn(2, 3, 8, 8),))


def _lstm() -> Network:
    model = _Tagger()
    return Network(model, model, (_ids(20),))


def _ids(vocabulary: int, length: int = 9) -> Tensor:
    """Make ids that use the whole vocabulary, so that every row of an embedding matters."""
    number = 2 * vocabulary // length + 1
    flat = torch.cat([torch.randperm(vocabulary) for _ in range(4)])
    return flat[: number * length].reshape(number, length)


def _masked(ids: Tensor, prefix: str = "") -> dict[str, Tensor]:
    """Return a mask too: without one, a decoder looks for packed texts, which no exporter can."""
    return {f"{prefix}input_ids": ids, f"{prefix}attention_mask": torch.ones_like(ids)}


def _transformer(make: str, config: str, inputs: dict[str, Tensor], **settings: Any) -> Network:
    import transformers

    setting = getattr(transformers, config)(**settings)
    setting._attn_implementation = "eager"  # noqa: SLF001  the way transformers documents
    model = getattr(transformers, make)(setting)
    return Network(model, Logits(model, tuple(inputs)), tuple(inputs.values()))


def _bert() -> Network:
    return _transformer(
        "BertForSequenceClassification", "BertConfig", {"input_ids": _ids(40)},
        vocab_size=40, hidden_size=32, num_hidden_layers=3, num_attention_heads=4,
        intermediate_size=64, max_position_embeddings=9, num_labels=10,
    )  # fmt: skip


def _gpt2() -> Network:
    return _transformer(
        "GPT2LMHeadModel", "GPT2Config", _masked(_ids(40)),
        vocab_size=40, n_embd=32, n_layer=2, n_head=4, n_positions=9, use_cache=False,
    )  # fmt: skip


def _llama() -> Network:
    return _transformer(
        "LlamaForCausalLM", "LlamaConfig", _masked(_ids(40)),
        vocab_size=40, hidden_size=32, intermediate_size=64, num_hidden_layers=2,
        num_attention_heads=4, num_key_value_heads=2, max_position_embeddings=16, use_cache=False,
    )  # fmt: skip


def _vit() -> Network:
    return _transformer(
        "ViTForImageClassification", "ViTConfig", {"pixel_values": torch.randn(2, 3, 16, 16)},
        image_size=16, patch_size=8, hidden_size=32, num_hidden_layers=2, num_attention_heads=4,
        intermediate_size=64, num_labels=10,
    )  # fmt: skip


def _t5() -> Network:
    ids = _ids(40)
    return _transformer(
        "T5ForConditionalGeneration", "T5Config",
        {"input_ids": ids, "decoder_input_ids": ids.flip(1)},
        vocab_size=40, d_model=32, d_kv=8, d_ff=64, num_layers=2, num_heads=4, use_cache=False,
        decoder_start_token_id=0, relative_attention_num_buckets=8,
    )  # fmt: skip


def _whisper() -> Network:
    ids = _ids(40)
    return _transformer(
        "WhisperForConditionalGeneration", "WhisperConfig",
        {"input_features": torch.randn(len(ids), 8, 16), **_masked(ids, "decoder_")},
        vocab_size=40, d_model=32, encoder_layers=2, decoder_layers=2, encoder_attention_heads=4,
        decoder_attention_heads=4, encoder_ffn_dim=64, decoder_ffn_dim=64, num_mel_bins=8,
        max_source_positions=8, max_target_positions=9, use_cache=False, pad_token_id=0,
        bos_token_id=1, eos_token_id=2, decoder_start_token_id=1, suppress_tokens=None,
        begin_suppress_tokens=None,
    )  # fmt: skip


MAKERS: dict[str, Callable[[], Network]] = {
    "mlp": _mlp,
    "cnn": _cnn,
    "resnet": _resnet,
    "lstm": _lstm,
    "bert": _bert,
    "gpt2": _gpt2,
    "llama": _llama,
    "vit": _vit,
    "t5": _t5,
    "whisper": _whisper,
}


def make(name: str, state: str) -> Network:
    """Make a network, the same one each time."""
    torch.manual_seed(18)
    network = MAKERS[name]()
    if state == "trained":
        _train(network)
    network.model.eval()
    network.exported.eval()
    return network


def _train(network: Network) -> None:
    """Take a few steps towards random targets, so that nothing is as it was initialised."""
    network.model.train()
    optimizer = torch.optim.Adam(network.model.parameters(), lr=3e-3)
    with torch.no_grad():
        target = torch.randn_like(network.exported(*network.inputs))
    for _ in range(_STEPS):
        optimizer.zero_grad()
        (network.exported(*network.inputs) - target).square().mean().backward()
        optimizer.step()
