"""Fail a build when a model's structure changed: a shape, a dtype, a tensor more or less.

    python examples/shape_gate.py released.safetensors candidate.safetensors

Only headers are read, so it takes a moment whatever the models weigh. Values may
change freely: retraining is no breach.
"""

# ruff: noqa: INP001, T201

import sys

import difflens


def main(left: str, right: str) -> int:
    """Print every breach; 1 if there is one, 2 if a model cannot be read."""
    try:
        diff = difflens.diff(left, right)
    except difflens.DifflensError as error:
        print(f"cannot compare: {error}", file=sys.stderr)
        return 2
    breaches = 0
    for pair in diff.pairs:  # `diff.deltas` would read the tensors
        before, after = (
            f"{side.dtype} {list(side.shape)}" if side else "absent"
            for side in (pair.left, pair.right)
        )
        if before != after:
            breaches += 1
            print(f"{pair.name}: {before} -> {after}")
    return 1 if breaches else 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:3]))
