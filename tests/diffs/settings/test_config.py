"""Two config.json files, by what they mean."""

import json
from pathlib import Path
from typing import Any

import pytest
from cli.command import InProcess
from models.small import tensor, write

from difflens.diffs.settings.config import ABSENT, canonical, differences, is_same

LLAMA = {
    "model_type": "llama",
    "hidden_size": 16,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "hidden_act": "silu",
    "rms_norm_eps": 1e-05,
    "rope_theta": 10000.0,
    "bos_token_id": 1,
    "eos_token_id": 2,
    "tie_word_embeddings": False,
    "sliding_window": 4096,
    "torch_dtype": "float16",
    "transformers_version": "4.40.0",
    "architectures": ["LlamaForCausalLM", "LlamaModel"],
    "_name_or_path": "left",
    "use_cache": True,
    "attention_dropout": 0.0,
}
# Configs as the 4.x versions of their day published them.
OLD = json.loads(Path(__file__).with_name("configs-of-4.json").read_text())


@pytest.fixture
def command(capsys, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    return InProcess(capsys)


def folder(path: Path, config: dict[str, Any] | str) -> Path:
    write(path / "model.safetensors", {"w": tensor([1.0, 2.0])})
    text = config if isinstance(config, str) else json.dumps(config)
    (path / "config.json").write_text(text)
    return path


def counted(left: dict[str, Any], right: dict[str, Any]) -> list[str]:
    return [each.name for each in differences(left, right) if each.counts]


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("rope_theta", 1000000.0),
        ("rms_norm_eps", 1e-6),
        ("hidden_act", "gelu"),
        ("num_attention_heads", 8),
        ("num_key_value_heads", 4),
        ("bos_token_id", 0),
        ("eos_token_id", [2, 3]),
        ("pad_token_id", 0),
        ("sliding_window", None),
        ("tie_word_embeddings", None),  # left out it is true
        ("rope_scaling", {"type": "linear", "factor": 2.0}),
        ("logits_scaling", 8.0),
        ("a_key_of_next_year", "x"),
    ],
)
def test_a_value_that_changes_the_function_counts(key, value):
    (name,) = {each.partition(".")[0] for each in counted(LLAMA, LLAMA | {key: value})}

    assert name == key


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("transformers_version", "5.23.0"),
        ("_name_or_path", "right"),
        ("torch_dtype", "bfloat16"),
        ("architectures", ["LlamaModel", "LlamaForCausalLM"]),
        ("use_cache", False),
        ("attention_dropout", 0.1),
        ("initializer_range", 0.5),
    ],
)
def test_bookkeeping_is_told_and_does_not_count(key, value):
    found = list(differences(LLAMA, LLAMA | {key: value}))

    assert [each.counts for each in found] == [False]


def test_the_spellings_of_4_and_5_mean_the_same():
    later = {key: value for key, value in LLAMA.items() if key not in ("rope_theta", "torch_dtype")}
    later |= {"rope_parameters": {"rope_theta": 10000, "rope_type": "default"}, "dtype": "float16"}
    later |= {"head_dim": 4, "pad_token_id": None, "eos_token_id": [2], "mlp_bias": False}

    assert list(differences(LLAMA, later)) == []
    assert counted(LLAMA, later | {"head_dim": 8}) == ["head_dim"]


def test_heads_that_are_not_written_are_those_of_the_queries():
    without = {key: value for key, value in LLAMA.items() if key != "num_key_value_heads"}

    assert counted(without, without | {"num_key_value_heads": 4}) == []
    assert counted(without, without | {"num_key_value_heads": 2}) == ["num_key_value_heads"]


def test_nested_settings_are_compared_one_by_one():
    left = {"model_type": "clip", "text_config": {"hidden_act": "gelu", "dropout": 0.1}}
    right = {"model_type": "clip", "text_config": {"hidden_act": "relu", "dropout": 0.2}}

    assert counted(left, right) == ["text_config.hidden_act"]


