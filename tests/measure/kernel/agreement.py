"""What it means for two kernels to agree, in one place; run as a script, a short check of one.

Counts, extremes and places are exact. Sums differ by rounding. They are allowed 1e-12
of their natural scale, the sum of the magnitudes they are made of, and one thing more:
a mean is a rounded number, so each deviation from it may be off by `slack`, some
twenty units in the last place of the values' rms. A sum of k-th powers then moves by
at most sum (|deviation| + slack)^k - sum |deviation|^k, which Cauchy and Schwarz bound
by the moments themselves.
"""

import math
from typing import Any

import numpy as np
from strategies import BITS, DTYPES, REAL, encode

from difflens.measure.kernel import layout, reference

RELATIVE = 1e-12
SLACK = 4e-15
TINIEST = 1e-300  # squares of F64 subnormals are lost below this
HUGE = 1e300  # and those of its largest beyond this: no promise is made there

EXACT = (
    *layout.COUNTS, "left_min", "left_max", "right_min", "right_max", "max_abs",
)  # fmt: skip


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


def sweep(kernel: Any, sizes: tuple[int, ...] = (2, 62, 2050, 9000)) -> list[Any]:
    """Compare a kernel with the twin over all dtypes, alone and mixed."""
    rng = np.random.default_rng(20)
    combinations = [(dtype, dtype) for dtype in DTYPES]
    combinations += [(left, right) for left in REAL for right in REAL if left != right]
    found = []
    for left_dtype, right_dtype in combinations:
        for n in sizes if left_dtype == right_dtype else sizes[-1:]:
            for kind in ("bits", "numbers"):
                left = random_buffer(rng, left_dtype, n, kind)
                right = random_buffer(rng, right_dtype, n, kind)
                what = (left, right, left_dtype, right_dtype)
                differ = disagreements(
                    figures(scanned(reference, *what)), figures(scanned(kernel, *what))
                )
                found += [(left_dtype, right_dtype, n, kind, differ)] if differ else []
    return found


if __name__ == "__main__":
    from difflens.measure.kernel import _scan

    print(_scan.NAME, sweep(_scan))  # noqa: T201
