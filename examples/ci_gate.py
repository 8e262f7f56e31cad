"""Gate a build on a diff: a new shape of the classifier fails it, many changed tensors warn.

    difflens released.safetensors candidate.safetensors -o json | python examples/ci_gate.py

It reads the rows of `-o json`, as `jq` would; exit code 0 passed, 1 failed, 2 no rows came.
"""

# ruff: noqa: INP001, T201

import json
import sys

MOST_CHANGED = 10


def main() -> int:
    """Judge the rows on stdin; what is said begins as GitHub Actions wants its annotations."""
    try:
        rows = json.load(sys.stdin)
    except ValueError:
        print("::error::difflens gave no JSON: was there trouble before?")
        return 2
    # jq '.[] | select(.TensorShapeChanged) | .TensorShapeChanged[0] | contains("classifier")'
    shapes = [row["TensorShapeChanged"] for row in rows if "TensorShapeChanged" in row]
    broken = [shape for shape in shapes if "classifier" in shape[0]]
    for name, left, right in broken:
        print(f"::error::{json.dumps(name)} changed its shape: {left} -> {right}")
    changed = sum("TensorStatsChanged" in row for row in rows)
    if changed > MOST_CHANGED:
        print(f"::warning::{changed} tensors changed, more than {MOST_CHANGED}")
    return 1 if broken else 0


if __name__ == "__main__":
    sys.exit(main())
