"""Numbers of versions and runs as people read them: metrics, intervals, probabilities, times."""

from __future__ import annotations

from math import isfinite

from difflens.core.findings import Interval

from .numbers import UNKNOWN

_DIGITS = (4, 6, 9, 12, 17)
_LEAST_P = 0.0001


def value(number: float | str | None) -> str:
    """Write a metric's value with four digits, a count in full.

    >>> value(0.912345), value(124_000_000), value(None), value("NaN"), value(12345.678)
    ('0.9123', '124,000,000', 'unknown', 'NaN', '12,346')
    """
    if number is None or isinstance(number, str):
        return UNKNOWN if number is None else number
    if isinstance(number, bool):
        return "yes" if number else "no"
    if not isfinite(number):
        return UNKNOWN
    if isinstance(number, int):
        return f"{number:,}"
    return f"{number:,.0f}" if 1e4 <= abs(number) < 1e15 else f"{number:.4g}"


def moved(left: float | None, right: float | None) -> str:
    """Write how a metric moved, with more digits where four would hide it.

    >>> moved(0.91, 0.87), moved(0.900001, 0.900002), moved(None, 1.0)
    ('0.91 -> 0.87', '0.900001 -> 0.900002', 'unknown -> 1')
    """
    texts = [value(left), value(right)]
    if texts[0] == texts[1] and left is not None and right is not None and left != right:
        for digits in _DIGITS:
            texts = [f"{each:.{digits}g}" for each in (left, right)]
            if texts[0] != texts[1]:
                break
    return " -> ".join(texts)


def signed(number: float | None) -> str:
    """Write a difference with its sign.

    >>> signed(0.02), signed(-3.0), signed(0.0), signed(None)
    ('+0.02', '-3', '0', 'unknown')
    """
    text = value(number)
    return f"+{text}" if number is not None and number > 0 else text


def share(fraction: float | None) -> str:
    """Write a relative difference in percent, with its sign.

    >>> share(0.0512), share(-0.2), share(None)
    ('+5.1%', '-20%', 'unknown')
    """
    if fraction is None or not isfinite(fraction):
        return UNKNOWN
    return f"{100 * fraction:+.2g}%" if abs(fraction) < 1 else f"{100 * fraction:+,.0f}%"


def probability(p: float | None) -> str:
    """Write a p-value; a very small one as a bound.

    >>> probability(0.0312), probability(1e-9), probability(None)
    ('0.031', '<0.0001', 'unknown')
    """
    if p is None:
        return UNKNOWN
    return f"<{_LEAST_P:.4f}" if p < _LEAST_P else f"{p:.2g}"


def ends(low: float | None, high: float | None) -> str:
    """Write an interval; an end that is open is a dash.

    >>> ends(0.1, 0.25), ends(None, 0.25), ends(None, None)
    ('[0.1, 0.25]', '[-, 0.25]', '')
    """
    if low is None and high is None:
        return ""
    return f"[{', '.join('-' if end is None else value(end) for end in (low, high))}]"


def interval(sure: Interval | None) -> str:
    """Write an interval with its level.

    >>> interval(Interval(0.1, 0.25, level=0.9)), interval(None)
    ('[0.1, 0.25] 90%', '')
    """
    if sure is None or not ends(sure.low, sure.high):
        return ""
    return f"{ends(sure.low, sure.high)} {100 * sure.level:g}%"


def answer(yes: bool | None) -> str:
    """Write a yes, a no, or that nothing says.

    >>> answer(True), answer(False), answer(None)
    ('yes', 'no', 'not testable')
    """
    return "not testable" if yes is None else "yes" if yes else "no"


def moment(timestamp: str) -> str:
    """Write a time to the second.

    >>> moment("2026-01-02T03:04:05.678901Z")
    '2026-01-02 03:04:05'
    """
    return timestamp[:19].replace("T", " ")
