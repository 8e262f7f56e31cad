"""What stands at the head of a PyTorch run: its layers, its optimizer, how it is watched."""

from __future__ import annotations

from collections.abc import Iterable
from contextlib import suppress
from typing import Any, NamedTuple

from ...records.runs import (
    ACTIVATION_FIELDS,
    DIRECTION_FIELDS,
    LAYER_FIELDS,
    RUN_SCHEMA,
    STEP_SCALARS,
    RunInfo,
)
from .layers import Watched, facts_of, layer_of

SCALARS = (*STEP_SCALARS, "optimizer_steps", "grad_kept")
# What a run says from the step on at which gradients were changed by more than one factor.
AS_USED = "unscaled, as the optimizer got them: changed since backward, and not by one factor"
_PLAIN = (int, float, str, bool, tuple)


class Options(NamedTuple):
    """How a model is watched."""

    name: str = ""
    every: Any = "auto"
    budget: float = 0.01
    activations: int = 0  # steps between two looks at activations; 0 is never
    ranks: str = "merged"
    scaler: Any = None
    updates: Any = "auto"  # readings between two looks at weights and their updates
    fused: bool = True
    directions: bool = False  # means of gradients, and their cosines to the last reading's


class Description:
    """Describes a model as it is watched, with what its first pass showed as soon as it has run."""

    def __init__(self, watched: list[Watched], options: Options, ranks: Any) -> None:
        """Look at the weights before any step, which tears apart what is only nearly alike."""
        self._options, self._ranks = options, ranks
        self._alike = {"alike_units": alike_units(watched)}
        self._seen: dict[str, Any] = {"facts": self._alike}
        self.order = list(range(len(watched)))

    def add_first_pass(self, watched: list[Watched], tracing: Any, eval_modules: list[str]) -> None:
        """Put the layers into the order in which they ran, and keep what else was seen."""
        depths = tracing.depths()
        if not depths:
            modules = dict.fromkeys(id(each.module) for each in watched)
            depths = {module: place for place, module in enumerate(modules)}
        last = len(depths)
        self.order.sort(key=lambda place: depths.get(id(watched[place].module), last))
        self._seen = {
            "depths": depths,
            "activations": tracing.activations(),
            "facts": {**self._alike, **tracing.facts(), "eval_modules": eval_modules},
        }

    @property
    def modules(self) -> list[int]:
        """The modules in the order in which they ran, by identity."""
        return list(self._seen.get("depths", ()))

    def info(self, model: Any, watched: list[Watched], optimizers: list[Any]) -> RunInfo:
        """Return the head of the run for these tensors and optimizers."""
        import torch

        options, ranks, seen = self._options, self._ranks, self._seen
        watched = [watched[place] for place in self.order]
        depths, behind = seen.get("depths", {}), seen.get("activations", {})
        optimised = identities(optimizers) if optimizers else None
        layers = tuple(
            layer_of(each, depths.get(id(each.module)), behind.get(id(each.module), ""), optimised)
            for each in watched
        )
        return RunInfo(
            options.name,
            layers=layers,
            fields=(
                *LAYER_FIELDS,
                *(DIRECTION_FIELDS if options.directions else ()),
                *(ACTIVATION_FIELDS if options.activations else ()),
            ),
            scalars=SCALARS,
            framework=f"torch {torch.__version__}",
            device=", ".join(sorted({str(each.parameter.device) for each in watched})),
            schema=1 if options.every == 1 else RUN_SCHEMA,
            every=options.every,
            budget=options.budget if options.every == "auto" else None,
            rank=0 if ranks.merges else ranks.rank,
            ranks=ranks.count,
            gradient=_gradient(watched, optimizers, ranks),
            optimizer=_settings(optimizers),
            facts={**facts_of(model, watched, optimised), **seen["facts"]},
        )


def _gradient(watched: list[Watched], optimizers: list[Any], ranks: Any) -> str:
    """Say which gradient is read."""
    sharded = any(each.is_sharded for each in watched)
    part = ""
    if sharded and not ranks.merges:
        part = "; the part that lies on this rank"
    elif ranks.count > 1 and not sharded and not optimizers:
        part = "; of one rank, before the others' are added"
    return f"unscaled, before clipping{part}"


def identities(optimizers: Iterable[Any]) -> set[int]:
    """Return the identities of all parameters that optimizers were handed."""
    return {
        id(parameter)
        for optimizer in optimizers
        for group in optimizer.param_groups
        for parameter in group["params"]
    }


def _settings(optimizers: list[Any]) -> dict[str, Any]:
    """Return class and plain settings of the first optimizer, and the classes of the others."""
    if not optimizers:
        return {}
    first = optimizers[0]
    plain = {
        key: list(value) if isinstance(value, tuple) else value
        for key, value in first.param_groups[0].items()
        if isinstance(value, _PLAIN) and key != "params"
    }
    others = {"others": [type(each).__name__ for each in optimizers[1:]]} if optimizers[1:] else {}
    rates = {"several_rates": True} if _rates_differ(optimizers) else {}
    return {"name": type(first).__name__, **plain, **rates, **others}


def _rates_differ(optimizers: list[Any]) -> bool:
    """Do groups of parameters have rates of their own? The rate recorded is the first one's."""
    given = [group.get("lr") for each in optimizers for group in each.param_groups]
    # A rate in a tensor may lie on a device: it is told by who it is, not by its number.
    rates = {each if isinstance(each, (int, float)) else id(each) for each in given}
    return len(rates) > 1


def alike_units(watched: list[Watched]) -> list[str]:
    """Name the matrices whose first, middle and last unit start as the same numbers, not zeros.

    Three rows of each are compared, so the cost does not grow with the matrix, and one answer is
    fetched from each device for all of them.
    """
    import torch

    asked: dict[Any, list[tuple[str, Any]]] = {}
    with torch.no_grad():
        for each in watched:
            same = None
            with suppress(Exception):  # a stranger's tensor may refuse anything
                same = _are_alike(each)
            if same is not None:
                asked.setdefault(same.device, []).append((each.name, same))
        return [
            name
            for on_device in asked.values()
            for (name, _), same in zip(
                on_device, torch.stack([same for _, same in on_device]).tolist(), strict=True
            )
            if same
        ]


def _are_alike(each: Watched) -> Any:
    rows = each.parameter
    if each.is_sharded or rows.is_meta or rows.ndim < 2 or len(rows) < 2:
        return None
    first = rows[0]
    same = (first == rows[len(rows) // 2]).all() & (first == rows[-1]).all()
    return same & (first != 0).any()
