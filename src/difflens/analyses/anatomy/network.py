"""The numbers of a network: layers, heads, widths, experts, context; None is unknown.

They come from the settings handed in or found beside the weights, from GGUF's keys, and last from
shapes. A number of heads is in no shape, so without settings it stays unknown: 64 is a habit.
"""

from __future__ import annotations

from typing import Any

from ...diffs import Diff
from ...evidences import Evidence
from ...records import Record, TensorInfo
from .settings import Settings, settings
from .shapes import Shapes, shapes

# Field, keys of a config.json (the first that is there wins), key of GGUF after its architecture.
_KEYS: tuple[tuple[str, tuple[str, ...], str], ...] = (
    ("layers", ("num_hidden_layers", "n_layer", "n_layers", "num_layers"), "block_count"),
    ("heads", ("num_attention_heads", "n_head", "n_heads", "num_heads"), "attention.head_count"),
    ("kv_heads", ("num_key_value_heads", "n_head_kv", "num_kv_heads"), "attention.head_count_kv"),
    ("head_dim", ("head_dim", "d_kv"), "attention.key_length"),
    ("hidden", ("hidden_size", "n_embd", "d_model", "dim"), "embedding_length"),
    (
        "ffn",
        ("intermediate_size", "n_inner", "ffn_dim", "d_ff", "hidden_dim", "ffn_hidden_size"),
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
        ("max_position_embeddings", "n_positions", "n_ctx", "max_sequence_length", "seq_length"),
        "context_length",
    ),
    ("latent", ("kv_lora_rank",), "attention.kv_lora_rank"),
    ("rope_dim", ("qk_rope_head_dim",), "rope.dimension_count"),
)
# Models whose attention is windowed in every layer once a window is set.
_ALL_WINDOWED = frozenset({"mistral", "mixtral", "phi3", "starcoder2"})


class Network(Record, frozen=True):
    """What is known of one side's network; `basis` says where each number came from.

    `latent` and `rope_dim` are those of multi-head latent attention (DeepSeek): its cache holds
    latent + rope_dim numbers a token and layer instead of keys and values. `windowed_layers` is how
    many layers look back no further than `sliding_window`.
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
    basis: dict[str, str] = {}  # noqa: RUF012  msgspec copies the defaults of its records

    @property
    def has_settings(self) -> bool:
        """Did somebody write these numbers down, or are they read off the shapes?"""
        return any(said.startswith(("config", "GGUF")) for said in self.basis.values())


def network(diff: Diff, evidence: Evidence, side: str) -> Network:
    """Gather what is known of one side's network, once a diff."""
    handed = (evidence.left if side == "left" else evidence.right).config
    # The handed settings are kept with the answer: no other object can come to have their identity.
    known: tuple[Network, Any] = diff.remember(
        ("network", side, id(handed)), lambda: (_network(diff, handed, side), handed)
    )
    return known[0]


def infos(diff: Diff, side: str) -> list[TensorInfo]:
    """List the tensors of one side; only headers are looked at."""
    sides = (pair.left if side == "left" else pair.right for pair in diff.pairs)
    return [info for info in sides if info is not None]


def _network(diff: Diff, handed: dict[str, Any] | None, side: str) -> Network:
    return known_of(settings(handed, diff.described[side]), shapes(infos(diff, side)))


def known_of(said: Settings, seen: Shapes) -> Network:
    """Put together what settings say and what shapes show; settings win."""
    facts: dict[str, Any] = {}
    basis: dict[str, str] = {}

    def take(field: str, value: Any, source: str) -> None:
        if value is not None and field not in facts:
            facts[field], basis[field] = value, source

    for field, keys, gguf in _KEYS:
        take(field, *said.number(keys, gguf))
    for field, value in seen.numbers().items():
        take(field, value, "shapes")
    take("family", *said.text(("model_type",), "general.architecture"))
    for field in ("image_size", "patch_size"):
        take(field, *said.number((field,), ""))
    _heads(said, seen, facts, take)
    _window(said, facts, take)
    _tied(said, seen, take)
    return Network(**facts, basis=basis)


def _heads(said: Settings, seen: Shapes, facts: dict[str, Any], take: Any) -> None:
    """Complete the heads: d_head = width of q / heads, n_kv = width of k / d_head."""
    heads = facts.get("heads")
    if not heads:
        return
    if seen.query_width and seen.query_width % heads == 0:
        take("head_dim", seen.query_width // heads, "rows of q / heads")
    hidden = facts.get("hidden")
    if hidden and hidden % heads == 0:
        take("head_dim", hidden // heads, "hidden / heads")
    size = facts.get("head_dim")
    if said.flag("multi_query") and not said.flag("new_decoder_architecture"):
        take("kv_heads", 1, "config: multi_query")
    if size and seen.key_width and seen.key_width % size == 0:
        take("kv_heads", seen.key_width // size, "rows of k / head_dim")
    if not said.mentions(*_KEYS[2][1:]):  # a number for each layer is none for all
        take("kv_heads", heads, "heads: no other number is said")


def _window(said: Settings, facts: dict[str, Any], take: Any) -> None:
    """Say how far back attention looks, and in how many layers."""
    window, source = said.number(("sliding_window",), "attention.sliding_window")
    if not window or said.flag("use_sliding_window") is False:
        return
    take("sliding_window", window, source)
    layers, kinds = facts.get("layers"), said.value("layer_types")
    pattern, _ = said.number(("sliding_window_pattern",), "")
    first, _ = said.number(("max_window_layers",), "")
    if isinstance(kinds, list):
        take("windowed_layers", kinds.count("sliding_attention"), "config: layer_types")
    elif layers and pattern:
        take("windowed_layers", layers - layers // pattern, "config: sliding_window_pattern")
    elif layers and first is not None:
        take("windowed_layers", max(0, layers - first), "config: max_window_layers")
    elif layers and facts.get("family") in _ALL_WINDOWED:
        take("windowed_layers", layers, f"every layer of {facts['family']}")


def _tied(said: Settings, seen: Shapes, take: Any) -> None:
    """Say whether the output head is the embedding."""
    flag = said.flag("tie_word_embeddings")
    if flag is not None:
        take("tied", flag, "config: tie_word_embeddings")
    elif seen.has_head:
        take("tied", False, "shapes: an output head is there")
    elif seen.has_embedding and said.is_gguf:
        take("tied", True, "GGUF: a model without output.weight uses its embedding")
    elif seen.has_embedding and said.predicts_words:
        take("tied", True, "config: architectures name a language head, none is stored")
