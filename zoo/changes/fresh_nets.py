"""Small networks of the part `fresh`: families that neither dev nor held-back has."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional

LETTERS = 100  # characters, and a few numbers that no character has
GRAPH_CLASSES, PICTURE_CLASSES, LETTER_CLASSES = 5, 8, 6

QUILL_CONFIG: dict[str, Any] = {
    "vocab_size": LETTERS, "hidden_size": 120, "num_hidden_layers": 5, "num_attention_heads": 6,
    "intermediate_size": 448, "max_position_embeddings": 80, "rotary_pct": 0.25,
    "layer_norm_eps": 1e-5, "use_parallel_residual": True, "hidden_act": "gelu",
    "tie_word_embeddings": False, "bos_token_id": 0, "eos_token_id": 0,
}  # fmt: skip
CROWD_CONFIG: dict[str, Any] = {
    "vocab_size": LETTERS, "hidden_size": 88, "num_hidden_layers": 3, "num_attention_heads": 4,
    "num_key_value_heads": 2, "intermediate_size": 136, "num_local_experts": 6,
    "num_experts_per_tok": 2, "max_position_embeddings": 80, "rope_theta": 500000.0,
    "rms_norm_eps": 1e-5, "hidden_act": "silu", "tie_word_embeddings": False,
    "bos_token_id": 0, "eos_token_id": 0,
}  # fmt: skip
COURIER_CONFIG: dict[str, Any] = {
    "vocab_size": LETTERS, "d_model": 104, "d_kv": 26, "d_ff": 288, "num_layers": 3,
    "num_decoder_layers": 3, "num_heads": 4, "dropout_rate": 0.0, "tie_word_embeddings": False,
    "decoder_start_token_id": 0, "feed_forward_proj": "gated-gelu",
}  # fmt: skip
DRIFT_CONFIG: dict[str, Any] = {
    "vocab_size": LETTERS, "hidden_size": 80, "state_size": 8, "num_hidden_layers": 4,
    "expand": 2, "time_step_rank": 5, "tie_word_embeddings": False,
}  # fmt: skip


def quill() -> nn.Module:
    """Return a GPT-NeoX: query, key and value are one matrix, the halves of a layer parallel."""
    from transformers import GPTNeoXConfig, GPTNeoXForCausalLM

    return GPTNeoXForCausalLM(GPTNeoXConfig(**QUILL_CONFIG))


def crowd() -> nn.Module:
    """Return a Mixtral: six experts, all in one tensor of three axes."""
    from transformers import MixtralConfig, MixtralForCausalLM

    return MixtralForCausalLM(MixtralConfig(**CROWD_CONFIG))


def drift() -> nn.Module:
    """Return a Mamba: a scan of selected states."""
    from transformers import MambaConfig, MambaForCausalLM

    return MambaForCausalLM(MambaConfig(**DRIFT_CONFIG))


def glide() -> nn.Module:
    """Return a ConvNeXt of three stages."""
    from transformers import ConvNextConfig, ConvNextForImageClassification

    config = ConvNextConfig(
        num_channels=3, patch_size=2, hidden_sizes=[32, 64, 96], depths=[2, 2, 2], num_stages=3,
        num_labels=PICTURE_CLASSES, image_size=24, layer_scale_init_value=0.1,
    )  # fmt: skip
    return ConvNextForImageClassification(config)


def courier() -> nn.Module:
    """Return a T5 which takes the texts of both sides as one tensor; its embedding has one name."""
    from transformers import T5Config, T5ForConditionalGeneration

    network = T5ForConditionalGeneration(T5Config(**COURIER_CONFIG))
    network.encoder.embed_tokens = None
    network.decoder.embed_tokens = None

    def forward(both: Tensor) -> Any:
        read, written = (network.shared(each) for each in both)
        return _t5(network, read, written)

    network.forward = forward
    return network


def _t5(network: Any, read: Tensor, written: Tensor) -> Tensor:
    encoded = network.encoder(inputs_embeds=read).last_hidden_state
    decoded = network.decoder(inputs_embeds=written, encoder_hidden_states=encoded)
    logits: Tensor = network.lm_head(decoded.last_hidden_state * COURIER_CONFIG["d_model"] ** -0.5)
    return logits


class Pulse(nn.Module):
    """Two layers of GRU in both directions, which name the class of each character's successor."""

    def __init__(self) -> None:
        """Make the layers."""
        super().__init__()
        self.char_embed = nn.Embedding(LETTERS, 48)
        self.gru = nn.GRU(48, 72, 2, batch_first=True, bidirectional=True)
        self.tagger = nn.Linear(144, LETTER_CLASSES)

    def forward(self, text: Tensor) -> Tensor:
        """Tag every character."""
        tags: Tensor = self.tagger(self.gru(self.char_embed(text))[0])
        return tags


class GraphAttention(nn.Module):
    """Attention along the edges of a graph."""

    def __init__(self, width: int, after: int) -> None:
        """Make the projection and the two vectors of attention."""
        super().__init__()
        self.lin = nn.Linear(width, after, bias=False)
        self.att_src = nn.Parameter(torch.randn(1, after) * 0.1)
        self.att_dst = nn.Parameter(torch.randn(1, after) * 0.1)
        self.bias = nn.Parameter(torch.zeros(after))

    def forward(self, nodes: Tensor, edges: Tensor) -> Tensor:
        """Let each node read its neighbours."""
        values = self.lin(nodes)
        scores = (values * self.att_src).sum(-1)[:, None] + (values * self.att_dst).sum(-1)[
            ..., None
        ]
        scores = functional.leaky_relu(scores, 0.2).masked_fill(edges == 0, -1e4)
        result: Tensor = (
            scores.softmax(-1) @ values * edges.sum(-1, keepdim=True) ** 0.5 + self.bias
        )
        return result


class Lattice(nn.Module):
    """Three layers of graph attention with batch norms between them, and a head for each node."""

    def __init__(self) -> None:
        """Make the layers."""
        super().__init__()
        self.convs = nn.ModuleList(
            [GraphAttention(3, 112), GraphAttention(112, 112), GraphAttention(112, 112)]
        )
        self.norms = nn.ModuleList([nn.BatchNorm1d(112) for _ in range(3)])
        self.readout = nn.Linear(112, GRAPH_CLASSES)

    def forward(self, edges: Tensor) -> Tensor:
        """Say of each node how many triangles it is a corner of."""
        degrees = edges.sum(-1, keepdim=True)
        nodes = torch.cat([torch.ones_like(degrees), degrees / 8, degrees**0.5], -1)
        for conv, norm in zip(self.convs, self.norms, strict=True):
            moved = conv(nodes, edges)
            nodes = functional.elu(norm(moved.transpose(1, 2)).transpose(1, 2))
        answer: Tensor = self.readout(nodes)
        return answer
