"""Memory arithmetic: what a model takes while it answers, and while it is trained.

Lower bounds by formula, not measurements: Korthikanti et al. 2022 (activations), Rajbhandari
et al. 2020, ZeRO (optimiser states).
"""

from __future__ import annotations

from collections.abc import Iterable

from ...records import TensorInfo
from ..anatomy.network import Network
from ..anatomy.shapes import is_expert, is_lookup
from .weights import is_weight

MIXED_ADAM = 2 + 2 + 12  # bytes a parameter: weight, gradient, float32 copy and two moments
ADAM_8BIT = 2 + 2 + 4 + 2  # the same with moments of 8 bits


def cache_per_token(network: Network, bits: int = 16) -> int | None:
    """Count the bytes one more token adds to the cache: 2 L n_kv d_head bytes.

    Latent attention keeps (latent + rope) numbers a layer instead (DeepSeek-AI 2024).
    """
    layers = network.layers
    if not layers:
        return None
    if network.latent:
        wide = network.rope_dim
        return None if wide is None else layers * (network.latent + wide) * bits // 8
    if not (network.kv_heads and network.head_dim):
        return None
    return 2 * layers * network.kv_heads * network.head_dim * bits // 8


def cache(network: Network, tokens: int, batch: int, bits: int = 16) -> int | None:
    """Count the bytes of the cache at so many tokens; windowed layers keep only their window."""
    each = cache_per_token(network, bits)
    if each is None or not network.layers:
        return None
    if not network.sliding_window or network.sliding_window >= tokens:
        return each * tokens * batch
    if network.windowed_layers is None:
        return None
    layer = each // network.layers
    whole = (network.layers - network.windowed_layers) * tokens
    return layer * batch * (whole + network.windowed_layers * network.sliding_window)


def activations(network: Network, tokens: int, batch: int, bits: int = 16) -> int | None:
    """Count the bytes the widest layer holds while a prompt is read: batch T (2 d + d_ff)."""
    if not (network.hidden and network.ffn):
        return None
    return batch * tokens * (2 * network.hidden + network.ffn) * bits // 8


def logits(network: Network, batch: int) -> int | None:
    """Count the bytes of one position's float32 logits: batch vocab 4."""
    return batch * network.vocab * 4 if network.vocab else None


def adapter_parameters(infos: Iterable[TensorInfo], rank: int) -> int:
    """Count what low-rank adapters on every matrix add: rank (rows + columns)."""
    matrices = (
        info.shape
        for info in infos
        if len(info.shape) == 2
        and is_weight(info)
        and not (is_lookup(info) or is_expert(info.name))
    )
    return sum(rank * (rows + columns) for rows, columns in matrices)


def training_activations(network: Network, tokens: int, batch: int) -> dict[str, int] | None:
    """Count the bytes kept for the backward pass (Korthikanti et al. 2022, 16-bit activations).

    stored: s b h L (34 + 5 a s / h); without the attention's own: 34 s b h L; recomputed: 2 s b h L
    """
    hidden, layers, heads = network.hidden, network.layers, network.heads
    if not (hidden and layers and heads):
        return None
    each = tokens * batch * layers
    return {
        "stored": each * (34 * hidden + 5 * heads * tokens),
        "flash_attention": each * 34 * hidden,
        "full_recomputation": each * 2 * hidden,
    }
