"""Names and sentences as Markdown, read back by a CommonMark parser."""

from itertools import pairwise
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from markdown_it import MarkdownIt

from difflens.core.escape import for_terminal
from difflens.render.document.inert import code, is_plain, prose, row, table

PARSER = MarkdownIt("gfm-like")
TRICKS = (
    "@everyone", "#12", "GH-12", "deadbeef1", "https://evil.example", "www.evil.example",
    "a@b.example", "[x](https://evil.example)", "![x](y)", "<img src=x>", "<!-- -->", "&lt;b&gt;",
    "**bold**", "_em_", "~~gone~~", "`code`", "``", "a|b", "a\\|b", "\\", "# head", "> quote",
    "- item", "1. item", "1) item", "+ item", "---", "===", "***", "$x$", ":smile:", "[^1]",
    "<details>", "</summary>", "\\`", "`` ` ``", "{{ x }}", "x\u2028y", "  two  ", "\t",
)  # fmt: skip

text = st.text(st.characters(exclude_categories=["Cs"])) | st.lists(
    st.sampled_from([*TRICKS, "word", " ", "\n", "3.5", "(", ")"])
).map(" ".join)


def inline(markdown: str) -> list[Any]:
    """Return the tokens inside the one paragraph that this must be."""
    tokens = PARSER.parse(markdown)
    assert [each.type for each in tokens] in ([], ["paragraph_open", "inline", "paragraph_close"])
    return list(tokens[1].children or []) if tokens else []


def said(tokens: list[Any]) -> str:
    return "".join(each.content for each in tokens)


@given(text)
def test_a_name_is_one_code_span_that_reads_as_the_name(name: str) -> None:
    (span,) = inline(code(name))

    assert span.type == "code_inline"
    shown = for_terminal(name).replace("|", "\\x7c").replace("`", "\\x60")
    assert span.content.strip() == shown.strip()


@given(text)
def test_a_sentence_holds_nothing_but_text_and_code(sentence: str) -> None:
    tokens = inline(prose(sentence))

    assert {each.type for each in tokens} <= {"text", "text_special", "code_inline"}
    plain = "".join(each.content for each in tokens if each.type != "code_inline")
    assert not set("@#<>&`*_[]|~$!\\") & set(plain.replace("->", ""))


@given(text)
def test_a_sentence_keeps_its_words(sentence: str) -> None:
    shown = for_terminal(sentence, 1000).replace("|", "\\x7c").replace("`", "")

    assert said(inline(prose(sentence))).replace("\\x60", "").split() == shown.split()


@given(st.lists(text, min_size=2, max_size=4))
def test_a_table_keeps_its_cells(names: list[str]) -> None:
    lines = [*table(["head"] * len(names)), row(map(code, names)), row(map(prose, names))]

    tokens = PARSER.parse("\n".join(lines))

    cells = [
        after.content for cell, after in pairwise(tokens) if cell.type in {"th_open", "td_open"}
    ]
    assert len(cells) == 3 * len(names)
    assert cells[len(names) : 2 * len(names)] == [code(name).strip() for name in names]


@pytest.mark.parametrize("word", TRICKS)
def test_no_trick_is_a_plain_word(word: str) -> None:
    assert not is_plain(word)


@pytest.mark.parametrize(
    ("sentence", "expected"),
    [
        ("12 of 290 tensors changed, (layers 0-31)", "12 of 290 tensors changed, (layers 0-31)"),
        ("needs --log; else nothing", "needs `--log`; else nothing"),
        ("3.1e-02 to 1.1B, 97%", "3.1e-02 to 1.1B, 97%"),
        ("the `heads` of `a_b`, set", "the heads of `a_b`, set"),
        ("1. first", "1\\. first"),
        ("- first", "\\- first"),
    ],
)
def test_plain_words_stay_as_they_are(sentence: str, expected: str) -> None:
    assert prose(sentence) == expected
