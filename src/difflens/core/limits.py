"""The limits a file may not exceed unless the user raises them."""

from collections.abc import Iterable, Mapping

from .errors import DifflensError, UnknownName

LARGEST = 2**63 - 1  # a size or an offset; larger ones overflow in readers of other languages

DEFAULTS: dict[str, int] = {
    "compressed_bytes": 512 * 1024**2,  # a larger stream may not unpack to more than
    "compressed_ratio": 250,  # times its size
    "evidence_bytes": 100_000_000,  # of a file that is passed beside the models
    "hdf5_bytes": 64 * 1024**2,  # a larger dataset may not unpack to more than
    "hdf5_ratio": 1000,  # times its stored size
    "hdf5_seconds": 60,  # without progress in the child process
    "json_depth": 64,  # serde_json stops at 128; headers need 3
    "json_header": 100_000_000,  # bytes; the limit of the reference reader
    "npy_header": 10_000,  # bytes; the limit of numpy
    "patch_ratio": 64,  # times the size of its base and itself that a patch may make
    "pickle_nodes": 1_000_000,  # objects that a pickle may create
    "pickle_opcodes": 10_000_000,
    "protobuf_depth": 100,  # the limit of upb
    "rank": 64,  # the limit of numpy
    "zip_bytes": 256 * 1024**2,  # a larger member may not unpack to more than
    "zip_members": 100_000,
    "zip_ratio": 100,  # times its stored size
}


def check(overrides: Mapping[str, int] | None) -> dict[str, int]:
    """Return all limits: those of the user, and defaults for the others.

    >>> check({"rank": 80})["rank"]
    80
    """
    overrides = dict(overrides or {})
    for name in overrides:
        if name not in DEFAULTS:
            raise UnknownName("limit", name, DEFAULTS)
    return DEFAULTS | overrides


def limit_of(limits: Mapping[str, int], name: str) -> int:
    """Return a limit by name, with the value of the user if there is one.

    >>> limit_of({"rank": 80}, "rank"), limit_of({}, "rank")
    (80, 64)
    """
    limit = limits.get(name, DEFAULTS.get(name))
    if limit is None:
        raise UnknownName("limit", name, DEFAULTS)
    return limit


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
            raise DifflensError(f"limit {name} is {value!r}, expected a whole number")
        limits[name] = int(value)
    return limits
