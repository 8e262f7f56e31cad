"""The kernels that read a GPU's tensors, against 64-bit arithmetic; run by test_torch_fused.

Without a GPU it is Triton's interpreter that runs them, on the processor: what is missing there,
memory that is pinned and events, is stood in for.
"""

import weakref

import numpy as np
import pytest
import torch

import difflens
from difflens.training.history import read_history
from difflens.training.hooks.torch import kernels
from difflens.training.hooks.torch import tables as torch_tables
from difflens.training.hooks.torch.foreach import ForeachReader
from difflens.training.hooks.torch.fused import FusedReader, is_there
from difflens.training.hooks.torch.readers import Readers

HAS_GPU = torch.cuda.is_available()
DEVICE = torch.device("cuda", 0) if HAS_GPU else torch.device("cpu")
CHUNK = kernels.CHUNK if HAS_GPU else 4096  # the interpreter is slow
LARGE = 9 * CHUNK + 5089
SHAPES = [(1,), (7, 3), (1024,), (CHUNK // 1000 + 1, 1000), (CHUNK,), (CHUNK + 1,), (3, 5, 7, 9),
          (LARGE,)]  # fmt: skip


class Event:
    """An event of a processor, which has done all that it was asked for."""

    def __init__(self, **_how):
        self.record = self.synchronize = lambda: None

    def elapsed_time(self, _later):
        return 0.0


@pytest.fixture(autouse=True)
def _without_a_gpu(monkeypatch):
    if not HAS_GPU:
        monkeypatch.setattr(torch_tables, "CHUNK", CHUNK)
        monkeypatch.setattr(torch_tables, "_ENOUGH", 4096)
        monkeypatch.setattr(torch.cuda, "Event", Event)
        monkeypatch.setattr(torch.Tensor, "pin_memory", lambda tensor: tensor)


def parameters(dtype, scale=1.0):
    torch.manual_seed(0)
    made = [torch.nn.Parameter((scale * torch.randn(s)).to(dtype).to(DEVICE)) for s in SHAPES]
    for each in made:
        each.grad = (scale * torch.randn(each.shape)).to(dtype).to(DEVICE)
        each.grad.flatten()[::7] = 0
    return made


def exact(tensors, copies=None):
    rows = []
    for i, each in enumerate(tensors):
        wide = each.detach().double().cpu()
        finite = wide[wide.isfinite()]
        move = 0.0 if copies is None else float((wide - copies[i].double().cpu()).square().sum())
        rows.append([
            float(wide.square().sum()), float(finite.abs().sum()), float(finite.abs().max()),
            float(wide.numel() - finite.numel()), float((wide == 0).sum()), move,
        ])  # fmt: skip
    return np.array(rows)


@pytest.mark.parametrize("kind", [FusedReader, ForeachReader])
@pytest.mark.parametrize("scale", [1e-25, 1.0])
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16, torch.float16, torch.float64])
def test_gradients_and_updates_equal_64_bits(kind, dtype, scale):
    if kind is FusedReader:
        assert is_there()
    made = parameters(dtype, scale if dtype in (torch.float32, torch.float64) else 1.0)
    reader, places = kind(made, DEVICE), list(range(len(made)))
    reader.before(places, all_stale=True)
    before = [each.detach().clone() for each in made]

    _, told = reader.answer(reader.gradients(places))
    np.testing.assert_allclose(told, exact([p.grad for p in made]), rtol=5e-6)
    with torch.no_grad():
        for each in made:
            each.add_(each.grad, alpha=-0.01)
    for _ in range(2):  # the second look finds that nothing moved
        _, told = reader.answer(reader.weights(places))
        wanted = exact(made, before)
        np.testing.assert_allclose(told[:, [0, 5]], wanted[:, [0, 5]], rtol=1e-6)
        before = [each.detach().clone() for each in made]


@pytest.mark.filterwarnings("ignore:invalid value:RuntimeWarning")  # NumPy, interpreting
def test_what_is_not_finite_is_counted_and_shown():
    made = parameters(torch.float32)
    made[3].grad[0, 0], made[7].grad[LARGE - 1] = float("nan"), float("inf")
    reader = FusedReader(made, DEVICE)

    _, told = reader.answer(reader.gradients(list(range(len(made)))))
    assert told[3, 3] == told[7, 3] == 1
    assert np.isnan(told[3, 0])
    assert np.isinf(told[7, 0])
    np.testing.assert_allclose(told[:, 2], exact([p.grad for p in made])[:, 2])


