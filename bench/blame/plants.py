"""Plants faults in a fine-tuned network: each is known to fail, and what mends it is known."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any, NamedTuple, cast

import torch
from torch import Tensor

from .networks import HEADS, State, Trained

_GAP = 0.15  # by how many nats a fault is meant to lower the score
_LEAST = 0.04  # and by how many it must


class Plant(NamedTuple):
    """A bad model, the threshold of its check, and what is to blame."""

    kind: str
    network: Trained
    bad: State
    threshold: float
    culprits: frozenset[str]  # tensors: a repair has these, and nothing else
    cause: frozenset[str] = frozenset()  # where it is another answer
    rows: tuple[int, int] | None = None

    def passes(self, state: State) -> bool:
        """Is a hybrid good enough?"""
        return self.network.score(state) >= self.threshold


Edit = Callable[[State], None]
Maker = Callable[[Trained, random.Random], Plant]


def plants(network: Trained, seed: int) -> Iterator[Plant]:
    """Plant one of each kind, several of some."""
    chance = random.Random(f"{network.kind.name} {seed}")  # noqa: S311  seeded plants
    singles: list[Maker] = [partial(_single, group=group) for group in _GROUPS]
    for make in (*singles, *_MAKERS):
        try:
            yield make(network, chance)
        except TooHarmless:
            continue


class TooHarmless(Exception):
    """No fault of this kind was found that does enough harm."""


def _check(gap: float) -> None:
    if gap < _LEAST:
        raise TooHarmless


def _clean(network: Trained) -> float:
    return min(network.score(network.good), network.score(network.drifted))


def _with(state: State, *edits: Edit) -> State:
    made = {name: value.clone() for name, value in state.items()}
    for edit in edits:
        edit(made)
    return made


# Edits.


def _spoil(name: str, chance: random.Random) -> Edit:
    """Return an edit that spoils one tensor, in one of five ways."""
    way, seed = chance.choice(("flip", "scale", "noise", "zero", "shuffle")), chance.randrange(9999)

    def edit(state: State) -> None:
        value = state[name]
        drawn = torch.Generator().manual_seed(seed)
        if way == "flip":
            value.neg_()
        elif way == "scale":
            value.mul_(6.0)
        elif way == "noise":
            value.add_(
                torch.randn(value.shape, generator=drawn)
                * 3
                * (value.std(correction=0) + value.abs().mean())
            )
        elif way == "zero":
            value.zero_()
        else:
            value.copy_(
                value.reshape(-1)[torch.randperm(value.numel(), generator=drawn)].reshape(
                    value.shape
                )
            )

    return edit


def _is_of(name: str, value: Tensor, group: str) -> bool:
    is_norm = "norm" in name or "bn" in name
    if not value.is_floating_point() or "running" in name:
        return False
    if group == "head-tensor":
        return name.startswith(("lm_head", "final_norm", "embed"))
    if group == "norm":
        return is_norm and name.startswith("layers")
    if group == "bias":
        return value.ndim == 1 and name.startswith("layers") and not is_norm
    return value.ndim > 1 and name.startswith("layers")


def _names(network: Trained, group: str) -> list[str]:
    names = [name for name, value in network.good.items() if _is_of(name, value, group)]
    return names or _names(network, "norm" if group == "bias" else "matrix")


# Kinds.


def _single(network: Trained, chance: random.Random, group: str) -> Plant:
    clean, names = _clean(network), _names(network, group)
    best: Any = None
    for _ in range(40):
        name = chance.choice(names)
        edit = _spoil(name, chance)
        bad = _with(network.drifted, edit)
        score = max(network.score(bad), network.score(_mixed(network.good, bad, [name])))
        if best is None or score < best[0]:
            best = score, name, bad
        if clean - score > _GAP:
            break
    score, name, bad = best
    _check(clean - score)
    return Plant(f"single {group}", network, bad, (clean + score) / 2, frozenset([name]))


def _rows(network: Trained, chance: random.Random) -> Plant:
    """Spoil the rows of one head, or as many rows of another matrix."""
    clean, names = _clean(network), _names(network, "matrix")
    attention = [name for name in names if "q_proj" in name or "v_proj" in name]
    best: Any = None
    for _ in range(40):
        name = chance.choice(attention or names)
        length = len(network.good[name])
        size = length // HEADS
        start = chance.randrange(HEADS) * size
        factor = chance.choice((-3.0, 6.0, 12.0))

        def edit(
            state: State,
            name: str = name,
            start: int = start,
            size: int = size,
            factor: float = factor,
        ) -> None:
            state[name][start : start + size] *= factor

        bad = _with(network.drifted, edit)
        score = max(network.score(bad), network.score(_with(network.good, edit)))
        if best is None or score < best[0]:
            best = score, name, bad, (start, start + size)
        if clean - score > _GAP:
            break
    score, name, bad, rows = best
    _check(clean - score)
    return Plant("head to rows", network, bad, (clean + score) / 2, frozenset([name]), rows=rows)


def _some_faults(
    network: Trained, chance: random.Random, number: int
) -> list[tuple[str, Edit, float]]:
    """Draw faults in different layers, each of which does harm."""
    clean, found = _clean(network), {}
    names = _names(network, "matrix")
    for _ in range(200):
        name = chance.choice(names)
        layer = name.split(".")[1]
        edit = _spoil(name, chance)
        score = network.score(_with(network.drifted, edit))
        if layer not in found and clean - score > _GAP / (1 if number == 2 else 2):
            found[layer] = name, edit, score
        if len(found) == number:
            break
    return list(found.values())


def _two(network: Trained, chance: random.Random) -> Plant:
    """Two faults, each of which fails alone."""
    clean = _clean(network)
    faults = _some_faults(network, chance, 2)
    bad = _with(network.drifted, *(edit for _, edit, _ in faults))
    names = [name for name, _, _ in faults]
    scores = [network.score(_mixed(network.good, bad, [name])) for name in names]
    scores += [network.score(_mixed(bad, network.good, [name])) for name in names]
    _check(clean - max(scores) if len(names) == 2 else 0.0)
    return Plant("two independent", network, bad, (clean + max(scores)) / 2, frozenset(names))


def _three(network: Trained, chance: random.Random) -> Plant:
    """Three faults that fail only together: the threshold is between all three and any two."""
    for _ in range(20):
        faults = _some_faults(network, chance, 3)
        bad = _with(network.drifted, *(edit for _, edit, _ in faults))
        names = [name for name, _, _ in faults]
        everything = max(network.score(bad), network.score(_mixed(network.good, bad, names)))
        pairs = [[name for name in names if name != each] for each in names]
        two = min(
            *(network.score(_mixed(bad, network.good, [name])) for name in names),
            *(network.score(_mixed(network.good, bad, pair)) for pair in pairs),
        )
        if len(names) == 3 and two - everything > _GAP / 2:
            break
    _check(two - everything if len(names) == 3 else 0.0)
    return Plant(
        "three interacting",
        network,
        bad,
        (everything + two) / 2,
        frozenset(names),
        frozenset(names),
    )


def _mixed(base: State, other: State, names: list[str]) -> State:
    return {name: other[name] if name in names else value for name, value in base.items()}


def _swapped(network: Trained, chance: random.Random) -> Plant:
    """Exchange two blocks."""
    clean, best = _clean(network), cast(Any, None)
    number = len(network.network.layers)
    for _ in range(20):
        one, other = chance.sample(range(number), 2)
        names = [name for name in network.good if name.startswith(f"layers.{one}.")]
        pairs = [(name, name.replace(f"layers.{one}.", f"layers.{other}.", 1)) for name in names]

        def edit(state: State, pairs: list[tuple[str, str]] = pairs) -> None:
            for left, right in pairs:
                state[left], state[right] = state[right], state[left]

        bad = _with(network.drifted, edit)
        score = network.score(bad)
        if best is None or score < best[0]:
            best = score, bad, pairs
        if clean - score > _GAP:
            break
    score, bad, pairs = best
    _check(clean - score)
    culprits = frozenset(name for pair in pairs for name in pair if bad[name].is_floating_point())
    return Plant("layers swapped", network, bad, (clean + score) / 2, culprits)


def _coupled(network: Trained, chance: random.Random) -> Plant:
    """Reorder neurons in some blocks, which is innocent, and spoil a tensor in another."""
    number = len(network.network.layers)
    blocks = chance.sample(range(number), min(3, number // 2))
    drawn = torch.Generator().manual_seed(chance.randrange(9999))

    def reorder(state: State) -> None:
        for block in blocks:
            _reorder(state, f"layers.{block}.", drawn)

    innocent = _with(network.drifted, reorder)
    if abs(network.score(innocent) - network.score(network.drifted)) > 1e-3:
        raise RuntimeError(f"{network.kind.name}: the order of its neurons matters")
    moved = network._replace(drifted=innocent)
    while True:
        plant = _single(moved, chance, "matrix")
        (name,) = plant.culprits
        if int(name.split(".")[1]) not in blocks:
            return plant._replace(kind="coupled innocents")


def _reorder(state: State, block: str, drawn: torch.Generator) -> None:
    if f"{block}mlp.up_proj.weight" in state:
        order = torch.randperm(len(state[f"{block}mlp.up_proj.weight"]), generator=drawn)
        for name in ("up_proj.weight", "up_proj.bias", "gate_proj.weight"):
            if f"{block}mlp.{name}" in state:
                state[f"{block}mlp.{name}"] = state[f"{block}mlp.{name}"][order]
        state[f"{block}mlp.down_proj.weight"] = state[f"{block}mlp.down_proj.weight"][:, order]
    elif f"{block}conv1.weight" in state:
        order = torch.randperm(len(state[f"{block}conv1.weight"]), generator=drawn)
        if state[f"{block}conv1.weight"].shape[1] == 1:  # depthwise: its channels are its input's
            return
        state[f"{block}conv1.weight"] = state[f"{block}conv1.weight"][order]
        for name in ("weight", "bias", "running_mean", "running_var"):
            state[f"{block}bn1.{name}"] = state[f"{block}bn1.{name}"][order]
        state[f"{block}conv2.weight"] = state[f"{block}conv2.weight"][:, order]
    else:
        _reorder_recurrent(state, block, drawn)


def _reorder_recurrent(state: State, block: str, drawn: torch.Generator) -> None:
    out, size = f"{block}out_proj.weight", state[f"{block}rnn.weight_hh_l0"].shape[1]
    gates = len(state[f"{block}rnn.weight_hh_l0"]) // size
    for at, end in enumerate(("", "_reverse")):
        order = torch.randperm(size, generator=drawn)
        rows = torch.cat([order + size * gate for gate in range(gates)])
        for name in ("weight_ih_l0", "weight_hh_l0", "bias_ih_l0", "bias_hh_l0"):
            key = f"{block}rnn.{name}{end}"
            state[key] = state[key][rows]
        key = f"{block}rnn.weight_hh_l0{end}"
        state[key] = state[key][:, order]
        columns = torch.arange(2 * size)
        columns[at * size : (at + 1) * size] = order + at * size
        state[out] = state[out][:, columns]


def _diffuse(network: Trained, chance: random.Random) -> Plant:
    """Add noise to every tensor, each by the same part of its size."""
    clean, seed = _clean(network), chance.randrange(9999)
    names = [name for name, value in network.good.items() if value.is_floating_point()]
    for level in (0.1, 0.15, 0.2, 0.3, 0.4, 0.5, 0.7, 1.0):
        drawn = torch.Generator().manual_seed(seed)

        def edit(state: State, level: float = level, drawn: torch.Generator = drawn) -> None:
            for name in names:
                value = state[name]
                noise = torch.randn(value.shape, generator=drawn)
                if "running_var" in name:
                    value.mul_(1 + level * noise.abs())
                else:
                    value.add_(level * value.pow(2).mean().sqrt() * noise)

        bad = _with(network.drifted, edit)
        if clean - network.score(bad) > 2 * _GAP:
            break
    return Plant("diffuse", network, bad, (clean + network.score(bad)) / 2, frozenset())


_GROUPS = ("matrix", "bias", "norm", "head-tensor")
_MAKERS = (*[_rows, _two, _three, _swapped] * 2, *[_coupled] * 4, *[_diffuse] * 3)
