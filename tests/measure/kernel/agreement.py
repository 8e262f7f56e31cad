"""The kernels there are, and what it means for one to agree with another or with the truth.

Two kernels that scan the same elements give the same bytes. The truth, in fractions, and
elements that were cut elsewhere give the same counts, extremes and places; sums differ
by rounding. They are allowed 1e-12 of their natural scale, the sum of the magnitudes
they are made of, and one thing more: a mean is a rounded number, so each deviation from
it may be off by `slack`, some twenty units in the last place of the values' rms. A sum of
k-th powers then moves by at most sum (|deviation| + slack)^k - sum |deviation|^k, which
Cauchy and Schwarz bound by the moments themselves.
"""

import importlib.util
import math
import os
from functools import cache
from typing import Any
from unittest.mock import patch

from strategies import BITS, encode

from difflens.measure.kernel import layout, reference

RELATIVE = 1e-12
SLACK = 4e-15
TINIEST = 1e-300  # squares of F64 subnormals are lost below this
HUGE = 1e300  # and those of its largest beyond this: no promise is made there

EXACT = (
    *layout.COUNTS, "left_min", "left_max", "right_min", "right_max", "max_abs",
)  # fmt: skip


LEVELS = ("baseline", "avx2", "avx512")


@cache
def level(name: str) -> Any:
    """Load the compiled kernel once more, with these loops; None if it cannot be here."""
    spec = importlib.util.find_spec("difflens.measure.kernel._scan")
    if spec is None or spec.loader is None:
        return None
    kernel = importlib.util.module_from_spec(spec)
    try:
        with patch.dict(os.environ, {"DIFFLENS_LEVEL": name}):
            spec.loader.exec_module(kernel)
    except RuntimeError:  # this processor cannot run them
        return None
    return kernel


def kernels() -> dict[str, Any]:
    """List every kernel that runs here by its name."""
    compiled = {name: level(name) for name in LEVELS}
    return {name: kernel for name, kernel in compiled.items() if kernel} | {"numpy": reference}


def figures(state: Any) -> dict[str, Any]:
    return dict(zip(layout.FIELDS, layout.STATE.unpack(bytes(state)), strict=True))


def scanned(kernel: Any, left: Any, right: Any, *dtypes: str, epsilon: float = 0.0) -> bytearray:
    state = bytearray(layout.STATE.size)
    left_dtype, right_dtype = dtypes if len(dtypes) == 2 else dtypes * 2
    kernel.scan(left, right, left_dtype, right_dtype, epsilon, state)
    return state


def finite(seen: dict[str, Any], side: str) -> int:
    lost = ("nan", "positive_infinite", "negative_infinite")
    return seen["count"] - sum(seen[f"{side}_{name}"] for name in lost)


def _square(x: float) -> float:
    return x * x


def tolerances(seen: dict[str, Any]) -> dict[str, float]:
    """Say how far each sum may lie from this one."""
    allowed = {name: RELATIVE * seen[name] for name in ("abs_sum", "square_sum")}
    extremes = {}
    for side in ("left", "right"):
        n = finite(seen, side)
        mean, m2, m4 = (seen[f"{side}_{name}"] for name in ("mean", "m2", "m4"))
        extremes[side] = max(-seen[f"{side}_min"], seen[f"{side}_max"])
        if n * _square(_square(2 * extremes[side])) > HUGE:
            m4 = math.inf
        rms = math.sqrt(_square(mean) + m2 / n) if n else 0.0
        slack, first = SLACK * rms, math.sqrt(n * m2)
        both = math.sqrt(m2) * math.sqrt(m4)
        allowed |= {
            f"{side}_mean": RELATIVE * rms,
            f"{side}_abs_sum": RELATIVE * seen[f"{side}_abs_sum"],
            f"{side}_m2": RELATIVE * m2 + 2 * slack * first + n * _square(slack),
            f"{side}_m3": RELATIVE * both
            + 3 * slack * (m2 + slack * first)
            + n * slack * _square(slack),
            f"{side}_m4": RELATIVE * m4
            + slack * (4 * both + 6 * slack * m2 + 4 * _square(slack) * first)
            + n * _square(_square(slack)),
        }
    n = seen["pairs"]
    roots: dict[str, float] = {}
    spreads: dict[str, float] = {}
    for side in ("left", "right"):
        m2 = spreads[side] = seen[f"pair_{side}_m2"]
        roots[side] = math.sqrt(_square(seen[f"pair_{side}_mean"]) + m2 / n) if n else 0.0
        slack = SLACK * roots[side]
        allowed[f"pair_{side}_mean"] = RELATIVE * roots[side]
        allowed[f"pair_{side}_m2"] = (
            RELATIVE * m2 + 2 * slack * math.sqrt(n * m2) + n * _square(slack)
        )
    spread = {side: math.sqrt(m2) for side, m2 in spreads.items()}
    slacks = {side: SLACK * roots[side] * math.sqrt(n) for side in roots}
    allowed["comoment"] = (
        RELATIVE * spread["left"] * spread["right"]
        + slacks["left"] * spread["right"]
        + slacks["right"] * spread["left"]
        + slacks["left"] * slacks["right"]
    )
    if seen["count"] * _square(2 * max(*extremes.values(), seen["max_abs"])) > HUGE:
        beyond = ("mean", "m2", "comoment", "square_sum", "abs_sum")
        allowed |= {name: math.inf for name in allowed if name.endswith(beyond)}
    return allowed


def disagreements(expected: dict[str, Any], actual: dict[str, Any]) -> dict[str, Any]:
    """Return what differs by more than it may: the value expected, the value found, the leave."""
    found: dict[str, tuple[Any, Any, float]] = {
        name: (expected[name], actual[name], 0) for name in EXACT if expected[name] != actual[name]
    }
    for name, tolerance in tolerances(expected).items():
        leave = tolerance + TINIEST
        if math.isfinite(leave) and not abs(expected[name] - actual[name]) <= leave:
            found[name] = (expected[name], actual[name], leave)
    return found


def random_buffer(rng: Any, dtype: str, n: int, kind: str) -> bytes:
    """Make n elements: any bits, or Gaussian numbers about a mean of half their spread."""
    if kind == "bits":
        return rng.bytes(n * BITS[dtype] // 8)
    scale = 40.0 if dtype[0] in "IU" else 1.0
    return encode(scale * (rng.normal(size=n) + 0.5), dtype)


def differences(state: Any, other: Any) -> dict[str, Any]:
    """Return the figures of two states whose bytes are not the same."""
    pairs = zip(figures(state).items(), figures(other).values(), strict=True)
    return {
        name: (ours, theirs)
        for place, ((name, ours), theirs) in enumerate(pairs)
        if bytes(state[8 * place : 8 * place + 8]) != bytes(other[8 * place : 8 * place + 8])
    }
