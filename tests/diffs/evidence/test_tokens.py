"""Vocabularies of real tokenizers, and the bytes their tokens stand for."""

import json

import numpy as np
import pytest
from diffs.evidence.refusals import mutated, refused, refuses_bad_files, survives_mutants
from gguf import GGUFWriter
from hypothesis import given
from hypothesis import strategies as st
from tokenizers import Tokenizer, decoders, models, normalizers, pre_tokenizers, trainers

from difflens.diffs.evidence.tokens import tokens

CORPUS = [
    "the quick brown fox jumps over the lazy dog\n",
    "naïve café 東京 🙂 ok",
    "the the  the",
] * 5


def byte_level() -> Tokenizer:
    made = Tokenizer(models.BPE())
    made.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    made.decoder = decoders.ByteLevel()
    alphabet = pre_tokenizers.ByteLevel.alphabet()
    made.train_from_iterator(CORPUS, trainers.BpeTrainer(
        vocab_size=320, initial_alphabet=alphabet, special_tokens=["<|endoftext|>"],
        show_progress=False,
    ))  # fmt: skip
    return made


def sentence_piece() -> Tokenizer:
    made = Tokenizer(models.Unigram())
    made.normalizer = normalizers.Replace(" ", "▁")
    made.decoder = decoders.Sequence([decoders.Replace("▁", " "), decoders.ByteFallback()])
    made.train_from_iterator(CORPUS, trainers.UnigramTrainer(
        vocab_size=80, special_tokens=["<s>", "</s>"], show_progress=False
    ))  # fmt: skip
    return made


def word_piece() -> Tokenizer:
    made = Tokenizer(models.WordPiece(unk_token="[UNK]"))  # noqa: S106  no password
    made.pre_tokenizer = pre_tokenizers.Whitespace()
    made.train_from_iterator(CORPUS, trainers.WordPieceTrainer(
        vocab_size=100, special_tokens=["[UNK]", "[CLS]"], show_progress=False
    ))  # fmt: skip
    return made


@pytest.fixture
def file(tmp_path):
    return tmp_path / "tokenizer.json"


def test_tokens_of_byte_level_bpe_decode_as_the_library_decodes_them(file):
    made = byte_level()
    made.save(str(file))
    found = tokens(file)

    assert found.special == {"<|endoftext|>": made.token_to_id("<|endoftext|>")}
    assert len(found.tokens) == made.get_vocab_size()
    whole = {}
    for token, row in found.tokens.items():
        try:
            whole[row] = token.encode("latin-1").decode("utf-8")
        except UnicodeDecodeError:  # a token may be half a character
            continue
    assert len(whole) > 128
    assert whole == {row: made.decode([row], skip_special_tokens=False) for row in whole}


def test_the_rows_of_a_text_spell_the_text_again(file):
    made = byte_level()
    made.save(str(file))
    spelt = {row: token for token, row in tokens(file).tokens.items()}

    for text in CORPUS:
        rows = made.encode(text).ids
        assert "".join(spelt[row] for row in rows).encode("latin-1").decode() == text


def test_tokens_of_sentence_piece_have_spaces_for_their_marks(file):
    made = sentence_piece()
    made.save(str(file))
    spelt = {row: token for token, row in tokens(file).tokens.items()}
    rows = made.encode(CORPUS[1]).ids

    assert "".join(spelt[row] for row in rows).encode("latin-1").decode() == CORPUS[1]
    assert tokens(file).special.keys() == {"<s>", "</s>"}


def test_tokens_of_word_piece_begin_words_with_a_space(file):
    made = word_piece()
    made.save(str(file))
    found = tokens(file)
    rows = made.encode("the quick").ids
    spelt = {row: token for token, row in found.tokens.items()}

    assert "".join(spelt[row] for row in rows) == " the quick"
    assert found.special.keys() == {"[UNK]", "[CLS]"}


def test_a_byte_written_as_a_code_gives_way_to_the_letter_itself(file):
    model = {"type": "BPE", "byte_fallback": True, "vocab": {"<0x41>": 0, "A": 1, "<0x0A>": 2}}
    file.write_text(json.dumps({"model": model}))

    assert tokens(file).tokens == {"A": 1, "\n": 2, "<0x41>": 0}


def test_a_vocabulary_of_gpt_2_is_read_with_what_lies_beside_it(tmp_path):
    (tmp_path / "vocab.json").write_text('{"Ġthe": 0, "Ċ": 1, "<|end|>": 2}')
    (tmp_path / "added_tokens.json").write_text('{"<pad>": 3}')
    beside = {"eos_token": {"content": "<|end|>"}, "pad_token": "<pad>", "bos_token": "<gone>"}
    (tmp_path / "special_tokens_map.json").write_text(json.dumps(beside))

    found = tokens(tmp_path)

    assert found.tokens == {" the": 0, "\n": 1, "<|end|>": 2, "<pad>": 3}
    assert found.special == {"<|end|>": 2, "<pad>": 3}


