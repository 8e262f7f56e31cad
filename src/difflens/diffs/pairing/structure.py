"""Pairs tensors of two naming schemes by the part of the network they are."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from functools import cache, lru_cache
from itertools import islice
from typing import NamedTuple

from difflens.core.records import Pair, Recipe, TensorInfo

from .how import ROLE
from .names import core_of
from .schemes import INPUT_FIRST, INTERLEAVED, ROTATES_HALVES, ROTATES_NEIGHBOURS, SCHEMES, Facts

Tensors = Mapping[str, TensorInfo]


class _Side:
    """The tensors of one model by role."""

    def __init__(self, tensors: Tensors) -> None:
        self.scheme = scheme_of(tensors) or ""
        names = roles(tensors, self.scheme) if self.scheme else {}
        self.by_role = {role: tensors[name] for role, name in names.items()}
        self._input_first = self.scheme in INPUT_FIRST and any(
            role.endswith("attn.qkv.weight") and info.shape[1] == 3 * info.shape[0]
            for role, info in self.by_role.items()
            if len(info.shape) == 2
        )

    def tensor(self, role: str) -> Tensor:
        return Tensor(self.by_role[role], self.scheme, self._input_first)


def pair_by_role(left: Tensors, right: Tensors, known: Facts) -> Iterator[Pair]:
    """Yield the pairs that only their roles show, each with what had to be undone."""
    sides = _Side(left), _Side(right)
    if not (sides[0].scheme and sides[1].scheme):
        return
    for role in sides[0].by_role.keys() & sides[1].by_role.keys():
        looks = aligned(role, sides[0].tensor(role), sides[1].tensor(role), known)
        if looks:
            yield _pair(role, *looks)
    for fused, split, is_left in ((sides[0], sides[1], True), (sides[1], sides[0], False)):
        for role, whole, part in _taken_apart(fused, split, known):
            yield _pair(role, *((whole, part) if is_left else (part, whole)))


def _taken_apart(fused: _Side, split: _Side, known: Facts) -> Iterator[tuple[str, Look, Look]]:
    """Yield the parts of fused tensors with what they are on the other side."""
    for role in fused.by_role.keys() - split.by_role.keys():
        names = _parts_of(role, split)
        if not names:
            continue
        parts = {name: split.tensor(each) for name, each in names.items()}
        whole = fused.tensor(role)
        if set(parts) == {"q", "k", "v"}:
            looks = split_qkv(whole, parts, known)
        else:
            shape = next(iter(parts.values())).info.shape
            looks = split_rows(whole, list(parts), shape)
        for name, look in (looks or {}).items():
            yield names[name], look, Look(parts[name].info)


def _parts_of(role: str, split: _Side) -> dict[str, str]:
    """Name the roles that a fused role is made of, as far as the other side has all of them."""
    if ".attn.qkv." in role:
        wanted = {part: role.replace(".qkv.", f".{part}.") for part in ("q", "k", "v")}
    elif ".ffn.gate_up." in role:
        wanted = {part: role.replace(".gate_up.", f".{part}.") for part in ("gate", "up")}
    elif ".*." in role:
        first, _, last = role.partition(".*.")
        numbers = [
            int(each.removeprefix(f"{first}.").removesuffix(f".{last}"))
            for each in split.by_role
            if each.startswith(f"{first}.")
            and each.endswith(f".{last}")
            and each.removeprefix(f"{first}.").removesuffix(f".{last}").isdigit()
        ]
        wanted = {str(number): f"{first}.{number}.{last}" for number in sorted(numbers)}
    else:
        return {}
    return wanted if all(each in split.by_role for each in wanted.values()) else {}


def _pair(role: str, left: Look, right: Look) -> Pair:
    undone = [f"left {each}" for each in left.undone] + [f"right {each}" for each in right.undone]
    transform = "; ".join(undone) or None
    return Pair(left.info, right.info, f"{ROLE}{role}", transform, left.recipe, right.recipe)


_LAST = re.compile(r"^(.*?)[._](weight|bias)$")
_MANY = 3000  # names that show what the scheme is; a model may have a million
_ENOUGH = 3  # names a scheme must explain before it is believed


def scheme_of(names: Iterable[str]) -> str | None:
    """Name the scheme that explains most of the names; None if none explains enough.

    >>> scheme_of(["blk.0.attn_q.weight", "blk.0.attn_k.weight", "token_embd.weight"])
    'gguf'
    """
    cores = [core_of(name) for name in islice(names, _MANY)]
    scores = {scheme: sum(bool(_role(core, scheme)) for core in cores) for scheme in SCHEMES}
    if any("pre_feedforward_layernorm" in core for core in cores):
        scores.pop("llama")  # explains as many names as gemma2 does, and two of them wrongly
    best = max(scores, key=lambda scheme: (scores[scheme], scheme == "llama"))
    return best if scores[best] >= _ENOUGH else None


def roles(names: Iterable[str], scheme: str) -> Mapping[str, str]:
    """Return the tensor of each role; a role that two tensors claim is nobody's."""
    by_role: dict[str, str] = {}
    doubtful = set()
    for name in names:
        role = _role(core_of(name), scheme)
        if role in by_role:
            doubtful.add(role)
        elif role:
            by_role[role] = name
    return {role: name for role, name in by_role.items() if role not in doubtful}


