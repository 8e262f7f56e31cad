import numpy as np
from training.diagnoses.histories import asked, only

from difflens.testing.histories import level, recorded
from difflens.training.records.runs import Layer

CLASSES = {"output": {"rows_sum_to_one": False, "shape": [40, 2]}}
LAYERS = (
    Layer("memory.weight_ih_l0", (64, 12), "LSTM", "weight", 0, optimised=True),
    Layer("memory.weight_hh_l0", (64, 16), "LSTM", "weight", 0, optimised=True),
    Layer("output.weight", (2, 16), "Linear", "weight", 1, optimised=True),
)
SIZES = np.array([5.0, 5.0, 1.0])


def run(faint, points=180, held_back=0.693):
    looks = np.where(np.arange(points) % 20 == 19, held_back, np.nan)
    return recorded(
        level(points, at=0.693), layers=LAYERS, weight_l2=SIZES, update_l2=0.003 * SIZES,
        grad_l2=np.array([faint, faint, 1.0]) * 0.01 * SIZES, facts=CLASSES,
        scalars={"val_loss": looks},
    )  # fmt: skip


def test_a_memory_that_gets_no_gradient_has_forgotten_what_counts():
    found = only("data", run(faint=0.003))

    assert found.fix.code == "follow_example"
    assert "padding" in found.cause
    assert set(found.layers) == {"memory.weight_ih_l0", "memory.weight_hh_l0"}


def test_a_memory_that_gets_its_gradient_may_rest_at_first():
    assert asked("data", run(faint=0.3)) == []


def test_too_few_points_or_looks_below_guessing_say_nothing_of_it():
    assert asked("data", run(faint=0.003, points=100)) == []
    assert asked("data", run(faint=0.003, held_back=0.6)) == []
