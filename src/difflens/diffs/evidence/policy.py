"""Policies in TOML: read and checked, and written with their defaults."""

from __future__ import annotations

import json
import re
import tomllib
from collections.abc import Collection, Iterable, Iterator, Mapping
from difflib import get_close_matches
from math import isfinite
from textwrap import wrap
from typing import Any, NamedTuple, NoReturn

from difflens.core.addresses import Location
from difflens.core.escape import for_terminal
from difflens.core.policy import MetricRule, Policy, Threshold
from difflens.core.registry import Entry

from .documents import Limits, broken, text

# [ANALYSIS]              threshold = value
# [metrics.NAME]          direction = "higher", margin = 0.01, threshold = 0.9
# [gates]                 required = ["memory", "quality"]

_RULE = {"direction": str, "margin": float, "threshold": float}
_DIRECTIONS = ("higher", "lower")
_WORDS = {
    bool: "true or false",
    int: "a whole number",
    float: "a number",
    str: "text",
    list: "a list",
    dict: "a table",
}


class Known(NamedTuple):
    """What a policy may speak of: thresholds by analysis, and gates."""

    thresholds: Mapping[str, Mapping[str, Threshold]]
    gates: Collection[str] = ()

    @classmethod
    def of(cls, analyses: Iterable[Entry]) -> Known:
        """Ask the analyses, as the registry knows them: `thresholds=` and `gates=`."""
        entries = list(analyses)
        thresholds = {
            each.name.replace("-", "_"): each.options.get("thresholds", {}) for each in entries
        }
        return cls(thresholds, [gate for each in entries for gate in each.options.get("gates", ())])

    def also(self, section: str, thresholds: Mapping[str, Threshold]) -> Known:
        """Add a section that is no analysis."""
        return self._replace(thresholds={**self.thresholds, section: thresholds})


def policy(path: str | Location, known: Known, limits: Limits = None) -> Policy:
    """Read a policy; what it names must exist, and be of the kind of its default."""
    whole = text(path, limits)
    try:
        found = tomllib.loads(whole)
    except tomllib.TOMLDecodeError as error:
        raise broken(path, f"not TOML: {for_terminal(_placed(error))}") from error
    except (RecursionError, ValueError) as error:  # depth; numbers of more than 4300 digits
        raise broken(path, "not TOML: nested too deep, or a number too long") from error
    return _Reader(str(path), whole, known).read(found)


def _placed(error: tomllib.TOMLDecodeError) -> str:
    said, _, place = str(error).rpartition(" (at ")
    return f"{said.replace('Invalid', 'malformed').lower()} at {place.rstrip(')')}"


