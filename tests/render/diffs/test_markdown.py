"""Markdown for a pull request, read by a CommonMark parser with GitHub's tables."""

import re
from typing import Any

import pytest
from markdown_it import MarkdownIt
from render.reports import (
    EVERY,
    HOSTILE,
    changed,
    every_kind,
    hostile,
    hundred_layers,
    identical,
    model,
    report,
    row,
    told_by_analyses,
)

from difflens.core.findings import Envelope, Finding, Missing
from difflens.core.records import MetadataChange, View
from difflens.render.diffs.markdown import markdown

PARSER = MarkdownIt("gfm-like")
OURS = re.compile(r"<details><summary>[\w:, ]+</summary>\n?|</details>\n?")
SEVERITIES = ("info", "low", "critical", "medium", "high")


def parsed(text: str) -> list[Any]:
    return [
        inner for token in PARSER.parse(text) for inner in (token, *(token.children or ()))
    ]  # fmt: skip


@pytest.mark.parametrize("review", [False, True], ids=["whole", "review"])
@pytest.mark.parametrize("made", EVERY.values(), ids=EVERY)
def test_nothing_but_our_own_marks_is_more_than_text(made: Any, review: bool) -> None:
    tokens = parsed(markdown(made(), View(review=review)))

    assert not {"link_open", "image", "fence", "code_block"} & {each.type for each in tokens}
    blocks = "".join(each.content for each in tokens if each.type == "html_block")
    assert OURS.sub("", blocks) == ""
    inlines = {each.content for each in tokens if each.type == "html_inline"}
    assert inlines <= {"<sub>", "</sub>"}


def test_a_hostile_name_stands_in_code_spans_alone() -> None:
    tokens = parsed(markdown(hostile(), View()))
    plain = "".join(each.content for each in tokens if each.type == "text")

    for trick in ("<script>", "onmouseover", "@SUM", "=cmd", "{{ 7*7 }}", "\u202e", "\x1b"):
        assert trick not in plain


@pytest.mark.parametrize("asked", [{}, {"verbose": True}, {"review": True}], ids=str)
def test_it_fits_a_pull_request_whatever_the_model(asked: dict[str, bool]) -> None:
    names = [f"{HOSTILE[12]}{'é|`' * 60}.{number}" for number in range(900)]
    envelopes = tuple(
        Envelope(
            f"analysis_{place}",
            "partial",
            {name: [{"a": 1.0, name[:50]: 2.0}] * 30 for name in names[:10]},
            missing=tuple(Missing(name, name, name) for name in names[:40]),
            findings=tuple(Finding("a", name, name, {name: 1.0}, "high") for name in names[:90]),
        )
        for place in range(28)
    )
    large = report(
        *map(changed, names),
        left=model(names[0] * 5),
        metadata=tuple(MetadataChange(name, name * 9, name * 9) for name in names),
        analyses=envelopes,
        warnings=tuple(names),
        evidence=dict.fromkeys(names, names[0]),
    )

    text = markdown(large, View(**asked))

    assert 30_000 < len(text.encode()) < 64 * 1024
    assert "lines more are left out here: `-o json` has them." in text
    assert text.count("<details>") == text.count("</details>")


def test_the_most_important_comes_first() -> None:
    text = markdown(every_kind(), View())

    heads = re.findall(r"^(?:#+ |\*\*|<details><summary>)([A-Za-z ]+)", text, re.MULTILINE)
    assert heads == [
        "difflens", "Verdict", "Change", "Totals", "Findings ", "What changed", "Analyses",
        "change", "anomaly", "Not checked", "Metadata", "Warnings", "Evidence used",
    ]  # fmt: skip


def test_findings_are_ordered_by_severity() -> None:
    found = tuple(Finding("a", "w", each, {}, each) for each in SEVERITIES)  # type: ignore[arg-type]
    text = markdown(report(analyses=(Envelope("a", "ok", {"x": 1}, findings=found),)), View())

    rows = re.findall(r"^\| \**(critical|high|medium|low|info)", text, re.MULTILINE)
    assert rows == ["critical", "high", "medium", "low", "info"]


def test_many_layers_fold_into_a_line_a_part() -> None:
    text = markdown(hundred_layers(), View())

    assert "| changed | `layers.{0..99}.mlp.up_proj.weight (100)` | `relative_l2 2.0e-02" in text


def test_what_does_not_fit_on_a_screen_is_folded_away() -> None:
    text = markdown(report(*(row(f"{'x' * i}y", "added") for i in range(30))), View())

    shown, _, hidden = text.partition("<details><summary>15 more lines</summary>")
    assert shown.count("| added |") == hidden.count("| added |") == 15


def test_a_review_is_ten_findings_and_what_was_not_checked() -> None:
    found = tuple(Finding("a", f"w.{i}", "moved", {"x": float(i)}, "low") for i in range(12))
    lack = (Missing("trend", "--log", "two files tell no trend"),)
    envelope = Envelope("learning_progress", "partial", {"trend": None}, {}, {}, lack)
    told = report(changed("w"), analyses=(envelope, Envelope("a", "ok", {"x": 1}, findings=found)))

    text = markdown(told, View(review=True))

    assert text.count("| low |") == 10
    assert "2 further findings: `-o json`." in text
    assert "- `learning_progress`: not assessed (needs `--log`): two files tell no trend" in text
    assert "What changed" not in text


def test_a_review_of_nothing_says_so() -> None:
    text = markdown(identical(), View(review=True))

    assert "None: no analysis ran." in text
    assert "Nothing that was asked for was left unchecked." in text
    assert "None beside the two models." in text


def test_small_tables_tell_what_an_analysis_found() -> None:
    text = markdown(told_by_analyses(), View())

    assert "| `speed` | 0.4 | 95% `[0.31, 0.52]`, bootstrap over tensors, `n=21` |" in text
    assert "| `layers.6` | 0.018 | 0.24 |" in text
    assert "- `--checkpoint`: `step-100.safetensors, step-200.safetensors`" in text
