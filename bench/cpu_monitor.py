"""What the monitor costs on the processor: ratios of step times, interleaved in one run.

`python -m bench.cpu_monitor [ROUNDS [MODEL...]]` prints the table of docs/monitor.md. All variants
train one and the same model in turn, and the monitor is attached and detached between turns: two
copies of a model differ by several percent from each other by where their memory lies, which is
more than is to be measured. Each round begins with another variant, so that none has a better
place. Turns are short and rounds many: a shared machine changes its pace by the second, and what
is not ours can make a turn longer but never shorter, so the figure is the ratio of the fastest
turns. A second bare loop shows what the noise is. `auto` has to settle, which is longer than a
turn: it has a turn in every third round.

By the clock, and by the processor seconds of the whole process, the recorder's thread with them:
those are longer than the loop's own where a core is free, and do not count who else had the core.
"""

from __future__ import annotations

import shutil
import sys
import tempfile
import threading
import time
from collections.abc import Callable
from contextlib import nullcontext
from pathlib import Path
from typing import Any, NamedTuple

Step = Callable[[], Any]
# Steps before a turn is timed: the first ones touch memory, and how often `auto` reads is decided
# from what its first readings cost.
_WARM, _SETTLED = 2, 40
_SELDOM = 3  # rounds of which one has a turn of `auto`


def mlp(torch: Any) -> tuple[Any, Any]:
    nn = torch.nn
    model = nn.Sequential(nn.Linear(64, 160), nn.ReLU(), nn.Linear(160, 160), nn.ReLU(),
                          nn.Linear(160, 10))  # fmt: skip
    return model, (torch.randn(256, 64), torch.randint(0, 10, (256,)))


def resnet(torch: Any) -> tuple[Any, Any]:
    """Build ResNet-18 for 32x32 images: 11.2 M parameters in 62 tensors."""
    nn = torch.nn

    class Block(nn.Module):  # type: ignore[misc, name-defined]
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

    class Mini(nn.Module):  # type: ignore[misc, name-defined]
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
    from difflens.training import monitor

    def watched(name: str, **how: Any) -> Callable[[Any, Any], Any]:
        return lambda model, optimizer: monitor(
            model, optimizer, folder / name, overwrite=True, **how
        )

    return {
        "none": lambda _model, _optimizer: nullcontext(),
        "none again": lambda _model, _optimizer: nullcontext(),
        "every step": watched("all", every=1, diagnose_every=None),
        "every step, diagnosed": watched("diagnosed", every=1),
        "auto, 1 %": watched("auto"),
        ".item() per tensor": lambda _model, _optimizer: nullcontext(),
    }


def trainer(torch: Any, make: Any) -> tuple[Any, Any, Step]:
    """Give a model, its optimiser, and a step that gives its loss and leaves gradients to read."""
    torch.manual_seed(0)
    model, (inputs, targets) = make(torch)
    optimizer = torch.optim.AdamW(model.parameters(), 1e-4)

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


def _work_beside() -> float:
    """Give the processor seconds of Python's threads but this one: of the recorder."""
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

        train(_SETTLED if name.startswith("auto") else _WARM)
        if entered is not None:
            entered.flush()
        begun, spent = time.perf_counter(), time.process_time()
        train(block)
        took = time.perf_counter() - begun
        # What its thread still has to do is this variant's, not the next one's; it is counted by
        # its work, because no loop waits for it. Torch's own threads spin meanwhile.
        worked = _work_beside()
        if entered is not None:
            entered.flush()
        spent = time.process_time() - spent
        return Took((took + _work_beside() - worked) / block, spent / block)


def times_of(torch: Any, make: Any, rounds: int, block: int) -> dict[str, list[Took]]:
    """Give the seconds of a step of each variant, turn by turn."""
    folder = Path(tempfile.mkdtemp())
    model, optimizer, step = trainer(torch, make)
    watches = variants(folder)
    times: dict[str, list[Took]] = {name: [] for name in watches}
    for each in range(rounds + 1):
        first = each % len(watches)
        for name in [*watches][first:] + [*watches][:first]:
            if name.startswith("auto") and each % _SELDOM:
                continue
            took = turn(name, watches[name](model, optimizer), model, step, block)
            if each:  # the first round is the machine's warm-up
                times[name].append(took)
    shutil.rmtree(folder, ignore_errors=True)
    return times


def row(name: str, times: dict[str, list[float]]) -> str:
    """Give a line of the table: a bare step, and how much longer each variant's is."""
    best = {variant: min(found) for variant, found in times.items()}
    bare = best.pop("none")
    told = (f"{found / bare - 1:+.1%}" for found in best.values())
    return " | ".join((f"| {name}", f"{1e3 * bare:.1f} ms", *told)) + " |"


_MODELS: dict[str, tuple[str, Callable[[Any], tuple[Any, Any]], int]] = {
    "mlp": ("MLP, 3 layers", mlp, 400),
    "gpt": ("GPT-mini, 0.9 M", gpt, 8),
    "resnet": ("ResNet-18, 11 M", resnet, 4),
}


def main(arguments: list[str]) -> None:
    import torch

    rounds = int(arguments[0]) if arguments else 24

    threads = torch.get_num_threads()
    print(f"torch {torch.__version__}, {threads} threads, best of {rounds} interleaved rounds\n")
    print(
        "| model | step | nothing | every step | and diagnosed | auto, 1 % | .item() per tensor |"
    )
    print("|---|---|---|---|---|---|---|")
    for each in arguments[1:] or _MODELS:
        name, make, block = _MODELS[each]
        times = times_of(torch, make, rounds, block)
        for place, clock in enumerate(Took._fields):
            seconds = {variant: [one[place] for one in found] for variant, found in times.items()}
            print(row(f"{name}, {clock}", seconds), flush=True)


if __name__ == "__main__":
    main(sys.argv[1:])
