"""Two processes that train one model record what one process does."""

import socket

import numpy as np
import pytest
from hooks.loops import read
from hooks.parallel import STEPS, loop, network, rank_of_many

from difflens.runs import LAYER_FIELDS

torch = pytest.importorskip("torch")


def alone(folder):
    model = network()
    optimizer = torch.optim.AdamW(model.parameters(), 1e-2, eps=1e-3)
    loop(model, optimizer, 0, 1, folder)
    return read(folder)


def together(kind, folder, **how):
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    torch.multiprocessing.spawn(
        rank_of_many, (2, port, kind, str(folder), how), nprocs=2, join=True
    )


@pytest.mark.parametrize("kind", ["ddp", "fsdp"])
def test_two_processes_record_the_frames_of_one(tmp_path, kind):
    frames, info = alone(tmp_path / "one")
    together(kind, tmp_path / "two")

    merged, told = read(tmp_path / "two")
    assert [layer.name for layer in told.layers] == [layer.name for layer in info.layers]
    assert [layer.shape for layer in told.layers] == [layer.shape for layer in info.layers]
    assert [layer.kind for layer in told.layers] == [layer.kind for layer in info.layers]
    assert told.ranks == 2
    assert len(merged) == STEPS
    for left, right in zip(frames, merged, strict=True):
        for field, one, two in zip(LAYER_FIELDS, left.layers, right.layers, strict=True):
            np.testing.assert_allclose(two, one, rtol=2e-5, atol=1e-8, err_msg=field)
        loss = info.scalars.index("loss")
        assert right.scalars[loss] == pytest.approx(left.scalars[loss], rel=1e-6)
    assert [each.name for each in (tmp_path / "two").iterdir()] == ["frames-000.dlr"]


@pytest.mark.parametrize("kind", ["ddp", "fsdp"])
def test_each_rank_can_write_its_own_file(tmp_path, kind):
    frames, _ = alone(tmp_path / "one")
    together(kind, tmp_path / "two", ranks="each")

    parts = [read(tmp_path / "two", rank) for rank in range(2)]
    assert [info.rank for _, info in parts] == [0, 1]
    squares = [np.array([frame.layers[0] ** 2 for frame in own]) for own, _ in parts]
    whole = np.array([frame.layers[0] ** 2 for frame in frames])
    # Data parallelism has the whole gradient on each rank, shards add up to it.
    times = 2 if kind == "ddp" else 1
    np.testing.assert_allclose(squares[0] + squares[1], whole * times, rtol=1e-4)


def test_ranks_agree_on_which_steps_to_read(tmp_path):
    """Were they to sample different steps, the frames of two steps would be added up."""
    together("fsdp", tmp_path / "run", every="auto", budget=0.002, steps=120)

    frames, _ = read(tmp_path / "run")
    assert 16 < len(frames) < 120
    assert all(np.isfinite(frame.layers).all() for frame in frames)
