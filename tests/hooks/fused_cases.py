"""The kernels that read a GPU's tensors, against 64-bit arithmetic; run by test_torch_fused.

Without a GPU it is Triton's interpreter that runs them, on the processor: what is missing there,
memory that is pinned and events, is stood in for.
"""

import numpy as np
import pytest
import torch

from difflens.hooks import torch_fused
from difflens.hooks.torch_foreach import ForeachReader
from difflens.hooks.torch_fused import FusedReader, is_there

HAS_GPU = torch.cuda.is_available()
DEVICE = torch.device("cuda", 0) if HAS_GPU else torch.device("cpu")
CHUNK = torch_fused.CHUNK if HAS_GPU else 4096  # the interpreter is slow
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
        monkeypatch.setattr(torch_fused, "CHUNK", CHUNK)
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