class _Reader:
    """One file, and what it may speak of."""

    def __init__(self, path: str, whole: str, known: Known) -> None:
        self._path = path
        self._lines = whole.splitlines()
        self._known = known

    def read(self, found: dict[str, Any]) -> Policy:
        """Look at every section."""
        thresholds: dict[str, dict[str, Any]] = {}
        metrics: dict[str, MetricRule] = {}
        required = None
        for section, body in found.items():
            if type(body) is not dict:
                self._refuse("", section, f"'{_shown(section)}' stands in no section")
            if section == "metrics":
                metrics = {name: self._rule(name, each) for name, each in body.items()}
            elif section == "gates":
                required = self._required(body)
            else:
                thresholds[section.replace("-", "_")] = self._thresholds(section, body)
        return Policy(thresholds, metrics, required)

    def _thresholds(self, section: str, body: dict[str, Any]) -> dict[str, Any]:
        defaults = self._known.thresholds.get(section.replace("-", "_"))
        if defaults is None:
            names = [*self._known.thresholds, "metrics", "gates"]
            self._unknown(section, "", "no analysis", section, names)
        for name in body:
            if name not in defaults:
                self._unknown(section, name, f"no threshold of {section}", name, defaults)
        return {
            name: self._like(section, name, each, defaults[name].value)
            for name, each in body.items()
        }

    def _rule(self, metric: str, body: Any) -> MetricRule:
        section = f"metrics.{metric}"
        if type(body) is not dict:
            said = f"[metrics] holds '{_shown(metric)}', a section [metrics.NAME] is wanted"
            self._refuse("metrics", metric, said)
        for name in body:
            if name not in _RULE:
                self._unknown(section, name, "no key of a metric", name, _RULE)
        rule = {name: self._like(section, name, each, _RULE[name]()) for name, each in body.items()}
        if rule.get("direction", _DIRECTIONS[0]) not in _DIRECTIONS:
            said = f"direction is '{_shown(rule['direction'])}', higher or lower is wanted"
            self._refuse(section, "direction", said)
        if rule.get("margin", 0.0) < 0:
            self._refuse(section, "margin", f"margin is {rule['margin']}, below zero")
        return MetricRule(**rule)

    def _required(self, body: dict[str, Any]) -> tuple[str, ...]:
        for name in body:
            if name != "required":
                self._unknown("gates", name, "no key of [gates]", name, ["required"])
        listed = self._like("gates", "required", body.get("required", []), [""])
        for name in listed:
            if self._known.gates and name not in self._known.gates:
                self._unknown("gates", "required", "no gate", name, self._known.gates)
        return tuple(dict.fromkeys(listed))

    def _like(self, section: str, name: str, value: Any, default: Any) -> Any:
        """Return the value in the type of its default; a default of None accepts any TOML value."""
        wanted = list if type(default) is tuple else type(default)
        fits = type(value) is wanted or (wanted is float and type(value) is int)
        if default is None:
            fits = type(value) in _WORDS
        if not fits:
            words = _WORDS.get(wanted, "a number, text or a list")
            self._refuse(section, name, f"{name} is {_kind(value)}, {words} is wanted")
        if type(value) is float and not isfinite(value):
            self._refuse(section, name, f"{name} is {value}, a finite number is wanted")
        if type(value) is list:
            sample = default[0] if default else None
            return [self._like(section, name, each, sample) for each in value]
        if type(value) is dict:
            sample = next(iter(default.values())) if default else None
            return {key: self._like(section, name, each, sample) for key, each in value.items()}
        try:
            return float(value) if wanted is float else value
        except OverflowError:
            self._refuse(section, name, f"{name} is too large for a float64")

    def _unknown(
        self, section: str, key: str, what: str, name: str, known: Iterable[str]
    ) -> NoReturn:
        names = sorted(known)
        near = get_close_matches(name, names, 1)
        hint = f"did you mean {near[0]}?" if near else f"known: {', '.join(names[:20])}"
        self._refuse(section, key, f"{what} is called '{_shown(name)}'", hint)

    def _refuse(self, section: str, key: str, reason: str, hint: str = "") -> NoReturn:
        line = self._line(section, key)
        raise broken(self._path, f"line {line}: {reason}" if line else reason, hint)

    def _line(self, section: str, key: str) -> int | None:
        """Find the line where a key of a section is set; the section's own where it is not seen."""
        here, at = not section, None
        header = re.compile(rf"\s*\[\s*{_spelt(section)}\s*\]")
        setting = re.compile(rf"\s*[\"']?{re.escape(key)}[\"']?\s*=")
        for number, line in enumerate(self._lines, 1):
            if line.lstrip().startswith("["):
                here = bool(section and header.match(line))
                at = number if here else at
            if here and key and setting.match(line):
                return number
        return at


def _spelt(section: str) -> str:
    """Write a section's name as a pattern: its parts may be quoted."""
    return r"\s*\.\s*".join(rf"[\"']?{re.escape(part)}[\"']?" for part in section.split("."))


def _shown(name: str) -> str:
    return for_terminal(str(name), 80)


def _kind(value: Any) -> str:
    return (
        f"the text '{_shown(value)}'" if type(value) is str else _WORDS.get(type(value), "a date")
    )


_BARE = re.compile(r"[A-Za-z0-9_-]+")
_EXAMPLES = """\
# Rules of metrics, one section each: which way is better, how much worse is still fine, and a
# limit in the metric's own units.
#
# [metrics.accuracy]
# direction = "higher"
# margin = 0.01
# threshold = 0.9

# The gates that must pass for --deployment-readiness; without this, the default list.{gates}
#
# [gates]
# required = {required}
"""


def policy_text(known: Known) -> str:
    """Write all thresholds by analysis; a threshold without a default stands as a comment."""
    parts = [
        "# A policy of difflens: what is set here replaces the default. All defaults are below.\n"
    ]
    parts += [
        "\n".join([f"[{name}]", *_settings(body)]) + "\n"
        for name, body in sorted(known.thresholds.items())
        if body
    ]
    listed = list(known.gates)
    named = f"Known: {', '.join(listed)}." if listed else ""
    parts.append(_EXAMPLES.format(gates=_commented(named), required=_value(listed[:2])))
    return "\n".join(parts)


def _commented(text: str) -> str:
    return "".join(f"\n# {line}" for line in wrap(text, 96))


def _settings(body: Mapping[str, Threshold]) -> Iterator[str]:
    for name, threshold in body.items():
        yield from (f"# {line}" for line in wrap(threshold.why, 96))
        if threshold.value is None:
            yield f"# {_key(name)} ="
        else:
            yield f"{_key(name)} = {_value(threshold.value)}"


def _key(name: str) -> str:
    return name if _BARE.fullmatch(name) else _text(name)


def _value(value: Any) -> str:
    """Write a value as TOML."""
    if isinstance(value, Mapping):
        return "{" + ", ".join(f"{_key(key)} = {_value(each)}" for key, each in value.items()) + "}"
    if isinstance(value, list | tuple):
        return f"[{', '.join(map(_value, value))}]"
    if isinstance(value, bool):
        return str(value).lower()
    return _text(value) if isinstance(value, str) else repr(value)


def _text(value: str) -> str:
    """Write a string as JSON does; TOML shares its escapes, but not its pairs of surrogates."""
    return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")