def test_parameters_without_a_gradient_and_other_dtypes_are_no_trouble():
    made = parameters(torch.float32)[:3] + parameters(torch.bfloat16)[3:]
    made[1].grad = None
    reader = FusedReader(made, DEVICE)

    found, told = reader.answer(reader.gradients(list(range(len(made)))))
    assert found == [0, 2, 3, 4, 5, 6, 7]
    np.testing.assert_allclose(told, exact([made[i].grad for i in found]), rtol=5e-6)


def blocks_read(count):
    """Which numbers of a flat tensor a sample has, as the kernel says it chooses them."""
    part = torch_tables.sample_of(count)
    if part.spread == 1:
        return np.arange(count)
    stretch = np.arange(part.numbers // torch_tables.BLOCK)
    chosen = (((stretch * 2654435761) & 0xFFFFFFFF) >> 16) * part.spread >> 16
    assert chosen.min() >= 0
    assert chosen.max() < part.spread
    first = (stretch * part.spread + chosen) * torch_tables.BLOCK
    return (first[:, None] + np.arange(torch_tables.BLOCK)).ravel()


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_large_weights_are_read_by_a_sample_that_stands_for_all(dtype):
    enough = torch_tables._ENOUGH
    torch.manual_seed(0)
    sizes = (enough, 2 * enough, 3 * enough + 77, 40 * enough + 5)
    made = [torch.nn.Parameter(torch.randn(size).to(dtype).to(DEVICE)) for size in sizes]
    reader, places = FusedReader(made, DEVICE, sampled=True), list(range(len(made)))
    assert reader.sampled == 3
    reader.before(places, all_stale=True)
    before = [each.detach().clone() for each in made]
    with torch.no_grad():
        for each in made:
            each.add_(torch.randn_like(each), alpha=-0.01)

    _, told = reader.answer(reader.weights(places))
    rows = [blocks_read(size) for size in sizes]
    shares = np.array([[size / len(own)] for size, own in zip(sizes, rows, strict=True)])
    chosen = [each.detach()[torch.from_numpy(own)] for each, own in zip(made, rows, strict=True)]
    copies = [each[torch.from_numpy(own)] for each, own in zip(before, rows, strict=True)]
    np.testing.assert_allclose(
        told[:, [0, 5]], shares * exact(chosen, copies)[:, [0, 5]], rtol=1e-6
    )
    np.testing.assert_allclose(told[:, [0, 5]], exact(made, before)[:, [0, 5]], rtol=0.1)
    assert [reader._copies[place].numel() for place in places] == list(map(len, rows))

    _, told = reader.answer(reader.weights(places))  # the second look finds that nothing moved
    assert not told[:, 5].any()


def test_a_sample_takes_other_columns_from_row_to_row():
    """Rows of sixteen blocks: the same block of each would be a sixteenth of the columns."""
    width = 16 * torch_tables.BLOCK
    taken = blocks_read(200 * width) % width
    share = np.bincount(taken // torch_tables.BLOCK, minlength=16) / (len(taken) / 16)
    assert share.min() > 0.7
    assert share.max() < 1.3


def test_weights_that_something_else_touched_are_copied_anew():
    made = parameters(torch.float32)
    reader, places = FusedReader(made, DEVICE, sampled=True), list(range(len(made)))
    reader.before(places, all_stale=True)
    reader.answer(reader.weights(places))
    with torch.no_grad():
        made[2].mul_(3)  # not by the optimizer
    reader.before(places, all_stale=False)
    with torch.no_grad():
        made[4].add_(1)

    _, told = reader.answer(reader.weights(places))
    assert told[2, 5] == 0
    np.testing.assert_allclose(told[4, 5], made[4].numel(), rtol=1e-5)


def test_no_gradient_is_held_on_to():
    made = parameters(torch.float32)
    reader, places = FusedReader(made, DEVICE), list(range(len(made)))
    held = [weakref.ref(each.grad) for each in made]
    begun = reader.gradients(places)
    for each in made:
        each.grad = None
    assert [each() for each in held] == [None] * len(made)
    reader.answer(begun)


def test_a_default_device_is_no_trouble():
    made = parameters(torch.float32)[:3]
    wanted = exact([each.grad for each in made])
    reader, places = FusedReader(made, DEVICE, sampled=True), [0, 1, 2]
    with torch.device(DEVICE if HAS_GPU else "meta"):
        begun = reader.gradients(places)
        reader.before(places, all_stale=True)
        moved = reader.weights(places)

    np.testing.assert_allclose(reader.answer(begun)[1], wanted, rtol=5e-6)
    assert not reader.answer(moved)[1][:, 5].any()


def test_an_answer_that_is_asked_for_again_is_the_same():
    """Its place serves the readings behind it as soon as it was read."""
    made = parameters(torch.float32)
    reader, places = FusedReader(made, DEVICE), list(range(len(made)))
    wanted = exact([each.grad for each in made])
    first = reader.gradients(places)
    np.testing.assert_allclose(reader.answer(first)[1], wanted, rtol=5e-6)
    for scale in (2, 3):
        for each in made:
            each.grad = scale * each.grad
        reader.answer(reader.gradients(places))

    np.testing.assert_allclose(reader.answer(first)[1], wanted, rtol=5e-6)
    assert len(reader._groups["gradients", id(places)].spare) == 1


def test_readings_that_wait_have_places_of_their_own():
    made = parameters(torch.float32)
    reader, places = FusedReader(made, DEVICE), list(range(len(made)))
    begun, wanted = [], []
    for scale in (1, 2, 3):
        for each in made:
            each.grad = scale * each.grad
        wanted.append(exact([each.grad for each in made]))
        begun.append(reader.gradients(places))

    for each, numbers in zip(begun, wanted, strict=True):
        np.testing.assert_allclose(reader.answer(each)[1], numbers, rtol=5e-6)


def test_the_time_of_a_reading_is_taken_at_first_and_then_seldom(monkeypatch):
    made, timed, event = parameters(torch.float32)[:2], [], torch.cuda.Event

    def counted(**how):
        timed.append(how.get("enable_timing", False))
        return event(**how)

    monkeypatch.setattr(torch.cuda, "Event", counted)
    reader, places = FusedReader(made, DEVICE), [0, 1]
    for _ in range(33):
        reader.answer(reader.gradients(places))

    assert sum(timed) == 2 * (8 + 4)  # readings 0 to 7, then 8, 16, 24 and 32
    assert len(timed) == sum(timed) + 1  # one event without a time, used again and again
    assert reader.device_seconds() >= 0


def test_images_with_their_channels_last_keep_their_table():
    made = [torch.nn.Parameter(torch.randn(8, 4, 3, 3, device=DEVICE))]
    made[0].data = made[0].data.to(memory_format=torch.channels_last)
    reader, places = FusedReader(made, DEVICE), [0]
    groups = []
    for _ in range(2):
        made[0].grad = torch.randn_like(made[0])
        assert not made[0].grad.is_contiguous()
        _, told = reader.answer(reader.gradients(places))
        np.testing.assert_allclose(told, exact([made[0].grad]), rtol=5e-6)
        groups.append(reader._groups["gradients", id(places)])
    assert groups[0] is groups[1]


def test_a_sparse_gradient_is_read_with_its_zeros():
    table = torch.nn.Embedding(20, 4, sparse=True).to(DEVICE)
    table(torch.tensor([3, 5], device=DEVICE)).square().sum().backward()
    reader = FusedReader([table.weight], DEVICE)
    for _ in range(2):
        _, told = reader.answer(reader.gradients([0]))
        np.testing.assert_allclose(told, exact([table.weight.grad.to_dense()]), rtol=5e-6)


def test_a_run_says_that_large_weights_are_estimates(monkeypatch, tmp_path):
    if not HAS_GPU:
        monkeypatch.setattr(
            Readers,
            "_reader",
            lambda own, device: FusedReader(own._parameters, device, sampled=True),
        )
    size = 2 * torch_tables._ENOUGH
    model = torch.nn.Linear(size // 64, 64).to(DEVICE)
    optimizer = torch.optim.Adam(model.parameters(), 1e-3)
    with difflens.monitor(model, optimizer, tmp_path / "run", every=1) as watch:
        for _ in range(3):
            loss = model(torch.randn(4, size // 64, device=DEVICE)).square().mean()
            loss.backward()
            optimizer.step()
            optimizer.zero_grad()
            watch.step(loss)

    history = read_history(tmp_path / "run")
    assert history.fact("estimated_weights") == 1
    said = difflens.diagnose(history).warnings
    assert any("one large layer" in each for each in said)
    moved = history.course.field("update_l2")
    assert moved.shape == (3, 2)
    # Adam moves every number by about the rate at the first step.
    np.testing.assert_allclose(moved[0], 1e-3 * np.sqrt([size, 64]), rtol=0.05)


def test_weights_read_whole_at_every_reading_are_asked_for_by_a_number():
    made = parameters(torch.float32)
    whole, sampled = (FusedReader(made, DEVICE, sampled=each) for each in (False, True))
    assert whole.sampled == 0
    assert whole.is_slow_with_weights
    assert sampled.sampled == 1
    assert not sampled.is_slow_with_weights
    if HAS_GPU:
        assert [Readers(made, updates=each).between for each in ("auto", 1, 5)] == [1, 1, 5]
        assert Readers(made, fused=False).between == 16
