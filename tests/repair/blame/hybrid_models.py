"""Models to blame, and commands that judge them: small, and without a framework."""

import sys
from pathlib import Path
from typing import Any

import numpy as np
from models.small import tensor, write

MODULES = ("q_proj", "k_proj", "v_proj", "o_proj", "up_proj", "down_proj")
Arrays = dict[str, Any]

# Reads safetensors and judges them, without anything to import that is slow.
JUDGE = """
import array, json, struct, sys, time
def read(path):
    data = open(path, "rb").read()
    size = struct.unpack("<Q", data[:8])[0]
    header = json.loads(data[8:8 + size])
    header.pop("__metadata__", None)
    found = {}
    for name, each in header.items():
        start, stop = (8 + size + at for at in each["data_offsets"])
        found[name] = array.array("f", data[start:stop])
    return found
"""


def fine_tuned(blocks: int = 6, seed: int = 0) -> tuple[Arrays, Arrays]:
    """Make a model, and the same one after every tensor of it moved a little."""
    random = np.random.default_rng(seed)
    good: Arrays = {"embed.weight": random.normal(size=(32, 16)).astype("f4")}
    for block in range(blocks):
        for module in MODULES:
            good[f"layers.{block}.{module}.weight"] = random.normal(size=(16, 16)).astype("f4")
    moved = {
        name: (value + random.normal(size=value.shape) * 0.01).astype("f4")
        for name, value in good.items()
    }
    return good, moved


def resembles(good: Arrays, *names: str) -> Any:
    """Make a check that passes while these tensors still point where they did."""

    def check(hybrid: Arrays) -> bool:
        return all(float(np.sum(hybrid[name] * good[name])) > 0 for name in names)

    return check


def files(folder: Path, good: Arrays, bad: Arrays) -> tuple[Path, Path]:
    """Write both models."""
    sides = ("good", good), ("bad", bad)
    made = [
        write(folder / f"{side}.safetensors", {n: tensor(v) for n, v in model.items()})
        for side, model in sides
    ]
    return made[0], made[1]


def judge(folder: Path, body: str) -> list[str]:
    """Write a command that reads a model as `model` and does what the body says."""
    script = folder / "judge.py"
    lines = f"{JUDGE}\nlog = {str(folder / 'log')!r}\nmodel = read(sys.argv[1])\n{body}\n"
    script.write_text(lines, "utf-8")
    return [sys.executable, "-S", "-E", str(script)]


LOGGED = "open(log, 'a').write(sys.argv[1] + '\\n')\n"


def fails_where_negative(*names: str) -> str:
    """Return the body of a judge: it fails if the first number of all of these is negative."""
    return f"sys.exit(all(model[name][0] < 0 for name in {names!r}))"
