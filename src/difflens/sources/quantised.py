"""Quantised checkpoints: the parts of a weight are replaced by the weight they mean.

    model.up_proj.qweight  I32 [512, 4096]  \
    model.up_proj.qzeros   I32 [32, 512]     >  model.up_proj.weight  F32 [4096, 4096]
    model.up_proj.scales   F16 [32, 4096]   /                         stored: GPTQ int4 g128

Schemes are found by names, types and shapes; the settings beside the model say only what those
leave open. Parts that do not agree stay as they are, with a warning.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from typing import Any

from ..escape import for_terminal
from ..protocols import TensorSource
from ..records import TensorInfo
from .folders import listed
from .quant_schemes import awq, bitsandbytes, compressed_tensors, gptq, mxfp4, nvfp4, scaled
from .quant_schemes.parts import LONGEST_UNIT, Found, Parts, Unfit
from .quant_strips import Made, Making

# The ending that gives a scheme away, and who may know it, the likelier first.
_SCHEMES: dict[str, tuple[Any, ...]] = {
    "qweight": (gptq.find, awq.find),
    "weight_packed": (compressed_tensors.find, nvfp4.find),
    ".SCB": (bitsandbytes.find_int8,),
    **dict.fromkeys(bitsandbytes.STATES, (bitsandbytes.find,)),
    **dict.fromkeys(scaled.ENDINGS, (scaled.find, nvfp4.find_scaled)),
    ".scale_weight": (scaled.find,),
    "_blocks": (mxfp4.find,),
}
# These are packed integers whoever wrote them: read as numbers they mean nothing.
_PACKED = ("qweight", "weight_packed", ".q_weight", ".W_q", ".quant_weight")
_ENDINGS = tuple(dict.fromkeys([*_SCHEMES, *_PACKED]))
_INTEGERS = frozenset({"I32", "U32", "I16", "U16", "U8", "I64"})
_SETTINGS = ("config.json: quantization_config", "config.json: compression_config")
_FILES = ("quantize_config.json: ", "quant_config.json: ")


def decoded(source: TensorSource, metadata: Mapping[str, str]) -> TensorSource:
    """Give a source with its quantised weights decoded; the same one where there are none."""
    anchors = [name for name in source.tensors if name.endswith(_ENDINGS)]
    if not anchors:
        return source
    parts = Parts(source, _settings(metadata))
    found: dict[str, Found] = {}
    left: dict[str, list[str]] = {}
    for anchor in anchors:
        weight = _found(parts, anchor, left)
        if weight:
            found[weight.info.name] = weight
    source.warnings += [
        f"undecodable quantisation, compared as it is stored: {listed(names)}: {reason}"
        for reason, names in left.items()
    ]
    if not found:
        return source
    makings = {name: Making(each.info, each.unit, each.make) for name, each in found.items()}
    return Made(source, _replaced(source.tensors, found.values()), makings)


def _found(parts: Parts, anchor: str, left: dict[str, list[str]]) -> Found | None:
    """Ask the schemes for a weight; why it cannot be decoded goes to `left`."""
    finders = next((each for ending, each in _SCHEMES.items() if anchor.endswith(ending)), ())
    reason = ""
    try:
        for find in finders:
            weight: Found | None = find(parts, anchor)
            if weight:
                _check(parts, weight)
                return weight
    except Unfit as fault:
        reason = str(fault)
    info = parts.look(anchor)
    if not reason and info and info.dtype in _INTEGERS and anchor.endswith(_PACKED):
        reason = "its scheme is unknown"
    if reason:
        left.setdefault(reason, []).append(anchor)
    return None


def _check(parts: Parts, weight: Found) -> None:
    name = weight.info.name
    if name not in weight.names and parts.look(name):
        raise Unfit(f"'{for_terminal(name)}' is there as well")
    if weight.unit > LONGEST_UNIT:
        raise Unfit(f"its rows have {weight.unit} elements, {LONGEST_UNIT} can be decoded at once")


def _replaced(tensors: Mapping[str, TensorInfo], found: Iterable[Found]) -> dict[str, TensorInfo]:
    """Put each weight where the first of its parts stood."""
    homes = {part: each for each in found for part in each.names}
    replaced: dict[str, TensorInfo] = {}
    for name, info in tensors.items():
        weight = homes.get(name)
        shown = weight.info if weight else info
        replaced.setdefault(shown.name, shown)
    return replaced


def _settings(metadata: Mapping[str, str]) -> dict[str, Any]:
    """Gather what a model's folder says of its quantisation; what is no JSON says nothing."""
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
