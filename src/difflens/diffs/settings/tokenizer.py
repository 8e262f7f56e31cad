"""Tokenizers: read from their files or a GGUF header, and reduced to what they do."""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterable, Mapping
from typing import TYPE_CHECKING, Any, NamedTuple

from difflens.core.addresses import Location
from difflens.core.errors import ModelError
from difflens.core.protocols import ModelFile
from difflens.models.containers.inner_files import Part
from difflens.models.folders.listing import files_called

from ..evidence.documents import Limits, broken, content, json_object, kind_of, text
from .config import canonical, is_bookkeeping

if TYPE_CHECKING:
    from difflens.models.containers.protobuf import Field, Wire


# A ModelProto: field 1 a piece {1 text, 2 score, 3 type}, 2 the trainer {3 kind, 35 byte fallback},
# 3 the normaliser {1 name, 2 compiled rules, 3 to 5 switches}.

_PIECE, _TRAINER, _NORMALISER = 1, 2, 3
_TRAINER_RULES = {3: "model_type", 24: "whitespace_as_suffix", 35: "byte_fallback"}
_SWITCHES = {3: "add_dummy_prefix", 4: "remove_extra_whitespaces", 5: "escape_whitespaces"}
_TYPES = {1: "normal", 2: "unknown", 3: "control", 4: "user defined", 5: "unused", 6: "byte"}


def read_pieces(
    path: Location, limits: Limits
) -> tuple[dict[str, int], dict[str, float], dict[str, Any]]:
    """Return ids and scores by piece, and the rules beside them."""
    from difflens.models.containers.protobuf import Wire
    from difflens.storage.places import open_small

    content(path, limits)  # its size is held against the limit
    try:
        file = open_small(path, limits)
        try:
            return _read(path, Wire(file), file.size)
        finally:
            file.close()
    except ModelError as error:
        raise broken(path, error.reason, error.hint) from error


def _read(
    path: Location, wire: Wire, size: int
) -> tuple[dict[str, int], dict[str, float], dict[str, Any]]:
    tokens: dict[str, int] = {}
    scores: dict[str, float] = {}
    rules: dict[str, Any] = {}
    row = 0
    for field in wire.fields(0, size):
        if field.number == _PIECE:
            token, score, kind = _piece(wire, field)
            tokens.setdefault(token, row)
            scores.setdefault(token, score)
            if kind != "normal":
                rules[f"pieces.{kind}"] = rules.get(f"pieces.{kind}", 0) + 1
            row += 1
        elif field.number == _TRAINER:
            wire.want(field, 2)
            for each in wire.fields(field.start, field.stop):
                if each.number in _TRAINER_RULES:
                    rules[f"trainer.{_TRAINER_RULES[each.number]}"] = each.value
        elif field.number == _NORMALISER:
            rules |= _normaliser(wire, field)
    if not tokens:
        raise broken(path, "it holds no piece, a sentencepiece model is wanted")
    return tokens, scores, rules


def _piece(wire: Wire, field: Field) -> tuple[str, float, str]:
    wire.want(field, 2)
    token, score, kind = "", 0.0, 1
    for each in wire.fields(field.start, field.stop):
        if each.number == 1:
            token = wire.text(each)
        elif each.number == 2:
            wire.want(each, 5)
            (score,) = struct.unpack("<f", each.value.to_bytes(4, "little"))
        elif each.number == 3:
            kind = each.value
    return token, score, _TYPES.get(kind, str(kind))


def _normaliser(wire: Wire, field: Field) -> dict[str, Any]:
    import hashlib

    wire.want(field, 2)
    rules: dict[str, Any] = {}
    for each in wire.fields(field.start, field.stop):
        if each.number == 1:
            rules["normalizer.name"] = wire.text(each)
        elif each.number == 2:
            compiled = wire.piece(each.start, each.stop)
            rules["normalizer.rules"] = f"sha256 {hashlib.sha256(compiled).hexdigest()[:16]}"
        elif each.number in _SWITCHES:
            rules[f"normalizer.{_SWITCHES[each.number]}"] = bool(each.value)
    return rules


_PARTS = ("normalizer", "pre_tokenizer", "post_processor", "decoder")
_FLAGS = ("single_word", "lstrip", "rstrip", "normalized", "special")
_OTHER_FILES = (
    "tokenizer_config.json",
    "special_tokens_map.json",
    "added_tokens.json",
    "chat_template.jinja",
    "chat_template.json",
    "merges.txt",
)
_MOST_TOKENS = 1 << 24