def _role(core: str, scheme: str) -> str:
    last = _LAST.match(core)
    stem, kind = last.groups() if last else (core, "weight")
    exact, patterns = _compiled(scheme)
    role = exact.get(stem)
    if role is None:
        for pattern, template in patterns:
            match = pattern.fullmatch(stem)
            if match:
                role = template.replace("N", match["n"])
                if "e" in pattern.groupindex:
                    role = role.replace("E", match["e"])
                break
    return f"{role}.{kind}" if role else ""


@cache
def _compiled(scheme: str) -> tuple[dict[str, str], list[tuple[re.Pattern[str], str]]]:
    exact, patterns = {}, []
    for name, role in SCHEMES[scheme].items():
        words = re.escape(name)
        if re.search(r"(?:^|[._])[NE](?=[._]|$)", name):
            words = re.sub(r"(?<![A-Za-z])N(?![A-Za-z])", r"(?P<n>[0-9]{1,6})", words)
            words = re.sub(r"(?<![A-Za-z])E(?![A-Za-z])", r"(?P<e>[0-9]{1,6})", words)
            patterns.append((re.compile(words), role))
        else:
            exact[name] = role
    return exact, patterns


# A correct conversion re-orders, transposes, splits and shifts; compared as stored it
# looks like damage. Only what a scheme is known to do is undone: a guess that
# happened to fit the shapes would hide a real fault.

Spans = tuple[tuple[int, int], ...]

_MATRICES = ("attn.qkv.weight", "attn.o.weight", "ffn.up.weight", "ffn.down.weight")
_ROTARY = ("llama", "mistral", "mixtral")  # architectures whose GGUF rows were re-ordered
_PARTS = ("q", "k", "v")


class Tensor(NamedTuple):
    """A stored tensor with what its scheme says about it."""

    info: TensorInfo
    scheme: str
    input_first: bool


class Look(NamedTuple):
    """A tensor as it is to be compared: its look, how it is made, and how to say so."""

    info: TensorInfo
    recipe: Recipe | None = None
    undone: tuple[str, ...] = ()


def aligned(role: str, left: Tensor, right: Tensor, known: Facts) -> tuple[Look, Look] | None:
    """Bring two tensors of one role into one layout; None if it is not known how."""
    looks = [_upright(role, left, right), _upright(role, right, left)]
    looks[0] = _rotated(role, looks[0], left.scheme, right.scheme, known)
    looks[1] = _rotated(role, looks[1], right.scheme, left.scheme, known)
    looks[0] = _shifted(role, looks[0], left.scheme, right.scheme, known)
    looks[1] = _shifted(role, looks[1], right.scheme, left.scheme, known)
    if len(looks[0].info.shape) != len(looks[1].info.shape):
        return None
    return looks[0], looks[1]


