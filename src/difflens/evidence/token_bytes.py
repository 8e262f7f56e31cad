"""Which bytes a token stands for: tokenizers write them in different alphabets.

Byte-level BPE (GPT-2, 2019) gives each byte a printable letter, so that `Ġthe` is " the".
SentencePiece writes a space as `▁`, and a byte that no token covers as `<0x0A>`. WordPiece marks
what continues a word with `##`.
"""

from __future__ import annotations

import re
from collections.abc import Callable

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
    """Give the UTF-8 bytes of a token as latin-1 text: of one that is no code."""
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
