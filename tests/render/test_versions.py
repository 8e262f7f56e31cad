"""Results on versions as text, Markdown and pages: everything told, and hostile names inert."""

import json
import re
from html.parser import HTMLParser
from typing import Any

import pytest
import yaml
from markdown_it import MarkdownIt
from msgspec.structs import replace
from render.results import (
    EVERY,
    HOSTILE_ONES,
    NAMES,
    SNEAKY,
    changed,
    compared,
    course_of,
    ranks,
    regressed,
    reported,
)

from difflens.core.records import View
from difflens.render.document.document import MOST_ROWS
from difflens.render.document.markdown import MOST_BYTES
from difflens.render.document.written import rendered, written
from difflens.render.versions.comparison import comparison
from difflens.render.versions.drawings import course, pareto_drawings, rank_drawing
from difflens.render.versions.regressions import regressions
from difflens.render.versions.report import report
from difflens.render.versions.version_diff import version_diff
from difflens.versions.records.comparisons import ModelComparisonResult

PARSER = MarkdownIt("gfm-like")
OURS = re.compile(r"<details><summary>[\w:, ]+</summary>\n?|</details>\n?")
ALLOWED = {
    "html", "head", "meta", "title", "style", "body", "header", "main", "footer", "section", "p",
    "b", "span", "div", "h1", "h2", "ul", "li", "table", "thead", "tbody", "tr", "th", "td", "svg",
    "path", "line", "circle", "text", "figure", "figcaption",
}  # fmt: skip
ALL = [pytest.param(each, id=name) for name, each in EVERY.items()]
ALL += [pytest.param(each, id=f"hostile_{name}") for name, each in HOSTILE_ONES.items()]