def split_qkv(fused: Tensor, parts: dict[str, Tensor], known: Facts) -> dict[str, Look] | None:
    """Take q, k and v out of a fused tensor; None if its layout is not known."""
    base = fused.info
    turned = fused.input_first and len(base.shape) == 2
    shape = base.shape[::-1] if turned else base.shape
    counts = {part: each.info.shape[0] for part, each in parts.items()}
    if sum(counts.values()) != shape[0]:
        return None
    spans = _qkv_spans(fused.scheme, counts, known)
    if spans is None:
        return None
    return {
        part: Look(
            TensorInfo(f"{base.name}[{part}]", base.dtype, (counts[part], *shape[1:]), base.stored),
            Recipe(base.name, spans[part], transposed=turned),
            (f"{part} taken out of the fused tensor", *(("transposed",) if turned else ())),
        )
        for part in _PARTS
    }


def split_rows(fused: Tensor, names: list[str], shape: tuple[int, ...]) -> dict[str, Look] | None:
    """Take tensors of one shape out of one that holds them in a row, along its first dimension."""
    base = fused.info
    stacked = base.shape[1:] == shape  # experts, one to a row
    rows = 1 if stacked else shape[0]
    if base.shape[0] != rows * len(names) or base.shape[1:] != (shape if stacked else shape[1:]):
        return None
    return {
        name: Look(
            TensorInfo(f"{base.name}[{name}]", base.dtype, shape, base.stored),
            Recipe(base.name, ((place * rows, rows),)),
            (f"{name} taken out of the fused tensor",),
        )
        for place, name in enumerate(names)
    }


def _qkv_spans(scheme: str, counts: dict[str, int], known: Facts) -> dict[str, Spans] | None:
    if scheme not in INTERLEAVED:
        starts = {"q": 0, "k": counts["q"], "v": counts["q"] + counts["k"]}
        return {part: ((starts[part], counts[part]),) for part in _PARTS}
    if not known.heads or len(set(counts.values())) > 1 or counts["q"] % known.heads:
        return None
    size = counts["q"] // known.heads
    return {
        part: tuple(((3 * head + place) * size, size) for head in range(known.heads))
        for place, part in enumerate(_PARTS)
    }


def _upright(role: str, tensor: Tensor, other: Tensor) -> Look:
    """Turn a matrix that is stored input first, where the other side's is not."""
    info = tensor.info
    matrix = role.endswith(_MATRICES) and len(info.shape) == 2
    if not (matrix and tensor.input_first and not other.input_first):
        return Look(info)
    turned = TensorInfo(info.name, info.dtype, info.shape[::-1], info.stored)
    return Look(turned, Recipe(info.name, transposed=True), ("transposed",))


def _rotated(role: str, look: Look, scheme: str, other: str, known: Facts) -> Look:
    """Put query and key rows into the order of schemes that rotate neighbours, not halves."""
    kind = role.rpartition(".")[0][-2:]
    if scheme not in ROTATES_HALVES or other not in ROTATES_NEIGHBOURS or kind not in {".q", ".k"}:
        return look
    heads = known.heads if kind == ".q" else known.key_heads
    rows = look.info.shape[0] if look.info.shape else 0
    is_rotary = other != "gguf" or known.architecture in _ROTARY
    if not (is_rotary and heads and rows % (2 * heads) == 0):
        return look
    recipe = Recipe(look.info.name, _neighbours(rows, heads))
    return Look(look.info, recipe, (*look.undone, "rotary rows re-ordered"))


@lru_cache(maxsize=8)
def _neighbours(rows: int, heads: int) -> Spans:
    size = rows // heads
    half = size // 2
    return tuple(
        (head * size + part * half + place, 1)
        for head in range(heads)
        for place in range(half)
        for part in range(2)
    )


def _shifted(role: str, look: Look, scheme: str, other: str, known: Facts) -> Look:
    """Add the one that Gemma's converters add to the gains of its norms."""
    gemma = (known.architecture or "").startswith("gemma")
    if not (gemma and other == "gguf" and scheme != "gguf" and "norm" in role):
        return look
    dtype = "F32" if look.info.dtype == "BF16" else look.info.dtype  # widened before it is added
    info = TensorInfo(look.info.name, dtype, look.info.shape, look.info.stored)
    return Look(info, Recipe(look.info.name, add=1.0), (*look.undone, "1 added"))
