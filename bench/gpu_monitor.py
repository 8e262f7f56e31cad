"""What the monitor costs on a GPU: ratios of step times, interleaved in one run.

`python bench/gpu_monitor.py` needs torch with CUDA, Triton and this tree, no network. One model
and one optimizer serve all variants, which take turns; each block of steps is followed by one of
the bare loop, and the ratio is the median over blocks.
"""

from __future__ import annotations

import shutil
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from statistics import median
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
sys.path[:0] = [str(ROOT / "src"), str(ROOT / ".bench" / "deps")]


def gpt(torch: Any, layers: int, width: int, heads: int) -> Any:
    """Build GPT-2: 124 M parameters at 12 layers of width 768."""
    nn = torch.nn
    spread = torch.nn.functional

    class Block(nn.Module):  # type: ignore[misc, name-defined]
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

    class Gpt(nn.Module):  # type: ignore[misc, name-defined]
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


@contextmanager
def nothing(_model: Any, _optimizer: Any) -> Iterator[Callable[[Any], None]]:
    yield lambda _loss: None


@contextmanager
def items(model: Any, optimizer: Any) -> Iterator[Callable[[Any], None]]:
    """Read four numbers of every tensor with `.item()`, as a first attempt does."""

    def hook(*_: Any) -> None:
        for each in model.parameters():
            each.grad.norm().item()
            each.grad.abs().mean().item()
            each.grad.abs().max().item()
            each.detach().norm().item()

    handle = optimizer.register_step_pre_hook(hook)
    yield lambda loss: loss.item()
    handle.remove()


@contextmanager
def histograms(model: Any, optimizer: Any) -> Iterator[Callable[[Any], None]]:
    """Make a 64-bin histogram of every gradient on the host, as wandb.watch does."""
    import torch

    def hook(*_: Any) -> None:
        for each in model.parameters():
            flat = each.grad.detach().float().flatten()
            low, high = flat.min().item(), flat.max().item()
            torch.histc(flat, 64, low, high if high > low else low + 1).cpu().tolist()

    handle = optimizer.register_step_pre_hook(hook)
    yield lambda loss: loss.item()
    handle.remove()


def watched(folder: Path, **how: Any) -> Callable[[Any, Any], Any]:
    from difflens.training import monitor

    @contextmanager
    def entered(model: Any, optimizer: Any) -> Iterator[Callable[[Any], None]]:
        with monitor(model, optimizer, folder / "run", overwrite=True, **how) as watch:

            def tell(loss: Any) -> bool:
                watch.step(loss)
                return not watch.is_quiet

            yield tell

    return entered


def steps(torch: Any, model: Any, optimizer: Any, batch: int) -> Callable[[Any, int], float]:
    """Give a function that trains some steps and tells the seconds of one."""
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


def table(torch: Any, name: str, model: Any, batch: int, rounds: int) -> None:
    """Print the ratios of one model: variants take turns in blocks of steps on the same weights."""
    optimizer = torch.optim.AdamW(model.parameters(), 1e-4, fused=True)
    run = steps(torch, model, optimizer, batch)
    folder = Path(tempfile.mkdtemp())
    variants = {
        "none": (nothing, 2, 10),
        "every step": (watched(folder / "a", every=1, diagnose_every=None), 20, 32),
        "every step, updates too": (
            watched(folder / "b", every=1, updates=1, diagnose_every=None), 6, 10),
        "auto, 1 %, diagnosed": (watched(folder / "c"), 40, 32),
        "foreach": (watched(folder / "d", every=1, fused=False, diagnose_every=None), 20, 32),
        ".item() per tensor": (items, 2, 10),
        "histograms": (histograms, 2, 10),
    }  # fmt: skip
    times: dict[str, list[tuple[float, float]]] = {each: [] for each in variants}
    for _ in range(rounds):
        for each, (make, warm, count) in variants.items():
            with make(model, optimizer) as tell:
                run(tell, warm)
                own = run(tell, count)
            with nothing(model, optimizer) as tell:
                run(tell, 1)
                times[each].append((own, run(tell, count)))
    shutil.rmtree(folder, ignore_errors=True)
    bare = [other for found in times.values() for _, other in found]
    print(f"\n{name}, batch {batch}x1024: {1e3 * median(bare):.2f} ms a step", flush=True)
    for each, found in times.items():
        ratios = [own / other for own, other in found]
        print(
            f"  {each:24s} {100 * (median(ratios) - 1):+7.2f} %   "
            f"({100 * (min(ratios) - 1):+.2f} to {100 * (max(ratios) - 1):+.2f})",
            flush=True,
        )


def syncs(torch: Any, model: Any, folder: Path) -> None:
    """Train under `set_sync_debug_mode("error")`: any synchronisation of the loop raises."""
    optimizer = torch.optim.AdamW(model.parameters(), 1e-4, fused=True)
    run = steps(torch, model, optimizer, 2)
    for fused in (True, False):
        with watched(folder, every=1, diagnose_every=None, fused=fused)(model, optimizer) as tell:
            run(tell, 3)
            torch.cuda.set_sync_debug_mode("error")
            try:
                tokens = torch.zeros((2, 1024), dtype=torch.int64, device="cuda")
                for _ in range(5):
                    loss = model(tokens).float().mean()
                    loss.backward()
                    optimizer.step()
                    optimizer.zero_grad()
                    tell(loss)
            finally:
                torch.cuda.set_sync_debug_mode("default")
            if not tell(loss):
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
        table(torch, "GPT-2 124M", small, 16, rounds)
        table(torch, "GPT-2 124M", small, 4, rounds)
        del small
        torch.cuda.empty_cache()
        large = gpt(torch, 20, 2048, 16)
        print(sum(each.numel() for each in large.parameters()), "parameters", flush=True)
        table(torch, "GPT 1B", large, 4, max(2, rounds // 2))
    finally:
        shutil.rmtree(folder, ignore_errors=True)


if __name__ == "__main__":
    main(*map(int, sys.argv[1:]))
