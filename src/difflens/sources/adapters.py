"""PEFT adapters: what LoRA matrices mean for the model they were trained on.

    base_model.model.model.layers.0.self_attn.q_proj.lora_A.weight   [rank, in]
    base_model.model.model.layers.0.self_attn.q_proj.lora_B.weight   [out, rank]
    -> model.layers.0.self_attn.q_proj.weight = base + (alpha / rank) * B A

Alone, an adapter is the tensors it holds. Beside its base it stands for the merged model, in F32,
made row by row. What else an adapter holds (heads, biases) replaces the base's tensor.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from math import prod
from typing import Any

from ..protocols import TensorSource
from ..records import TensorInfo
from .adapter_names import Homes, Pairs, Slot, alpha_of, sorted_names
from .folders import listed
from .quant_schemes.parts import LONGEST_UNIT, SCALES, Parts, Unfit
from .quant_strips import Made, Making
from .quantised import decoded

_CONFIG = "adapter_config.json: "
_PLAIN = "the adapter is compared as the tensors it holds: "
_MARKS = (".lora_A", ".lora_embedding_A")
_LARGEST_MATRIX = 1 << 24  # elements of the matrix every row needs
_FLOATS = SCALES - {"F8_E8M0"}


def meant(
    left: TensorSource, right: TensorSource, about: tuple[Mapping[str, str], Mapping[str, str]]
) -> tuple[TensorSource, TensorSource]:
    """Give two models as what they mean: weights decoded, an adapter beside its base merged."""
    left, right = decoded(left, about[0]), decoded(right, about[1])
    adapters = is_adapter(left), is_adapter(right)
    if adapters == (True, False):
        return applied(right, left, adapter_config(about[0])), right
    if adapters == (False, True):
        return left, applied(left, right, adapter_config(about[1]))
    return left, right


def is_adapter(source: TensorSource) -> bool:
    """Are these LoRA matrices without the model they belong to?"""
    loras = [name for name in source.tensors if ".lora_" in name]
    found = any(mark in name for name in loras for mark in _MARKS)
    return found and not any(".base_layer." in name for name in source.tensors)


def adapter_config(metadata: Mapping[str, str]) -> dict[str, Any] | None:
    """Gather the adapter's settings from what lies beside it; None where there are none."""
    config: dict[str, Any] = {}
    for key, text in metadata.items():
        if key.startswith(_CONFIG):
            try:
                config[key.removeprefix(_CONFIG)] = json.loads(text)
            except (ValueError, RecursionError):
                return None
    return config or None


def applied(
    base: TensorSource, adapter: TensorSource, config: Mapping[str, Any] | None
) -> TensorSource:
    """Give the base with the adapter merged into it, or the adapter itself, with a warning."""
    slots, others = sorted_names(adapter.tensors)
    refusal = _refusal(config, adapter)
    if refusal or not config:
        adapter.warnings.append(_PLAIN + refusal)
        return adapter
    homes = Homes(base.tensors)
    tensors = dict(base.tensors)
    makings: dict[str, Making] = {}
    left: dict[str, list[str]] = {}
    for module, slot in slots.items():
        try:
            home = homes.find(f"{module}.weight") or homes.find(module)
            making = _making(base, adapter, home, slot, config)
            makings[making.info.name] = making
            tensors[making.info.name] = making.info
        except Unfit as fault:
            left.setdefault(str(fault), []).append(module)
    if not makings:  # an adapter of another model, which would else look like no change
        reasons = [f"{reason} ({listed(names, 1)})" for reason, names in left.items()]
        adapter.warnings.append(f"{_PLAIN}none of it can be applied: {'; '.join(reasons)}")
        return adapter
    elsewhere: dict[str, tuple[TensorSource, str]] = {}
    for name, target in others.items():
        if not target:
            left.setdefault("it is no part of plain LoRA", []).append(name)
            continue
        home = homes.find(target) or target
        elsewhere[home] = adapter, name
        info = adapter.tensors[name]
        tensors[home] = TensorInfo(home, info.dtype, info.shape, info.stored)
    warnings = [f"not applied: {listed(names)}: {reason}" for reason, names in left.items()]
    return Applied(base, adapter, tensors, makings, elsewhere=elsewhere, warnings=warnings)


