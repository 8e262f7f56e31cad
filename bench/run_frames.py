"""Records a long run, and reads it: `bench.run_frames write PATH LAYERS STEPS`, `… read PATH`.

The norms fall over the steps with noise on them, as gradients do; what is timed is the writer and
the reader, so the noise is drawn beforehand.
"""

from __future__ import annotations

import sys
import time

import numpy as np

from difflens.training.history import read_history
from difflens.training.history.writer import RunWriter
from difflens.training.records.runs import LAYER_FIELDS, Layer, RunInfo

_BLOCKS = 64
_KINDS = ("attn.q", "attn.k", "attn.v", "attn.o", "mlp.up", "mlp.down", "norm")


def info(layers: int) -> RunInfo:
    """Describe a decoder of so many tensors."""
    return RunInfo(
        name="bench",
        layers=tuple(
            Layer(
                f"blocks.{at // 7}.{_KINDS[at % 7]}.weight",
                (512, 512),
                kind="Linear",
                role="weight",
                depth=at // 7,
                dtype="F32",
                optimised=True,
            )
            for at in range(layers)
        ),
    )


def write(path: str, layers: int, steps: int) -> None:
    """Record the run and print how many frames were taken in a second."""
    draw = np.random.default_rng(0)
    shape = (len(LAYER_FIELDS), layers)
    blocks = np.exp(draw.normal(-3, 0.3, (_BLOCKS, *shape))).astype(np.float32)
    blocks[:, LAYER_FIELDS.index("grad_nonfinite")] = 0
    losses = 3 * np.exp(-np.arange(steps) / (steps / 3)) + draw.normal(0, 0.05, steps)
    began = time.perf_counter()
    with RunWriter(path, info(layers)) as writer:
        for step in range(steps):
            scalars = {"loss": losses[step], "lr": 1e-3}
            writer.append(step, scalars, blocks[step % _BLOCKS], wall_time=1e9 + step / 10)
    print(f"{steps / (time.perf_counter() - began):.0f} frames/s")


def read(path: str) -> None:
    """Read the run into a history and print what it holds."""
    began = time.perf_counter()
    history = read_history(path)
    seconds = time.perf_counter() - began
    print(f"{history.frames} frames, {len(history.course)} points, {seconds:.2f} s")


def main(what: str, path: str, *numbers: str) -> None:
    """Do one of the two."""
    if what == "write":
        write(path, *map(int, numbers))
    else:
        read(path)


if __name__ == "__main__":
    main(*sys.argv[1:])
