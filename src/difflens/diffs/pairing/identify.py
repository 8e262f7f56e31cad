"""Which weight each slot of a graph holds: by its module, its name, its neighbours, its shape.

What tensors hold decides nothing here: equal values in the wrong place are a wrong model.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence

from difflens.core.natural_order import natural_key
from difflens.core.records import GraphNode, Recipe, TensorInfo

from .scopes import ALIKE, JOINED, Places, best, call, follows, modules, prefix
from .slots import BIAS, RECURRENT, WEIGHT, Slot, Uses

Tensors = Mapping[str, TensorInfo]
Shape = tuple[int, ...]

FOLDING = frozenset({"Conv", "ConvTranspose", "Gemm"})  # what a batch norm is folded into
_NORM_PARTS = {"Mul": WEIGHT, "Add": BIAS}  # of a norm that is written out


class Identities:
    """The slots of a graph, and the weight of each as far as it is known."""

    def __init__(self, weights: Tensors, tensors: Tensors, nodes: Sequence[GraphNode]) -> None:
        """Identify every slot that can be: the surest evidence first."""
        self.weights, self.tensors, self.nodes = weights, tensors, nodes
        uses = Uses(nodes, tensors)
        self.unread = uses.unread
        self.slots = [each for each in uses.slots if each.role]
        self._ours = prefix(self._voters(), weights)
        self._places = Places(weights)
        self._layers = [
            name.removesuffix(f".{WEIGHT}")
            for name, info in weights.items()
            if name.endswith(f".{WEIGHT}") and len(info.shape) > 1
        ]
        self.targets: dict[Slot, str] = {}
        self._claims: dict[str, Shape] = {}  # what names alone decided
        self._taken = {name for name in weights if _is_recurrent(name)}
        self._waiting = [each for each in self.slots if not self.is_recurrent(each)]
        self._pass(lambda slot: self._by_scope(slot) or self._by_name(slot))
        self._drop_out_of_order()
        self._drop_foreign_biases()
        self._waiting = [each for each in self._waiting if each.is_weight]
        self._pass(lambda slot: self._before_norm(slot, least=ALIKE))
        self._pass(self._inside)
        self._pass(self._beside())
        self._pass(self._only())

    def is_recurrent(self, slot: Slot) -> bool:
        """Is it a tensor that holds the gates of a recurrent layer?"""
        return self.nodes[slot.node].operator in RECURRENT and slot.is_weight

    @property
    def unknown(self) -> list[Slot]:
        """Slots that hold some weight, and nothing says which."""
        return [slot for slot in self._waiting if slot not in self.targets]

    def paths(self, slot: Slot) -> Iterator[str]:
        """Yield the paths of the slot's module among the weights, with the last dot."""
        for module in modules(self.nodes[slot.node]):
            ours = self._ours(f"{module}.")
            if ours is not None:
                yield ours

    def name_of(self, slot: Slot) -> str | None:
        """Say whose name it has; the last on its way counts, an alias is an Identity's output."""
        names = (self._ours(name) for name in reversed(slot.names))
        return next((name for name in names if name is not None and name in self.weights), None)

    def is_named(self, slot: Slot, name: str) -> bool:
        """Is the stored tensor itself called after the weight? What an exporter turned is not."""
        return self._ours(slot.base) == name

    def _voters(self) -> Iterator[str]:
        """Yield names that may be those of weights: of values, and of the modules of nodes."""
        for slot in self.slots:
            yield from slot.names
            for module in modules(self.nodes[slot.node])[:1]:
                yield f"{module}.{slot.role}"

    def _pass(self, way: Callable[[Slot], str | None]) -> None:
        """Ask one kind of evidence about every slot that is still unknown."""
        names = {slot: way(slot) for slot in self._waiting if slot not in self.targets}
        self.targets |= {slot: name for slot, name in names.items() if name}
        self._taken |= set(self.targets.values())
        self._free: dict[Shape, list[str]] = defaultdict(list)
        for name, info in self.weights.items():
            if name not in self._taken:
                self._free[_core(info)].append(name)

    def _by_scope(self, slot: Slot) -> str | None:
        role = slot.role if slot.is_weight else _NORM_PARTS.get(self.nodes[slot.node].operator)
        if role is None or self.tensors[slot.base].count < 2:
            return None
        names = (path + role for path in self.paths(slot))
        own = next((name for name in names if self._fits(slot, name)), None)
        return own or self._before_norm(slot, least=JOINED)

    def _before_norm(self, slot: Slot, *, least: int) -> str | None:
        """Take the layer that the node's norm was folded into, where names leave one: `conv2`."""
        layers = self._folded_into(slot, least)
        return layers[0] if len(layers) == 1 else None

    def _folded_into(self, slot: Slot, least: int) -> list[str]:
        """Name the weights that the norm in whose name the node runs may have been folded into."""
        if slot.role != WEIGHT or self.nodes[slot.node].operator not in FOLDING:
            return []
        for norm in self.paths(slot):
            if f"{norm}running_var" in self.weights:
                path = norm[:-1]
                kernels = [layer for layer in self._layers if follows(path, layer) >= least]
                names = [f"{layer}.{WEIGHT}" for layer in best(path, kernels)]
                return [name for name in names if self._fits(slot, name)]
        return []

    def _by_name(self, slot: Slot) -> str | None:
        """Take the weight it is called after, unless the operand or the module says otherwise."""
        name = self.name_of(slot)
        if name is None:
            return None
        part = name.rpartition(".")[2]
        if slot.role != part and {slot.role, part} == {WEIGHT, BIAS}:
            return None
        meant = self._candidates(slot)
        if meant and name not in meant:
            return None
        if len(meant) != 1:
            self._claims[name] = _core(self.weights[name])
        return name

    @property
    def by_name(self) -> set[str]:
        """Name the weights that nothing but their name tells from another of their size."""
        rivals = Counter(self._claims.values())
        return {name for name, core in self._claims.items() if rivals[core] > 1}

    def _candidates(self, slot: Slot) -> list[str]:
        """Name the weights of its size that the node's module has; none if that says nothing."""
        fit: list[str] = []
        for path in filter(None, self.paths(slot)):
            fit = fit or [name for name in self._places.within(path) if self._fits(slot, name)]
        fit = fit or [name for name in self._called_alike(slot) if self._fits(slot, name)]
        return fit or self._folded_into(slot, ALIKE)

    def _called_alike(self, slot: Slot) -> list[str]:
        """Name the weights of modules that end as the scope does, where it names no module."""
        known = any(self._places.within(path) for path in self.paths(slot))
        scope = None if known else call(self.nodes[slot.node])
        return self._places.ending(f"{scope.stem}.{slot.role}") if scope else []

    def _drop_out_of_order(self) -> None:
        """Forget what names alone decided, where modules of one name ran in another order.

        `/q` runs before `/q_1`: that the names of their weights say the opposite may be a mistake.
        """
        runs: dict[tuple[str, str, Shape], list[tuple[int, str, Slot]]] = defaultdict(list)
        for slot, name in self.targets.items():
            scope = call(self.nodes[slot.node])
            if scope and slot.is_weight and len(self._called_alike(slot)) > 1:
                of = scope.stem, slot.role, _core(self.tensors[slot.base])
                runs[of].append((scope.number, name, slot))
        for run in runs.values():
            run.sort(key=lambda each: each[0])
            keys = [natural_key(name) for _, name, _ in run]
            if keys != sorted(keys):
                for _, _, slot in run:
                    del self.targets[slot]

    def _drop_foreign_biases(self) -> None:
        """Forget weights that are used with a bias of another module, where they have their own."""
        weights = {slot.node: slot for slot in self.targets if slot.role == WEIGHT}
        for slot, name in list(self.targets.items()):
            beside = weights.get(slot.node if slot.host is None else slot.host)
            if slot.role != BIAS or beside is None or beside not in self.targets:
                continue
            own = BIAS.join(self.targets[beside].rsplit(WEIGHT, 1))  # `weight_ih`: `bias_ih`
            if own != name == self.name_of(slot) and self._fits(slot, own):
                del self.targets[slot], self.targets[beside]

    def _fits(self, slot: Slot, name: str) -> bool:
        weight = self.weights.get(name)
        return weight is not None and weight.count == self.tensors[slot.base].count

    def _inside(self, slot: Slot) -> str | None:
        """Take the one weight within the module that has its sizes, and that nobody else is."""
        for path in filter(None, self.paths(slot)):
            free = self._free.get(_core(self.tensors[slot.base]), [])
            names = [name for name in free if name.startswith(path)]
            if len(names) == 1:
                return names[0]
        return None

    def _beside(self) -> Callable[[Slot], str | None]:
        """Take the weight beside a known bias, or the bias beside a known weight."""
        biases = {s.host: n for s, n in self.targets.items() if s.role == BIAS}
        weights = {s.node: n for s, n in self.targets.items() if s.role == WEIGHT}

        def way(slot: Slot) -> str | None:
            if slot.role == WEIGHT and slot.node in biases:
                sibling = biases[slot.node].removesuffix(BIAS) + WEIGHT
            elif slot.role == BIAS and slot.host in weights:
                sibling = weights[slot.host].removesuffix(WEIGHT) + BIAS
            else:
                return None
            return sibling if self._fits(slot, sibling) else None

        return way

    def _only(self) -> Callable[[Slot], str | None]:
        """Take the one weight of its sizes, where no other tensor of the graph can be meant."""
        bases = {each.base for each in self.unknown}
        rivals = Counter(_core(self.tensors[base]) for base in bases)

        def way(slot: Slot) -> str | None:
            core = _core(self.tensors[slot.base])
            free = self._free.get(core, [])
            return free[0] if len(free) == 1 and rivals[core] == 1 else None

        return way


