"""List the five tensors that changed most between two models.

python examples/most_changed.py base.safetensors tuned.safetensors
"""

# ruff: noqa: INP001, T201

import sys

import difflens


def main(left: str, right: str) -> None:
    """Compare two models and print the tensors that moved furthest beside their own size."""
    diff = difflens.diff(left, right)
    measured = [(delta.relative_l2 or 0.0, delta.name) for delta in diff.changed]
    measured.sort(reverse=True)
    print(f"{len(diff.changed)} of {len(diff.deltas)} tensors differ; the most changed:")
    for relative_l2, name in measured[:5]:
        print(f"  {relative_l2:8.2%}  {name}")


if __name__ == "__main__":
    main(*sys.argv[1:3])
