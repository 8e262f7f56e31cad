"""What the monitor costs on a GPU: ratios of step times, interleaved in one run.

`python bench/gpu_monitor.py` needs torch with CUDA, Triton and this tree, no network. One model
and one optimizer serve all variants; each is attached once and then turned off and on, block by
block, and the ratio is the median over pairs of neighbouring blocks.
"""

from __future__ import annotations

import shutil
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from statistics import median
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
sys.path[:0] = [str(ROOT / "src"), str(ROOT / ".bench" / "deps")]


def gpt(torch: Any, layers: int, width: int, heads: int) -> Any:
    """Build GPT-2: 124 M parameters at 12 layers of width 768."""
    nn = torch.nn
    spread = torch.nn.functional

    class Block(nn.Module):  # type: ignore[name-defined]
        def __init__(self) -> None:
            super().__init__()
            self.first, self.second = nn.LayerNorm(width), nn.LayerNorm(width)
            self.query, self.out = nn.Linear(width, 3 * width), nn.Linear(width, width)
            self.up, self.down = nn.Linear(width, 4 * width), nn.Linear(4 * width, width)

        def forward(self, x: Any) -> Any:
            batch, length, _ = x.shape
            parts = self.query(self.first(x)).split(width, 2)
            q, k, v = (
                each.view(batch, length, heads, width // heads).transpose(1, 2) for each in parts
            )
            mixed = spread.scaled_dot_product_attention(q, k, v, is_causal=True)
            x = x + self.out(mixed.transpose(1, 2).reshape(batch, length, width))
            return x + self.down(spread.gelu(self.up(self.second(x))))

    class Gpt(nn.Module):  # type: ignore[name-defined]
        def __init__(self) -> None:
            super().__init__()
            self.token, self.place = nn.Embedding(50304, width), nn.Embedding(1024, width)
            self.blocks = nn.ModuleList(Block() for _ in range(layers))
            self.norm = nn.LayerNorm(width)
            self.head = nn.Linear(width, 50304, bias=False)
            self.head.weight = self.token.weight

        def forward(self, x: Any) -> Any:
            inner = self.token(x) + self.place.weight[: x.shape[1]]
            for block in self.blocks:
                inner = block(inner)
            return self.head(self.norm(inner))

    torch.manual_seed(0)
    return Gpt().cuda()


class Switch:
    """What a variant does at a step, that can be turned off and on while its hooks stay."""

    is_on = True

    @property
    def device_milliseconds(self) -> float:
        """The GPU's own time for a reading, where it is known."""
        return 0.0

    def tell(self, loss: Any) -> None:
        """Hear of the end of a step."""

    def close(self) -> None:
        """Take the hooks away."""


class Hooked(Switch):
    """A variant that is a function over all parameters before the optimizer steps."""

    def __init__(self, model: Any, optimizer: Any, look: Callable[[Any], None]) -> None:
        """Hang on the optimizer."""
        self._model, self._look = model, look
        self._handle = optimizer.register_step_pre_hook(self._hook)

    def _hook(self, *_: Any) -> None:
        for each in self._model.parameters() if self.is_on else ():
            self._look(each)

    def tell(self, loss: Any) -> None:
        """Read the loss as well."""
        if self.is_on:
            loss.item()

    def close(self) -> None:
        """Take the hook away."""
        self._handle.remove()


def items(each: Any) -> None:
    """Read four numbers with `.item()`, as a first attempt does."""
    each.grad.norm().item()
    each.grad.abs().mean().item()
    each.grad.abs().max().item()
    each.detach().norm().item()


def histogram(each: Any) -> None:
    """Make a 64-bin histogram of a gradient on the host, as wandb.watch does."""
    import torch

    flat = each.grad.detach().float().flatten()
    low, high = flat.min().item(), flat.max().item()
    torch.histc(flat, 64, low, high if high > low else low + 1).cpu().tolist()


class Off:
    """A sampling that wants no step."""

    fixed, every, budget, share, left = True, 1, 0.01, None, 1
    is_watching = False

    def is_wanted(self) -> bool:
        """Never."""
        return False

    def passed(self) -> None:
        """Count nothing."""

    def watch(self) -> None:
        """Watch nothing."""

    def measured(self, own_seconds: float, step_seconds: float, beside: float = 0.0) -> None:
        """Learn nothing."""


class Watched(Switch):
    """Our monitor."""

    def __init__(self, model: Any, optimizer: Any, folder: Path, **how: Any) -> None:
        """Attach it."""
        from difflens.training.story import monitor

        self._watch = monitor(model, optimizer, folder / "run", overwrite=True, **how).__enter__()
        self._hook: Any = self._watch._hook  # noqa: SLF001
        self._samplings = (Off(), self._hook._pace.sampling)  # noqa: SLF001

    @property
    def is_on(self) -> bool:
        """Does it read?"""
        return self._hook._pace.sampling is self._samplings[1]  # noqa: SLF001

    @is_on.setter
    def is_on(self, wanted: bool) -> None:
        self._hook._pace.sampling = self._samplings[wanted]  # noqa: SLF001

    def tell(self, loss: Any) -> None:
        """Close the frame."""
        self._watch.step(loss)

    @property
    def device_milliseconds(self) -> float:
        """The GPU's own time for the last reading, as its events tell."""
        return 1e3 * float(self._hook._readers.device_seconds())  # noqa: SLF001

    @property
    def is_quiet(self) -> bool:
        """Did it give up?"""
        return bool(self._watch.is_quiet)

    def close(self) -> None:
        """Leave the model as it was."""
        self._watch.close()


def steps(torch: Any, model: Any, optimizer: Any, batch: int) -> Callable[[Any, int], float]:
    """Return a function that trains some steps and tells the seconds of one."""
    tokens = torch.randint(0, 50257, (batch, 1025), device="cuda")
    spread = torch.nn.functional

    def run(tell: Any, count: int) -> float:
        torch.cuda.synchronize()
        begun = time.perf_counter()
        for _ in range(count):
            with torch.autocast("cuda", torch.bfloat16):
                out = model(tokens[:, :-1])
                loss = spread.cross_entropy(out.flatten(0, 1), tokens[:, 1:].flatten())
            loss.backward()
            optimizer.step()
            optimizer.zero_grad(set_to_none=True)
            tell(loss)
        torch.cuda.synchronize()
        return (time.perf_counter() - begun) / count

    return run


def table(torch: Any, model: Any, name: str, *, batch: int, rounds: int, folder: Path) -> None:
    """Print the ratios of one model, each of blocks with a variant on to blocks with it off."""
    optimizer = torch.optim.AdamW(model.parameters(), 1e-4, fused=True)
    run = steps(torch, model, optimizer, batch)

    def ours(**how: Any) -> Callable[[], Switch]:
        return lambda: Watched(model, optimizer, folder, **how)

    variants: dict[str, tuple[Callable[[], Switch], int]] = {
        "none": (Switch, 16),
        "every step": (ours(every=1, diagnose_every=None), 16),
        "every step, weights whole": (ours(every=1, updates=1, diagnose_every=None), 16),
        "auto, 1 %, diagnosed": (ours(), 32),
        "foreach": (ours(every=1, fused=False, diagnose_every=None), 16),
        ".item() per tensor": (lambda: Hooked(model, optimizer, items), 4),
        "histograms": (lambda: Hooked(model, optimizer, histogram), 4),
    }
    for place, (each, (make, count)) in enumerate(variants.items()):
        switch = make()
        run(switch.tell, 40 if "auto" in each else 6)
        ratios, bare = [], []
        for number in range(rounds):
            # The order changes from pair to pair: a machine that warms up favours neither.
            seconds = {}
            for is_on in (False, True) if number % 2 else (True, False):
                switch.is_on = is_on
                run(switch.tell, 1)
                seconds[is_on] = run(switch.tell, count)
            bare.append(seconds[False])
            ratios.append(seconds[True] / seconds[False])
        own = switch.device_milliseconds
        switch.close()
        if not place:
            print(f"\n{name}, batch {batch}x1024: {1e3 * median(bare):.2f} ms a step", flush=True)
        low, high = (100 * (share - 1) for share in (min(ratios), max(ratios)))
        middle = 100 * (median(ratios) - 1)
        on_device = f"   {own:.3f} ms on the GPU" if own else ""
        print(f"  {each:26s} {middle:+7.2f} %   ({low:+.2f} to {high:+.2f}){on_device}", flush=True)


def syncs(torch: Any, model: Any, folder: Path) -> None:
    """Train under `set_sync_debug_mode("error")`: any synchronisation of the loop raises."""
    optimizer = torch.optim.AdamW(model.parameters(), 1e-4, fused=True)
    run = steps(torch, model, optimizer, 2)
    tokens = torch.zeros((2, 1024), dtype=torch.int64, device="cuda")
    for how in ({}, {"updates": 1}, {"updates": 1, "fused": False}):
        switch = Watched(model, optimizer, folder, every=1, diagnose_every=None, **how)
        run(switch.tell, 3)
        torch.cuda.set_sync_debug_mode("error")
        for _ in range(5):
            loss = model(tokens).float().mean()
            loss.backward()
            optimizer.step()
            optimizer.zero_grad()
            switch.tell(loss)
        torch.cuda.set_sync_debug_mode("default")
        switch.close()
        if switch.is_quiet:
            raise SystemExit("the monitor went quiet: it would have synchronised")
    print("no synchronisation in the loop: fused and foreach", flush=True)


def main(rounds: int = 6) -> None:
    import torch

    folder = Path(tempfile.mkdtemp())
    try:
        print(torch.__version__, torch.cuda.get_device_name(), flush=True)
        small = gpt(torch, 12, 768, 12)
        print(sum(each.numel() for each in small.parameters()), "parameters", flush=True)
        syncs(torch, small, folder)
        table(torch, small, "GPT-2 124M", batch=16, rounds=rounds, folder=folder)
        table(torch, small, "GPT-2 124M", batch=4, rounds=rounds, folder=folder)
        del small
        torch.cuda.empty_cache()
        large = gpt(torch, 20, 2048, 16)
        print(sum(each.numel() for each in large.parameters()), "parameters", flush=True)
        table(torch, large, "GPT 1B", batch=4, rounds=max(2, rounds // 2), folder=folder)
    finally:
        shutil.rmtree(folder, ignore_errors=True)


if __name__ == "__main__":
    main(*map(int, sys.argv[1:]))
