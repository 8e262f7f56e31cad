"""The page in a real browser: no error, everything works, readable on a phone and in the dark."""

from pathlib import Path
from typing import Any

import pytest
from render.browser import Page, browser
from render.reports import EVERY, HOSTILE, changed, report, told_by_analyses

from difflens.core.records import View
from difflens.render.diffs.html import html

pytestmark = pytest.mark.long

WIDE, NARROW = 1200, 390
SCHEMES = ("light", "dark")
NAMES = """[...document.querySelectorAll("#rows tbody tr:not([hidden])")]
    .map(row => row.querySelector(".name").textContent)"""
# The contrast of every text with what lies behind it (WCAG 2.2, 1.4.3).
FAINT = """
(() => {
  const channels = text => (text.match(/[\\d.]+/g) || []).map(Number);
  const light = ([r, g, b]) => [r, g, b].map(c => c / 255)
    .map(c => c <= 0.04045 ? c / 12.92 : ((c + 0.055) / 1.055) ** 2.4)
    .reduce((sum, c, i) => sum + c * [0.2126, 0.7152, 0.0722][i], 0);
  const behind = element => {
    for (let each = element; each; each = each.parentElement) {
      const colour = channels(getComputedStyle(each).backgroundColor);
      if (colour.length < 4 || colour[3] === 1) return colour;
      if (colour[3] > 0) return null;
    }
    return [255, 255, 255];
  };
  const faint = [];
  const walk = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
  let seen = 0;
  while (walk.nextNode()) {
    const element = walk.currentNode.parentElement;
    if (!walk.currentNode.data.trim() || element.closest("script, .plot")) continue;
    if (!element.checkVisibility()) continue;
    seen += 1;
    const [text, back] = [channels(getComputedStyle(element).color), behind(element)];
    const [a, b] = [light(text), back ? light(back) : 0];
    const ratio = (Math.max(a, b) + 0.05) / (Math.min(a, b) + 0.05);
    if (!back || ratio < 4.5) faint.push([walk.currentNode.data.slice(0, 40), ratio]);
  }
  return { seen, faint };
})()
"""


@pytest.fixture(scope="module")
def page(tmp_path_factory: pytest.TempPathFactory) -> Any:
    with browser(tmp_path_factory.mktemp("browser")) as opened:
        yield opened


@pytest.fixture
def told(tmp_path: Path) -> Path:
    return written(tmp_path, told_by_analyses(), View())


def written(folder: Path, report: Any, view: View) -> Path:
    path = folder / "report.html"
    path.write_text(html(report, view), encoding="utf-8")
    return path


@pytest.mark.parametrize("review", [False, True], ids=["whole", "review"])
@pytest.mark.parametrize("name", EVERY)
def test_the_page_runs_without_an_error_and_asks_for_nothing(
    name: str, review: bool, page: Page, tmp_path: Path
) -> None:
    path = written(tmp_path, EVERY[name](), View(review=review))

    page.show(path)

    assert page.ask("document.title").startswith("difflens: ")
    assert page.trouble() == []
    assert page.requests() == [path.as_uri()]
    assert page.ask("document.documentElement.scrollWidth") <= WIDE


@pytest.mark.parametrize("name", EVERY)
def test_nothing_runs_over_the_side_of_a_phone(name: str, page: Page, tmp_path: Path) -> None:
    page.show(written(tmp_path, EVERY[name](), View()), width=NARROW)

    assert page.ask("document.documentElement.scrollWidth") <= NARROW


@pytest.mark.parametrize("name", ["every_kind", "told_by_analyses"])
@pytest.mark.parametrize("scheme", SCHEMES)
def test_every_text_stands_out_from_what_lies_behind_it(
    name: str, scheme: str, page: Page, tmp_path: Path
) -> None:
    page.show(written(tmp_path, EVERY[name](), View()), scheme=scheme)

    found = page.ask(FAINT)

    assert found["seen"] > 100
    assert found["faint"] == []


def test_faint_text_would_be_noticed(page: Page, told: Path) -> None:
    page.show(told)
    page.ask('document.querySelector("h1").style.color = "#999"')

    assert [text for text, _ in page.ask(FAINT)["faint"]] == ["The models differ."]


def test_the_dark_page_is_dark(page: Page, told: Path) -> None:
    page.show(told, scheme="dark")

    assert page.ask("getComputedStyle(document.body).backgroundColor") == "rgb(15, 18, 22)"


