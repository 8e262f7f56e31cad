"""The vocabulary inside a GGUF model: its words, and which of them are special."""

from __future__ import annotations

from pathlib import Path

from ..errors import ModelError
from .documents import Limits, broken
from .token_bytes import Alphabet, byte_level, sentence_piece, word_piece

_TOKENS = "tokenizer.ggml.tokens"
_ALPHABETS: dict[str, Alphabet] = {"gpt2": byte_level, "bert": word_piece}
_ROLES = ("bos", "eos", "eot", "eom", "unknown", "separator", "padding", "cls", "mask")


def gguf_tokens(path: Path, limits: Limits) -> tuple[dict[str, int], list[str], Alphabet]:
    """Read the header again, this time with its words."""
    from ..sources.files import File
    from ..sources.gguf_header import read_header

    try:
        file = File(path, limits)
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