class Tokenizer(NamedTuple):
    """What one side's tokenizer does; None is what its files do not say."""

    tokens: dict[str, int]
    merges: tuple[str, ...] | None = None
    scores: dict[str, float] | None = None
    rules: dict[str, Any] | None = None
    added: dict[str, tuple[bool, ...]] | None = None  # the flags of added tokens


def tokenizer_json(path: Location, limits: Limits) -> Tokenizer:
    """Read a tokenizer.json, with the settings beside it."""
    found = json_object(path, limits)
    model = found.get("model")
    if type(model) is not dict:
        raise broken(path, f"its model is {kind_of(model)}, an object is wanted")
    tokens, scores = _vocabulary(path, model.get("vocab"))
    entries = found.get("added_tokens") or []
    if type(entries) is not list or not all(type(each) is dict for each in entries):
        raise broken(path, "its added_tokens are no list of objects")
    more = numbered(path, ((each.get("content"), each.get("id")) for each in entries))
    flags = {each["content"]: tuple(each.get(flag) is True for flag in _FLAGS) for each in entries}
    rules = {key: value for key, value in model.items() if key not in ("vocab", "merges")}
    parts = {name: found.get(name) for name in _PARTS}
    merges = _merges(path, model["merges"]) if "merges" in model else None
    told = canonical({"model": rules, **parts}) | settings_beside(path, limits)
    return Tokenizer(tokens | more, merges, scores, told, flags)


def vocab_json(path: Location, limits: Limits) -> Tokenizer:
    """Read a vocab.json with the merges.txt and the added_tokens.json beside it."""
    tokens = numbered(path, json_object(path, limits).items())
    beside = files_called(("added_tokens.json", "merges.txt"), path.parent)
    added, lines = (beside.get(name) for name in ("added_tokens.json", "merges.txt"))
    if added:
        tokens |= numbered(added, json_object(added, limits).items())
    merges = None
    if lines:
        given = text(lines, limits).splitlines()
        merges = tuple(line for line in given if line and not line.startswith("#version"))
    return Tokenizer(tokens, merges, None, settings_beside(path, limits))


def vocab_txt(path: Location, limits: Limits) -> Tokenizer:
    """Read a vocab.txt: a token per line, its id the number of the line."""
    lines = text(path, limits).split("\n")
    tokens = {line.removesuffix("\r"): row for row, line in enumerate(lines) if line}
    return Tokenizer(tokens, None, None, settings_beside(path, limits))


def sentence_pieces(path: Location, limits: Limits) -> Tokenizer:
    """Read a sentencepiece model, with the settings beside it."""
    tokens, scores, rules = read_pieces(path, limits)
    return Tokenizer(tokens, None, scores, rules | settings_beside(path, limits))


READERS: Mapping[str, Callable[[Location, Limits], Tokenizer]] = {
    "tokenizer.json": tokenizer_json,
    "vocab.json": vocab_json,
    "vocab.txt": vocab_txt,
    "tokenizer.model": sentence_pieces,
    "spiece.model": sentence_pieces,
    "sentencepiece.bpe.model": sentence_pieces,
}
FILES = frozenset({*READERS, *_OTHER_FILES})


def settings_beside(path: Location, limits: Limits) -> dict[str, Any]:
    """Read tokenizer_config.json, the roles of special tokens and the chat template beside it."""
    told: dict[str, Any] = {}
    files = files_called(_OTHER_FILES, path.parent)
    for name in ("tokenizer_config.json", "special_tokens_map.json"):
        if name in files:
            told |= json_object(files[name], limits)
    if "chat_template.jinja" in files:
        told["chat_template"] = text(files["chat_template.jinja"], limits)
    elif "chat_template.json" in files:
        told |= json_object(files["chat_template.json"], limits)
    told.pop("added_tokens_decoder", None)  # in the tokenizer itself, with the same flags
    extra = told.pop("additional_special_tokens", None)
    told.setdefault("extra_special_tokens", extra)
    plain = {key: _content(value) for key, value in told.items()}
    return {name: value for name, value in canonical(plain).items() if not is_bookkeeping(name)}


def numbered(path: Location, pairs: Iterable[tuple[Any, Any]]) -> dict[str, int]:
    """Check that each token is text and each id a whole number."""
    from difflens.core.escape import for_terminal

    rows: dict[str, int] = {}
    for token, row in pairs:
        if type(token) is not str:
            raise broken(path, f"a token is {kind_of(token)}, text is wanted")
        if type(row) is not int or not 0 <= row < _MOST_TOKENS:
            shown = f"token '{for_terminal(token, 40)}' has id {for_terminal(str(row), 40)}"
            raise broken(path, f"{shown}, a whole number is wanted")
        rows[token] = row
    return rows


