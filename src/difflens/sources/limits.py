"""The limits a file may not exceed unless the user raises them."""

from collections.abc import Iterable, Mapping

from ..errors import DifflensError, UnknownName

DEFAULTS: dict[str, int] = {
    "json_depth": 64,  # serde_json stops at 128; headers need 3
    "json_header": 100_000_000,  # bytes; the reference reader's own limit
    "rank": 64,  # numpy stops there
}


def check(overrides: Mapping[str, int] | None) -> dict[str, int]:
    """Give every limit, the user's word over the default.

    >>> check({"rank": 80})["rank"]
    80
    """
    overrides = dict(overrides or {})
    for name in overrides:
        if name not in DEFAULTS:
            raise UnknownName("limit", name, DEFAULTS)
    return DEFAULTS | overrides


def parse(texts: Iterable[str]) -> dict[str, int]:
    """Read limits as they are written on the command line.

    >>> parse(["json_header=200000000"])
    {'json_header': 200000000}
    """
    limits = {}
    for text in texts:
        name, _, value = text.partition("=")
        check({name: 0})
        if not (value.isascii() and value.isdigit() and len(value) < 20):
            raise DifflensError(f"limit {name} is given as {value!r}, a whole number is wanted")
        limits[name] = int(value)
    return limits
