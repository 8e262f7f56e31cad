"""What wrappers do to names, and how to see through it.

A framework that wraps a module writes itself into every name: in front
(`module.`), in the middle (`_orig_mod.`) or at the end (`weight_orig`). The core
of a name is what is left without those marks. A table of known marks was chosen
over "the longest common suffix", which would happily pair `encoder.layers.0` with
`decoder.layers.0`.
"""

from __future__ import annotations

import re
from functools import lru_cache
from itertools import takewhile
from typing import NamedTuple

# In front, in any number and order: wrappers, then the names models give their own backbone.
_FRONT = tuple(
    """
    module model base_model state_dict model_state_dict pretrained_model _orig_mod
    _forward_module _fsdp_wrapped_module net network transformer backbone language_model
    bert roberta distilbert albert electra deberta camembert xlm_roberta mpnet longformer
    gpt_neox vit deit beit swin convnext resnet wav2vec2 hubert wavlm esm
""".split()
)
_FRONTS = re.compile(rf"(?:(?:{'|'.join(_FRONT)})\.)+(?=.)", re.DOTALL)  # never the whole name

# Anywhere further in.
_INSIDE = frozenset({"_orig_mod", "_fsdp_wrapped_module", "_checkpoint_wrapped_module"})
_ADAPTED = "base_layer"  # what an adapter calls the layer it sits on
_PACKED = "_packed_params"  # what torch calls a weight and its bias that it quantised
_PARTS = {"0": "weight", "1": "bias"}


class Split(NamedTuple):
    """A name taken apart: the core, and the marks that were around it."""

    core: str
    front: str = ""
    inside: str = ""
    end: str = ""


def core_of(name: str) -> str:
    """Return the name without the marks of wrappers.

    >>> core_of("module._orig_mod.model.layers.0.q_proj.base_layer.weight")
    'layers.0.q_proj.weight'
    """
    rest = name[_front(name) :]
    # Most names carry no further mark: four searches in C spare them the splitting.
    if (
        "_orig" in rest
        or "_wrapped_module" in rest
        or "base_layer" in rest
        or "parametrizations" in rest
        or _PACKED in rest
    ):
        return _split_rest(rest).core
    return rest


def split(name: str) -> Split:
    """Take a name apart.

    >>> split("module.layer._orig_mod.weight_orig")
    Split(core='layer.weight', front='module.', inside='_orig_mod.', end='.weight_orig')
    """
    cut = _front(name)
    return _split_rest(name[cut:])._replace(front=name[:cut])


def _front(name: str) -> int:
    match = _FRONTS.match(name)
    return match.end() if match else 0


def _split_rest(rest: str) -> Split:
    *parts, last = rest.split(".")
    inside = "".join(f"{part}." for part in parts if part in _INSIDE)
    kept = [part for part in parts if part not in _INSIDE]
    plain = [part for part in kept if part != _ADAPTED]
    end = f".{_ADAPTED}" * (len(kept) - len(plain))
    if last == "original" and len(plain) > 1 and plain[-2] == "parametrizations":
        end += f".parametrizations.{plain[-1]}.original"
        *plain, _, last = plain
    elif last in _PARTS and plain[-2:] == [_PACKED, _PACKED]:
        end += f".{_PACKED}.{_PACKED}.{last}"
        *plain, _, _ = plain
        last = _PARTS[last]
    elif last in {"weight_orig", "bias_orig"}:
        end += f".{last}"
        last = last.removesuffix("_orig")
    return Split(".".join([*plain, last]), inside=inside, end=end)


def rule(left: str, right: str, core: str) -> str:
    """Say which marks around the core differ: `-` is on the left alone, `+` on the right.

    >>> rule("module.model.head", "model.head", "head")
    'prefix -module.'
    >>> rule("bert.head", "roberta.head", "head")
    'prefix bert. -> roberta.'
    """
    if left.endswith(core) and right.endswith(core):
        return _prefix_rule(left[: len(left) - len(core)], right[: len(right) - len(core)])
    one, other = split(left), split(right)
    inside = _describe("inside", *_unlike(one.inside, other.inside))
    rules = (_prefix_rule(one.front, other.front), inside, _describe("suffix", one.end, other.end))
    return ", ".join(filter(None, rules)) or "inside moved"


@lru_cache(maxsize=256)
def _prefix_rule(left: str, right: str) -> str:
    return _describe("prefix", *_unlike(left, right))


def _describe(where: str, left: str, right: str) -> str:
    if left == right:
        return ""
    if left and right:
        return f"{where} {left} -> {right}"
    return f"{where} -{left}" if left else f"{where} +{right}"


def _unlike(left: str, right: str) -> tuple[str, str]:
    """Drop the marks both sides end with, then those both begin with."""
    lefts, rights = left.split(".")[:-1], right.split(".")[:-1]
    for _ in range(2):
        lefts, rights = lefts[::-1], rights[::-1]
        ends = zip(lefts, rights, strict=False)
        same = sum(1 for _ in takewhile(lambda both: both[0] == both[1], ends))
        lefts, rights = lefts[same:], rights[same:]
    return "".join(f"{part}." for part in lefts), "".join(f"{part}." for part in rights)
