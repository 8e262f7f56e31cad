"""A tokenizer's vocabulary: which bytes each row of the embedding stands for."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from typing import Any, NamedTuple

from difflens.core.addresses import Location, locate
from difflens.core.errors import ModelError
from difflens.core.escape import for_terminal
from difflens.models.folders.listing import files_called
from difflens.storage.places import is_folder

from .documents import Limits, broken, json_object, kind_of, text

# Byte-level BPE (GPT-2, 2019) gives each byte a printable letter, so that `Ġthe` is " the".
# SentencePiece writes a space as `▁`, and a byte that no token covers as `<0x0A>`. WordPiece marks
# what continues a word with `##`.

_HEX = re.compile(r"<0x[0-9A-Fa-f]{2}>")
_SPACE = "\u2581"


def _letters() -> dict[int, int]:
    """Map GPT-2's letters to the bytes they stand for, by their code points."""
    plain = [*range(0x21, 0x7F), *range(0xA1, 0xAD), *range(0xAE, 0x100)]
    others = [byte for byte in range(256) if byte not in set(plain)]
    return {byte: byte for byte in plain} | {256 + at: byte for at, byte in enumerate(others)}


_BYTES = _letters()
_ALPHABET = frozenset(map(chr, _BYTES))


def as_text(token: str) -> str:
    """Return the UTF-8 bytes of a token as latin-1 text: of one that is no code."""
    if token.isascii():
        return token
    return token.encode("utf-8", "surrogatepass").decode("latin-1")


def byte_level(token: str) -> str:
    r"""Decode a token of byte-level BPE; one with a letter outside that alphabet is plain text.

    >>> byte_level("Ġthe"), byte_level("Ċ")
    (' the', '\n')
    """
    return token.translate(_BYTES) if _ALPHABET.issuperset(token) else as_text(token)


def sentence_piece(token: str) -> str:
    r"""Decode a token of SentencePiece.

    >>> sentence_piece("▁the"), sentence_piece("<0x0A>")
    (' the', '\n')
    """
    if is_byte_code(token):
        return chr(int(token[3:5], 16))
    return as_text(token.replace(_SPACE, " "))


def word_piece(token: str) -> str:
    """Decode a token of WordPiece: what does not continue a word begins with a space.

    >>> word_piece("the"), word_piece("##ing"), word_piece("[CLS]")
    (' the', 'ing', '[CLS]')
    """
    if token.startswith("##") and len(token) > 2:
        return as_text(token[2:])
    return as_text(token if _is_marker(token) else f" {token}")


def _is_marker(token: str) -> bool:
    return len(token) > 2 and token[0] == "[" and token[-1] == "]"


def is_byte_code(token: str) -> bool:
    """Is it SentencePiece's way to write one byte?"""
    return token.startswith("<0x") and _HEX.fullmatch(token) is not None


Alphabet = Callable[[str], str]


# Where a vocabulary may be, the whole one first; and what else says which tokens are special.
NAMES = ("tokenizer.json", "vocab.json", "vocab.txt")
_BESIDE = ("added_tokens.json", "special_tokens_map.json", "tokenizer_config.json")
_MOST_ROWS = 1 << 24


class Vocabulary(NamedTuple):
    """Tokens, as bytes seen as latin-1 text, to rows; and those that are special."""

    tokens: dict[str, int]
    special: dict[str, int]


def tokens(path: str | Location, limits: Limits = None) -> Vocabulary:
    """Read a tokenizer: its file, its folder, or a GGUF model."""
    path = locate(path)
    if is_folder(path):
        path = next(iter(files_called(NAMES, path).values()), path / NAMES[0])
    if path.suffix == ".gguf":
        return assembled(path, *gguf_tokens(path, limits))
    if path.suffix == ".txt":
        lines = text(path, limits).splitlines()
        rows, alphabet = {token: row for row, token in enumerate(lines)}, word_piece
        return assembled(path, rows, _special(path, rows, limits), alphabet)
    found = json_object(path, limits)
    if "model" in found:
        return assembled(path, *_parse_tokenizer(path, found, limits))
    rows = _numbered(path, found.items())
    added = _added(path, limits)
    return assembled(path, rows | added, _special(path, rows | added, limits), byte_level, added)


def assembled(
    path: Location,
    rows: Mapping[str, int],
    special: Iterable[str],
    alphabet: Alphabet,
    plain: Iterable[str] = (),
) -> Vocabulary:
    """Decode every token; `plain` ones, and special ones, stand for their own text.

    Two tokens may stand for the same bytes (`A` and `<0x41>`): then the code keeps its own name.
    """
    if not rows:
        raise broken(path, "it holds no token")
    marked = set(special)
    raw = marked | set(plain)
    decoded: dict[str, int] = {}
    for token in sorted(rows, key=lambda each: (is_byte_code(each), rows[each])):
        bytes_of = as_text(token) if token in raw else alphabet(token)
        if bytes_of in decoded:
            bytes_of = as_text(token)
        decoded.setdefault(bytes_of, rows[token])
    return Vocabulary(decoded, {as_text(token): rows[token] for token in sorted(marked)})


