"""Arithmetic on shapes: memory while a model answers or trains, operations and their time."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Literal, NamedTuple

from difflens.core.records import TensorInfo
from difflens.models.anatomy.network import Network, is_expert, is_lookup

from .weights import Weights, is_weight

# Lower bounds by formula, not measurements: Korthikanti et al. 2022 (activations), Rajbhandari
# et al. 2020, ZeRO (optimiser states).

MIXED_ADAM = 2 + 2 + 12  # bytes a parameter: weight, gradient, float32 copy and two moments
ADAM_8BIT = 2 + 2 + 4 + 2  # the same with moments of 8 bits


def cache_per_token(network: Network, bits: int = 16) -> int | None:
    """Count the bytes one more token adds to the cache: 2 L n_kv d_head bytes.

    Latent attention keeps (latent + rope) numbers a layer instead (DeepSeek-AI 2024). An encoder
    keeps nothing: there is no next token.
    """
    layers = _writing_layers(network)
    if not layers or network.kind == "encoder":
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
    tokens = network.tokens(tokens)
    if each is None:
        return None
    if not network.sliding_window or network.sliding_window >= tokens:
        return each * tokens * batch
    if network.windowed_layers is None or not network.layers:
        return None
    layer = each // network.layers
    whole = (network.layers - network.windowed_layers) * tokens
    return layer * batch * (whole + network.windowed_layers * network.sliding_window)


def cross_cache(network: Network, tokens: int, batch: int, bits: int = 16) -> int | None:
    """Count the bytes of the keys and values of what an encoder read, for the decoder beside it."""
    each = cache_per_token(network, bits)
    if network.kind != "encoder-decoder" or each is None:
        return None
    return each * network.source_tokens(tokens) * batch


def _writing_layers(network: Network) -> int | None:
    """Return the layers that write tokens: those of the decoder, where there is one apart."""
    if network.kind == "encoder-decoder":
        return network.decoder_layers or network.layers
    return network.layers


def activations(network: Network, tokens: int, batch: int, bits: int = 16) -> int | None:
    """Count the bytes the widest layer holds while a prompt is read: batch T (2 d + d_ff)."""
    if not (network.hidden and network.ffn):
        return None
    read = network.kind == "encoder-decoder"
    tokens = network.source_tokens(tokens) if read else network.tokens(tokens)
    return batch * tokens * (2 * network.hidden + network.ffn) * bits // 8


def logits(network: Network, tokens: int, batch: int) -> int | None:
    """Count the bytes of float32 logits: batch vocab 4, for each token where all are predicted.

    A network without a head over the vocabulary has none.
    """
    if not (network.vocab and network.predicts_words):
        return None
    positions = network.tokens(tokens) if network.kind == "encoder" else 1
    return batch * positions * network.vocab * 4


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
    tokens = network.tokens(tokens)
    each = tokens * batch * layers
    return {
        "stored": each * (34 * hidden + 5 * heads * tokens),
        "flash_attention": each * 34 * hidden,
        "full_recomputation": each * 2 * hidden,
    }


# t = max(FLOPs / peak, bytes / bandwidth)   (Williams, Waterman, Patterson 2009)


class Work(NamedTuple):
    """What a pass has to do; `attention` is None if the heads are unknown."""

    flops: float
    bytes: float
    attention: float | None = None

    @property
    def intensity(self) -> float | None:
        """Operations a byte."""
        return self.flops / self.bytes if self.bytes else None


class Machine(NamedTuple):
    """What a machine can do; None is unknown."""

    bandwidth_bytes: float | None = None
    peak_flops: float | None = None


def active_share(network: Network) -> float | None:
    """Return the part of the experts that one token reaches, k / E."""
    if not (network.experts and network.experts_per_token):
        return None
    return min(1.0, network.experts_per_token / network.experts)


def distinct_experts(experts: int, chosen: int, batch: int) -> float:
    """Expect so many distinct experts under uniform routing: E (1 - (1 - k / E)^b).

    >>> distinct_experts(8, 2, 1)
    2.0
    """
    return experts * (1 - (1 - chosen / experts) ** batch)


def decode(
    network: Network, weights: Weights, context: int, batch: int, cache_bits: int
) -> Work | None:
    """Say what the next token of each sequence costs; None if the routing is unknown.

    FLOPs = 2 N_active b + 4 L n_h d_head s b; bytes = weights read + cache read. An embedding is a
    look-up, unless it is the output head as well.
    """
    routed = _routed(network, weights, batch)
    if routed is None:
        return None
    parameters, read = _shared(network, weights)
    attention = _attention(network)
    flops = 2.0 * (parameters + routed[0]) * batch
    if attention is not None:
        seen = network.tokens(context)
        if network.kind == "encoder-decoder":
            seen += network.source_tokens(context)
        flops += 4.0 * attention * seen * batch
    kept = cache(network, context, batch, cache_bits) or 0
    kept += cross_cache(network, context, batch, cache_bits) or 0
    return Work(flops, read + routed[1] + kept, attention)


def encode(network: Network, weights: Weights, tokens: int, batch: int) -> Work | None:
    """Say what one pass of an encoder over some tokens costs; None if the routing is unknown.

    FLOPs = b (2 N T + 4 L n_h d_head T²), since each token sees all others; bytes = weights read.
    """
    routed = _routed(network, weights, batch)
    if routed is None:
        return None
    tokens = network.tokens(tokens)
    parameters, read = _shared(network, weights)
    attention = _attention(network, encoder=True)
    flops = 2.0 * (parameters + routed[0]) * tokens
    if attention is not None:
        flops += 4.0 * attention * tokens * tokens
    return Work(flops * batch, read + routed[1], attention)


def prefill(network: Network, weights: Weights, tokens: int) -> float | None:
    """Count the operations of reading a prompt: 2 N T + 4 L n_h d_head T² / 2."""
    routed = _routed(network, weights, 1)
    attention = _attention(network)
    if routed is None or attention is None:
        return None
    tokens = network.tokens(tokens)
    parameters, _ = _shared(network, weights)
    return 2.0 * (parameters + routed[0]) * tokens + 2.0 * attention * tokens * tokens


def seconds(work: Work, machine: Machine) -> float | None:
    """Say how long the work takes at least, by what is known of the machine."""
    compute = work.flops / machine.peak_flops if machine.peak_flops else None
    memory = work.bytes / machine.bandwidth_bytes if machine.bandwidth_bytes else None
    return max((each for each in (compute, memory) if each is not None), default=None)


def bound(work: Work, machine: Machine) -> Literal["memory", "compute"] | None:
    """Say which of the two it waits for; None if not both are known."""
    if not (machine.peak_flops and machine.bandwidth_bytes):
        return None
    is_compute = work.flops / machine.peak_flops > work.bytes / machine.bandwidth_bytes
    return "compute" if is_compute else "memory"


def _shared(network: Network, weights: Weights) -> tuple[int, int]:
    """Return parameters and bytes that every token uses."""
    parameters, read = weights.matrices, weights.read_bytes
    is_tied = network.tied and network.predicts_words
    if is_tied and not weights.has_head and network.vocab and network.hidden:
        table = network.vocab * network.hidden
        parameters += table
        if weights.lookup_parameters:
            read += weights.lookup_bytes * table // weights.lookup_parameters
    return parameters, read


def _routed(network: Network, weights: Weights, batch: int) -> tuple[float, float] | None:
    """Return parameters a token and bytes a batch of the experts that are hit."""
    if not weights.expert_parameters:
        return 0.0, 0.0
    if not (network.experts and network.experts_per_token):
        return None
    hit = distinct_experts(network.experts, network.experts_per_token, batch) / network.experts
    part = network.experts_per_token / network.experts
    return weights.expert_parameters * part, weights.expert_bytes * hit


def _attention(network: Network, *, encoder: bool = False) -> int | None:
    """Multiply out L n_h d_head, of the layers that write or of those that read."""
    layers = _writing_layers(network)
    if encoder:
        layers = network.encoder_layers or network.layers
    if not (layers and network.heads and network.head_dim):
        return None
    return layers * network.heads * network.head_dim