def test_a_vocabulary_in_lines_is_word_pieces(tmp_path):
    (tmp_path / "vocab.txt").write_text("[PAD]\nthe\n##s\n", "utf-8")
    config = {"added_tokens_decoder": {"0": {"content": "[PAD]", "special": True}}}
    (tmp_path / "tokenizer_config.json").write_text(json.dumps(config))
    found = tokens(tmp_path / "vocab.txt")

    assert found.tokens == {"[PAD]": 0, " the": 1, "s": 2}
    assert found.special == {"[PAD]": 0}


@pytest.mark.parametrize(
    ("model", "words", "expected"),
    [
        ("llama", ["<s>", "▁the", "<0x0A>"], {"<s>": 0, " the": 1, "\n": 2}),
        ("gpt2", ["<s>", "Ġthe", "Ċ"], {"<s>": 0, " the": 1, "\n": 2}),
        ("llama", [f"w{row}" for row in range(999)], {f"w{row}": row for row in range(999)}),
    ],
)
def test_a_gguf_model_gives_its_own_words(tmp_path, model, words, expected):
    writer = GGUFWriter(tmp_path / "model.gguf", "llama")
    writer.add_tokenizer_model(model)
    writer.add_token_list(words)
    writer.add_bos_token_id(0)
    writer.add_tensor("w", np.zeros(4, np.float32))
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    found = tokens(tmp_path / "model.gguf")

    assert found.tokens == expected
    assert found.special == {words[0]: 0}


@given(st.binary())
def test_every_string_of_bytes_has_its_letters(data):
    from difflens.diffs.evidence import tokens

    letters = {byte: chr(point) for point, byte in tokens._BYTES.items()}
    spelt = "".join(letters[byte] for byte in data)

    assert tokens.byte_level(spelt).encode("latin-1") == data


def test_the_letters_are_those_of_the_library():
    from difflens.diffs.evidence import tokens

    assert set(pre_tokenizers.ByteLevel.alphabet()) == tokens._ALPHABET


BAD = {
    "[]": "it holds a list, an object is wanted",
    "{}": "it holds no token",
    '{"a": "0"}': "token 'a' has row 0, a whole number is wanted",
    '{"a": -1}': "token 'a' has row -1, a whole number is wanted",
    '{"a": 1.5}': "token 'a' has row 1.5, a whole number is wanted",
    '{"a": true}': "token 'a' has row True, a whole number is wanted",
    '{"a": 99999999999}': "token 'a' has row 99999999999, a whole number is wanted",
    '{"model": []}': "its model's vocab is null, an object is wanted",
    '{"model": {"vocab": "x"}}': "its model's vocab is the text 'x', an object is wanted",
    '{"model": {"vocab": [1]}}': "a token is a number, text is wanted",
    '{"model": {"vocab": {}}, "added_tokens": [1]}': "its added_tokens are no list of objects",
    '{"model": {"vocab": {}}, "added_tokens": [{"id": 1}]}': "a token is null, text is wanted",
}


@pytest.mark.parametrize(("text", "sentence"), BAD.items(), ids=lambda text: text[:50])
def test_a_wrong_file_earns_its_sentence(file, text, sentence):
    file.write_text(text, "utf-8")

    assert sentence in refused(tokens, file).reason


def test_files_that_are_none_are_refused(tmp_path):
    refuses_bad_files(tokens, tmp_path, ".json")


def test_a_model_without_words_says_so(tmp_path):
    (tmp_path / "x.gguf").write_bytes(b"GGUF\x03\0\0\0" + bytes(16))

    refused(tokens, tmp_path / "x.gguf", "it has no tokenizer.ggml.tokens")


def test_a_folder_without_a_tokenizer_names_what_is_wanted(tmp_path):
    with pytest.raises(Exception, match=r"tokenizer\.json: no such file"):
        tokens(tmp_path)


@mutated
def test_mutants_do_no_harm(file, count):
    model = {"type": "BPE", "vocab": {"Ġa": 0, "b": 1}}
    added = [{"id": 2, "content": "<s>", "special": True}]
    text = {"model": model, "added_tokens": added, "decoder": {"type": "ByteLevel"}}
    file.write_text(json.dumps(text), "utf-8")

    survives_mutants(tokens, file, count)


@mutated
def test_mutants_of_a_gguf_do_no_harm(tmp_path, count):
    writer = GGUFWriter(tmp_path / "model.gguf", "llama")
    writer.add_tokenizer_model("llama")
    writer.add_token_list(["<s>", "▁the", "<0x0A>"])
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.close()

    survives_mutants(tokens, tmp_path / "model.gguf", count)
