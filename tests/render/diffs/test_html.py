import re
from html.parser import HTMLParser
from typing import Any

import pytest
from render.reports import (
    EVERY,
    changed,
    every_kind,
    hostile,
    identical,
    report,
    row,
    stats,
    told_by_analyses,
)

from difflens.core.findings import Envelope, Finding, Missing
from difflens.core.records import View
from difflens.render.diffs.html import html
from difflens.render.report import page

ALLOWED = {
    "html", "head", "meta", "title", "style", "body", "header", "main", "footer", "section",
    "script", "article", "p", "b", "i", "span", "div", "h1", "h2", "h3", "dl", "dt", "dd", "ul",
    "li", "table", "thead", "tbody", "tr", "th", "td", "button", "input", "svg", "path", "details",
    "summary", "rect", "line", "circle", "text", "figure", "figcaption", "s", "wbr",
}  # fmt: skip


class Tags(HTMLParser):
    """Collects every tag and attribute a browser would see."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.tags: list[str] = []
        self.attributes: list[tuple[str, str | None]] = []
        self.open: list[str] = []
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        self.attributes += attrs
        if tag not in {"meta", "input", "wbr"}:
            self.open.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        self.attributes += attrs

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag


@pytest.mark.parametrize("made", EVERY.values(), ids=EVERY)
def test_the_page_holds_our_tags_only_and_asks_for_nothing(made: Any) -> None:
    text = html(made(), View())
    seen = Tags(text)

    assert set(seen.tags) <= ALLOWED
    assert seen.tags.count("script") == 1
    assert seen.open == []
    names = {name for name, _ in seen.attributes}
    assert not {name for name in names if name.startswith("on")}
    assert not {"src", "href", "action", "srcset", "background"} & names
    assert "url(" not in text
    assert text.encode()


def test_a_name_runs_no_script_and_no_template() -> None:
    text = html(hostile(), View())

    assert "<script>alert" not in text
    assert "<img" not in text
    assert "&lt;script&gt;alert(1)&lt;/script&gt;" in text
    assert "{{ 7*7 }}" in text
    assert not re.search("[\x00-\x09\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069]", text)


def test_the_page_forbids_itself_every_request() -> None:
    policy = "default-src 'none'; style-src 'unsafe-inline'; script-src 'sha256-"

    text = html(identical(), View())

    assert f'http-equiv="Content-Security-Policy" content="{policy}' in text
    assert "script-src 'unsafe-inline'" not in text
    assert '<meta charset="utf-8">' in text
    assert "prefers-color-scheme: dark" in text


def test_the_page_tells_what_the_report_tells() -> None:
    text = html(every_kind(), View())

    for said in (
        "<h1>The models differ.</h1>",
        "3 of 290 tensors changed, all in the head.",
        "base.safetensors",
        "2.2 GB",
        "non-finite 0 → 12",
        "within storage rounding",
        "[64, 3] → [32, 3]",
        "F6_E2M3 is packed in several ways",
        "was w (prefix model.)",
        "tied to model.embed_tokens.weight",
        "not assessed (needs --log or --eval-left/--eval-right); two files tell no trend",
        "tuned.safetensors: metadata is not text",
        "Same on both sides: 2 identical, 1 within epsilon, 1 with the same shape and dtype.",
    ):
        assert said in text


@pytest.mark.parametrize(
    ("relative", "width"),
    [(1e-6, "1.0"), (1e-3, "50.0"), (1.0, "100.0"), (30.0, "100.0"), (1e-9, "1.0"), (0.0, "0")],
)
def test_a_bar_runs_over_six_decades(relative: float, width: str) -> None:
    assert f'style="--w:{width}"' in html(report(changed("w", relative_l2=relative)), View())


def test_a_cosine_just_below_one_does_not_read_as_one() -> None:
    assert "&gt;0.999999" in html(report(changed("w", cosine=1 - 1e-9)), View())


def test_a_very_long_table_is_cut_and_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(page, "MOST_ROWS", 20)
    text = html(report(*(row(f"w.{i}", "added") for i in range(1050))), View())

    assert Tags(text).tags.count("tr") == 21
    assert "Only the first 20 of 1,050 are listed here;" in text


def test_many_tensors_left_out_for_one_reason_are_named_together() -> None:
    text = html(report(*(row(f"w.{i}", "uncompared", skipped="no") for i in range(1010))), View())

    assert "w.6, w.7 and 1,002 more" in text


def test_findings_come_first_and_the_most_severe_of_them_on_top() -> None:
    text = html(told_by_analyses(), View())

    assert text.index("<h2>Findings") < text.index("<h2>Change by depth")
    assert '<span class="severity medium">medium</span>' in text
    assert "spectral analysis · rank=4, energy=0.99" in text


def test_a_review_holds_ten_findings_and_what_was_not_checked_and_nothing_else() -> None:
    found = [Finding("a", f"w.{i}", "moved", {"x": 1.0}, "low") for i in range(12)]
    lack = Missing("trend", "--log", "two files tell no trend")
    envelope = Envelope("a", "partial", {"trend": None}, missing=(lack,), findings=tuple(found))

    text = html(report(changed("w.0"), analyses=(envelope,)), View(review=True))

    assert Tags(text).tags.count("li") == 10 + 1 + 1
    assert "Only the first 10 of 12 are listed here;" in text
    assert "not assessed (needs --log); two files tell no trend" in text
    assert "Tensors that differ" not in text


def test_a_review_without_findings_says_so() -> None:
    text = html(identical(), View(review=True))

    assert "None." in text
    assert "Nothing that was asked for was left unchecked." in text


def test_what_was_used_beside_the_models_is_named() -> None:
    assert "step-100.safetensors, step-200.safetensors" in html(told_by_analyses(), View())


def test_a_page_without_numbers_has_no_picture() -> None:
    text = html(identical(), View(charts=True))

    assert not {"svg", "figure"} & set(Tags(text).tags)


def test_a_page_leads_with_its_worst_finding() -> None:
    burnt = changed("burnt", right_nonfinite=5)
    text = html(report(changed("far", relative_l2=3.0), burnt), View())

    assert "5 NaN or infinite values, 0 before" in text[: text.index("Findings")]
    assert 'class="worst"' not in html(report(changed("far")), View())


def test_the_table_begins_with_what_is_broken() -> None:
    rows = [
        changed("near"),
        changed("far", relative_l2=3.0),
        row("zeroed", left_stats=stats(), right_stats=stats(zeros=192)),
        changed("burnt", right_nonfinite=5),
    ]
    text = html(report(*rows), View())
    table = text[text.index('id="rows"') :]

    places = [table.index(f">{name}<") for name in ("burnt", "zeroed", "far", "near")]
    assert places == sorted(places)


@pytest.mark.long
def test_charts_add_drawings_and_stay_small() -> None:
    every = report(*(changed(f"h.{i}.w", relative_l2=1e-3 * (i + 1)) for i in range(3000)))

    few, more = (html(every, View(charts=charts)) for charts in (False, True))

    assert "Size and change" not in few
    assert "How many tensors moved how far" in more
    assert len(more) - len(few) < 500_000
