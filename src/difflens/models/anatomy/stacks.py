"""Whether a network reads, writes, or both: encoders, decoders, and the head over a vocabulary.

An encoder reads all tokens in one pass. A decoder writes one token after another, and keeps the
keys and values of those before. Settings decide; without them the names of the tensors do.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Literal

from difflens.core.records import TensorInfo

from .settings import Settings

Kind = Literal["encoder", "decoder", "encoder-decoder"]

CAUSAL = (".attn.bias", ".attention.bias", "masked_bias")  # the buffers of a causal mask
CROSS = re.compile(r"cross_?attn|encoder_attn|EncDecAttention|crossattention")
WORD_HEAD = re.compile(r"(?:^|\.)(?:lm_head|embed_out)\.weight$|^output\.weight$")
MASKED_HEAD = re.compile(r"(?:^|\.)lm_head\.dense\.|(?:^|\.)cls\.predictions\.")
_READS = re.compile(r"token_type_embeddings\.|(?:^|\.)pooler\.dense\.|patch_embed")
_ENCODER = re.compile(r"(?:^|\.)(?:encoder|enc)\.")
_DECODER = re.compile(r"(?:^|\.)(?:decoder|dec)\.")
_CROSS_KEYS = re.compile(r"\.(?:k|v|k_proj|v_proj|key|value)\.(?:weight|bias)$")

# Model types whose networks read only, unless their settings say `is_decoder`.
_ENCODERS = frozenset(
    """
    albert audio-spectrogram-transformer beit bert camembert canine chinese_clip clip
    clip_text_model clip_vision_model convbert data2vec-audio data2vec-text data2vec-vision deberta
    deberta-v2 deit dinov2 dinov2_with_registers dinov3_vit distilbert electra ernie esm eurobert
    flaubert fnet funnel hubert ibert jina_bert layoutlm layoutlmv2 layoutlmv3 lilt longformer luke
    megatron-bert mobilebert modernbert mpnet mra nezha nomic_bert nystromformer perceiver
    rembert roberta roberta-prelayernorm roformer segformer siglip siglip_text_model
    siglip_vision_model splinter squeezebert swin swinv2 timesformer unispeech videomae vit vit_mae
    vit_msn wav2vec2 wav2vec2-bert wavlm xlm-roberta xlm-roberta-xl yoso
    neo-bert modern-bert nomic-bert nomic-bert-moe jina-bert-v2 jina-bert-v3 t5encoder
""".split()
)
_WRITERS = ("CausalLM", "LMHead", "ForConditionalGeneration", "SpeechSeq2Seq")


def kind_of_network(settings: Settings, infos: Iterable[TensorInfo]) -> tuple[Kind | None, str]:
    """Return whether a network reads, writes or both, and what shows it; None is unknown."""
    kind, source = _by_settings(settings)
    if kind:
        return kind, source
    return _by_names([info.name for info in infos]), "names of tensors"


def _by_settings(settings: Settings) -> tuple[Kind | None, str]:
    if settings.flag("is_encoder_decoder"):
        return "encoder-decoder", "config: is_encoder_decoder"
    if settings.flag("is_decoder"):
        return "decoder", "config: is_decoder"
    if settings.keys.get(f"{settings.keys.get('general.architecture')}.attention.causal") in {
        "False", "false", "0",
    }:  # fmt: skip
        return "encoder", "GGUF: attention.causal"
    name, source = settings.text(("model_type",), "general.architecture")
    if name in _ENCODERS:
        return "encoder", source
    if any(word in str(each) for each in settings.architectures for word in _WRITERS):
        return "decoder", "config: architectures"
    return None, ""


def _by_names(names: list[str]) -> Kind | None:
    if any(map(CROSS.search, names)) and any(map(_ENCODER.search, names)):
        return "encoder-decoder"
    masked = any(map(MASKED_HEAD.search, names))
    if (any(map(WORD_HEAD.search, names)) and not masked) or any(
        name.endswith(CAUSAL) for name in names
    ):
        return "decoder"
    return "encoder" if masked or any(map(_READS.search, names)) else None


def is_of_encoder(name: str) -> bool:
    """Is it in the encoder of a network that has a decoder as well?"""
    return bool(_ENCODER.search(name)) and not _DECODER.search(name)


def reads_encoder(name: str) -> bool:
    """Does it compute keys or values of what the encoder read: once, not for each token?"""
    return bool(CROSS.search(name) and _CROSS_KEYS.search(name))


def predicts_words(settings: Settings, *, has_head: bool, tied: bool | None) -> bool:
    """Is there a head over the vocabulary: stored, or the embedding itself?

    The settings of most models call the embedding tied; a class without a head has none.
    """
    if has_head or settings.predicts_words:
        return has_head or bool(tied)
    return bool(tied) and not settings.architectures
