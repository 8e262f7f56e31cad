import os
import re
import shutil
import subprocess
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import pytest
from render.reports import EVERY, changed, every_kind, hostile, identical, report, row

from difflens.records import View
from difflens.render import page
from difflens.render.html import html

ALLOWED = {
    "html", "head", "meta", "title", "style", "body", "header", "main", "footer", "section",
    "script", "article", "p", "b", "i", "span", "div", "h1", "h2", "h3", "dl", "dt", "dd", "ul",
    "li", "table", "thead", "tbody", "tr", "th", "td", "button", "input", "svg", "path", "details",
    "summary",
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
        if tag not in {"meta", "input"}:
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
    policy = "default-src 'none'; style-src 'unsafe-inline'; script-src 'unsafe-inline'"

    text = html(identical(), View())

    assert f'http-equiv="Content-Security-Policy" content="{policy};' in text
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
        "needs --log or --eval-left/--eval-right; two files tell no trend",
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


def test_a_real_browser_runs_nothing_of_a_hostile_report(tmp_path: Path) -> None:
    browser = shutil.which("chromium") or shutil.which("google-chrome")
    if browser is None:
        if os.environ.get("DIFFLENS_REQUIRE_ALL") == "1":
            pytest.fail("chromium is not installed")
        pytest.skip("chromium is not installed")
    shown = tmp_path / "report.html"
    # The page's own script is trusted; what a name would run shows as a changed title.
    text = html(hostile(), View()).replace("alert(1)", "(document.title='owned')")
    shown.write_text(text, encoding="utf-8")

    seen = subprocess.run(
        [
            browser, "--headless", "--no-sandbox", "--disable-gpu", "--disable-quic",
            "--no-first-run", "--disable-background-networking", "--disable-component-update",
            "--disable-sync", f"--user-data-dir={tmp_path / 'profile'}", "--dump-dom",
            shown.as_uri(),
        ],
        capture_output=True, text=True, check=True, timeout=120,
    ).stdout  # fmt: skip

    assert "<title>difflens: " in seen
    assert "<title>owned" not in seen
    assert "(document.title='owned')" in seen
