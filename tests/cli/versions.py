"""Recorded versions for tests of the commands: examples with a known share of right answers."""

import json
from pathlib import Path
from typing import Any

from cli.command import InProcess


def scores(path: Path, right: int, of: int = 400, metric: str = "val_accuracy") -> Path:
    """Write per-example results, the first `right` of them right."""
    rows = [f"{place},{int(place < right)},{metric}" for place in range(of)]
    path.write_text("\n".join(["id,score,metric", *rows]) + "\n")
    return path


def record(
    difflens: InProcess, key: str, *, right: int | None = None, **files: dict[str, Any]
) -> None:
    """Record NAME@VERSION with a share of right answers, and JSON files by option."""
    name, _, version = key.partition("@")
    words = ["snapshot", "add", name, "--version", version]
    if right is not None:
        words += ["--eval", str(scores(Path(f"{key}.csv"), right))]
    for option, content in files.items():
        path = Path(f"{key}.{option}.json")
        path.write_text(json.dumps(content))
        words += [f"--{option}", str(path)]
    done = difflens(*words)
    assert done.code == 0, done.err