def _core(info: TensorInfo) -> Shape:
    """Sort the sizes: they are the same however a tensor is turned, or seen with ones."""
    return tuple(sorted(size for size in info.shape if size != 1))


def _is_recurrent(name: str) -> bool:
    part = name.rpartition(".")[2]
    return part.startswith(("weight_ih_l", "weight_hh_l", "bias_ih_l", "bias_hh_l"))


# The tensors of ONNX's recurrent operators: W and R are [directions, gates * hidden, input], B is
# [directions, 2 * gates * hidden], the biases of the input, then those of the state. torch keeps
# i f g o and r z n, ONNX i o f c and z r h.

_GATE_ORDER = {"LSTM": (0, 2, 3, 1), "GRU": (1, 0, 2), "RNN": (0,)}

Gates = tuple[TensorInfo, TensorInfo, Recipe]


def gate_pairs(known: Identities) -> Iterator[tuple[str, Gates]]:
    """Yield, by its tensor in the graph, each weight with the rows of that tensor it is."""
    layers: Counter[str] = Counter()
    numbers: dict[int, tuple[str, int]] = {}
    for slot in known.slots:
        if not known.is_recurrent(slot):
            continue
        if slot.node not in numbers:
            path = next((each for each in known.paths(slot) if _has_gates(known, each)), None)
            path = _only_family(known) if path is None else path
            if path is None:
                continue
            numbers[slot.node] = path, layers[path]
            layers[path] += 1
        path, layer = numbers[slot.node]
        operator = known.nodes[slot.node].operator
        yield from (
            (slot.base, each)
            for each in _gates_of(known, slot.base, slot.role, operator, f"{path}{{}}_l{layer}")
        )


