"""The laws of renderers: a pure function that shows every difference and harms no reader."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Callable, Iterator
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import NamedTuple, NoReturn

from difflens.core.records import SAME, Report, View
from difflens.core.registry import Entry
from difflens.diffs.story import report
from difflens.render.diffs import Renderer, renderer

from .laws import deeds, hold, is_described, registered
from .models import diffs

VIEWS = (View(), View(stats=True), View(verbose=True), View(color=True, width=40))
_FORMULA = ("=", "@")


class Case(NamedTuple):
    """A renderer under test, and the reports that it must handle."""

    entry: Entry
    reports: dict[str, Report]

    def each(self, view: View = VIEWS[0]) -> Iterator[tuple[str, Report, str]]:
        """Yield every report with its text."""
        for name, each in self.reports.items():
            yield name, each, self.entry.plugin(each, view)


def check_renderer(
    plugin: Renderer, laws: tuple[Callable[[Case], None], ...] | None = None
) -> None:
    """Check a renderer against its contract."""
    entry = registered(renderer, plugin)
    with TemporaryDirectory(prefix="difflens-") as folder:
        reports = {name: report(diff) for name, diff in diffs(Path(folder))}
    for law in laws or LAWS:
        law(Case(entry, reports))


def it_is_described(case: Case) -> None:
    """It has a summary, and a suffix that begins with a dot."""
    is_described(case.entry)
    suffix = case.entry.options.get("suffix", "")
    hold(suffix.startswith("."), f"{case.entry.name}: suffix {suffix!r} does not begin with a dot")


def it_renders_every_report(case: Case) -> None:
    """It returns text for every kind of report and every view, and ends the last line."""
    for view in VIEWS:
        for name, _, text in case.each(view):
            hold(type(text) is str, f"{name}: it gave {type(text).__name__}, expected text")
            hold(not text or text.endswith("\n"), f"{name}: the text does not end its last line")


def it_is_pure(case: Case) -> None:
    """The same report gives the same text, is not changed, and nothing is written."""
    for name, each, text in case.each():
        before = each.to_dict()
        with deeds() as done:
            again = case.entry.plugin(each, VIEWS[0])
        # NaN is not equal to itself, so the written form is compared.
        hold(repr(each.to_dict()) == repr(before), f"{name}: rendering changed the report")
        hold(again == text, f"{name}: rendering twice gave two texts")
        writes = [deed for deed in done if not deed.startswith(("compile", "exec", "import"))]
        hold(not writes, f"{name}: while rendering it did {writes}")


def it_tells_every_difference(case: Case) -> None:
    """Every tensor that differs is named; one that cannot be compared is a difference too."""
    text = case.entry.plugin(case.reports["kinds"], VIEWS[0])
    for row in case.reports["kinds"].tensors:
        named = row.kind in SAME or row.name in text
        hold(named, f"{case.entry.name}: {row.name!r} is {row.kind}, and is not named")


def it_answers_by_its_values(case: Case) -> None:
    """Different reports give different texts."""
    near, far = (case.entry.plugin(case.reports[name], VIEWS[0]) for name in ("near", "far"))
    hold(near != far, f"{case.entry.name}: two different reports gave the same text")


def it_harms_no_reader(case: Case) -> None:
    """A hostile tensor name remains a name in the program that reads the text."""
    check = _READERS.get(case.entry.options["suffix"], _one_line_each)
    for view in VIEWS[:3]:
        for name, _, text in case.each(view):
            check(name, text)


LAWS = (
    it_is_described,
    it_renders_every_report,
    it_is_pure,
    it_tells_every_difference,
    it_answers_by_its_values,
    it_harms_no_reader,
)


def _one_line_each(name: str, text: str) -> None:
    for line in text.split("\n"):
        plain = line.replace("\t", "").isprintable()
        hold(plain, f"{name}: a control character reaches the terminal: {line!r}")


def _json(name: str, text: str) -> None:
    def refuse(constant: str) -> NoReturn:
        raise AssertionError(f"{name}: {constant} is not JSON")

    json.loads(text, parse_constant=refuse)


def _csv(name: str, text: str) -> None:
    for row in csv.reader(io.StringIO(text, newline="")):
        for cell in row:
            hold(not cell.startswith(_FORMULA), f"{name}: {cell!r} is a formula")


def _html(name: str, text: str) -> None:
    hold("<script>alert(1)" not in text, f"{name}: a tensor name became a script")
    hold("http" not in text.replace("http-equiv", ""), f"{name}: the page reaches for the network")


_READERS: dict[str, Callable[[str, str], None]] = {".json": _json, ".csv": _csv, ".html": _html}
