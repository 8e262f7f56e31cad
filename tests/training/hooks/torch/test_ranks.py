"""Two processes that train one model record what one process does."""

import socket

import numpy as np
import pytest
from training.hooks.loops import read, with_layers
from training.hooks.parallel import STEPS, loop, network, rank_of_many

from difflens.training.history.frame import is_missing
from difflens.training.hooks.torch.pace import WATCH
from difflens.training.records.runs import LAYER_FIELDS

torch = pytest.importorskip("torch")


def alone(folder, **how):
    model = network()
    optimizer = torch.optim.AdamW(model.parameters(), 1e-2, eps=1e-3)
    loop(model, optimizer, 0, 1, folder, **how)
    return read(folder)


@pytest.fixture(scope="module", autouse=True)
def _imported_once():
    """Ranks are forks of one process that has imported torch, not thirty that import it each."""
    torch.multiprocessing.set_forkserver_preload(["torch", "torch.distributed.fsdp"])


def together(kind, folder, count=2, **how):
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    arguments = (count, port, kind, str(folder), how)
    torch.multiprocessing.start_processes(
        rank_of_many, arguments, nprocs=count, start_method="forkserver"
    )


@pytest.mark.parametrize("kind", ["ddp", "fsdp", "flat"])
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


@pytest.mark.parametrize("kind", ["fsdp in pairs", "flat in pairs"])
def test_shards_that_are_repeated_count_once(tmp_path, kind):
    """Hybrid sharding: four processes, of which two hold the parts that the others hold too."""
    frames, info = alone(tmp_path / "one", clip=0.05)
    together(kind, tmp_path / "four", count=4, clip=0.05)

    merged, told = read(tmp_path / "four")
    assert told.ranks == 4
    assert [layer.shape for layer in told.layers] == [layer.shape for layer in info.layers]
    assert len(merged) == STEPS
    for left, right in zip(frames, merged, strict=True):
        np.testing.assert_allclose(right.layers, left.layers, rtol=1e-4, atol=1e-8)


@pytest.mark.parametrize("kind", ["ddp", "ddp with views", "fsdp", "flat"])
def test_clipped_gradients_of_two_processes_are_shown_as_they_were_before(tmp_path, kind):
    """The clipped ones' norm is 0.05 at every step; data parallelism adds ranks late."""
    frames, info = alone(tmp_path / "one", clip=0.05, directions=True)
    together(kind, tmp_path / "two", clip=0.05, directions=True)

    merged, told = read(tmp_path / "two")
    assert told.gradient == "unscaled, before clipping"
    place = info.scalars.index("clip_factor")
    assert len(merged) == STEPS
    for left, right in zip(frames, merged, strict=True):
        assert np.sqrt(np.square(left.layers[0]).sum()) > 0.1
        np.testing.assert_allclose(right.layers[:7], left.layers[:7], rtol=1e-4, atol=1e-8)
        if kind.startswith("ddp"):
            np.testing.assert_allclose(right.layers[7:], left.layers[7:], rtol=1e-3, atol=1e-6)
        else:  # a mean and a cosine of shards would be those of parts
            assert is_missing(right.layers[7:]).all()
        assert right.scalars[place] == pytest.approx(left.scalars[place], rel=1e-4)


def test_a_flat_tensor_without_its_parameters_is_one_layer(tmp_path):
    """What FSDP's first kind makes of a module where it does not keep the parameters."""
    frames, _ = alone(tmp_path / "one", clip=0.05)
    together("flat alone", tmp_path / "two", clip=0.05)

    merged, told = read(tmp_path / "two")
    assert [(each.name, each.shape) for each in told.layers] == [
        ("0._flat_param", (693,)), ("_flat_param", (668,)),
    ]  # fmt: skip
    for left, right in zip(frames, merged, strict=True):
        for field in (0, 5, 6):  # norms
            squares = np.square(left.layers[field].astype(np.float64))
            wanted = np.sqrt([squares[:2].sum(), squares[2:].sum()])
            np.testing.assert_allclose(right.layers[field], wanted, rtol=1e-4)
        largest = [left.layers[2, :2].max(), left.layers[2, 2:].max()]
        np.testing.assert_allclose(right.layers[2], largest, rtol=1e-4)


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
    assert all(("on this rank" in info.gradient) == (kind != "ddp") for _, info in parts)


def test_means_of_a_rank_of_its_own_are_over_what_lies_there(tmp_path):
    """Row by row the first rank has 17 of 33, 9 of 17 and 3 of 5."""
    frames, info = alone(tmp_path / "one")
    together("fsdp", tmp_path / "two", ranks="each")

    rows = np.array([layer.shape[0] for layer in info.layers])
    here = np.ceil(rows / 2) / rows
    first, second = (read(tmp_path / "two", rank)[0] for rank in range(2))
    for whole, left, right in zip(frames, first, second, strict=True):
        added = here * left.layers[1] + (1 - here) * right.layers[1]
        np.testing.assert_allclose(added, whole.layers[1], rtol=1e-4)


def test_ranks_agree_on_which_steps_to_read(tmp_path):
    """Were they to sample different steps, the frames of two steps would be added up."""
    # Twice and eight times the half of the budget: the first rank alone would read one in 2.
    prices = [(1e-4, 1e-2), (4e-4, 1e-2)]
    together("fsdp", tmp_path / "run", every="auto", budget=0.01, steps=120, prices=prices)

    every, _ = read(tmp_path / "run")
    frames = with_layers(every)
    assert len({frame.step for frame in every}) == 120
    steps = [frame.step for frame in frames]
    assert steps[:WATCH] == list(range(WATCH))  # a run that begins is watched
    gaps = np.diff(steps[WATCH:-1])  # the last step is always read
    assert len(gaps) > 3
    assert set(gaps) == {8}
    assert all(np.isfinite(frame.layers).all() for frame in frames)