def _gates_of(
    known: Identities, base: str, role: str, operator: str, pattern: str
) -> Iterator[Gates]:
    whole, order = known.tensors[base], _GATE_ORDER[operator]
    if not whole.shape or whole.shape[0] not in (1, 2):
        return
    names = ("bias_ih", "bias_hh") if role == "bias_rnn" else (role,)
    for direction in range(whole.shape[0]):
        for place, name in enumerate(names):
            full = pattern.format(name) + ("_reverse" if direction else "")
            weight = known.weights.get(full)
            if weight is None or weight.count * len(names) * whole.shape[0] != whole.count:
                continue
            rows = weight.shape[0]
            size, first = rows // len(order), (direction * len(names) + place) * rows
            spans = tuple((first + gate * size, size) for gate in order)
            length = rows * len(names) * whole.shape[0]
            look = TensorInfo(f"{base}[{full}]", whole.dtype, weight.shape, whole.stored)
            yield weight, look, Recipe(base, spans, length=length)


def _has_gates(known: Identities, path: str) -> bool:
    return f"{path}weight_ih_l0" in known.weights


def _only_family(known: Identities) -> str | None:
    first_weights = [name for name in known.weights if name.endswith("weight_ih_l0")]
    return first_weights[0].removesuffix("weight_ih_l0") if len(first_weights) == 1 else None