class Tags(HTMLParser):
    """Collects every tag and attribute a browser would see."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.tags: set[str] = set()
        self.attributes: set[str] = set()
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.add(tag)
        self.attributes |= {name for name, _ in attrs}


def parsed(text: str) -> list[Any]:
    return [inner for token in PARSER.parse(text) for inner in (token, *(token.children or ()))]


@pytest.mark.parametrize("made", ALL)
@pytest.mark.parametrize("color", [False, True])
def test_no_control_character_reaches_a_terminal(made: Any, color: bool) -> None:
    text = written(made(), "cli", View(color=color, verbose=True))

    plain = re.sub(r"\x1b\[[\d;]*m", "", text) if color else text
    assert [line for line in plain.split("\n") if not line.isprintable()] == []


@pytest.mark.parametrize("made", ALL)
def test_in_markdown_nothing_but_our_own_marks_is_more_than_text(made: Any) -> None:
    tokens = parsed(written(made(), "markdown", View()))

    assert not {"link_open", "image", "fence", "code_block"} & {each.type for each in tokens}
    blocks = "".join(each.content for each in tokens if each.type == "html_block")
    assert OURS.sub("", blocks) == ""
    inlines = {each.content for each in tokens if each.type == "html_inline"}
    assert inlines <= {"<sub>", "</sub>"}
    plain = "".join(each.content for each in tokens if each.type == "text")
    for trick in ("<script>", "onmouseover", "@all", "{{ 7*7 }}", "\u202e", "\x1b"):
        assert trick not in plain


@pytest.mark.parametrize("made", ALL)
def test_a_page_holds_our_tags_only_and_asks_for_nothing(made: Any) -> None:
    text = written(made(), "html", View())

    seen = Tags(text)
    assert seen.tags <= ALLOWED
    assert not {
        name for name in seen.attributes if name.startswith("on") or name in ("src", "href")
    }
    assert "http" not in text.replace("http-equiv", "").replace("https://c", "")
    assert "script-src" not in text
    assert "default-src 'none'" in text


@pytest.mark.parametrize("output", ["cli", "markdown", "html"])
def test_the_same_result_is_the_same_text(output: str) -> None:
    assert written(EVERY["report"](), output, View()) == written(EVERY["report"](), output, View())


@pytest.mark.parametrize("output", ["json", "yaml"])
def test_json_and_yaml_are_the_record_itself(output: str) -> None:
    result = compared(NAMES)

    text = rendered(result, comparison, output, View())

    read = json.loads(text) if output == "json" else yaml.safe_load(text)
    assert text.isascii()
    assert ModelComparisonResult.from_dict(read) == result


def test_the_first_line_of_regressions_names_both_roles() -> None:
    first = written(regressions(regressed()), "cli", View()).splitlines()[0]

    assert first == "regressions: current is base@2 (right), baseline is base@1 (left)"


@pytest.mark.parametrize(
    ("passed", "word"), [(True, "passed"), (False, "failed"), (None, "cannot tell")]
)
def test_the_last_line_of_regressions_is_what_the_exit_code_says(passed: Any, word: str) -> None:
    last = written(regressions(regressed(passed=passed)), "cli", View()).splitlines()[-1]

    assert last.startswith(f"{word}: 1 regression (1 Critical): base@2; 3 metrics checked")


def test_a_breach_of_policy_is_not_told_as_a_test() -> None:
    found = regressed()
    breach = replace(found.regressions[0], statistical=False, interval=None)

    text = written(regressions(replace(found, regressions=(breach,))), "cli", View())

    assert "a limit of the policy passed, not a test" in text
    assert "not a test" not in written(regressions(found), "cli", View())


def test_what_separates_a_best_model_is_told_in_the_verdict() -> None:
    found = compared()
    last = [
        written(comparison(replace(found, summary=replace(found.summary, separated=apart))),
                "cli", View()).splitlines()[-1]
        for apart in (True, False, None)
    ]  # fmt: skip

    assert last[0].endswith("; told apart from every other model")
    assert last[1].endswith("; not told apart from every other model")
    assert last[2].endswith("cannot be tested: no samples")


def test_no_best_model_is_said_and_not_left_out() -> None:
    found = compared()
    text = written(
        comparison(replace(found, summary=replace(found.summary, best_model=None))), "cli", View()
    )

    assert "no best model: no metric of known direction is shared by two of them" in text


def test_every_missing_field_is_told_with_what_it_needs() -> None:
    text = written(version_diff(changed()), "cli", View())

    assert "? latency_delta: not recorded; needs --metrics" in text


def test_folded_parts_open_with_verbose() -> None:
    quiet, loud = (written(EVERY["ab"](), "cli", View(verbose=each)) for each in (False, True))

    assert "permutation" not in quiet
    assert "permutation" in loud


def test_a_long_table_says_how_much_it_left_out() -> None:
    found = compared()
    tests = found.statistical_analysis
    many = tuple(replace(tests.tests[0], metric=f"m{at}") for at in range(MOST_ROWS + 5))

    document = comparison(replace(found, statistical_analysis=replace(tests, tests=many)))

    assert "5 further lines: -o json" in written(document, "cli", View())


def test_markdown_fits_a_pull_request_whatever_the_store() -> None:
    found = reported()
    histories = tuple(course_of(f"{SNEAKY}{at}", "é|`" * 60, 3) for at in range(900))

    text = written(report(replace(found, histories=histories)), "markdown", View())

    assert len(text.encode()) <= MOST_BYTES


def test_a_course_is_drawn_inside_its_frame_with_its_change_point() -> None:
    drawn = course(course_of("base", "accuracy"))

    heights = [mark for dot in drawn.dots for mark in (dot.y, dot.low, dot.high)]
    assert all(mark is not None and 0 <= mark <= drawn.height for mark in heights)
    assert [dot.x for dot in drawn.dots] == sorted(dot.x for dot in drawn.dots)
    (edge,) = [each for each in drawn.strokes if each.kind == "edge"]
    assert edge.x1 == drawn.dots[8].x
    assert edge.said == "from v8 on: 0.84 -> 0.74, p 0.01"


def test_higher_values_are_drawn_higher() -> None:
    first, *_, last = course(course_of("base", "accuracy", 5)).dots

    assert last.y < first.y


def test_a_course_of_huge_numbers_has_finite_places() -> None:
    history = course_of("base", "loss", 2)
    ends = [replace(history.points[at], value=value, low=None, high=None)
            for at, value in enumerate((-1.7e308, 1.7e308))]  # fmt: skip

    drawn = course(replace(history, points=tuple(ends)))

    assert [0 <= dot.y <= drawn.height for dot in drawn.dots] == [True, True]


def test_models_on_the_front_stand_out() -> None:
    points = compared().summary.pareto
    (drawn,) = pareto_drawings(points, ("val_accuracy", "inference_latency_ms"))

    assert [dot.strong for dot in drawn.dots] == [point.on_front for point in points]


def test_one_objective_is_no_trade_off() -> None:
    assert pareto_drawings(compared().summary.pareto, ("val_accuracy",)) == []


def test_ranks_are_placed_in_their_order_and_bars_join_what_is_not_told_apart() -> None:
    drawn = rank_drawing(ranks("a", "b", "c"))

    places = [dot.x for dot in drawn.dots]
    bars = [(each.x1, each.x2) for each in drawn.strokes if each.kind == "bar"]
    assert places == sorted(places)
    assert bars == [(places[0] - 3, places[1] + 3), (places[1] - 3, places[2] + 3)]
