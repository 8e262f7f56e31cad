"""Quantised checkpoints: the parts of a weight are replaced by the weight they encode.

    model.up_proj.qweight  I32 [512, 4096]  |
    model.up_proj.qzeros   I32 [32, 512]     |  model.up_proj.weight  F32 [4096, 4096]
    model.up_proj.scales   F16 [32, 4096]   |                         stored: GPTQ int4 g128

Schemes are recognised by names, types and shapes; the settings beside the model decide only what
those leave open. Parts that contradict each other stay as they are, with a warning.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from typing import Any

from difflens.core.escape import for_terminal
from difflens.core.once import as_call
from difflens.core.protocols import TensorSource
from difflens.core.records import TensorInfo

from ..computed import ComputedSource, ComputedTensor, sized_encodings
from ..folders.listing import listed
from .parts import LONGEST_UNIT, DecodedWeight, Parts, Unfit
from .schemes import scheme

# Tensors of these names are packed integers, whatever wrote them: as numbers they mean nothing.
_PACKED = ("qweight", "weight_packed", ".q_weight", ".W_q", ".quant_weight")
_INTEGERS = frozenset({"I32", "U32", "I16", "U16", "U8", "I64"})
_SETTINGS = ("config.json: quantization_config", "config.json: compression_config")
_FILES = ("quantize_config.json: ", "quant_config.json: ")


def decode_quantised(source: TensorSource, metadata: Mapping[str, str]) -> TensorSource:
    """Return a source with its quantised weights decoded; the same source if it has none."""
    return _decode_by(source, json.dumps(_settings(metadata)))


def _decode_by(source: TensorSource, settings: str) -> TensorSource:
    """Decode by settings in JSON."""
    schemes = list(scheme.ours())
    endings = (*_PACKED, *(ending for each in schemes for ending in each.options["endings"]))
    anchors = [name for name in source.tensors if name.endswith(endings)]
    if not anchors:
        return source
    parts = Parts(source, json.loads(settings))
    weights: dict[str, DecodedWeight] = {}
    refusals: dict[str, list[str]] = {}
    for anchor in anchors:
        try:
            weight = _decode(parts, anchor)
        except Unfit as fault:
            refusals.setdefault(str(fault), []).append(anchor)
        else:
            weights |= {weight.info.name: weight} if weight else {}
    source.warnings += [
        f"undecodable quantisation, compared as it is stored: {listed(names)}: {reason}"
        for reason, names in refusals.items()
    ]
    if not weights:
        return source
    computed = {
        name: ComputedTensor(
            each.info, each.unit, each.make, sized_encodings((source, part) for part in each.names)
        )
        for name, each in weights.items()
    }
    made_by = as_call(_decode_by, source, settings)
    tensors = _replaced(source.tensors, weights.values())
    return ComputedSource(source, tensors, computed, made_by=made_by)


def _decode(parts: Parts, anchor: str) -> DecodedWeight | None:
    """Ask the schemes that know the ending of the name; raise `Unfit` if the parts disagree."""
    for entry in scheme.ours():
        if anchor.endswith(entry.options["endings"]):
            weight: DecodedWeight | None = entry.plugin(parts, anchor)
            if weight:
                _check(parts, weight)
                return weight
    info = parts.find(anchor)
    if info and info.dtype in _INTEGERS and anchor.endswith(_PACKED):
        raise Unfit("its scheme is unknown")
    return None


def _check(parts: Parts, weight: DecodedWeight) -> None:
    name = weight.info.name
    if name not in weight.names and parts.find(name):
        raise Unfit(f"the file holds '{for_terminal(name)}' as well")
    if weight.unit > LONGEST_UNIT:
        raise Unfit(f"its rows have {weight.unit} elements, {LONGEST_UNIT} can be decoded at once")


def _replaced(
    tensors: Mapping[str, TensorInfo], weights: Iterable[DecodedWeight]
) -> dict[str, TensorInfo]:
    """List the tensors with each decoded weight in the place of the first of its parts."""
    homes = {part: each for each in weights for part in each.names}
    replaced: dict[str, TensorInfo] = {}
    for name, info in tensors.items():
        weight = homes.get(name)
        shown = weight.info if weight else info
        replaced.setdefault(shown.name, shown)
    return replaced


def _settings(metadata: Mapping[str, str]) -> dict[str, Any]:
    """Gather the quantisation settings in a model's folder; what is not JSON is passed over."""
    settings: dict[str, Any] = {}
    for key, text in metadata.items():
        file = next((each for each in _FILES if key.startswith(each)), "")
        if key not in _SETTINGS and not file:
            continue
        try:
            value = json.loads(text)
        except (ValueError, RecursionError):
            continue
        if file:
            settings[key.removeprefix(file)] = value
        elif isinstance(value, dict):
            settings.update(value)
    return settings
