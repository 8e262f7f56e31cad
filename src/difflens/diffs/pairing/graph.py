"""Pairs the tensors of a graph with those of a model that has none: the graph says who is who.

Its names, modules and neighbours tell which weight an initializer is; the operator, the operand
and the transposes on the way tell how it lies. Values are compared, and never decide.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence

from difflens.core.natural_order import natural_key
from difflens.core.records import GraphNode, Pair, Recipe, TensorInfo

from .folds import Norms
from .graph_forms import Fold, Graphed, is_by_heads
from .how import (
    BY_NAME,
    CONSTANT,
    FOLDED,
    GRAPH,
    IF_ZERO,
    NOT_IN_GRAPH,
    ONLY_IN_GRAPH,
    UNCLEAR,
    UNIDENTIFIED,
    UNREAD,
)
from .identify import Identities, gate_pairs
from .slots import BIAS, OTHER, PRODUCTS, STATE, WEIGHT, Slot, input_first

Tensors = Mapping[str, TensorInfo]
Nodes = Callable[[], Sequence[GraphNode] | None] | None
_BUFFERS = ("inv_freq", "masked_bias", "num_batches_tracked")  # computed anew, and no weights
_TABLES = frozenset({"Gather"})  # of sines and buckets too: what only the graph has may be one


def pair_by_graph(left: Tensors, right: Tensors, nodes: tuple[Nodes, Nodes]) -> Graphed | None:
    """Pair a model's weights with the tensors of a graph, in natural order of their names.

    `nodes` reads the graph of each side that has one; the answer is None if one alone cannot
    tell who is who: neither side has a graph, or both have.
    """
    read = nodes[0] or nodes[1]
    graph = None if read is None or None not in nodes else read()
    if not graph:
        return None
    graph_is_left = nodes[0] is not None
    weights, tensors = (right, left) if graph_is_left else (left, right)
    return _Matching(Identities(weights, tensors, graph), graph_is_left=graph_is_left).graphed()


class _Matching:
    """Makes pairs of what was identified, in the layout of the weights."""

    def __init__(self, known: Identities, *, graph_is_left: bool) -> None:
        self._known = known
        self._graph_is_left = graph_is_left
        self._conventions = self._evidence()
        self._by_name = known.by_name
        self._used: set[str] = set()  # names that tensors of the graph go by in pairs
        self._bases: set[str] = set()
        self._paired: dict[str, Pair] = {}
        self._biased: set[str] = set()  # folded norms whose bias the graph has
        self._norms = Norms(known)
        # Names on both sides: nothing says how they lie, or which norm is in them.
        self._unclear = set(self._norms.unclear)

    def graphed(self) -> Graphed:
        """Put the pairs together, and say of every lone tensor why it is alone."""
        pairs = [*self._single_pairs(), *self._gates()]
        folds = self._folds(self._norms, pairs)
        lone = [*self._lone_weights(self._norms), *self._lone_tensors()]
        ordered = sorted([*pairs, *lone], key=lambda each: natural_key(each.name))
        return Graphed(ordered, folds, self._tables(lone), self._graph_is_left)

    def _single_pairs(self) -> list[Pair]:
        pairs: list[Pair] = []
        done: set[tuple[str, str, bool]] = set()
        for slot, name in self._known.targets.items():
            turned = None if name in self._unclear else self._is_turned(slot, name)
            if turned is None:
                self._unclear |= {slot.base, name}
                continue
            if (slot.base, name, turned) in done:
                continue
            done.add((slot.base, name, turned))
            pairs.append(self._pair(slot.base, name, turned=turned))
        return pairs

    def _pair(self, base: str, name: str, *, turned: bool) -> Pair:
        weight, stored = self._known.weights[name], self._known.tensors[base]
        shape = stored.shape[::-1] if turned else stored.shape
        ones = [[size for size in each if size != 1] for each in (shape, weight.shape)]
        seen = shape != weight.shape and ones[0] == ones[1]
        transform = "transposed" if turned else ""
        if seen:
            transform = transform or f"{list(shape)} seen as {list(weight.shape)}"
            shape = weight.shape
        look = base if base not in self._used else f"{base}[{name}]"
        recipe = Recipe(base, transposed=turned) if transform or look != base else None
        info = TensorInfo(look, stored.dtype, shape, stored.stored)
        return self._made(weight, info, transform, recipe, base)

    def _made(
        self, weight: TensorInfo, look: TensorInfo, transform: str, recipe: Recipe | None, base: str
    ) -> Pair:
        self._used.add(look.name)
        self._bases.add(base)
        how = "exact" if look.name == weight.name and not transform else GRAPH
        how = BY_NAME if weight.name in self._by_name else how
        side = "left" if self._graph_is_left else "right"
        transform = f"{side} {transform}" if transform else ""
        if self._graph_is_left:
            made = Pair(look, weight, how, transform or None, recipe, None)
        else:
            made = Pair(weight, look, how, transform or None, None, recipe)
        self._paired[weight.name] = made
        return made

    def _gates(self) -> Iterator[Pair]:
        for base, (weight, look, recipe) in gate_pairs(self._known):
            transform = "gates re-ordered" if len(recipe.rows) > 1 else "rows taken"
            yield self._made(weight, look, transform, recipe, base)

    def _evidence(self) -> dict[str, str]:
        """Tell by products that are not square how each kind of layer lies: `in` or `out` first."""
        conventions: dict[str, str] = {}
        for slot, name in self._known.targets.items():
            node, shape = self._known.nodes[slot.node], self._known.tensors[slot.base].shape
            if node.operator in PRODUCTS and slot.role == WEIGHT and len(set(shape)) == 2:
                turned = shape[::-1] == self._known.weights[name].shape
                conventions[_layer(name)] = "out" if input_first(slot, node) == turned else "in"
        return conventions

    def _is_turned(self, slot: Slot, name: str) -> bool | None:
        """Does the graph keep this weight the other way round? None if nobody can tell."""
        node, shape = self._known.nodes[slot.node], self._known.tensors[slot.base].shape
        ours = self._known.weights[name].shape
        if slot.role != WEIGHT or len(shape) != 2 or len(ours) != 2:
            return False
        if node.operator not in PRODUCTS:
            return slot.turned
        if shape[0] != shape[1]:
            return shape[::-1] == ours
        convention = self._convention(slot, name)
        if convention == "as stored":
            self._by_name.add(name)
            return False
        return None if convention is None else input_first(slot, node) == (convention == "out")

    def _convention(self, slot: Slot, name: str) -> str | None:
        """Say how a square weight lies in the model: its inputs or outputs first, or as stored."""
        node, known = self._known.nodes[slot.node], self._conventions
        if node.kind.endswith((".Linear", ".Conv1D")):
            return "in" if node.kind.endswith(".Conv1D") else "out"
        named = self._known.is_named(slot, name)
        if name.rpartition(".")[2] != WEIGHT:  # a parameter of its own, of no layer that we know
            return "as stored" if named else None
        if _layer(name) in known:
            return known[_layer(name)]
        # No exporter writes a Linear like this: x @ weight, as it is.
        if named and node.operator == "MatMul" and slot.operand == 1 and not slot.turned:
            return None
        return "in" if set(known.values()) == {"in"} else "out"

    def _folds(self, norms: Norms, pairs: list[Pair]) -> list[Fold]:
        folds: list[Fold] = []
        hosts = {s.host: s.base for s in self._known.slots if s.role == BIAS and s.host is not None}
        for slot, name in self._known.targets.items():
            norm = norms.of.get(name)
            if norm is None or slot.role != WEIGHT or name not in self._paired:
                continue
            bias = name.removesuffix(WEIGHT) + BIAS
            has_bias = bias in self._known.weights
            axis = int(self._known.nodes[slot.node].operator == "ConvTranspose")
            base = hosts.get(slot.node)
            shown = bias if has_bias else norm + BIAS
            if has_bias and norm + BIAS in self._paired:  # the node runs in the norm's name
                pairs.remove(self._paired.pop(norm + BIAS))
                self._used.discard(base or "")
            if base is not None and shown in self._known.weights and shown not in self._paired:
                pairs.append(self._pair(base, shown, turned=False))
            for part, whole in ((WEIGHT, name), (BIAS, shown)):
                if whole in self._paired:
                    self._biased |= {norm} if part == BIAS else set()
                    fold = Fold(self._paired[whole], part, bias if has_bias else "", norm, axis)
                    folds.append(fold)
        return folds

    def _lone_weights(self, norms: Norms) -> Iterator[Pair]:
        folded = {part for norm in norms.of.values() for part in norms.parts(norm)}
        # A fold whose bias the graph leaves out: what that bias is made of must be nothing.
        bare = {norm for norm in norms.of.values() if norm not in self._biased}
        nothing = {norm + part for norm in bare for part in (BIAS, "running_mean")}
        sizes = {
            _sizes(self._known.tensors[slot.base])
            for slot in self._known.unknown
            if slot.base not in self._bases
        }
        for name, info in self._known.weights.items():
            if name in self._paired:
                continue
            sibling = name.removesuffix(BIAS) + WEIGHT
            how = NOT_IN_GRAPH
            if name in nothing:
                how = IF_ZERO
            elif name in folded:
                how = FOLDED
            elif name in self._unclear:
                how = UNCLEAR
            elif not _is_float(info) or name.endswith(_BUFFERS):
                how = CONSTANT
            elif name.endswith(BIAS) and sibling in self._paired:
                how = IF_ZERO
            elif _sizes(info) in sizes:
                how = UNIDENTIFIED
            yield Pair(None, info, how) if self._graph_is_left else Pair(info, None, how)

    def _lone_tensors(self) -> Iterator[Pair]:
        known = self._known
        free = {_sizes(info) for name, info in known.weights.items() if name not in self._paired}
        strong = {
            slot.base: known.nodes[slot.node].operator
            for slot in known.slots
            if slot.is_weight and not self._is_helper(slot)
        }
        states = {slot.base for slot in known.slots if slot.role == STATE}
        for base, info in known.tensors.items():
            if base in self._bases:
                continue
            how = IF_ZERO if base in states else CONSTANT
            how = UNREAD if base in known.unread else how
            if base in strong and _is_float(info) and info.count > 1:
                how = UNIDENTIFIED if _sizes(info) in free else ONLY_IN_GRAPH
                if how == ONLY_IN_GRAPH and strong[base] in _TABLES:
                    how = CONSTANT
            how = UNCLEAR if base in self._unclear else how
            yield Pair(info, None, how) if self._graph_is_left else Pair(None, info, how)

    def _is_helper(self, slot: Slot) -> bool:
        """Is it a gain of ones of a group norm, which is written as an instance norm first?"""
        if self._known.nodes[slot.node].operator != "InstanceNormalization":
            return False
        return any(path + slot.role in self._paired for path in self._known.paths(slot))

    def _tables(self, lone: list[Pair]) -> list[tuple[Pair, Pair]]:
        """Propose tables of which the graph may hold the rows it needs, in the same module."""
        sides = ("right", "left") if self._graph_is_left else ("left", "right")
        tables = [
            (each, info)
            for each in lone
            if (info := getattr(each, sides[0]))
            and each.how == NOT_IN_GRAPH
            and len(info.shape) > 1
        ]
        if not tables:
            return []
        places: dict[str, set[str]] = defaultdict(set)  # a piece may serve every layer
        for slot in self._known.slots:
            if slot.role == OTHER:
                places[slot.base].update(self._known.paths(slot))
        tables_and_pieces = []
        for each in lone:
            info = getattr(each, sides[1])
            if info is None or info.name not in places or not _is_float(info):
                continue
            for table, whole in tables:
                inside = any(whole.name.startswith(path) for path in places[info.name])
                rows = len(info.shape) > 1 and info.shape[-1] == whole.shape[-1]
                if inside and (rows or is_by_heads(whole, info)):
                    tables_and_pieces.append((table, each))
        return tables_and_pieces


def _layer(name: str) -> str:
    parts = name.split(".")
    return parts[-2] if len(parts) > 1 else name


def _is_float(info: TensorInfo) -> bool:
    return info.dtype.startswith(("F", "BF", "C"))


def _sizes(info: TensorInfo) -> tuple[int, ...]:
    return tuple(sorted(size for size in info.shape if size != 1))
