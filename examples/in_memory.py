"""Compare two state dicts in memory: what did one step of training change?

    python examples/in_memory.py

Any mapping of names to arrays will do: NumPy arrays as here, or a PyTorch
model's `state_dict()`.
"""

# ruff: noqa: INP001, T201

import numpy as np

import difflens


def main() -> None:
    """Train a line for one step, with a layer that was meant to learn and did not."""
    random = np.random.default_rng(0)
    before = {
        "encoder.weight": random.standard_normal((8, 4)).astype(np.float32),
        "head.weight": random.standard_normal((1, 8)).astype(np.float32),
        "head.bias": np.zeros(1, np.float32),
    }
    after = dict(before)
    after["head.weight"] = before["head.weight"] * np.float32(0.99)
    after["head.bias"] = before["head.bias"] + np.float32(0.01)

    diff = difflens.diff(before, after)
    for delta in diff.deltas:
        moved = "" if delta.kind == "identical" else f", by {delta.l2:.3g}"
        print(f"{delta.name}: {delta.kind}{moved}")
    print(diff.report().verdict.sentence)


if __name__ == "__main__":
    main()
