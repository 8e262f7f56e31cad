"""Which faults and controls are trained elsewhere, in what, and with which seeds."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import asdict, dataclass
from typing import Any

from ..configs.config import Config
from ..configs.controls import CONTROLS, Control
from ..configs.faults import FAULTS, Fault
from ..configs.parents import Parent

FRAMEWORKS = ("keras-torch", "keras-jax", "jax")
SEEDS = (0, 1, 2)
MORE_SEEDS = (3, 4)  # of a parent of which one seed misses: the gate asks for four of five
FAULT_NAMES = (
    "V1", "V2", "E1", "D1", "D3", "O1", "S1", "S4", "W1", "L1", "L2", "X1", "N2", "F1",
)  # fmt: skip
CONTROL_NAMES = ("H1", "H2", "H3", "H8", "H9", "H11", "H13", "H18")
# Knobs that the loops of this folder know; the others must be as they are by default.
_KNOWN = frozenset({
    "data", "samples", "input_scale", "input_shift", "target_scale", "labels", "label_noise",
    "order", "bad_step", "model", "depth", "width", "activation", "init", "init_scale",
    "hidden_bias", "dropout", "optimiser", "lr", "momentum", "weight_decay", "schedule", "warmup",
    "batch", "steps", "optimised", "frozen", "softmax", "loss_sign",
})  # fmt: skip


@dataclass(frozen=True)
class Group:
    """One configuration with all its seeds: they share what was compiled."""

    framework: str
    name: str
    config: Config
    seeds: tuple[int, ...] = SEEDS
    target: Parent | None = None  # of a parent: it is trained for its result alone

    def folder(self, seed: int) -> str:
        """Name the folder of a run."""
        return f"{self.framework}/{self.name}-s{seed}-{self.config.key}"


def faults() -> list[Fault]:
    """Return the faults that are trained elsewhere."""
    known = {fault.id: fault for fault in FAULTS}
    return [known[name] for name in FAULT_NAMES]


def controls() -> list[Control]:
    """Return the controls."""
    known = {control.id: control for control in CONTROLS}
    return [known[name] for name in CONTROL_NAMES]


def groups(framework: str, only: list[str] | None = None) -> Iterator[Group]:
    """Yield what is trained in a framework: faults, the parents that they need, and controls."""
    chosen = [each for each in faults() if not only or each.id in only]
    yield from (Group(framework, each.id, each.config) for each in chosen)
    for name, parent in {each.parent_name: each.parent for each in chosen}.items():
        yield parent_group(framework, name, parent)
    for control in controls():
        if not only or control.id in only:
            yield Group(framework, control.id, control.config)


def parent_group(framework: str, name: str, parent: Parent) -> Group:
    """Return the runs of a parent."""
    seeds = (*SEEDS, *MORE_SEEDS)
    return Group(framework, f"parent-{name}", parent.config, seeds, target=parent)


def refuse_unknown(config: Config) -> None:
    """Raise where a knob is turned that these loops do not have: it would be left out unseen."""
    plain: dict[str, Any] = asdict(Config())
    turned = {name for name, value in asdict(config).items() if value != plain[name]} - _KNOWN
    if config.optimised not in {"all", "last"}:
        turned.add("optimised")
    if turned or config.model not in {"mlp", "logistic"}:
        raise ValueError(
            f"{config.model}, {', '.join(sorted(turned))}: not among the knobs in Keras and JAX"
        )
