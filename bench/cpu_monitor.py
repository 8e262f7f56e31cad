"""What the monitor costs on the processor: ratios of step times, interleaved in one run.

`python -m bench.cpu_monitor [ROUNDS [MODEL...]]` prints the table of docs/monitor.md. All variants
train one and the same model in turn, and the monitor is attached and detached between turns: two
copies of a model differ by several percent from each other by where their memory lies, which is
more than is to be measured. A shared machine changes its pace by a third within seconds, so turns
are short, each has a bare one on both sides, and the figure is the median over all rounds of its
ratio to the mean of those two, with the median's standard error; the fastest turns of each, which
were taken before, differ by more. One of the variants is a bare loop itself and shows the noise.
`auto` has to settle, which is longer than a turn: it has a turn in every third round. The rate is
so small that the model of the last turn is that of the first: a network that has learned its one
batch by heart computes with other numbers, some of them too small to be fast.

By the clock, and by the processor seconds of the whole process, the recorder's thread with them:
those are longer than the loop's own where a core is free, and do not count who else had the core.
"""

from __future__ import annotations

import logging
import shutil
import sys
import tempfile
import threading
import time
from collections.abc import Callable
from contextlib import nullcontext
from math import pi, sqrt
from pathlib import Path
from statistics import fmean, median, quantiles
from typing import Any, NamedTuple

Step = Callable[[], Any]
_WARM = 2  # steps before a turn is timed: the first ones touch memory
# Steps and seconds before one of `auto` is: how often it reads is decided from what its first
# readings cost, on the loop's thread and on the recorder's, which looks a few times a second; and
# the diagnoses look often at first, for half a second of their own time.
_FIRST, _SETTLES = 40, 3.0
_SETTLING = ("auto", "every step, diagnosed")
_SELDOM = 3  # rounds of which one has a turn of `auto`


def mlp(torch: Any) -> tuple[Any, Any]:
    nn = torch.nn
    model = nn.Sequential(nn.Linear(64, 160), nn.ReLU(), nn.Linear(160, 160), nn.ReLU(),
                          nn.Linear(160, 10))  # fmt: skip
    return model, (torch.randn(256, 64), torch.randint(0, 10, (256,)))


def resnet(torch: Any) -> tuple[Any, Any]:
    """Build ResNet-18 for 32x32 images: 11.2 M parameters in 62 tensors."""
    nn = torch.nn

    class Block(nn.Module):  # type: ignore[name-defined]
        def __init__(self, inside: int, out: int, stride: int) -> None:
            super().__init__()
            self.first = nn.Conv2d(inside, out, 3, stride, 1, bias=False)
            self.first_norm = nn.BatchNorm2d(out)
            self.second = nn.Conv2d(out, out, 3, 1, 1, bias=False)
            self.second_norm = nn.BatchNorm2d(out)
            self.short = nn.Sequential()
            if stride > 1 or inside != out:
                self.short = nn.Sequential(
                    nn.Conv2d(inside, out, 1, stride, bias=False), nn.BatchNorm2d(out)
                )

        def forward(self, x: Any) -> Any:
            inner = torch.relu(self.first_norm(self.first(x)))
            return torch.relu(self.second_norm(self.second(inner)) + self.short(x))

    widths = [64, 64, 128, 128, 256, 256, 512, 512]
    layers = [nn.Conv2d(3, 64, 3, 1, 1, bias=False), nn.BatchNorm2d(64), nn.ReLU()]
    before = 64
    for place, width in enumerate(widths):
        layers.append(Block(before, width, 2 if place in {2, 4, 6} else 1))
        before = width
    layers += [nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(512, 10)]
    return nn.Sequential(*layers), (torch.randn(16, 3, 32, 32), torch.randint(0, 10, (16,)))


def gpt(torch: Any) -> tuple[Any, Any]:
    """Build a GPT of 4 layers, width 128: 0.9 M parameters in 51 tensors."""
    nn = torch.nn

    class Mini(nn.Module):  # type: ignore[name-defined]
        def __init__(self) -> None:
            super().__init__()
            self.token, self.place = nn.Embedding(256, 128), nn.Embedding(64, 128)
            layer = nn.TransformerEncoderLayer(128, 4, 512, 0.0, "gelu", batch_first=True,
                                               norm_first=True)  # fmt: skip
            self.blocks = nn.TransformerEncoder(layer, 4, enable_nested_tensor=False)
            self.head = nn.Linear(128, 256)
            self.register_buffer("mask", nn.Transformer.generate_square_subsequent_mask(64))

        def forward(self, x: Any) -> Any:
            inner = self.token(x) + self.place.weight
            return self.head(self.blocks(inner, self.mask, is_causal=True)).flatten(0, 1)

    return Mini(), (torch.randint(0, 256, (16, 64)), torch.randint(0, 256, (16 * 64,)))


def variants(folder: Path) -> dict[str, Callable[[Any, Any], Any]]:
    from difflens.training.story import monitor

    def watched(name: str, **how: Any) -> Callable[[Any, Any], Any]:
        return lambda model, optimizer: monitor(
            model, optimizer, folder / name, overwrite=True, **how
        )

    return {
        "nothing": lambda _model, _optimizer: nullcontext(),
        "every step": watched("all", every=1, diagnose_every=None),
        "every step, diagnosed": watched("diagnosed", every=1),
        "auto, 1 %": watched("auto"),
        ".item() per tensor": lambda _model, _optimizer: nullcontext(),
    }