def test_a_click_sorts_the_table_and_another_turns_it_round(page: Page, told: Path) -> None:
    page.show(told)
    click = 'document.querySelectorAll("#rows th button")[4].click()'

    page.ask(click)
    largest = page.ask(NAMES)
    page.ask(click)
    smallest = page.ask(NAMES)

    assert largest[:2] == ["layers.0.mlp.up_proj.weight", "layers.1.mlp.up_proj.weight"]
    assert smallest == largest[::-1]


def test_the_table_is_sorted_and_filtered_with_the_keyboard_alone(page: Page, told: Path) -> None:
    page.show(told)
    page.ask('document.getElementById("filter").focus()')

    page.type("q_proj 3")
    filtered = page.ask(NAMES)
    page.press("Tab", 9)  # to the region that scrolls
    page.press("Tab", 9)  # to its first heading
    page.press("Enter", 13)

    assert filtered == ["layers.3.attn.q_proj.weight"]
    assert page.ask('document.getElementById("shown").textContent') == "1 of 15"
    assert page.ask("document.activeElement.textContent") == "Kind"
    assert page.ask('document.querySelector("[aria-sort]").textContent') == "Kind"


def test_every_picture_is_there_and_has_a_size(page: Page, told: Path) -> None:
    page.show(told)

    sizes = page.ask(
        """Object.fromEntries(["depth", "heat", "spectra", "distributions", "intervals",
            "trajectory"].map(id =>
            [id, [...document.querySelectorAll(`#${id} :is(svg, .heat, .whisker)`)]
                .map(each => each.getBoundingClientRect())
                .filter(box => box.width > 50 && box.height > 10).length]))"""
    )

    assert sizes == {
        "depth": 1,
        "heat": 1,
        "spectra": 3,
        "distributions": 1,
        "intervals": 2,
        "trajectory": 2,
    }


@pytest.mark.parametrize(("width", "scheme"), [(WIDE, "light"), (NARROW, "dark")])
def test_the_charts_are_drawn_without_a_script_and_without_the_network(
    width: int, scheme: str, page: Page, tmp_path: Path
) -> None:
    path = written(tmp_path, told_by_analyses(), View(charts=True))

    page.show(path, width=width, scheme=scheme)

    drawn = page.ask('document.querySelectorAll("#charts svg").length')
    assert page.trouble() == []
    assert page.requests() == [path.as_uri()]
    assert drawn >= 2
    assert page.ask("document.documentElement.scrollWidth") <= width
    assert page.ask('document.querySelectorAll("#charts circle").length') > 10


def test_no_label_of_a_drawing_is_cut_off(page: Page, tmp_path: Path) -> None:
    page.show(written(tmp_path, told_by_analyses(), View(charts=True)))

    outside = page.ask(
        """[...document.querySelectorAll("svg text")].filter(text => {
            const box = text.getBoundingClientRect();
            const room = text.closest("svg").getBoundingClientRect();
            return box.left < room.left - 1 || box.right > room.right + 1
                || box.top < room.top - 1 || box.bottom > room.bottom + 1;
        }).map(text => text.textContent)"""
    )

    assert outside == []


def test_a_hostile_report_runs_nothing_even_in_its_charts(page: Page, tmp_path: Path) -> None:
    rows = [
        changed(f"h.{layer}.{part}{name}")
        for layer in range(2)
        for name in HOSTILE
        if len(name) < 100
        for part in ("", "<a href='javascript:alert(1)'>x</a>")
    ]
    told = html(report(*rows), View(charts=True))
    text = told.replace("alert(1)", "(document.title='owned')")
    path = tmp_path / "report.html"
    path.write_text(text, encoding="utf-8")

    page.show(path)

    assert page.ask('document.querySelectorAll("#charts circle").length') > 0
    assert page.ask('document.querySelectorAll("#charts :is(a, img)").length') == 0
    assert "(document.title='owned')" in page.ask("document.body.textContent")
    assert page.ask("document.title") != "owned"


def test_a_script_that_is_not_ours_is_refused(page: Page, tmp_path: Path) -> None:
    path = tmp_path / "report.html"
    planted = "<script>document.title = 'owned'</script></main>"
    path.write_text(html(told_by_analyses(), View()).replace("</main>", planted), encoding="utf-8")

    page.show(path)

    assert page.ask("document.title") != "owned"
    assert len(page.trouble()) == 1
