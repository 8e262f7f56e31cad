"""Where in a model attention lies: the tensors of each site by the part they play."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import NamedTuple

from ...dtypes import FLOATS, OPAQUE
from ...records import TensorInfo

# What projections are called, without `.weight`; the site is what stands before.
_PARTS = tuple(
    (part, re.compile(rf"^(?:(?P<site>.*?)\.)?(?P<word>{words})$"))
    for part, words in (
        ("qkv", r"c_attn|query_key_value|qkv_proj|wqkv|attn_qkv|qkv|in_proj"),
        (
            "o",
            r"o_proj|attn_output|out_lin|out_proj|wo|to_out\.0|output\.dense|c_proj|proj|dense|o",
        ),
        ("q", r"q_proj|query|wq|attn_q|q_lin|to_q|q"),
        ("k", r"k_proj|key|wk|attn_k|k_lin|to_k|k"),
        ("v", r"v_proj|value|wv|attn_v|v_lin|to_v|v"),
    )
)
_LAST = re.compile(r"^(?P<stem>.*)[._](?P<kind>weight|bias)(?:\[(?P<piece>[qkv])\])?$")
# The norm whose output q, k and v read; what only follows the attention cannot be folded into it.
_NORMS = frozenset({
    "input_layernorm", "ln_1", "layernorm_before", "attention_norm", "attn_norm",
})  # fmt: skip
_NUMBER = re.compile(r"[0-9]+")


class Site(NamedTuple):
    """One attention: its place in the model and its tensors by part, as one side has them.

    Parts are q, k, v, o and qkv, with `.bias` for what is added; `gain` and `shift` are the norm's.
    """

    name: str
    tensors: dict[str, TensorInfo]

    @property
    def is_whole(self) -> bool:
        """Are all four projections there?"""
        return "o" in self.tensors and ("qkv" in self.tensors or {"q", "k", "v"} <= {*self.tensors})


def sites(infos: Iterable[TensorInfo]) -> list[Site]:
    """Find every attention among the tensors of one side, in order of depth.

    >>> names = [f"h.0.attn.{part}.weight" for part in ("c_attn", "c_proj")]
    >>> [
    ...     (site.name, sorted(site.tensors))
    ...     for site in sites(TensorInfo(n, "F32", (8, 8)) for n in names)
    ... ]
    [('h.0.attn', ['o', 'qkv'])]
    """
    found: dict[str, dict[str, TensorInfo]] = {}
    norms: dict[str, dict[str, TensorInfo]] = {}
    for info in infos:
        if info.dtype not in FLOATS or info.dtype in OPAQUE or info.dtype == "C64":
            continue
        place = placed(info.name)
        if place and len(info.shape) == (1 if place[1].endswith(".bias") else 2):
            found.setdefault(place[0], {}).setdefault(place[1], info)
        norm = _norm(info.name)
        if norm and len(info.shape) == 1:
            norms.setdefault(norm[0], {})[norm[1]] = info
    whole = (Site(name, {**parts, **norms.get(_block(name), {})}) for name, parts in found.items())
    return sorted((site for site in whole if site.is_whole), key=lambda site: _depth(site.name))


def placed(name: str) -> tuple[str, str] | None:
    """Say which part of which attention a tensor is; None where it is of none.

    >>> placed("encoder.layer.2.attention.self.query.bias"), placed("h.0.mlp.c_proj.weight")
    (('encoder.layer.2.attention', 'q.bias'), None)
    """
    last = _LAST.match(name)
    if not last:
        return None
    for part, pattern in _PARTS:
        found = pattern.match(last["stem"].lower())
        if not found:
            continue
        site = last["stem"][: len(found["site"] or "")]
        if "att" not in site.rpartition(".")[2].lower() and "attn" not in found["word"]:
            site = site.removesuffix(".self")
            if "att" not in site.rpartition(".")[2].lower():
                return None
        site = re.sub(r"attention\.attention$", "attention", site.removesuffix(".self"))
        return site, (last["piece"] or part) + (".bias" if last["kind"] == "bias" else "")
    return None


def _norm(name: str) -> tuple[str, str] | None:
    last = _LAST.match(name)
    block, _, word = last["stem"].rpartition(".") if last else ("", "", "")
    timm = word == "norm1" and ".blocks." in f".{block}."
    if not last or not (word in _NORMS or timm):
        return None
    return block, "gain" if last["kind"] == "weight" else "shift"


def _block(site: str) -> str:
    """Give the block around an attention: where the norm before it lies."""
    block, _, last = site.rpartition(".")
    return block if "att" in last.lower() else site


def _depth(name: str) -> tuple[list[int], str]:
    return [int(number) for number in _NUMBER.findall(name)], name
