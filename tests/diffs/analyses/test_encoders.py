"""Encoders have no cache, no next token and no logits; a network that reads and writes has both."""

import pytest

from difflens.core.policy import Policy
from difflens.diffs.analyses import analyse
from difflens.diffs.evidence.records import Evidence
from difflens.diffs.story import diff

transformers = pytest.importorskip("transformers")

SMALL = {"hidden_size": 32, "num_hidden_layers": 2, "num_attention_heads": 4,
         "intermediate_size": 64, "vocab_size": 100}  # fmt: skip
MODELS = {
    "bert": lambda: transformers.BertModel(
        transformers.BertConfig(**SMALL, max_position_embeddings=64)
    ),
    "masked": lambda: transformers.BertForMaskedLM(
        transformers.BertConfig(**SMALL, max_position_embeddings=64)
    ),
    "classifier": lambda: transformers.DistilBertForSequenceClassification(
        transformers.DistilBertConfig(
            vocab_size=100, dim=32, n_layers=2, n_heads=4, hidden_dim=64, max_position_embeddings=64
        )
    ),
    "vit": lambda: transformers.ViTModel(
        transformers.ViTConfig(**{**SMALL, "vocab_size": None}, image_size=32, patch_size=8)
    ),
    "gpt2": lambda: transformers.GPT2LMHeadModel(
        transformers.GPT2Config(vocab_size=100, n_embd=32, n_layer=2, n_head=4, n_positions=64)
    ),
    "headless": lambda: transformers.GPT2Model(
        transformers.GPT2Config(vocab_size=100, n_embd=32, n_layer=2, n_head=4, n_positions=64)
    ),
    "t5": lambda: transformers.T5ForConditionalGeneration(
        transformers.T5Config(
            vocab_size=100, d_model=32, d_kv=8, d_ff=64, num_layers=2, num_decoder_layers=3,
            num_heads=4,
        )
    ),
    "whisper": lambda: transformers.WhisperForConditionalGeneration(
        transformers.WhisperConfig(
            vocab_size=100, d_model=32, encoder_layers=2, decoder_layers=3,
            encoder_attention_heads=4, decoder_attention_heads=4, encoder_ffn_dim=64,
            decoder_ffn_dim=64, max_source_positions=60, max_target_positions=40, pad_token_id=0,
            bos_token_id=1, eos_token_id=2, decoder_start_token_id=1,
        )
    ),
}  # fmt: skip


@pytest.fixture(scope="module")
def saved(tmp_path_factory):
    """Save each model once, as its users find it."""
    folders = {}

    def folder(name):
        if name not in folders:
            folders[name] = tmp_path_factory.mktemp(name)
            MODELS[name]().save_pretrained(folders[name])
        return str(folders[name])

    return folder


def ask(analysis, path, thresholds=None):
    return analyse(analysis, diff(path, path), Evidence(), Policy({analysis: thresholds or {}}))


@pytest.mark.parametrize("name", ["bert", "classifier", "vit"])
def test_an_encoder_has_no_cache_and_no_logits(saved, name):
    envelope = ask("memory_analysis", saved(name))

    assert set(envelope.fields["breakdown"]["right"]) == {"weights", "activations"}
    assert envelope.fields["kv_bytes_per_token"] is None
    (gap,) = (each for each in envelope.missing if each.field == "kv_bytes_per_token")
    assert "encoder" in gap.why


def test_an_encoder_takes_no_more_tokens_than_it_has_positions(saved):
    envelope = ask("memory_analysis", saved("bert"))

    parts = envelope.fields["breakdown"]["right"]
    assert parts["activations"] == 64 * (2 * 32 + 64) * 2
    assert "right: 64 tokens, its positions hold no more" in envelope.assumptions


def test_a_vision_transformer_takes_its_patches_and_one_more(saved):
    parts = ask("memory_analysis", saved("vit")).fields["breakdown"]["right"]

    assert parts["activations"] == 17 * (2 * 32 + 64) * 2


def test_a_masked_language_model_predicts_all_positions(saved):
    parts = ask("memory_analysis", saved("masked")).fields["breakdown"]["right"]

    assert parts["workspace"] == 64 * 100 * 4
    assert "kv_cache" not in parts


def test_a_decoder_has_a_cache_for_the_tokens_it_can_hold(saved):
    parts = ask("memory_analysis", saved("gpt2")).fields["breakdown"]["right"]

    assert parts["kv_cache"] == 64 * 2 * 2 * 4 * 8 * 2
    assert parts["workspace"] == 100 * 4


def test_a_decoder_without_a_head_has_no_logits(saved):
    parts = ask("memory_analysis", saved("headless")).fields["breakdown"]["right"]

    assert "kv_cache" in parts
    assert "workspace" not in parts


@pytest.mark.parametrize(("name", "source", "target"), [("t5", 512, 512), ("whisper", 60, 40)])
def test_a_model_that_reads_and_writes_has_both_caches(saved, name, source, target):
    envelope = ask("memory_analysis", saved(name), {"tokens": 512})

    parts = envelope.fields["breakdown"]["right"]
    each = 2 * 3 * 4 * 8 * 2  # three layers of the decoder
    assert envelope.fields["kv_bytes_per_token"]["right"] == each
    assert (parts["kv_cache"], parts["cross_cache"]) == (each * target, each * source)
    assert parts["workspace"] == 100 * 4


@pytest.mark.parametrize("name", ["bert", "classifier"])
def test_an_encoder_makes_no_next_token(saved, name):
    machine = {"bandwidth_bytes": 1e9, "peak_flops": 1e9}
    envelope = ask("inference_speed_estimate", saved(name), machine)

    assert envelope.fields["time_per_token_ms"] is None
    assert envelope.fields["time_per_pass_ms"]["left"] > 0
    (gap,) = (each for each in envelope.missing if each.field == "time_per_token_ms")
    assert "no next token" in gap.why


def test_one_pass_of_an_encoder_reads_each_matrix_once_for_every_token(saved):
    fields = ask("inference_speed_estimate", saved("bert")).fields

    layer = 4 * 32 * 32 + 2 * 32 * 64
    matrices = 2 * layer + 32 * 32  # and the pooler
    attention = 4 * 2 * 32 * 64 * 64
    assert fields["flops"]["right"] == 2 * matrices * 64 + attention
    assert fields["prefill"]["right"] == fields["flops"]["right"]


def test_the_next_token_of_a_model_that_reads_and_writes_leaves_the_encoder_alone(saved):
    fields = ask("inference_speed_estimate", saved("t5"), {"context": 10}).fields

    encoder = 2 * (4 * 32 * 32 + 2 * 32 * 64)
    read_once = 3 * 2 * 32 * 32  # keys and values of what was read
    decoder = 3 * (6 * 32 * 32 + 2 * 32 * 64) + 32 * 100
    assert fields["flops"]["right"] == 2 * decoder + 4 * 3 * 32 * 20
    assert fields["prefill"]["right"] == 2 * (encoder + read_once) * 10 + 4 * 2 * 32 * 100


def test_the_effect_of_a_change_is_estimated_for_encoders_too(saved):
    fields = ask("performance_impact_estimate", saved("bert")).fields

    assert fields["latency_change"] == 0
    assert fields["memory_change"] == 0