def test_the_ropes_of_two_kinds_of_layers_are_the_global_and_the_local_base():
    full = {"rope_theta": 1e6, "rope_type": "default"}
    later = {"rope_parameters": {"full_attention": full, "sliding_attention": {"rope_theta": 1e4}}}

    assert canonical(later) == {
        "rope_local_base_freq": 1e4, "rope_theta": 1e6, "rope_scaling.rope_type": "default",
    }  # fmt: skip


@pytest.mark.parametrize("value", [False, [], "", ABSENT])
def test_a_switch_that_is_not_mentioned_is_off(value):
    assert is_same(ABSENT, value)
    assert not is_same(ABSENT, 0)


@pytest.mark.parametrize("name", OLD)
def test_a_config_of_transformers_4_saved_again_by_5_is_the_same_function(name, tmp_path):
    pytest.importorskip("transformers", minversion="5")
    from transformers.models.auto.configuration_auto import CONFIG_MAPPING

    config = OLD[name]
    CONFIG_MAPPING[config["model_type"]].from_dict(dict(config)).save_pretrained(tmp_path)
    again = json.loads((tmp_path / "config.json").read_text())

    assert counted(config, again) == []
    assert counted(again, config) == []


def test_a_changed_config_is_no_longer_the_same_model(command, tmp_path):
    folder(tmp_path / "a", LLAMA)
    folder(tmp_path / "b", LLAMA | {"rope_theta": 1000000.0, "use_cache": False})

    outcome = command("a", "b")

    assert outcome.code == 1
    assert "* config config.json rope_theta 10000.0 -> 1000000.0" in outcome.lines
    assert '* metadata config.json: use_cache: "true" -> "false"' in outcome.lines
    assert outcome.lines[-1] == (
        "the weights are the same, the function is not: config.json rope_theta 10000.0 -> 1000000.0"
    )


def test_the_word_of_the_verdict_is_config_in_every_document(command, tmp_path):
    folder(tmp_path / "a", LLAMA)
    folder(tmp_path / "b", LLAMA | {"hidden_act": "gelu"})

    whole = json.loads(command("a", "b", "-o", "full-json").out)
    rows = json.loads(command("a", "b", "-o", "json").out)
    markdown, page = (command("a", "b", "-o", form).out for form in ("markdown", "html"))

    assert whole["verdict"]["word"] == "config"
    assert [each["kind"] for each in whole["metadata"]] == ["config"]
    assert rows == [{"MetadataChanged": ["config.json: hidden_act", '"silu"', '"gelu"']}]
    assert "### difflens: config" in markdown
    assert "| **high** | `config.json` |" in markdown
    assert "Nothing." not in markdown
    assert "the function is not" in page


def test_bookkeeping_alone_exits_0_and_is_told(command, tmp_path):
    folder(tmp_path / "a", LLAMA)
    folder(tmp_path / "b", LLAMA | {"transformers_version": "5.23.0"})

    outcome = command("a", "b")

    assert outcome.code == 0
    assert outcome.lines[-1] == "equal: every value is the same; 1 metadata key changed"


def test_a_conversion_under_another_config_is_not_the_same_model(command, tmp_path):
    folder(tmp_path / "a", LLAMA)
    folder(tmp_path / "b", LLAMA | {"rms_norm_eps": 1e-06})

    outcome = command("a", "b", "--verify-conversion")

    assert outcome.code == 1
    assert outcome.lines[-1].startswith("not the same: the function changed: config.json rms_norm")
    assert "same model" not in outcome.lines[-1]


def test_changed_weights_and_a_changed_config_are_both_told(command, tmp_path):
    folder(tmp_path / "a", LLAMA)
    folder(tmp_path / "b", LLAMA | {"rms_norm_eps": 1e-06})
    write(tmp_path / "b" / "model.safetensors", {"w": tensor([1.0, 3.0])})

    last = command("a", "b").lines[-1]

    assert last.startswith("different: 1 changed, of 1 tensor; the function changed as well: ")