def trainer(torch: Any, make: Any) -> tuple[Any, Any, Step]:
    """Return a model, its optimiser, and a step that returns the loss and leaves gradients."""
    torch.manual_seed(0)
    model, (inputs, targets) = make(torch)
    optimizer = torch.optim.AdamW(model.parameters(), 1e-9)

    def step() -> Any:
        optimizer.zero_grad()
        loss = torch.nn.functional.cross_entropy(model(inputs), targets)
        loss.backward()
        optimizer.step()
        return loss

    return model, optimizer, step


def _read_one_by_one(model: Any) -> None:
    for each in model.parameters():
        each.grad.norm().item()
        each.grad.abs().max().item()
        each.grad.abs().mean().item()
        each.norm().item()


def work_beside() -> float:
    """Return the processor seconds of Python's threads but this one: of the recorder."""
    beside = (each.ident for each in threading.enumerate() if each is not threading.main_thread())
    return sum(
        time.clock_gettime(time.pthread_getcpuclockid(each)) for each in beside if each is not None
    )


class Took(NamedTuple):
    """The seconds of a step."""

    clock: float
    processor: float


def turn(name: str, context: Any, model: Any, step: Step, block: int) -> Took:
    """Attach a variant, let it settle, and give the seconds of one of its steps."""
    with context as entered:

        def train(steps: int) -> None:
            for _ in range(steps):
                loss = step()
                if name.startswith(".item"):
                    _read_one_by_one(model)
                if entered is not None:
                    entered.step(loss)

        train(_WARM)
        if name.startswith(_SETTLING):
            settled = time.perf_counter() + _SETTLES
            train(_FIRST)
            while time.perf_counter() < settled:
                train(1)
        if entered is not None:
            entered.flush()
        begun, spent = time.perf_counter(), time.process_time()
        train(block)
        took = time.perf_counter() - begun
        # What its thread still has to do is this variant's, not the next one's; it is counted by
        # its work, because no loop waits for it. Torch's own threads spin meanwhile.
        worked = work_beside()
        if entered is not None:
            entered.flush()
        spent = time.process_time() - spent
        return Took((took + work_beside() - worked) / block, spent / block)


class Turn(NamedTuple):
    """What a variant took, and the mean of the bare turns before and after it."""

    own: Took
    bare: Took


def turns_of(torch: Any, make: Any, rounds: int, block: int) -> dict[str, list[Turn]]:
    """Return the turns of each variant."""
    folder = Path(tempfile.mkdtemp())
    model, optimizer, step = trainer(torch, make)
    watches = variants(folder)
    turns: dict[str, list[Turn]] = {name: [] for name in watches}

    def bare() -> Took:
        return turn("bare", nullcontext(), model, step, block)

    bare()  # the machine's warm-up
    before = bare()
    for each in range(rounds):
        for name, watch in watches.items():
            if name.startswith("auto") and each % _SELDOM:
                continue
            own, after = turn(name, watch(model, optimizer), model, step, block), bare()
            turns[name].append(Turn(own, Took(*map(fmean, zip(before, after, strict=True)))))
            before = after
    shutil.rmtree(folder, ignore_errors=True)
    return turns


def share(ratios: list[float]) -> str:
    """Return how much longer it took: the median, and by how much that may be off."""
    low, middle, high = quantiles(ratios, n=4)
    # Of a normal spread, which the middle half is near enough to.
    error = sqrt(pi / 2) * (high - low) / 1.349 / sqrt(len(ratios))
    return f"{100 * (middle - 1):+.1f} ± {100 * error:.1f} %"


def row(name: str, turns: dict[str, list[Turn]], clock: int) -> str:
    """Return a line of the table: a bare step, and how much longer each variant's is."""
    bare = median(each.bare[clock] for found in turns.values() for each in found)
    told = (share([own[clock] / bare[clock] for own, bare in found]) for found in turns.values())
    return " | ".join((f"| {name}", f"{1e3 * bare:.1f} ms", *told)) + " |"


MODELS: dict[str, tuple[str, Callable[[Any], tuple[Any, Any]], int]] = {
    "mlp": ("MLP, 3 layers", mlp, 200),
    "gpt": ("GPT-mini, 0.9 M", gpt, 8),
    "resnet": ("ResNet-18, 11 M", resnet, 4),
}


def main(arguments: list[str]) -> None:
    import torch

    # That a rate of 1e-9 is too low need not be said.
    logging.getLogger("difflens").setLevel(logging.CRITICAL)
    # A median with its error needs two turns of each, `auto` among them.
    rounds = max(int(arguments[0]) if arguments else 60, _SELDOM + 1)

    threads = torch.get_num_threads()
    print(f"torch {torch.__version__}, {threads} threads, {rounds} interleaved rounds\n")
    print(
        "| model | step | nothing | every step | and diagnosed | auto, 1 % | .item() per tensor |"
    )
    print("|---|---|---|---|---|---|---|")
    for each in arguments[1:] or MODELS:
        name, make, block = MODELS[each]
        turns = turns_of(torch, make, rounds, block)
        for place, clock in enumerate(Took._fields):
            print(row(f"{name}, {clock}", turns, place), flush=True)


if __name__ == "__main__":
    main(sys.argv[1:])
