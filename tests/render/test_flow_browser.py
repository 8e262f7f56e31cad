"""The page of the gradient flow in a real browser: it plays, it is steered, nothing else runs."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from render.browser import Page, browser
from render.test_browser import FAINT, NARROW, SCHEMES, WIDE
from training.flow.flows import recorded

from difflens.render.training.flow_page import page as written
from difflens.training.flow.animator import GradientFlowAnimator

pytestmark = pytest.mark.long

HOSTILE = (
    "</script><script>document.title='owned'</script><img src=x onerror=\"document.title='own'\">"
)
AT = 'Number(document.getElementById("at").value)'
# What is drawn, as a number: pictures that differ have another one.
DRAWN = """(() => {
  const map = document.getElementById("map");
  const bytes = map.getContext("2d").getImageData(0, 0, map.width, map.height).data;
  let sum = 0;
  for (let i = 0; i < bytes.length; i += 1) sum = (sum * 31 + bytes[i]) % 1000000007;
  return sum;
})()"""


@pytest.fixture(scope="module")
def page(tmp_path_factory: pytest.TempPathFactory) -> Any:
    with browser(tmp_path_factory.mktemp("browser")) as opened:
        yield opened


@pytest.fixture
def flow(tmp_path: Path) -> Path:
    rng = np.random.default_rng(0)
    names = [f"layers.{i}.weight" for i in range(12)]
    steps = [
        {name: rng.normal(size=9) * 10.0**-i for i, name in enumerate(names)} for _ in range(40)
    ]
    steps[20][names[3]] = np.array([np.nan])
    steps[25][names[0]] = np.array([1e6])
    del steps[30][names[5]]
    return put(recorded(*steps, first=100), tmp_path)


def put(animator: GradientFlowAnimator, folder: Path, title: str = "") -> Path:
    path = folder / "flow.html"
    path.write_text(written(animator.picture(title=title), animator.summary_report()), "utf-8")
    return path


def wait(page: Page, condition: str) -> None:
    page.ask(
        f"""new Promise((done, fail) => {{
            const look = left => {condition} ? done(true) : left ? setTimeout(look, 20, left - 1)
                : fail(new Error("never"));
            look(500);
        }})"""
    )


def test_it_opens_without_an_error_and_asks_for_nothing(page: Page, flow: Path) -> None:
    page.show(flow)

    assert page.ask("document.title") == "difflens: gradient flow"
    assert page.trouble() == []
    assert page.requests() == [flow.as_uri()]
    assert page.ask("document.documentElement.scrollWidth") <= WIDE


def test_it_plays_to_the_end_and_stops(page: Page, flow: Path) -> None:
    page.show(flow)
    page.ask('document.getElementById("speed").value = "120"')

    page.ask('document.getElementById("play").click()')
    started = page.ask(AT)
    wait(page, f"{AT} > 5")
    seen = page.ask(AT)
    wait(page, f"{AT} === 39")
    wait(page, 'document.getElementById("play").textContent === "▶"')

    assert started == 0
    assert seen > started
    assert page.ask('document.getElementById("step").textContent') == "step 139"
    assert page.trouble() == []


def test_pause_holds_it(page: Page, flow: Path) -> None:
    page.show(flow)
    page.ask('document.getElementById("speed").value = "30"')
    page.ask('document.getElementById("play").click()')
    wait(page, f"{AT} > 1")
    page.ask('document.getElementById("play").click()')

    held = page.ask(AT)
    page.ask("new Promise(done => setTimeout(done, 200))")

    assert page.ask(AT) == held < 39


def test_the_slider_moves_the_picture(page: Page, flow: Path) -> None:
    page.show(flow)
    slide = """(() => {{ const at = document.getElementById("at"); at.value = {};
        at.dispatchEvent(new Event("input")); }})()"""

    page.ask(slide.format(10))
    early = page.ask(DRAWN)
    page.ask(slide.format(30))

    assert page.ask('document.getElementById("step").textContent') == "step 130"
    assert page.ask(DRAWN) != early
    page.ask(slide.format(10))
    assert page.ask(DRAWN) == early


def test_the_keyboard_alone_steers_it(page: Page, flow: Path) -> None:
    page.show(flow)
    page.ask('document.getElementById("box").focus()')

    for key, code, expected in (("ArrowLeft", 37, 38), ("Home", 36, 0), ("ArrowRight", 39, 1),
                                ("PageDown", 34, 11), ("End", 35, 39)):  # fmt: skip
        page.press(key, code)
        assert page.ask(AT) == expected
    page.press(" ", 32)
    wait(page, f"{AT} > 0 && {AT} < 39")
    page.press(" ", 32)
    assert page.ask('document.getElementById("play").textContent') == "▶"
    page.press("ArrowDown", 40)
    page.press("ArrowDown", 40)
    assert "layers.1.weight" in page.ask('document.getElementById("read").textContent')


def test_keys_typed_into_the_filter_stay_there(page: Page, flow: Path) -> None:
    page.show(flow)
    page.ask('document.getElementById("filter").focus()')

    page.press("ArrowLeft", 37)
    page.press(" ", 32)

    assert page.ask(AT) == 39
    assert page.ask('document.getElementById("play").textContent') == "▶"


def test_pointing_at_a_cell_reads_its_number_and_state(page: Page, flow: Path) -> None:
    page.show(flow)
    box = page.ask("""(() => { const map = document.getElementById("map");
        map.scrollIntoView({ block: "center" });
        const { left, top, width, height } = map.getBoundingClientRect();
        return [left, top, width, height]; })()""")
    left, top, width, height = box
    for part in np.linspace(0.1, 0.9, 60):  # along the fourth layer, whose step 120 is NaN
        x, y = left + float(part) * width, top + 3.5 / 12 * height
        page.send("Input.dispatchMouseEvent", type="mouseMoved", x=x, y=y)
        text = page.ask('document.getElementById("read").textContent')
        if "step 120" in text:
            break

    assert text == "layers.3.weight at step 120: no value — x NaN or infinite"


def test_the_filter_leaves_the_layers_named(page: Page, flow: Path) -> None:
    page.show(flow)
    tall = 'document.getElementById("map").getBoundingClientRect().height'
    before = page.ask(tall)
    page.ask('document.getElementById("filter").focus()')
    page.type("layers.1")  # and 10, 11

    assert page.ask(tall) == pytest.approx(before / 4, abs=1)
    page.type("zzz")
    assert page.ask('document.getElementById("read").textContent') == "No layer has that name."
    assert page.trouble() == []


@pytest.mark.parametrize("scale", ["layer", "frame"])
def test_another_scale_is_another_picture(scale: str, page: Page, flow: Path) -> None:
    page.show(flow)
    before = page.ask(DRAWN)

    page.ask(f"""(() => {{ const scale = document.getElementById("scale"); scale.value = "{scale}";
        scale.dispatchEvent(new Event("change")); }})()""")

    assert page.ask(DRAWN) != before
    assert "within each" in page.ask('document.getElementById("range").textContent')


@pytest.mark.parametrize("scheme", SCHEMES)
def test_every_text_stands_out_in_light_and_dark(scheme: str, page: Page, flow: Path) -> None:
    page.show(flow, scheme=scheme)

    found = page.ask(FAINT)

    assert found["seen"] > 20
    assert found["faint"] == []


def test_nothing_runs_over_the_side_of_a_phone(page: Page, flow: Path) -> None:
    page.show(flow, width=NARROW)

    assert page.ask("document.documentElement.scrollWidth") <= NARROW
    assert page.ask('document.getElementById("map").getBoundingClientRect().width') > 250
    assert page.trouble() == []


def test_a_hostile_name_runs_no_script(page: Page, tmp_path: Path) -> None:
    path = put(recorded(*[{HOSTILE: [1e9], "a": [np.nan]}] * 3), tmp_path, HOSTILE)

    page.show(path)

    assert page.ask("document.title").startswith("difflens: gradient flow")
    assert page.ask('document.querySelectorAll("img").length') == 0
    assert page.requests() == [path.as_uri()]
    assert page.trouble() == []


def test_marks_are_drawn_that_do_not_rely_on_colour(page: Page, flow: Path) -> None:
    """Without the signs the same page is drawn otherwise: they are there, beside the colours."""
    page.show(flow)
    drawn = page.ask(DRAWN)
    text = flow.read_text().replace(
        '"marks":["\\u00b7"', '"marks":["\\u00b7","\\u00b7","-","","","","",""],"x":["'
    )
    flow.write_text(text)

    page.show(flow)

    assert page.ask(DRAWN) != drawn