def _parse_tokenizer(
    path: Location, found: dict[str, Any], limits: Limits
) -> tuple[dict[str, int], set[str], Alphabet, list[str]]:
    """Take a tokenizer.json apart: rows, special tokens, alphabet, tokens that are plain text."""
    model = found["model"] if type(found["model"]) is dict else {}
    vocabulary = model.get("vocab")
    if type(vocabulary) is dict:
        rows = _numbered(path, vocabulary.items())
    elif type(vocabulary) is list:
        pairs = (
            (each[0] if type(each) is list and each else each, row)
            for row, each in enumerate(vocabulary)
        )
        rows = _numbered(path, pairs)
    else:
        raise broken(path, f"its model's vocab is {kind_of(vocabulary)}, an object is wanted")
    entries = found.get("added_tokens") or []
    if type(entries) is not list or not all(type(each) is dict for each in entries):
        raise broken(path, "its added_tokens are no list of objects")
    added = _numbered(path, ((each.get("content"), each.get("id")) for each in entries))
    marked = {each["content"] for each in entries if each.get("special") is True}
    special = marked | _special(path, rows | added, limits)
    return rows | added, special, _alphabet(found, model), list(added)


def _alphabet(found: dict[str, Any], model: dict[str, Any]) -> Alphabet:
    """Tell in which alphabet the tokens are written, by the parts that would take them apart."""
    parts = [found.get(name) for name in ("pre_tokenizer", "decoder")]
    kinds = set()
    while parts:
        part = parts.pop()
        if type(part) is dict:
            kinds.add(str(part.get("type")))
            parts.extend(part.values())
        elif type(part) is list:
            parts.extend(part)
    if "ByteLevel" in kinds:
        return byte_level
    return word_piece if model.get("type") == "WordPiece" else sentence_piece


def _numbered(path: Location, pairs: Iterable[tuple[Any, Any]]) -> dict[str, int]:
    rows: dict[str, int] = {}
    for token, row in pairs:
        if type(token) is not str:
            raise broken(path, f"a token is {kind_of(token)}, text is wanted")
        if type(row) is not int or not 0 <= row < _MOST_ROWS:
            said = f"token '{for_terminal(token, 40)}' has row {for_terminal(str(row), 40)}"
            raise broken(path, f"{said}, a whole number is wanted")
        rows[token] = row
    return rows


def _added(path: Location, limits: Limits) -> dict[str, int]:
    """Read the added tokens beside a vocabulary; none if there is no such file."""
    beside = files_called(_BESIDE[:1], path.parent).values()
    return {
        token: row
        for file in beside
        for token, row in _numbered(file, json_object(file, limits).items()).items()
    }


def _special(path: Location, rows: Mapping[str, int], limits: Limits) -> set[str]:
    """Return the tokens that the files beside it call special, of those that have a row."""
    named: set[str] = set()
    for beside in files_called(_BESIDE[1:], path.parent).values():
        found = json_object(beside, limits)
        decoder = found.get("added_tokens_decoder")
        entries = decoder.values() if type(decoder) is dict else ()
        marked = [each for each in entries if type(each) is dict and each.get("special") is True]
        roles = [value for key, value in found.items() if key.endswith(("_token", "_tokens"))]
        for value in (*marked, *roles):
            named.update(_contents(value))
    return named & rows.keys()


def _contents(value: Any) -> list[str]:
    """Return the text of a token, written plainly or as an object with `content`, or of a list."""
    parts = value if type(value) is list else [value]
    plain = [each.get("content") if type(each) is dict else each for each in parts]
    return [each for each in plain if type(each) is str]


_TOKENS = "tokenizer.ggml.tokens"
_ALPHABETS: dict[str, Alphabet] = {"gpt2": byte_level, "bert": word_piece}
_ROLES = ("bos", "eos", "eot", "eom", "unknown", "separator", "padding", "cls", "mask")


def gguf_tokens(path: Location, limits: Limits) -> tuple[dict[str, int], list[str], Alphabet]:
    """Read the header again, this time with its words."""
    from difflens.models.gguf.header import read_header
    from difflens.storage.places import open_file

    try:
        file = open_file(path, limits)
        try:
            header = read_header(file, keep=_TOKENS)
        finally:
            file.close()
    except ModelError as error:
        raise broken(path, error.reason, error.hint) from error
    words = [each.decode("utf-8", "surrogateescape") for each in header.kept]
    if not words:
        raise broken(path, f"it has no {_TOKENS}")
    keys = (f"tokenizer.ggml.{role}_token_id" for role in _ROLES)
    named = (header.integers.get(key, ("", -1))[1] for key in keys)
    special = [words[row] for row in named if 0 <= row < len(words)]
    rows: dict[str, int] = {}
    for row, word in enumerate(words):
        rows.setdefault(word, row)
    kind = header.metadata.get("tokenizer.ggml.model", "")
    return rows, special, _ALPHABETS.get(kind, sentence_piece)
