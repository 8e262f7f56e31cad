"""What stands at the head of a PyTorch run: its layers, its optimizer, how it is watched."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from ..runs import LAYER_FIELDS, STEP_SCALARS, RunInfo
from .torch_activations import FIELDS
from .torch_directions import FIELDS as DIRECTIONS
from .torch_layers import Watched, facts_of, layer_of

SCALARS = (*STEP_SCALARS, "optimizer_steps", "grad_kept")
# What a run says from the step on at which gradients were changed by more than one factor.
AS_USED = "unscaled, as the optimizer got them: changed since backward, and not by one factor"
_PLAIN = (int, float, str, bool, tuple)


def info_of(
    model: Any,
    watched: list[Watched],
    optimizers: list[Any],
    *,
    options: Any,
    ranks: Any,
    seen: dict[str, Any] | None = None,
) -> RunInfo:
    """Describe a model as it is watched; `seen` is what its first pass showed."""
    import torch

    seen = seen or {}
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
            *(DIRECTIONS if options.directions else ()),
            *(FIELDS if options.activations else ()),
        ),
        scalars=SCALARS,
        framework=f"torch {torch.__version__}",
        device=", ".join(sorted({str(each.parameter.device) for each in watched})),
        every=options.every,
        budget=options.budget if options.every == "auto" else None,
        rank=0 if ranks.merges else ranks.rank,
        ranks=ranks.count,
        gradient=_gradient(watched, optimizers, ranks),
        optimizer=_settings(optimizers),
        facts={**facts_of(model, watched, optimised), **seen.get("facts", {})},
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
    """Give the identities of all parameters that optimizers were handed."""
    return {
        id(parameter)
        for optimizer in optimizers
        for group in optimizer.param_groups
        for parameter in group["params"]
    }


def _settings(optimizers: list[Any]) -> dict[str, Any]:
    """Give class and plain settings of the first optimizer, and the classes of the others."""
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
    told = {each if isinstance(each, (int, float)) else id(each) for each in given}
    return len(told) > 1
