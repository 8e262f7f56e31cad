"""The sizes of a network: layers, heads, widths, experts, context; None is unknown.

They are read from the settings that are passed or lie beside the weights, from the keys of GGUF,
and last from shapes. No shape shows the number of heads, so without settings it is unknown.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable
from typing import Any

from difflens.core.record import Record
from difflens.core.records import TensorInfo

from .roles import block, role
from .settings import Settings
from .stacks import Kind, kind_of_network, predicts_words

# Field, keys of a config.json (the first one present counts), key of GGUF after the architecture.
_KEYS: tuple[tuple[str, tuple[str, ...], str], ...] = (
    ("layers", ("num_hidden_layers", "n_layer", "n_layers", "num_layers"), "block_count"),
    (
        "heads",
        (
            "num_attention_heads",
            "n_head",
            "n_heads",
            "num_heads",
            "decoder_attention_heads",
            "encoder_attention_heads",
        ),
        "attention.head_count",
    ),
    ("kv_heads", ("num_key_value_heads", "n_head_kv", "num_kv_heads"), "attention.head_count_kv"),
    ("head_dim", ("head_dim", "d_kv"), "attention.key_length"),
    ("hidden", ("hidden_size", "n_embd", "d_model", "dim"), "embedding_length"),
    (
        "ffn",
        (
            "intermediate_size",
            "n_inner",
            "ffn_dim",
            "d_ff",
            "hidden_dim",
            "ffn_hidden_size",
            "decoder_ffn_dim",
            "encoder_ffn_dim",
        ),
        "feed_forward_length",
    ),
    ("vocab", ("vocab_size",), "vocab_size"),
    (
        "experts",
        ("num_local_experts", "num_experts", "n_routed_experts", "moe_num_experts"),
        "expert_count",
    ),
    (
        "experts_per_token",
        ("num_experts_per_tok", "num_experts_per_token", "moe_top_k", "top_k_experts"),
        "expert_used_count",
    ),
    (
        "context",
        (
            "max_position_embeddings",
            "n_positions",
            "n_ctx",
            "max_sequence_length",
            "seq_length",
            "max_target_positions",
        ),
        "context_length",
    ),
    ("encoder_layers", ("encoder_layers",), ""),
    ("decoder_layers", ("num_decoder_layers", "decoder_layers"), "decoder_block_count"),
    ("source_context", ("max_source_positions",), ""),
    ("latent", ("kv_lora_rank",), "attention.kv_lora_rank"),
    ("rope_dim", ("qk_rope_head_dim",), "rope.dimension_count"),
)
# Models whose attention is windowed in every layer once a window is set.
_ALL_WINDOWED = frozenset({"mistral", "mixtral", "phi3", "starcoder2"})


class Network(Record, frozen=True):
    """What is known about a network; `basis` has the origin of each number.

    `latent` and `rope_dim` belong to multi-head latent attention (DeepSeek): its cache holds
    latent + rope_dim numbers per token and layer instead of keys and values. `windowed_layers` is
    the number of layers whose attention is limited to `sliding_window`. `kind` says whether it
    reads (encoder), writes token by token (decoder) or both; `source_context` is what an encoder
    beside a decoder reads at most, `predicts_words` whether there is a head over the vocabulary.
    """

    family: str | None = None
    layers: int | None = None
    heads: int | None = None
    kv_heads: int | None = None
    head_dim: int | None = None
    hidden: int | None = None
    ffn: int | None = None
    vocab: int | None = None
    experts: int | None = None
    experts_per_token: int | None = None
    context: int | None = None
    latent: int | None = None
    rope_dim: int | None = None
    sliding_window: int | None = None
    windowed_layers: int | None = None
    image_size: int | None = None
    patch_size: int | None = None
    tied: bool | None = None
    kind: Kind | None = None
    encoder_layers: int | None = None
    decoder_layers: int | None = None
    source_context: int | None = None
    predicts_words: bool | None = None
    basis: dict[str, str] = {}  # noqa: RUF012  msgspec copies the defaults of its records

    @property
    def has_settings(self) -> bool:
        """Does any number come from settings, and not from shapes?"""
        return any(origin.startswith(("config", "GGUF")) for origin in self.basis.values())

    def tokens(self, wanted: int) -> int:
        """Return how many of the wanted tokens it can take: its positions are the limit."""
        if self.kind == "encoder" and self.image_size and self.patch_size and not self.vocab:
            return (self.image_size // self.patch_size) ** 2 + 1  # patches and the class
        return min(wanted, self.context) if self.context else wanted

    def source_tokens(self, wanted: int) -> int:
        """Return how many tokens the encoder beside a decoder can take."""
        return min(wanted, self.source_context) if self.source_context else self.tokens(wanted)


def network_of(settings: Settings, shapes: Shapes, infos: Iterable[TensorInfo] = ()) -> Network:
    """Combine settings and shapes; settings add precedence."""
    facts: dict[str, Any] = {}
    basis: dict[str, str] = {}

    def add(field: str, value: Any, source: str) -> None:
        if value is not None and field not in facts:
            facts[field], basis[field] = value, source

    for field, keys, gguf in _KEYS:
        add(field, *settings.number(keys, gguf))
    for field, value in shapes.numbers().items():
        add(field, value, "shapes")
    add("family", *settings.text(("model_type",), "general.architecture"))
    for field in ("image_size", "patch_size"):
        add(field, *settings.number((field,), ""))
    _heads(settings, shapes, facts, add)
    _window(settings, facts, add)
    _tied(settings, shapes, add)
    add("kind", *kind_of_network(settings, infos))
    head = predicts_words(settings, has_head=shapes.has_word_head, tied=facts.get("tied"))
    add("predicts_words", head, "settings and shapes")
    return Network(**facts, basis=basis)


def _heads(settings: Settings, shapes: Shapes, facts: dict[str, Any], add: Any) -> None:
    """Compute missing head sizes: d_head = width of q / heads, n_kv = width of k / d_head."""
    heads = facts.get("heads")
    if not heads:
        return
    if shapes.query_width and shapes.query_width % heads == 0:
        add("head_dim", shapes.query_width // heads, "rows of q / heads")
    hidden = facts.get("hidden")
    if hidden and hidden % heads == 0:
        add("head_dim", hidden // heads, "hidden / heads")
    size = facts.get("head_dim")
    if settings.flag("multi_query") and not settings.flag("new_decoder_architecture"):
        add("kv_heads", 1, "config: multi_query")
    if size and shapes.key_width and shapes.key_width % size == 0:
        add("kv_heads", shapes.key_width // size, "rows of k / head_dim")
    if not settings.mentions(*_KEYS[2][1:]):  # a list with a number per layer has no single number
        add("kv_heads", heads, "heads: no other number is stated")


def _window(settings: Settings, facts: dict[str, Any], add: Any) -> None:
    """Find the window of attention, and the number of layers that use it."""
    window, source = settings.number(("sliding_window",), "attention.sliding_window")
    if not window or settings.flag("use_sliding_window") is False:
        return
    add("sliding_window", window, source)
    layers, kinds = facts.get("layers"), settings.value("layer_types")
    pattern, _ = settings.number(("sliding_window_pattern",), "")
    first, _ = settings.number(("max_window_layers",), "")
    if isinstance(kinds, list):
        add("windowed_layers", kinds.count("sliding_attention"), "config: layer_types")
    elif layers and pattern:
        add("windowed_layers", layers - layers // pattern, "config: sliding_window_pattern")
    elif layers and first is not None:
        add("windowed_layers", max(0, layers - first), "config: max_window_layers")
    elif layers and facts.get("family") in _ALL_WINDOWED:
        add("windowed_layers", layers, f"every layer of {facts['family']}")


def _tied(settings: Settings, shapes: Shapes, add: Any) -> None:
    """Find out whether the output head is the embedding."""
    flag = settings.flag("tie_word_embeddings")
    if flag is not None:
        add("tied", flag, "config: tie_word_embeddings")
    elif shapes.has_head:
        add("tied", False, "shapes: an output head is there")
    elif shapes.has_embedding and settings.is_gguf:
        add("tied", True, "GGUF: a model without output.weight uses its embedding")
    elif shapes.has_embedding and settings.predicts_words:
        add("tied", True, "config: architectures name a language head, none is stored")


EXPERT = re.compile(r"(?:^|[._])experts?(?:[._]|$)|_exps(?:[._]|$)")
_SHARED = re.compile(r"shared_expert|_shexp")
_NUMBERED = re.compile(r"experts?\.([0-9]{1,6})\.")
_UP = re.compile(r"(?:up_proj|c_fc|fc1|fc_in|lin1|linear1|intermediate\.dense|ffn_up|w1)\.weight$")
_WORDS = re.compile(
    r"(?:embed_tokens|wte|word_embeddings?|tok_embeddings|token_embd|shared|embed_in)\."
)
_POSITION_TABLE = "relative_attention_bias.weight"
_NO_LOOKUP = re.compile(r"(?:proj|projection|linear(?:_[0-9]+)?|dense|fc[0-9]?|mlp)\.[^.]*$")


class Shapes(Record, frozen=True):
    """Numbers read from the shapes; None if no tensor shows them."""

    layers: int | None = None
    hidden: int | None = None
    ffn: int | None = None
    vocab: int | None = None
    experts: int | None = None
    query_width: int | None = None
    key_width: int | None = None
    has_head: bool = False
    has_word_head: bool = False  # one with a row for each word
    has_embedding: bool = False

    def numbers(self) -> dict[str, int | None]:
        """Return the numbers that settings may state as well."""
        return {
            name: getattr(self, name) for name in ("layers", "hidden", "ffn", "vocab", "experts")
        }


def is_lookup(info: TensorInfo) -> bool:
    """Is it a table from which a forward pass reads single rows?

    >>> is_lookup(TensorInfo("model.embed_tokens.weight", "F32", (32000, 4096)))
    True
    """
    if len(info.shape) != 2:
        return False
    if info.name.endswith(_POSITION_TABLE):
        return True
    return role(info.name) == "embedding" and not _NO_LOOKUP.search(info.name)


def is_head(info: TensorInfo) -> bool:
    """Is it the matrix of the output head?"""
    return role(info.name) == "head" and len(info.shape) == 2


def is_expert(name: str) -> bool:
    """Does it belong to an expert that only some tokens use?"""
    return bool(EXPERT.search(name)) and not _SHARED.search(name)


def shapes(infos: Iterable[TensorInfo]) -> Shapes:
    """Read the sizes from the shapes of one model."""
    every = list(infos)
    words = [info for info in every if is_lookup(info) and _WORDS.search(info.name)]
    vocab, hidden = max((info.shape for info in words), default=(None, None))
    wide = (info.shape for info in every if len(info.shape) == 2 and _UP.search(info.name))
    ups = {max(shape) if hidden in shape else shape[0] for shape in wide}
    return Shapes(
        layers=_layers(every),
        hidden=hidden,
        ffn=ups.pop() if len(ups) == 1 else None,
        vocab=vocab,
        experts=_experts(every),
        query_width=_width(every, "attention_q"),
        key_width=_width(every, "attention_k"),
        has_head=any(map(is_head, every)),
        has_word_head=any(
            is_head(info) and (vocab is None or max(info.shape) >= vocab) for info in every
        ),
        has_embedding=bool(words),
    )


def _layers(every: list[TensorInfo]) -> int | None:
    """Count the blocks of the only stack with attention, or of the only stack."""
    stacks: dict[str, set[int]] = defaultdict(set)
    attending: set[str] = set()
    for info in every:
        place = block(info.name)
        if place:
            stacks[place[0]].add(place[1])
            if role(info.name).startswith("attention"):
                attending.add(place[0])
    chosen = attending or set(stacks)
    return len(stacks[chosen.pop()]) if len(chosen) == 1 else None


def _experts(every: list[TensorInfo]) -> int | None:
    experts = [info for info in every if is_expert(info.name)]
    numbered = {int(match[1]) for info in experts if (match := _NUMBERED.search(info.name))}
    if numbered:
        return len(numbered)
    stacked = {info.shape[0] for info in experts if len(info.shape) == 3}
    return stacked.pop() if len(stacked) == 1 else None


def _width(every: list[TensorInfo], wanted: str) -> int | None:
    """Return the number of rows of the matrices of a role; None if they differ."""
    rows = {info.shape[0] for info in every if len(info.shape) == 2 and role(info.name) == wanted}
    return rows.pop() if len(rows) == 1 else None
