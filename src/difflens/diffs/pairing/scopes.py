"""Names of modules: which one a node was traced in, and which norm follows which layer."""

from __future__ import annotations

import re
from bisect import bisect_left
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping
from typing import NamedTuple

from difflens.core.records import GraphNode, TensorInfo

_DEEPEST = 6  # components a wrapper may put in front
_MOST_VOTERS = 2000
# What an optimiser of graphs leaves of a node's own name when it fuses it: `/q/MatMul/Fusion`.
_FUSED = re.compile(r"(MatMul|Gemm|Conv|ConvTranspose|Add|Mul|LayerNormalization)(_[0-9]{1,9})?")
_CALL = re.compile(r"(.*?)(?:_([0-9]{1,9}))?")


def modules(node: GraphNode) -> tuple[str, ...]:
    """Name the paths that a node's module may have; empty if nothing says so.

    >>> modules(GraphNode("Gemm", "/net/net.0/Gemm", (), ()))
    ('net.0', 'net.net.0')
    >>> modules(GraphNode("Gemm", "/q/MatMul/MatMulAddFusion", (), ()))
    ('q',)
    """
    if node.module:
        return (node.module,)
    parts = _scope(node)
    return tuple(
        dict.fromkeys((_path(parts, nested=True), _path(parts, nested=False))) if parts else ()
    )


def _scope(node: GraphNode) -> list[str]:
    """Read the modules out of a node's name, without the operator it ends in."""
    parts = node.name.split("/")
    if len(parts) < 3 or parts[0]:
        return []
    fused = len(parts) > 3 and _FUSED.fullmatch(parts[-2])
    return parts[1 : -2 if fused else -1]


class Call(NamedTuple):
    """A module that TorchScript names by its own name alone, and which call of that name it is."""

    stem: str
    number: int


def call(node: GraphNode) -> Call | None:
    """Read the scope of a node whose module's containers are no part of its name: `/q_1/MatMul`."""
    parts = [] if node.module else _scope(node)
    match = _CALL.fullmatch(parts[-1]) if parts else None
    return Call(match[1], int(match[2] or 0)) if match and match[1] else None


class Places:
    """The weights of a model by the modules they are in, and by the ends of their names."""

    def __init__(self, weights: Iterable[str]) -> None:
        """Sort the names: those of one module lie together."""
        self._names = sorted(weights)
        self._ending: dict[str, list[str]] = {}

    def within(self, path: str) -> list[str]:
        """Name the weights in a module; the path ends in a dot."""
        after = f"{path[:-1]}/"  # the sign that comes next to a dot
        return self._names[bisect_left(self._names, path) : bisect_left(self._names, after)]

    def ending(self, end: str) -> list[str]:
        """Name the weights whose last components are these."""
        if not self._ending:
            self._ending = defaultdict(list)
            for name in self._names:
                for _, rest in _splits(name):
                    self._ending[rest].append(name)
        return self._ending.get(end, [])


def _path(parts: list[str], *, nested: bool) -> str:
    """Join a scope; the children of a Sequential repeat its name: `/net/net.0`."""
    path: list[str] = []
    for part in filter(None, parts):
        if nested and path and part.startswith(f"{path[-1]}."):
            path.pop()
        path.append(part)
    return ".".join(path)


class Prefix:
    """What one side has in front of every name that the other has not."""

    def __init__(self, ours: str, theirs: str) -> None:
        """Keep both; one is mostly empty."""
        self.ours, self.theirs = ours, theirs

    def __call__(self, name: str) -> str | None:
        """Say what a name of the graph is called on the other side; None if it has no prefix."""
        if not name.startswith(self.theirs):
            return None
        return self.ours + name[len(self.theirs) :]


def prefix(names: Iterable[str], tensors: Mapping[str, TensorInfo]) -> Prefix:
    """Find the prefix under which most names of the graph are names of the other side."""
    by_ending: dict[str, list[str]] = {}
    for name in tensors:
        for front, rest in _splits(name):
            by_ending.setdefault(rest, []).append(front)
    votes: Counter[tuple[str, str]] = Counter()
    for _, name in zip(range(_MOST_VOTERS), names, strict=False):
        for theirs, rest in _splits(name):
            if rest in tensors:
                votes["", theirs] += 1
            if not theirs:
                votes.update((ours, "") for ours in by_ending.get(rest, ()) if ours)
    if not votes:
        return Prefix("", "")
    best = max(votes, key=lambda each: (votes[each], -len(each[0]) - len(each[1]), each))
    return Prefix(*best)


