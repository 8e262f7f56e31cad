"""List the five tensors that changed most between two models.

python examples/most_changed.py base.safetensors tuned.safetensors
"""

# ruff: noqa: INP001, T201

import sys

import difflens


def main(left: str, right: str) -> None:
    """Compare two models and print the tensors that moved furthest beside their own size."""
    diff = difflens.diff(left, right)
    measured = [delta for delta in diff.changed if delta.figures().get("relative_l2") is not None]
    measured.sort(key=lambda delta: delta.relative_l2, reverse=True)
    print(f"{len(diff.changed)} of {len(diff.deltas)} tensors differ; the most changed:")
    for delta in measured[:5]:
        print(f"  {delta.relative_l2:8.2%}  {delta.name}")


if __name__ == "__main__":
    main(*sys.argv[1:3])