def adapter_delta(adapter: TensorSource, pair: Pairs, scale: float, first: int, last: int) -> Any:
    """Compute rows [first, last) of scale * B A, or of its transpose."""
    import numpy as np

    parts = Parts(adapter, {})
    down, up = adapter.tensors[pair.down], adapter.tensors[pair.up]
    rank, across = down.shape[0], prod(down.shape[1:])
    if not pair.is_turned:
        rows = parts.elements(up.name, first * rank, last * rank).reshape(-1, rank)
        return (rows * np.float32(scale)) @ parts.whole(down.name).reshape(rank, across)
    columns = parts.columns(down.name, first, last, (0, rank), across)
    return (columns.T * np.float32(scale)) @ parts.whole(up.name).reshape(-1, rank).T


class Applied(Made):
    """A base with an adapter merged into it; the base stays its owner's to close."""

    def __init__(
        self,
        base: TensorSource,
        adapter: TensorSource,
        tensors: Mapping[str, TensorInfo],
        makings: Mapping[str, Making],
        *,
        elsewhere: Mapping[str, tuple[TensorSource, str]],
        warnings: list[str],
    ) -> None:
        """Keep both; the base's warnings are told where the base is."""
        super().__init__(base, tensors, makings, elsewhere)
        self._adapter = adapter
        self.format = adapter.format
        self.metadata = adapter.metadata
        self.warnings = [*adapter.warnings, *warnings]

    def confirm(self) -> None:
        """Raise `ChangedWhileReading` if a file of either is not the one that was opened."""
        super().confirm()
        self._adapter.confirm()

    def close(self) -> None:
        """Give the adapter's descriptors back."""
        self._adapter.close()


def _refusal(config: Mapping[str, Any] | None, adapter: TensorSource) -> str:
    """Say why an adapter cannot be merged; nothing where it can."""
    if config is None:
        return "there is no adapter_config.json, so its scale is unknown"
    kind = config.get("peft_type", "LORA")
    if kind != "LORA":
        return f"its peft_type is {json.dumps(kind)[:40]}, only LORA is known"
    if config.get("use_dora") or any("lora_magnitude_vector" in name for name in adapter.tensors):
        return "it is DoRA, which also rescales the base's columns"
    alpha = config.get("lora_alpha")
    if type(alpha) not in (int, float):
        return "its adapter_config.json has no lora_alpha"
    return ""


def _making(
    base: TensorSource,
    adapter: TensorSource,
    home: str | None,
    slot: Slot,
    config: Mapping[str, Any],
) -> Making:
    """Describe how a module's merged weight is made; what does not fit is told."""
    pair = slot.pair(is_turned=bool(config.get("fan_in_fan_out")))
    if home is None:
        raise Unfit("the base has no such weight")
    stored = base.tensors[home]
    rank = _rank(stored, adapter.tensors[pair.down], adapter.tensors[pair.up], pair)
    if rank != config.get("r", rank) and not config.get("rank_pattern"):
        raise Unfit(f"its rank is {rank}, the adapter_config.json says otherwise")
    alpha = alpha_of(slot.module, config)
    scale = alpha / (rank**0.5 if config.get("use_rslora") else rank)
    across = prod(stored.shape[1:])
    numbers = Parts(base, {})

    def make(first: int, last: int) -> Any:
        delta = adapter_delta(adapter, pair, scale, first // across, last // across)
        return numbers.elements(home, first, last).reshape(-1, across) + delta

    info = TensorInfo(home, "F32", stored.shape, f"{stored.dtype} + LoRA rank {rank}")
    return Making(info, across, make)


def _rank(stored: TensorInfo, down: TensorInfo, up: TensorInfo, pair: Pairs) -> int:
    """Check the three shapes against each other and give the rank."""
    kinds = {stored.dtype, down.dtype, up.dtype}
    if not kinds <= _FLOATS:
        raise Unfit(f"its elements are {', '.join(sorted(kinds))}, floats are wanted")
    rank = down.shape[0] if down.shape else 0
    sides = [prod(up.shape[:1]), prod(down.shape[1:])]
    wanted = [prod(stored.shape[:1]), prod(stored.shape[1:])]
    fits = wanted == (sides[::-1] if pair.is_turned else sides)
    if not fits or not rank or prod(up.shape[1:]) != rank or len(stored.shape) < 2 or 0 in wanted:
        shapes = f"{list(up.shape)} times {list(down.shape)}"
        raise Unfit(f"{shapes} does not fit {list(stored.shape)}")
    if wanted[1] > LONGEST_UNIT or (up if pair.is_turned else down).count > _LARGEST_MATRIX:
        raise Unfit("its matrices are too large to be multiplied in bounded memory")
    return rank
