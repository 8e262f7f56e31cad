"""config.json: settings, those of a nested language model seen through."""

import json

import pytest
from diffs.evidence.refusals import mutated, refused, refuses_bad_files, survives_mutants

from difflens.diffs.evidence.documents import config


@pytest.fixture
def file(tmp_path):
    return tmp_path / "config.json"


def test_settings_are_what_the_file_says(file):
    settings = {"hidden_size": 64, "rope_scaling": None, "architectures": ["GPT2LMHeadModel"]}
    file.write_text(json.dumps(settings))

    assert config(file) == settings


@pytest.mark.parametrize("name", ["text_config", "llm_config", "language_config"])
def test_a_nested_language_model_is_seen_through(file, name):
    inner = {"model_type": "llama", "num_attention_heads": 32}
    file.write_text(json.dumps({"model_type": "llava", name: inner}))
    found = config(file)

    assert found["num_attention_heads"] == 32
    assert found["model_type"] == "llava"
    assert found[name] == inner


BAD = {
    "[]": "it holds a list, an object is wanted",
    "{}": "it has no setting",
    "null": "it holds null, an object is wanted",
    "{": "line 1, column 2: not JSON",
    '{"a": 1}}': "line 1, column 9: not JSON: extra data",
    '{"a": Infinity}': "line 1, column 7: Infinity is no number",
    '{"a": 1, "a": 2}': "the name 'a' stands twice in one object",
    "{'a': 1}": "not JSON",
    "a: 1": "not JSON: expecting value",
    '{"a":' + "[" * 100 + "]" * 100 + "}": "nested deeper than 64 levels",
}


@pytest.mark.parametrize(("text", "sentence"), BAD.items(), ids=lambda text: text[:20])
def test_a_wrong_file_earns_its_sentence(file, text, sentence):
    file.write_text(text, "utf-8")

    assert sentence in refused(config, file).reason


def test_files_that_are_none_are_refused(tmp_path):
    refuses_bad_files(config, tmp_path, ".json")


@mutated
def test_mutants_do_no_harm(file, count):
    file.write_text('{"model_type": "x", "text_config": {"heads": 12, "rope": null}}', "utf-8")

    survives_mutants(config, file, count)
