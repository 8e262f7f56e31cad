"""Pages on versions in a real browser: drawn, readable, and nothing in them runs."""

from pathlib import Path
from typing import Any

import pytest
from render.browser import Page, browser
from render.results import EVERY, HOSTILE_ONES
from render.test_browser import FAINT, NARROW, SCHEMES, WIDE

from difflens.core.records import View
from difflens.render.document.written import written

pytestmark = pytest.mark.long

ALL = EVERY | {f"hostile_{name}": made for name, made in HOSTILE_ONES.items()}


@pytest.fixture(scope="module")
def page(tmp_path_factory: pytest.TempPathFactory) -> Any:
    with browser(tmp_path_factory.mktemp("browser")) as opened:
        yield opened


def put(folder: Path, name: str) -> Path:
    path = folder / "page.html"
    path.write_text(written(ALL[name](), "html", View()), encoding="utf-8")
    return path


@pytest.mark.parametrize("name", ALL)
def test_a_page_opens_without_an_error_and_asks_for_nothing(
    name: str, page: Page, tmp_path: Path
) -> None:
    path = put(tmp_path, name)

    page.show(path)

    assert page.ask("document.title").startswith("difflens: ")
    assert page.trouble() == []
    assert page.requests() == [path.as_uri()]
    assert page.ask("document.documentElement.scrollWidth") <= WIDE


@pytest.mark.parametrize("name", ALL)
def test_nothing_runs_over_the_side_of_a_phone(name: str, page: Page, tmp_path: Path) -> None:
    page.show(put(tmp_path, name), width=NARROW)

    assert page.ask("document.documentElement.scrollWidth") <= NARROW


@pytest.mark.parametrize("name", ["report", "regressions"])
@pytest.mark.parametrize("scheme", SCHEMES)
def test_every_text_stands_out_from_what_lies_behind_it(
    name: str, scheme: str, page: Page, tmp_path: Path
) -> None:
    page.show(put(tmp_path, name), scheme=scheme)

    found = page.ask(FAINT)

    assert found["seen"] > 20
    assert found["faint"] == []


def test_the_report_draws_courses_the_front_and_the_ranks(page: Page, tmp_path: Path) -> None:
    page.show(put(tmp_path, "report"))

    boxes = page.ask(
        """[...document.querySelectorAll("figure svg")].map(each => each.getBoundingClientRect())
            .filter(box => box.width > 200 && box.height > 60).length"""
    )

    assert boxes == 4
    assert page.ask('document.querySelectorAll("svg .curve").length') == 2
    assert page.ask('document.querySelectorAll("svg .bar").length') == 2


def test_no_label_of_a_drawing_runs_over_its_side(page: Page, tmp_path: Path) -> None:
    page.show(put(tmp_path, "hostile_report"))

    over = page.ask(
        """[...document.querySelectorAll("figure")].flatMap(figure => {
            const frame = figure.getBoundingClientRect();
            return [...figure.querySelectorAll("svg text")]
                .filter(each => {
                    const box = each.getBoundingClientRect();
                    return box.left < frame.left || box.right > frame.right;
                }).map(each => each.textContent);
        })"""
    )

    assert over == []


def test_a_hostile_name_stays_text(page: Page, tmp_path: Path) -> None:
    path = tmp_path / "page.html"
    text = written(ALL["hostile_report"](), "html", View())
    path.write_text(text.replace("alert(1)", "(document.title='owned')"), encoding="utf-8")

    page.show(path)

    assert "(document.title='owned')" in page.ask("document.body.textContent")
    assert page.ask("document.title") != "owned"
    assert page.ask('document.querySelectorAll("script, img, a").length') == 0