def _splits(name: str) -> Iterator[tuple[str, str]]:
    """Yield what may be a prefix, with what follows it."""
    at = 0
    for _ in range(_DEEPEST + 1):
        yield name[:at], name[at:]
        at = name.find(".", at) + 1
        if not at:
            return


# Which norm follows which layer, by what their modules are called.

JOINED, ALIKE = 2, 1  # a number or a word joins them; or they merely lie side by side

_NUMBERS = re.compile(r"[0-9]{1,9}")
_WORDS = re.compile(r"[^\W\d_]+")


def follows(norm: str, layer: str) -> int:
    """Say how surely a norm follows a layer: `JOINED`, `ALIKE`, or 0 if it does not.

    Their paths differ in one component: by a word alone, or as children of a Sequential.

    >>> follows("block.bn1", "block.conv1"), follows("norms.0", "convs.0"), follows("1", "0")
    (2, 2, 2)
    >>> follows("bn", "conv"), follows("bn2", "conv1"), follows("a.bn", "b.conv")
    (1, 0, 0)
    """
    ours, theirs = norm.split("."), layer.split(".")
    apart = [n for n, (one, other) in enumerate(zip(ours, theirs, strict=False)) if one != other]
    if len(ours) != len(theirs) or len(apart) != 1:
        return 0
    one, other = ours[apart[0]], theirs[apart[0]]
    if _NUMBERS.fullmatch(one) and _NUMBERS.fullmatch(other):
        return JOINED if apart[0] == len(ours) - 1 and int(one) == int(other) + 1 else 0
    numbers = _NUMBERS.findall(one)
    if numbers != _NUMBERS.findall(other):
        return 0
    words = set(_WORDS.findall(one)) & set(_WORDS.findall(other))
    listed = any(_NUMBERS.fullmatch(part) for part in ours[apart[0] + 1 :])
    return JOINED if numbers or words or listed else ALIKE


def best(norm: str, layers: Iterable[str]) -> list[str]:
    """Name the layers that a norm follows most surely."""
    sureness = {layer: follows(norm, layer) for layer in layers}
    most = max(sureness.values(), default=0)
    return [layer for layer, sure in sureness.items() if sure == most] if most else []


def matched(layers: Iterable[str], norms: Iterable[str]) -> dict[str, str]:
    """Return each layer its norm, where the names leave one to each; layers in the order they run.

    Numbered norms of one module go with as many layers of it in that order.
    """
    layers, norms = list(layers), list(norms)
    chosen = {norm: best(norm, layers) for norm in norms}
    sure = {norm: best_layers[0] for norm, best_layers in chosen.items() if len(best_layers) == 1}
    claims = Counter(sure.values())
    pairs = {layer: norm for norm, layer in sure.items() if claims[layer] == 1}
    return pairs | _in_order(
        [layer for layer in layers if layer not in pairs],
        [norm for norm in norms if norm not in pairs.values()],
    )


def _in_order(layers: list[str], norms: list[str]) -> dict[str, str]:
    pairs: dict[str, str] = {}
    for parent in dict.fromkeys(map(_parent, layers)):
        ours = [layer for layer in layers if _parent(layer) == parent]
        beside = [norm for norm in norms if _parent(norm) == parent]
        theirs = {_number(norm): norm for norm in beside}
        numbers = sorted(number for number in theirs if number is not None)
        if len(numbers) == len(beside) == len(ours):
            pairs |= zip(ours, (theirs[number] for number in numbers), strict=True)
    return pairs


def _parent(path: str) -> str:
    return path.rpartition(".")[0]


def _number(path: str) -> int | None:
    numbers = _NUMBERS.findall(path.rpartition(".")[2])
    return int(numbers[-1]) if numbers else None
