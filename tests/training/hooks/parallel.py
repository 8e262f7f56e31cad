"""One rank of a loop that several processes train together, for tests to start."""

import os
import time
import warnings
from pathlib import Path
from typing import Any

import torch
import torch.distributed as processes
from torch import nn

from difflens.training.hooks.torch.pace import Sampling
from difflens.training.story import monitor

STEPS = 5


def network() -> Any:
    torch.manual_seed(0)
    return nn.Sequential(
        nn.Linear(20, 33), nn.ReLU(), nn.Linear(33, 17), nn.Tanh(), nn.Linear(17, 5)
    )


def threads() -> set[str]:
    """Number the threads of this process, those of libraries too, where the system tells."""
    tasks = Path("/proc/self/task")
    return {each.name for each in tasks.iterdir()} if tasks.is_dir() else set()


def all_end(those: set[str], seconds: float = 30.0) -> bool:
    """Wait for threads: the system shows one a moment longer than whoever joined it."""
    until = time.monotonic() + seconds
    while those & threads() and time.monotonic() < until:
        os.sched_yield()
    return not those & threads()


def loop(model, optimizer, rank: int, count: int, folder, *, steps=STEPS, clip=None, **how) -> None:
    """Train on this rank's part of each batch."""
    torch.manual_seed(1)
    data, targets = torch.randn(steps, 32, 20), torch.randint(0, 5, (steps, 32))
    part = slice(rank * 32 // count, (rank + 1) * 32 // count)
    how = {"every": 1, "diagnose_every": None, **how}
    before = threads()
    with monitor(model, optimizer, folder, **how) as watch:
        ours = threads() - before
        for x, y in zip(data, targets, strict=True):
            loss = nn.functional.cross_entropy(model(x[part]), y[part])
            loss.backward()
            if hasattr(model, "clip_grad_norm_") and clip is not None:
                model.clip_grad_norm_(clip)  # FSDP's first kind has the norm of all ranks there
            elif clip is not None:
                nn.utils.clip_grad_norm_(model.parameters(), clip)
            optimizer.step()
            optimizer.zero_grad()
            watch.step(loss)
        assert watch.flush()
        if count > 1:
            processes.barrier()
    assert not watch.is_quiet
    # One that lets go of a tensor while the interpreter ends would abort the process.
    assert all_end(ours)


def rank_of_many(  # noqa: PLR0917  spawn hands them over by place
    rank: int, count: int, port: int, kind: str, folder: str, how: dict[str, Any]
) -> None:
    """Be one of the processes; `prices` are what each rank says its readings and steps take."""
    warnings.simplefilter("ignore")
    if prices := how.pop("prices", None):  # no clock decides then
        Sampling.price = lambda _: prices[rank]  # type: ignore[method-assign,assignment]
    torch.set_num_threads(1)
    os.environ.update(MASTER_ADDR="127.0.0.1", MASTER_PORT=str(port))
    processes.init_process_group("gloo", rank=rank, world_size=count)
    model = network()
    if kind == "ddp":
        model = nn.parallel.DistributedDataParallel(model)
    elif kind == "ddp with views":
        model = nn.parallel.DistributedDataParallel(
            model, gradient_as_bucket_view=True, static_graph=True
        )
    elif kind.startswith("flat"):
        from torch.distributed.fsdp import FullyShardedDataParallel

        how_flat = {"use_orig_params": kind != "flat alone", "device_id": torch.device("cpu")}
        if kind == "flat in pairs":
            from torch.distributed.device_mesh import init_device_mesh
            from torch.distributed.fsdp import ShardingStrategy

            how_flat["device_mesh"] = init_device_mesh("cpu", (count // 2, 2))
            how_flat["sharding_strategy"] = ShardingStrategy.HYBRID_SHARD
        model[0] = FullyShardedDataParallel(model[0], **how_flat)
        model = FullyShardedDataParallel(model, **how_flat)
    else:
        from torch.distributed.device_mesh import init_device_mesh
        from torch.distributed.fsdp import fully_shard

        in_pairs = kind == "fsdp in pairs"  # sharded over two, and that repeated
        mesh = (
            init_device_mesh("cpu", (count // 2, 2), mesh_dim_names=("repeat", "shard"))
            if in_pairs
            else init_device_mesh("cpu", (count,))
        )
        for layer in (model[0], model[2]):
            fully_shard(layer, mesh=mesh)
        fully_shard(model, mesh=mesh)
    optimizer = torch.optim.AdamW(model.parameters(), 1e-2, eps=1e-3)
    loop(model, optimizer, rank, count, folder, **how)
    processes.destroy_process_group()