def _vocabulary(path: Location, vocabulary: Any) -> tuple[dict[str, int], dict[str, float] | None]:
    """Return ids by token; a list, as Unigram has it, holds scores as well."""
    if type(vocabulary) is dict:
        return numbered(path, vocabulary.items()), None
    if type(vocabulary) is not list:
        raise broken(path, f"its model's vocab is {kind_of(vocabulary)}, an object is wanted")
    pairs = [each if type(each) is list and len(each) == 2 else [each, None] for each in vocabulary]
    tokens = numbered(path, ((pair[0], row) for row, pair in enumerate(pairs)))
    return tokens, {pair[0]: float(pair[1]) for pair in pairs if type(pair[1]) in (int, float)}


def _merges(path: Location, merges: Any) -> tuple[str, ...]:
    """Return merges as `a b`: older files write them so, newer ones as pairs."""
    if type(merges) is not list:
        raise broken(path, f"its merges are {kind_of(merges)}, a list is wanted")
    joined = [" ".join(map(str, each)) if type(each) is list else each for each in merges]
    if not all(type(each) is str for each in joined):
        raise broken(path, "a merge is neither text nor a pair")
    return tuple(joined)


def _content(value: Any) -> Any:
    """Return a token as text, whether it is written plainly or as an object with its flags."""
    if type(value) is dict and type(value.get("content")) is str:
        return value["content"]
    if type(value) is list:
        return [_content(each) for each in value]
    return value


PREFIX = "tokenizer."
_ARRAYS = {name: f"tokenizer.ggml.{name}" for name in ("tokens", "merges", "token_type", "scores")}
_UNUSED = 5  # the type of a row that only fills up the embedding
_SPACE = "\u2581"


class _Beginning(Part):
    """A file whose beginning stays in memory as far as it was read: every array is a pass."""

    def __init__(self, file: ModelFile) -> None:
        super().__init__(file, 0, file.size)
        self._data = bytearray()

    def read(self, start: int, stop: int) -> bytes:
        """Return bytes [start, stop)."""
        known = len(self._data)
        if stop > known:
            self._data += self.outer.read(known, stop)
        return bytes(self._data[start:stop])


def gguf_tokenizer(path: Location, limits: Limits) -> Tokenizer:
    """Read tokens, merges and the keys beside them; arrays of numbers by their digest."""
    from difflens.models.gguf.header import read_header
    from difflens.storage.places import open_file

    kept: dict[str, tuple[bytes, ...]] = {}
    try:
        file = open_file(path, limits)
        try:
            beginning = _Beginning(file)
            for name, key in _ARRAYS.items():
                header = read_header(beginning, keep=key)
                kept[name] = header.kept
        finally:
            file.close()
    except ModelError as error:
        raise broken(path, error.reason, error.hint) from error
    metadata = header.metadata
    words = [each.decode("utf-8", "backslashreplace") for each in kept["tokens"]]
    kinds = _integers(b"".join(kept["token_type"]), big_endian=header.big_endian)
    is_bert = metadata.get("tokenizer.ggml.model") == "bert"
    tokens: dict[str, int] = {}
    for row, word in enumerate(words):
        if kinds[row : row + 1] != (_UNUSED,):
            tokens.setdefault(_word_piece(word) if is_bert else word, row)
    merges = tuple(each.decode("utf-8", "backslashreplace") for each in kept["merges"])
    rules: dict[str, Any] = {
        key: value
        for key, value in metadata.items()
        if key.startswith(PREFIX) and key not in _ARRAYS.values()
    }
    import hashlib  # 2 ms that no other tokenizer needs

    for name in ("token_type", "scores"):
        if kept[name]:
            rules[name] = f"sha256 {hashlib.sha256(kept[name][0]).hexdigest()[:16]}"
    return Tokenizer(tokens, merges or None, None, rules)


def _integers(data: bytes, *, big_endian: bool) -> tuple[int, ...]:
    count = len(data) // 4
    return struct.unpack(f"{'>' if big_endian else '<'}{count}i", data[: 4 * count])


def _word_piece(token: str) -> str:
    """Undo llama.cpp's spelling: a space before what begins a word, no ## before what goes on.

    >>> _word_piece("▁the"), _word_piece("ing"), _word_piece("[CLS]")
    ('the', '##ing', '[CLS]')
    """
    if token.startswith(_SPACE):
        return token[1:]
    return token if token.startswith("[") and token.endswith("]") else f"##{token}"
