"""Two tokenizers, by their tokens: whatever the spelling of their files."""

import json
import struct
from pathlib import Path
from typing import Any

import pytest
from cli.command import InProcess
from models.small import tensor, write

WORDS = ["<s>", "</s>", "a", "b", "c", "ab", "abc"]
MERGES = [["a", "b"], ["ab", "c"]]


@pytest.fixture
def command(capsys, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    return InProcess(capsys)


def bpe(words=tuple(WORDS), merges=tuple(MERGES), added=(), **parts) -> dict[str, Any]:
    entry = {"single_word": False, "lstrip": False, "rstrip": False, "normalized": False}
    tokens = [{"id": row, "content": name, **entry, "special": True} for name, row in added]
    model = {"type": "BPE", "vocab": {word: row for row, word in enumerate(words)},
             "merges": list(merges)}  # fmt: skip
    return {"version": "1.0", "added_tokens": tokens, "normalizer": None,
            "pre_tokenizer": {"type": "ByteLevel"}, "model": model} | parts  # fmt: skip


def folder(path: Path, files: dict[str, Any]) -> Path:
    write(path / "model.safetensors", {"w": tensor([1.0, 2.0])})
    for name, content in files.items():
        if isinstance(content, bytes):
            (path / name).write_bytes(content)
        else:
            text = content if isinstance(content, str) else json.dumps(content)
            (path / name).write_text(text, encoding="utf-8")
    return path


@pytest.fixture
def compared(command, tmp_path):
    def compare(left: dict, right: dict, *options: str):
        folder(tmp_path / "l", left)
        folder(tmp_path / "r", right)
        return command("l", "r", *options)

    return compare


def tokenizer(outcome) -> list[str]:
    mark = "* tokenizer "
    return [line.removeprefix(mark) for line in outcome.lines if line.startswith(mark)]


def test_added_tokens_are_counted_and_named_with_their_ids(compared):
    more = [("<x>", 7), ("<y>", 8), ("<z>", 9)]

    outcome = compared({"tokenizer.json": bpe()}, {"tokenizer.json": bpe(added=more)})

    assert outcome.code == 1
    assert tokenizer(outcome) == ["3 tokens added (ids 7-9: <x>, <y>, <z>)"]
    assert outcome.lines[-1] == (
        "the weights are the same, the function is not:"
        " tokenizer: 3 tokens added (ids 7-9: <x>, <y>, <z>)"
    )


def test_moved_ids_removed_tokens_and_a_changed_merge_are_told_apart(compared):
    words = ["<s>", "</s>", "b", "a", "c", "ab", "bc"]

    outcome = compared(
        {"tokenizer.json": bpe()}, {"tokenizer.json": bpe(words, [["a", "b"], ["b", "c"]])}
    )

    assert outcome.code == 1
    assert tokenizer(outcome) == [
        "1 token added (id 6: bc)",
        "1 token removed (id 6: abc)",
        "2 ids moved (a 2 -> 3, b 3 -> 2)",
        "1 merge changed (ab c -> b c)",
    ]


def test_merges_at_another_rank_are_another_tokenizer(compared):
    outcome = compared({"tokenizer.json": bpe()}, {"tokenizer.json": bpe(merges=MERGES[::-1])})

    assert tokenizer(outcome) == ["2 merges at another rank, from 0 on"]


def test_formatting_is_no_difference(compared):
    plain = bpe()
    turned = bpe(words=WORDS, merges=["a b", "ab c"])
    turned["model"]["vocab"] = dict(reversed(turned["model"]["vocab"].items()))

    outcome = compared(
        {"tokenizer.json": plain},
        {"tokenizer.json": json.dumps(dict(reversed(turned.items())), indent=4)},
    )

    assert outcome.code == 0
    assert outcome.lines[-1] == "identical: the one tensor holds the same bits"


@pytest.mark.parametrize(
    ("right", "told"),
    [
        ({"normalizer": {"type": "Lowercase"}}, 'normalizer.type absent -> "Lowercase"'),
        ({"pre_tokenizer": {"type": "Metaspace"}}, 'pre_tokenizer.type "ByteLevel" -> "Metaspace"'),
        ({"post_processor": {"type": "ByteLevel"}}, 'post_processor.type absent -> "ByteLevel"'),
    ],
)
def test_rules_of_the_tokenizer_count(compared, right, told):
    outcome = compared({"tokenizer.json": bpe()}, {"tokenizer.json": bpe(**right)})

    assert outcome.code == 1
    assert tokenizer(outcome) == [told]


def test_a_chat_template_counts_wherever_it_is_written(compared):
    config = {"chat_template": "{{ x }}", "bos_token": {"content": "<s>"}, "tokenizer_class": "A"}
    left = {"tokenizer.json": bpe(), "tokenizer_config.json": config}
    moved = {"tokenizer.json": bpe(), "chat_template.jinja": "{{ x }}",
             "tokenizer_config.json": {"bos_token": "<s>", "tokenizer_class": "B"}}  # fmt: skip

    same = compared(left, moved)
    other = compared(left, moved | {"chat_template.jinja": "{{ y }}"})

    assert (same.code, tokenizer(same)) == (0, [])
    assert other.code == 1
    assert tokenizer(other) == ['chat_template "{{ x }}" -> "{{ y }}"']


def test_the_flags_of_an_added_token_count(compared):
    right = bpe(added=[("<x>", 7)])
    right["added_tokens"][0]["lstrip"] = True

    outcome = compared({"tokenizer.json": bpe(added=[("<x>", 7)])}, {"tokenizer.json": right})

    assert tokenizer(outcome) == ["1 added token with other flags (<x>)"]


def test_a_vocabulary_of_lines_and_one_of_pairs_are_compared_by_token(compared):
    lines = compared({"vocab.txt": "[PAD]\nthe\n##s\n"}, {"vocab.txt": "[PAD]\n##s\nthe\n"})

    assert tokenizer(lines) == ["2 ids moved (the 1 -> 2, ##s 2 -> 1)"]


def test_vocab_json_and_merges_txt_are_the_same_as_a_tokenizer_json_of_them(compared):
    slow = {"vocab.json": {word: row for row, word in enumerate(WORDS)},
            "merges.txt": "#version: 0.2\na b\nab c\n"}  # fmt: skip

    assert tokenizer(compared(slow, {"tokenizer.json": bpe()})) == []


def test_a_changed_merges_txt_counts(compared):
    vocabulary = {"vocab.json": {word: row for row, word in enumerate(WORDS)}}

    outcome = compared(
        vocabulary | {"merges.txt": "#version: 0.2\na b\nab c\n"},
        vocabulary | {"merges.txt": "#version: 0.2\na b\n"},
    )

    assert tokenizer(outcome) == ["1 merge removed"]


def unigram(scores: dict[str, float]) -> dict[str, Any]:
    return {"model": {"type": "Unigram", "unk_id": 0, "vocab": list(map(list, scores.items()))}}


def test_scores_of_a_unigram_count(compared):
    outcome = compared(
        {"tokenizer.json": unigram({"<unk>": 0.0, "a": -1.5, "b": -2.0})},
        {"tokenizer.json": unigram({"<unk>": 0, "a": -1.5, "b": -2.25})},
    )

    assert tokenizer(outcome) == ["1 token with another score (b)"]


def pieces(scores: dict[str, float], name: str = "identity") -> bytes:
    """Write a sentencepiece model: pieces with scores, and a normaliser."""

    def field(number: int, data: bytes) -> bytes:
        return bytes([number << 3 | 2, len(data)]) + data

    made = b""
    for token, score in scores.items():
        made += field(1, field(1, token.encode()) + b"\x15" + struct.pack("<f", score))
    return made + field(3, field(1, name.encode()))


def test_a_sentencepiece_model_is_compared_by_piece(compared):
    left, same = pieces({"<unk>": 0, "▁a": -1}), pieces({"<unk>": 0, "▁a": -1}) + b"\x22\x00"
    more, other = pieces({"<unk>": 0, "▁a": -1, "▁b": -2}), pieces({"<unk>": 0, "▁a": -1}, "nfkc")

    assert compared({"tokenizer.model": left}, {"tokenizer.model": same}).code == 0
    assert tokenizer(compared({"tokenizer.model": left}, {"tokenizer.model": more})) == [
        "1 token added (id 2: ▁b)"
    ]
    assert tokenizer(compared({"tokenizer.model": left}, {"tokenizer.model": other})) == [
        'normalizer.name "identity" -> "nfkc"'
    ]


@pytest.mark.parametrize(
    ("name", "content", "reason"),
    [
        ("tokenizer.json", '{"model": ' + "[" * 100_000, "nested deeper than 64 levels"),
        ("tokenizer.json", '{"model": {"vocab": {"a": -1}}}', "token 'a' has id -1"),
        ("tokenizer.json", '{"model": {"vocab": {"a": 1.5}}}', "a whole number is wanted"),
        ("tokenizer.json", '{"model": {"vocab": {"a": 1}, "merges": 3}}', "a list is wanted"),
        ("tokenizer.json", "{}", "its model is null"),
        ("tokenizer.model", b"\x0a\xff\xff\xff\xff\x0f", "ends at byte"),
        ("tokenizer.model", b"", "no piece"),
    ],
)
def test_a_tokenizer_that_cannot_be_read_is_one_line_and_never_the_same(
    compared, name, content, reason
):
    whole = bpe() if name.endswith("json") else pieces({"a": 0})

    outcome = compared({name: whole}, {name: content})

    assert outcome.code == 1
    assert outcome.lines[-1].count("\n") == 0
    assert "tokenizer cannot be compared: " in outcome.lines[-1]
    assert reason in outcome.lines[-1]


def test_a_hostile_token_commands_no_terminal(compared):
    outcome = compared(
        {"tokenizer.json": bpe()}, {"tokenizer.json": bpe(added=[("\x1b[31m\n" + "x" * 500, 7)])}
    )
    lines = [line for line in outcome.lines if "x0ax" in line]

    assert "\x1b" not in outcome.out
    assert len(lines) == 3
    assert max(map(len, lines)) < 300


def test_the_word_of_the_verdict_is_tokenizer(compared):
    whole = compared(
        {"tokenizer.json": bpe()}, {"tokenizer.json": bpe(added=[("<x>", 7)])}, "-o", "full-json"
    )

    assert json.loads(whole.out)["verdict"]["word"] == "tokenizer"


def test_a_conversion_with_another_tokenizer_is_not_the_same_model(compared):
    outcome = compared(
        {"tokenizer.json": bpe()},
        {"tokenizer.json": bpe(added=[("<x>", 7)])},
        "--verify-conversion",
    )

    assert outcome.code == 1
    assert outcome.lines[-1].startswith("not the same: the function changed: tokenizer: 1 token")
