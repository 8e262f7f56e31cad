"""Histories for testing diagnoses: several healthy ones, and one for each fault."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from difflens.training.history.history import History
from difflens.training.records.runs import LAYER_FIELDS, Layer, RunInfo

if TYPE_CHECKING:
    from numpy.typing import NDArray

DEPTH, WIDTH = 6, 32


def network(depth: int = DEPTH, activation: str = "ReLU") -> tuple[Layer, ...]:
    """Describe a stack of linear layers, each a matrix with a bias."""
    return tuple(
        Layer(
            f"hidden.{place}.{role}",
            (WIDTH, WIDTH) if role == "weight" else (WIDTH,),
            "Linear",
            role,
            place,
            "F32",
            optimised=True,
            activation=activation,
        )
        for place in range(depth)
        for role in ("weight", "bias")
    )


def recorded(
    losses: Sequence[float] | NDArray[Any],
    *,
    layers: tuple[Layer, ...] | None = None,
    scalars: Mapping[str, Any] | None = None,
    facts: Mapping[str, Any] | None = None,
    optimizer: Mapping[str, Any] | None = None,
    read: Sequence[bool] | NDArray[Any] | None = None,
    **fields: Any,
) -> History:
    """Record losses with fields that are numbers, rows over layers, or columns over points.

    Other fields are as in a healthy run: weights of norm 1 per unit, gradients of a hundredth and
    updates of a thousandth of that. Steps that are not `read` have only scalars.
    """
    import numpy as np

    from difflens.training.history.building import Builder
    from difflens.training.history.frame import Frame, unread_layers

    layers = network() if layers is None else layers
    points, count = len(losses), len(layers)
    sizes = np.sqrt([layer.count or 1 for layer in layers]) / WIDTH**0.5
    usual = {"grad_l2": 1e-2 * sizes, "weight_l2": sizes, "update_l2": 1e-3 * sizes}
    given = {"loss": losses, "lr": 1e-3, **(scalars or {})}
    names = (*LAYER_FIELDS, *(name for name in fields if name not in LAYER_FIELDS))
    info = RunInfo(
        "made",
        layers=layers,
        fields=names,
        scalars=tuple(given),
        facts=dict(facts or {}),
        optimizer=dict(optimizer or {}),
    )
    table = np.stack(
        [_over(fields.get(name, usual.get(name, 0.0)), points, count) for name in names]
    )
    columns = np.stack(
        [np.broadcast_to(np.asarray(each, float), (points,)) for each in given.values()]
    )
    builder, nothing_read = Builder(info), unread_layers(len(names), count)
    for step in range(points):
        is_read = read is None or bool(read[step])
        block = np.ascontiguousarray(table[:, step], np.float32) if is_read else nothing_read
        numbers = columns[:, step].copy()
        builder.add(Frame(step, step, float(step), float(step), numbers, block, is_read=is_read))
    return builder.history()


def _over(values: Any, points: int, count: int) -> NDArray[Any]:
    """Broadcast a number, a row of layers or a column of points over both."""
    import numpy as np

    array = np.asarray(values, float)
    if array.ndim == 1 and len(array) == points and points != count:
        array = array[:, None]
    return np.broadcast_to(array, (points, count))


def noise(points: int, size: float, seed: int = 0) -> NDArray[Any]:
    """Return random factors around 1, like the noise of batches."""
    import numpy as np

    return np.asarray(np.exp(size * np.random.default_rng(seed).standard_normal(points)))


def falling(
    points: int = 200, start: float = 2.3, end: float = 0.1, pace: float = 0.03, seed: int = 0
) -> NDArray[Any]:
    """Return the losses of a run that learns."""
    import numpy as np

    course = end + (start - end) * np.exp(-pace * np.arange(points))
    return np.asarray(course * noise(points, 0.05, seed))


def level(points: int = 200, at: float = 2.3, seed: int = 0) -> NDArray[Any]:
    """Return the losses of a run that learns nothing."""
    return noise(points, 0.005, seed) * at


def healthy() -> dict[str, History]:
    """Make runs on which every diagnosis must be silent."""
    import numpy as np

    done = falling(400, end=1e-4, pace=0.05)
    ramp = np.minimum(1, (np.arange(200) + 1) / 80)
    late = 2.3 - 2.0 / (1 + np.exp(-(np.arange(200) - 90) / 12))
    cycle = 0.01 + 0.1 * np.abs((np.arange(300) / 40) % 2 - 1)
    frozen = tuple(
        Layer(**{**_fields_of(each), "trainable": False}) if each.depth == 0 else each
        for each in network()
    )
    still = np.array([0.0 if not each.trainable else 1e-3 for each in frozen])
    return {
        "learning": recorded(falling()),
        "noisy": recorded(falling(400) * noise(400, 0.5, 1), grad_l2=0.05 * noise(400, 0.8, 2)),
        "done": recorded(done, grad_l2=1e-2 * done, update_l2=1e-4 * done),
        "warming up": recorded(
            late * noise(200, 0.02), update_l2=1e-3 * ramp, scalars={"lr": 1e-3 * ramp}
        ),
        "cyclic": recorded(falling(300), update_l2=0.1 * cycle, scalars={"lr": cycle}),
        "frozen on purpose": recorded(falling(), layers=frozen, update_l2=still),
        "annealed": recorded(falling(300), scalars={"lr": np.linspace(1, 0, 300) ** 2}),
        "loss alone": recorded(falling(), layers=()),
    }


def _fields_of(layer: Layer) -> dict[str, Any]:
    return {name: getattr(layer, name) for name in layer.__struct_fields__}


def too_little() -> dict[str, History]:
    """Make runs that are too short for a finding."""
    return {
        "empty": recorded([]),
        "one frame": recorded([2.3]),
        "three frames": recorded([2.3, 2.31, 2.29]),
        "no loss": recorded([float("nan")] * 0, layers=()),
    }


def faulty() -> dict[str, History]:
    """Make one run for each fault, by its name."""
    return {name: make() for name, make in _FAULTS.items()}


def _vanishing() -> History:
    import numpy as np

    faded = np.repeat(10.0 ** np.arange(-2 * DEPTH + 2, 1, 2), 2)
    return recorded(level(), grad_l2=1e-2 * faded, layers=network(activation="Sigmoid"))


def _exploding() -> History:
    import numpy as np

    grown = np.where(np.arange(120) < 60, 1.0, 1.15 ** (np.arange(120) - 60))
    losses = falling(120, end=0.5) * np.where(np.arange(120) < 65, 1, grown)
    return recorded(losses, grad_l2=1e-2 * grown)


def _dead() -> History:
    share = [1.0 if place == 2 else 0.1 for place in range(DEPTH) for _ in range(2)]
    return recorded(level(), act_dead=share, grad_l2=[0.0] * 4 + [1e-2] * (2 * DEPTH - 4))


def _oscillating() -> History:
    import numpy as np

    return recorded(2.3 + 1.4 * np.sin(np.arange(200)) * noise(200, 0.1))


def _slow() -> History:
    import numpy as np

    return recorded(2.3 * (1 - 2e-4 * np.arange(200)) * noise(200, 0.01), update_l2=1e-3)


def _plateau() -> History:
    import numpy as np

    rate = np.where(np.arange(200) < 30, 1e-3, 0.0)
    losses = np.maximum(2.3 - 0.03 * np.arange(200), 1.4) * noise(200, 0.01)
    return recorded(losses, scalars={"lr": rate}, update_l2=rate)


def _not_training() -> History:
    layers = tuple(
        Layer(**{**_fields_of(each), "optimised": (each.depth or 0) > 1}) for each in network()
    )
    return recorded(falling(60), layers=layers, update_l2=[0.0] * 4 + [1e-3] * (2 * DEPTH - 4))


def _wiring() -> History:
    import numpy as np

    piled = 1e-2 * np.minimum(1 + np.arange(60), 8.0)
    return recorded(falling(60), scalars={"grad_kept": 1.0}, grad_l2=piled)


def _loss_pairing() -> History:
    facts = {"output": {"rows_sum_to_one": True, "shape": [64, 10]}, "final_module": "Softmax"}
    return recorded(level(100, 2.3), facts=facts)


def _data() -> History:
    import numpy as np

    teeth = np.exp(-0.6 * (np.arange(150) % 10))
    return recorded(2.5 * teeth * noise(150, 0.1))


def _nan() -> History:
    losses = falling(100)
    losses[60:] = float("nan")
    values = [float("nan") if step >= 60 else 1e-2 for step in range(100)]
    return recorded(losses, grad_l2=values)


def _spike() -> History:
    losses = falling(160, end=0.5)
    losses[120:] += 3.0
    return recorded(losses, update_l2=[1e-3 if step != 119 else 0.2 for step in range(160)])


def _over_fit() -> History:
    import numpy as np

    held_back = 0.8 + 1.5 * np.exp(-0.05 * np.arange(300)) + 0.004 * np.arange(300)
    sampled = np.where(np.arange(300) % 20 == 0, held_back, np.nan)
    return recorded(falling(300, end=0.005), scalars={"val_loss": sampled})


def _lr_high() -> History:
    losses = 2.3 * noise(60, 0.1)
    losses[10:] *= 3
    return recorded(losses, update_l2=0.3)


def _lr_low() -> History:
    return recorded(level(60), update_l2=1e-7)


def _symmetry() -> History:
    return recorded(level(30), weight_l2=0.0, grad_l2=0.0, update_l2=0.0)


def _diverging() -> History:
    import numpy as np

    growth = np.where(np.arange(140) < 100, 1.0, 1.06 ** (np.arange(140) - 100))
    losses = falling(140, end=0.4) * growth
    return recorded(losses, grad_l2=1e-2 * growth, update_l2=1e-3 * growth)


_FAULTS: dict[str, Callable[[], History]] = {
    "vanishing": _vanishing,
    "exploding": _exploding,
    "dead": _dead,
    "oscillating": _oscillating,
    "slow": _slow,
    "plateau": _plateau,
    "not-training": _not_training,
    "wiring": _wiring,
    "loss-pairing": _loss_pairing,
    "data": _data,
    "nan": _nan,
    "spike": _spike,
    "over-fit": _over_fit,
    "lr-high": _lr_high,
    "lr-low": _lr_low,
    "symmetry": _symmetry,
    "diverging": _diverging,
}
