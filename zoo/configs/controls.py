"""Healthy controls: sixteen families and their relatives, none of which may raise an alarm."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any

from .config import Config
from .parents import PARENTS, Parent


@dataclass(frozen=True)
class Control:
    """A configuration in which nothing is wrong."""

    id: str
    parent: Parent = field(hash=False)
    seeds: tuple[int, ...] = (0, 1, 2, 3, 4)

    @property
    def config(self) -> Config:
        """What is trained."""
        return self.parent.config


def _family(parent_name: str, target: float | None = None, **changes: Any) -> Parent:
    parent = PARENTS[parent_name]
    config = replace(parent.config, **changes)
    return replace(parent, config=config, target=parent.target if target is None else target)


FAMILIES: dict[str, Parent] = {
    "H1": _family("mlp"),
    "H2": _family("tanh", momentum=0.9, lr=0.03),
    "H3": _family("deep8"),
    "H4": _family("cnn"),
    "H5": _family("deep34", depth=12, steps=300),
    "H6": _family("gpt"),
    "H7": _family("gru"),
    "H8": _family("logistic"),
    "H9": _family("dropout", target=0.90, dropout=0.3, width=96),
    "H10": _family("sgd", target=0.88, batch=4, lr=0.02, steps=500),
    "H11": _family("autoencoder"),
    "H12": _family("mlp", lr=3e-3, steps=800),
    "H13": _family("mlp", target=0.90, frozen=1),
    "H14": _family("gpt", warmup=40, schedule="cosine"),
    "H16": _family("sgd", accumulate=4, batch=16),
    "H18": _family("sgd", schedule="cyclic", lr=0.2),
    # Beyond the specification: what else people do in a loop that is in order.
    "H19": _family("sgd", zero_grad="before-backward"),
    "H20": _family("regression-adam"),
    "H21": _family("batch-norm", zero_grad="after-step"),
    "H22": _family("gelu", weight_decay=0.05, clip=1.0),
}

# What relatives of each family change.
_RELATIVES: dict[str, tuple[dict[str, Any], ...]] = {
    "H1": ({"width": 128}, {"lr": 3e-3, "batch": 128}, {"depth": 2, "width": 96}),
    "H2": ({"width": 128}, {"batch": 32, "lr": 0.01}, {"depth": 2}),
    "H3": ({"width": 96}, {"depth": 6, "lr": 1e-3}),
    "H4": ({"width": 20}, {"depth": 3, "lr": 2e-3}, {"norm": "batch", "lr": 3e-3}),
    "H5": ({"depth": 8}, {"depth": 16, "lr": 1e-3}),
    "H6": ({"depth": 1}, {"depth": 3, "width": 24, "lr": 3e-3}),
    "H7": ({"width": 24, "length": 15},),
    "H8": ({"lr": 0.3}, {"batch": 16, "lr": 0.03}, {"data": "blobs", "lr": 0.3}),
    "H9": ({"width": 128}, {"dropout": 0.15, "width": 64}),
    "H10": ({"batch": 8}, {"batch": 4, "width": 96, "lr": 0.03}),
    "H11": ({"width": 48}, {"depth": 3, "lr": 2e-3, "width": 40}),
    "H12": ({"steps": 700, "width": 96}, {"activation": "tanh", "init": "xavier"}),
    "H13": ({"frozen": 2, "width": 128}, {"width": 96}),
    "H14": ({"warmup": 80, "lr": 4e-3}, {"model": "transformer", "norm_place": "post"}),
    "H16": ({"accumulate": 2, "batch": 32}, {"accumulate": 8, "batch": 8}),
    "H18": ({"lr": 0.1}, {"optimiser": "adam", "lr": 2e-3}),
    "H19": ({"width": 96}, {"optimiser": "adam", "lr": 1e-3}),
    "H20": ({"width": 96}, {"optimiser": "sgd", "lr": 0.03, "steps": 400}),
    "H21": ({"depth": 3}, {"batch": 128, "lr": 2e-3}),
    "H22": ({"data": "circles", "width": 32, "lr": 3e-3}, {"data": "blobs", "lr": 2e-3}),
}

CONTROLS: tuple[Control, ...] = (
    *(Control(name, parent) for name, parent in FAMILIES.items()),
    *(
        Control(
            f"{name}{chr(ord('a') + i)}",
            replace(FAMILIES[name], config=replace(FAMILIES[name].config, **changes)),
            seeds=(3, 4, 5, 6),
        )
        for name, several in _RELATIVES.items()
        for i, changes in enumerate(several)
    ),
)
