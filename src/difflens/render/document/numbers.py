"""Numbers as people read them: rounded, and never rounded into a lie."""

from collections.abc import Iterable
from math import isfinite

_COUNTS = (("", 1), ("k", 10**3), ("M", 10**6), ("B", 10**9), ("T", 10**12))
_BYTES = (("bytes", 1), ("kB", 10**3), ("MB", 10**6), ("GB", 10**9), ("TB", 10**12))
UNKNOWN = "unknown"


def scientific(value: float | None) -> str:
    """Write a measured number with two digits; what is not finite is not known.

    >>> scientific(0.0312), scientific(0.0), scientific(None)
    ('3.1e-02', '0', 'unknown')
    """
    if value is None or not isfinite(value):
        return UNKNOWN
    return f"{value:.1e}" if value else "0"


def short(value: float) -> str:
    """Write a number of an analysis with three digits; counts in full.

    >>> short(0.05432), short(1234567)
    ('0.0543', '1234567')
    """
    if isinstance(value, int):
        return str(value)
    return f"{value:.3g}" if isfinite(value) else UNKNOWN


def percent(fraction: float | None) -> str:
    """Write a share; 0% and 100% are kept for exactly none and exactly all.

    >>> percent(1.0), percent(0.99999), percent(0.00003), percent(1e-9), percent(0.0)
    ('100%', '>99.99%', '0.003%', '<0.001%', '0%')
    """
    if fraction is None or not isfinite(fraction):
        return UNKNOWN
    points = 100 * fraction
    if fraction in {0, 1}:
        return f"{points:.0f}%"
    if points >= 99.995:
        return ">99.99%"
    if points < 0.001:
        return "<0.001%"
    digits = ".2f" if points >= 99.5 else ".0f" if points >= 10 else ".1f" if points >= 1 else ".1g"
    return f"{points:{digits}}%"


def before_after(left: float | None, right: float | None) -> str:
    """Write how a statistic moved, with more digits where four decimals would hide it.

    >>> before_after(0.1, 0.25), before_after(0.00001, 0.000012), before_after(None, 1.0)
    ('0.1000->0.2500', '1e-05->1.2e-05', 'unknown->1.0000')
    """
    texts = [_decimals(left), _decimals(right)]
    if texts[0] == texts[1] and left is not None and right is not None and isfinite(left + right):
        hides_a_move = left != right
        hides_a_value = 0 < abs(left) < 5e-5
        if hides_a_move or hides_a_value:
            texts = [f"{left:.4g}", f"{right:.4g}"]
    return "->".join(texts)


def _decimals(value: float | None) -> str:
    if value is None or not isfinite(value):
        return UNKNOWN
    return f"{value:.4f}".replace("-0.0000", "0.0000")


def count(number: int) -> str:
    """Write a large count with its unit.

    >>> count(999), count(11_689_512), count(1_100_048_384), count(999_999)
    ('999', '11.7M', '1.1B', '1.0M')
    """
    return _scaled(number, _COUNTS)


def size(number: int) -> str:
    """Write a count of bytes with its unit.

    >>> size(12), size(2_200_119_864)
    ('12 bytes', '2.2 GB')
    """
    return _scaled(number, _BYTES, " ")


def _scaled(number: int, units: Iterable[tuple[str, int]], gap: str = "") -> str:
    text = ""
    for unit, one in units:
        scaled = number / one
        digits = 1 if one > 1 and scaled < 99.95 else 0
        text = f"{scaled:.{digits}f}{gap}{unit}"
        if round(scaled, digits) < 1000:
            break
    return text


def plural(number: int, word: str) -> str:
    """Write a count with its noun.

    >>> plural(1, "tensor"), plural(290, "tensor")
    ('1 tensor', '290 tensors')
    """
    return f"{number} {word}{'' if number == 1 else 's'}"


def brackets(shape: Iterable[int]) -> str:
    """Write a shape as people type it.

    >>> brackets((64, 3))
    '[64, 3]'
    """
    return f"[{', '.join(map(str, shape))}]"