def test_single_files_own_the_config_beside_them_unless_another_model_could(command, tmp_path):
    left = folder(tmp_path / "a", LLAMA) / "model.safetensors"
    right = folder(tmp_path / "b", LLAMA | {"rope_theta": 500.0}) / "model.safetensors"

    assert command(left, right).code == 1
    assert command(left, right, "--no-discovery").code == 0
    write(tmp_path / "b" / "other.safetensors", {"w": tensor([1.0])})
    assert command(left, right).code == 0


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ('{"a": ' + "[" * 200 + "]" * 200 + "}", "nested deeper than 64 levels"),
        ('{"a": ' + "[" * 100_000 + "}", "nested deeper than 64 levels"),
        ('{"a": 1, "a": 2}', "stands twice"),
        ("[1]", "an object is wanted"),
        ('{"a": "' + "x" * 1_000_000 + '"}', "too large"),
        ("{", "not JSON"),
    ],
)
def test_a_config_that_cannot_be_read_is_one_line_and_never_the_same(
    command, tmp_path, text, reason
):
    folder(tmp_path / "a", LLAMA)
    folder(tmp_path / "b", text)

    outcome = command("a", "b")

    assert outcome.code == 1
    assert "config.json cannot be compared: " in outcome.lines[-1]
    assert reason in outcome.lines[-1]


def test_a_hostile_value_is_shown_and_commands_no_terminal(command, tmp_path):
    folder(tmp_path / "a", LLAMA)
    folder(tmp_path / "b", LLAMA | {"hidden_act": "\x1b[31mred", "\x1b]0;x\x07": 1})

    outcome = command("a", "b")

    assert "\x1b" not in outcome.out
    assert outcome.code == 1


def test_equal_bytes_are_the_same_without_being_read(command, tmp_path):
    folder(tmp_path / "a", "{broken")
    folder(tmp_path / "b", "{broken")

    assert command("a", "b").code == 0


def test_configs_that_are_named_count_like_those_beside_the_models(command, tmp_path):
    write(tmp_path / "a.safetensors", {"w": tensor([1.0, 2.0])})
    for name, theta in (("left.json", 10000.0), ("right.json", 500000.0)):
        (tmp_path / name).write_text(json.dumps(LLAMA | {"rope_theta": theta}))
    models = ("a.safetensors", "a.safetensors", "--config-left", "left.json", "--config-right")

    assert command(*models, "left.json").code == 0
    for flags in ((), ("--risk-assessment",), ("--verify-conversion",)):
        outcome = command(*models, "right.json", *flags)
        assert outcome.code == 1
        assert "config.json rope_theta 10000.0 -> 500000.0" in outcome.out
    assert command(*models, "none.json").code == 2


def test_a_named_config_is_held_against_the_one_beside_the_other_model(command, tmp_path):
    left = folder(tmp_path / "a", LLAMA) / "model.safetensors"
    write(tmp_path / "b.safetensors", {"w": tensor([1.0, 2.0])})
    (tmp_path / "right.json").write_text(json.dumps(LLAMA | {"rope_theta": 5.0}))

    assert command(left, "b.safetensors", "--config-right", "right.json").code == 1
    assert command("b.safetensors", "b.safetensors", "--config-right", "right.json").code == 0


def test_what_cannot_be_read_is_no_change_that_is_known(command, tmp_path):
    folder(tmp_path / "a", LLAMA)
    folder(tmp_path / "b", "{")

    last = command("a", "b").lines[-1]
    assert last.startswith("the weights are the same, whether the function is cannot be told: ")
    write(tmp_path / "b" / "model.safetensors", {"w": tensor([1.0, 3.0])})
    assert "; whether the function changed as well cannot be told: " in command("a", "b").lines[-1]
