"""Pairs tensors of two naming schemes by the part of the network they are."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from ..records import Pair, TensorInfo
from .facts import Facts
from .layouts import Look, Tensor, aligned, split_qkv, split_rows
from .roles import roles, scheme_of
from .schemes import INPUT_FIRST

Tensors = Mapping[str, TensorInfo]

ROLE = "role "


class _Side:
    """The tensors of one model by role."""

    def __init__(self, tensors: Tensors) -> None:
        self.scheme = scheme_of(tensors) or ""
        found = roles(tensors, self.scheme) if self.scheme else {}
        self.by_role = {role: tensors[name] for role, name in found.items()}
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
            int(found.removeprefix(f"{first}.").removesuffix(f".{last}"))
            for found in split.by_role
            if found.startswith(f"{first}.")
            and found.endswith(f".{last}")
            and found.removeprefix(f"{first}.").removesuffix(f".{last}").isdigit()
        ]
        wanted = {str(number): f"{first}.{number}.{last}" for number in sorted(numbers)}
    else:
        return {}
    return wanted if all(each in split.by_role for each in wanted.values()) else {}


def _pair(role: str, left: Look, right: Look) -> Pair:
    said = (*(f"left {each}" for each in left.said), *(f"right {each}" for each in right.said))
    return Pair(
        left.info,
        right.info,
        f"{ROLE}{role}",
        "; ".join(said) or None,
        left.recipe,
        right.recipe,
    )
