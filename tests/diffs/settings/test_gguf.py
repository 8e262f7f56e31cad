"""What a GGUF file says beside its tensors: its config and its tokenizer, inside."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from cli.command import InProcess
from gguf import GGUFWriter, TokenType
from models.small import tensor, write

WORDS = ["<unk>", "<s>", "</s>", "▁a", "▁b"]
TYPES = [TokenType.UNKNOWN, TokenType.CONTROL, TokenType.CONTROL, 1, 1]
CONFIG = {"num_attention_heads": 4, "num_key_value_heads": 2, "rms_norm_eps": 1e-05,
          "rope_theta": 10000.0, "hidden_act": "silu"}  # fmt: skip


@pytest.fixture
def command(capsys, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    return InProcess(capsys)


def gguf(path: Path, *, words=tuple(WORDS), types=tuple(TYPES), score=-1.0, **other) -> Path:
    base = {"theta": 10000.0, "eps": 1e-05, "name": "left", "bos": 1} | other
    path.parent.mkdir(exist_ok=True)
    writer = GGUFWriter(path, "llama")
    writer.add_name(base["name"])
    writer.add_head_count(4)
    writer.add_head_count_kv(2)
    writer.add_layer_norm_rms_eps(base["eps"])
    writer.add_rope_freq_base(base["theta"])
    writer.add_tokenizer_model("llama")
    writer.add_token_list(list(words))
    writer.add_token_scores([score] * len(words))
    writer.add_token_types([int(each) for each in types])
    writer.add_bos_token_id(base["bos"])
    writer.add_tensor("output_norm.weight", np.ones(4, np.float32))
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    return path


def folder(path: Path, config: dict[str, Any], words=tuple(WORDS)) -> Path:
    write(path / "model.safetensors", {"output_norm.weight": tensor([1.0] * 4)})
    (path / "config.json").write_text(json.dumps(config))
    model = {"type": "BPE", "vocab": {word: row for row, word in enumerate(words)}}
    (path / "tokenizer.json").write_text(json.dumps({"model": model}))
    return path


@pytest.mark.parametrize(
    ("changed", "line"),
    [
        ({"theta": 500000.0}, "* config llama.rope.freq_base 10000.0 -> 500000.0"),
        ({"eps": 1e-06}, "* config llama.attention.layer_norm_rms_epsilon 1e-05 -> 1e-06"),
        ({"bos": 2}, '* tokenizer tokenizer.ggml.bos_token_id "1" -> "2"'),
        ({"words": [*WORDS, "▁c"], "types": [*TYPES, 1]}, "* tokenizer 1 token added (id 5: ▁c)"),
        (
            {"words": ["<unk>", "<s>", "</s>", "▁b", "▁a"]},
            "* tokenizer 2 ids moved (▁a 3 -> 4, ▁b 4 -> 3)",
        ),
    ],
)
def test_a_key_of_gguf_that_changes_the_function_counts(command, tmp_path, changed, line):
    left, right = gguf(tmp_path / "a.gguf"), gguf(tmp_path / "b.gguf", **changed)

    outcome = command(left, right)

    assert outcome.code == 1
    assert line in outcome.lines


def test_other_scores_are_another_tokenizer(command, tmp_path):
    outcome = command(gguf(tmp_path / "a.gguf"), gguf(tmp_path / "b.gguf", score=-2.0))

    assert outcome.code == 1
    assert "tokenizer: scores" in outcome.lines[-1]


def test_the_name_of_a_gguf_model_is_bookkeeping(command, tmp_path):
    outcome = command(gguf(tmp_path / "a.gguf"), gguf(tmp_path / "b.gguf", name="right"))

    assert outcome.code == 0
    assert outcome.lines[-1] == "equal: every value is the same; 1 metadata key changed"


def test_a_converted_config_is_compared_with_the_one_it_was_made_of(command, tmp_path):
    left = folder(tmp_path / "hf", CONFIG)
    same, other = gguf(tmp_path / "a.gguf"), gguf(tmp_path / "b.gguf", theta=500000.0)

    right, wrong = (command(left, each, "--verify-conversion") for each in (same, other))

    assert right.code == 0
    assert wrong.code == 1
    assert wrong.lines[-1].startswith(
        "not the same: the function changed: llama.rope.freq_base 10000.0 -> 500000.0"
    )


def test_rows_that_only_fill_up_the_embedding_are_no_tokens(command, tmp_path):
    left = folder(tmp_path / "hf", CONFIG)
    filled = gguf(tmp_path / "a.gguf", words=[*WORDS, "[PAD5]"], types=[*TYPES, TokenType.UNUSED])
    moved = gguf(tmp_path / "b.gguf", words=[*WORDS[:3], "▁b", "▁a"])

    assert command(left, filled, "--verify-conversion").code == 0
    assert "tokenizer: 2 ids moved" in command(left, moved, "--verify-conversion").lines[-1]
