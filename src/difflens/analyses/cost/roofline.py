"""The roofline: a pass takes as long as its operations or its bytes, whichever is longer.

t = max(FLOPs / peak, bytes / bandwidth)   (Williams, Waterman, Patterson 2009)
"""

from __future__ import annotations

from typing import Literal, NamedTuple

from ..anatomy.network import Network
from .memory import cache
from .weights import Weights


class Work(NamedTuple):
    """What a pass has to do; `attention` is None where the heads are unknown."""

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
    """Give the part of the experts that one token reaches, k / E."""
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
    """Say what the next token of each sequence costs; None where the routing is unknown.

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
        flops += 4.0 * attention * context * batch
    kept = cache(network, context, batch, cache_bits) or 0
    return Work(flops, read + routed[1] + kept, attention)


def prefill(network: Network, weights: Weights, tokens: int) -> float | None:
    """Count the operations of reading a prompt: 2 N T + 4 L n_h d_head T² / 2."""
    routed = _routed(network, weights, 1)
    attention = _attention(network)
    if routed is None or attention is None:
        return None
    parameters, _ = _shared(network, weights)
    return 2.0 * (parameters + routed[0]) * tokens + 2.0 * attention * tokens * tokens


def seconds(work: Work, machine: Machine) -> float | None:
    """Say how long the work takes at least, by what is known of the machine."""
    compute = work.flops / machine.peak_flops if machine.peak_flops else None
    memory = work.bytes / machine.bandwidth_bytes if machine.bandwidth_bytes else None
    return max((each for each in (compute, memory) if each is not None), default=None)


def bound(work: Work, machine: Machine) -> Literal["memory", "compute"] | None:
    """Say which of the two it waits for; None where not both are known."""
    if not (machine.peak_flops and machine.bandwidth_bytes):
        return None
    is_compute = work.flops / machine.peak_flops > work.bytes / machine.bandwidth_bytes
    return "compute" if is_compute else "memory"


def _shared(network: Network, weights: Weights) -> tuple[int, int]:
    """Give parameters and bytes that every token uses."""
    parameters, read = weights.matrices, weights.read_bytes
    if network.tied and not weights.has_head and network.vocab and network.hidden:
        table = network.vocab * network.hidden
        parameters += table
        if weights.lookup_parameters:
            read += weights.lookup_bytes * table // weights.lookup_parameters
    return parameters, read


def _routed(network: Network, weights: Weights, batch: int) -> tuple[float, float] | None:
    """Give parameters a token and bytes a batch of the experts that are hit."""
    if not weights.expert_parameters:
        return 0.0, 0.0
    if not (network.experts and network.experts_per_token):
        return None
    hit = distinct_experts(network.experts, network.experts_per_token, batch) / network.experts
    part = network.experts_per_token / network.experts
    return weights.expert_parameters * part, weights.expert_bytes * hit


def _attention(network: Network) -> int | None:
    """Multiply out L n_h d_head."""
    if not (network.layers and network.heads and network.head_dim):
        return None
    return network.layers * network.heads * network.head_dim
