"""Where a graph uses its tensors: which node, in which operand, in which orientation."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

from difflens.core.records import GraphNode, TensorInfo

# What hands a tensor on as it is, or merely in another shape or type; always the first operand.
_PASSING = frozenset(
    """
    Identity Cast Transpose Reshape Squeeze Unsqueeze Flatten Expand DequantizeLinear
""".split()
)
_LONGEST = 8  # nodes a tensor is followed through
_MOST_STEPS = 1 << 22

WEIGHT, BIAS, OTHER, STATE = "weight", "bias", "other", "state"
_NORM = ("", WEIGHT, BIAS)
_GATED = ("", "weight_ih", "weight_hh", "bias_rnn", "", STATE, STATE)
# The parameter that each operand of an operator is, by torch's names.
_ROLES: dict[str, tuple[str, ...]] = {
    "MatMul": (WEIGHT, WEIGHT),
    "Gemm": (WEIGHT, WEIGHT, BIAS),
    "Conv": _NORM,
    "ConvTranspose": _NORM,
    "LayerNormalization": _NORM,
    "GroupNormalization": _NORM,
    "InstanceNormalization": _NORM,
    "RMSNormalization": _NORM,
    "SimplifiedLayerNormalization": _NORM,
    "com.microsoft.SimplifiedLayerNormalization": _NORM,
    "com.microsoft.SkipLayerNormalization": ("", "", WEIGHT, BIAS, ""),
    "com.microsoft.SkipSimplifiedLayerNormalization": ("", "", WEIGHT, ""),
    "BatchNormalization": ("", WEIGHT, BIAS, "running_mean", "running_var"),
    "Gather": (WEIGHT, ""),
    "PRelu": ("", WEIGHT),
    "LSTM": _GATED,
    "GRU": _GATED,
    "RNN": _GATED,
}
PRODUCTS = frozenset({"MatMul", "Gemm"})
RECURRENT = frozenset({"LSTM", "GRU", "RNN"})
_BIASED = frozenset({"MatMul", "Gemm", "Conv", "ConvTranspose"})


class Slot(NamedTuple):
    """One use of a tensor: by which node, as what, and by which names it went on its way there."""

    base: str
    names: tuple[str, ...]
    node: int
    operand: int
    role: str
    turned: bool  # an odd number of transposes lies between the tensor and the node
    host: int | None = None  # of a bias that is added: the node that made what it is added to

    @property
    def is_weight(self) -> bool:
        """Does it sit where only a weight sits, whoever it is?"""
        return self.role not in ("", OTHER, STATE)


class Uses:
    """The slots of a graph, in the order of its nodes."""

    def __init__(self, nodes: Sequence[GraphNode], tensors: Mapping[str, TensorInfo]) -> None:
        """Follow every tensor to the nodes that consume it."""
        self.nodes = nodes
        self._tensors = tensors
        self._consumers: dict[str, list[tuple[int, int]]] = defaultdict(list)
        self._makers: dict[str, int] = {}
        for at, node in enumerate(nodes):
            for place, value in enumerate(node.inputs):
                if value:
                    self._consumers[value].append((at, place))
            self._makers.update((value, at) for value in node.outputs)
        self._steps = 0
        self.unread = frozenset(name for name in tensors if name not in self._consumers)
        slots = [slot for name in tensors for slot in self._slots(name)]
        self.slots = sorted(slots, key=lambda slot: (slot.node, slot.operand))

    def _slots(self, base: str) -> Iterator[Slot]:
        """Yield the uses of one tensor."""
        waiting: list[tuple[tuple[str, ...], bool]] = [((base,), False)]
        while waiting and self._steps < _MOST_STEPS:
            names, turned = waiting.pop()
            for at, place in self._consumers.get(names[-1], ()):
                self._steps += 1
                node = self.nodes[at]
                if node.operator in _PASSING and place == 0 and len(names) < _LONGEST:
                    again = turned ^ _turns(node, self._tensors[base])
                    waiting += [((*names, value), again) for value in node.outputs[:1]]
                else:
                    yield self._slot(base, names, at, place, turned=turned)

    def _slot(
        self, base: str, names: tuple[str, ...], at: int, place: int, *, turned: bool
    ) -> Slot:
        node, info = self.nodes[at], self._tensors[base]
        roles = _ROLES.get(node.operator, ())
        role = roles[place] if place < len(roles) else OTHER
        if node.operator == "MatMul" and len(info.shape) != 2:
            role = OTHER  # a table of angles or a mask: a weight of a product has two dimensions
        host = None
        if node.operator == "Add" and len(node.inputs) == 2:
            host = self._biased(node.inputs[1 - place], info)
            role = OTHER if host is None else BIAS
        if role == BIAS and node.operator in _BIASED:
            host = at
        return Slot(base, names, at, place, role, turned, host)

    def _biased(self, value: str, info: TensorInfo) -> int | None:
        """Find the product or convolution to whose result a vector is added, if that is so."""
        at = self._makers.get(value)
        if at is None or self.nodes[at].operator not in _BIASED:
            return None
        if sum(size != 1 for size in info.shape) > 1 or info.count < 1:
            return None
        return at if any(each in self._tensors for each in self._sources(at)) else None

    def _sources(self, at: int) -> Iterator[str]:
        """Yield where the operands of a node come from, seen through what only hands on."""
        for operand in self.nodes[at].inputs[:2]:
            value = operand
            for _ in range(_LONGEST):
                maker = self._makers.get(value)
                if value in self._tensors or maker is None:
                    break
                node = self.nodes[maker]
                if node.operator not in _PASSING or not node.inputs:
                    break
                value = node.inputs[0]
            yield value


def _turns(node: GraphNode, info: TensorInfo) -> bool:
    """Does it exchange the two dimensions of a matrix?"""
    if node.operator != "Transpose" or len(info.shape) != 2:
        return False
    return node.integers.get("perm", (1, 0)) == (1, 0)


def input_first(slot: Slot, node: GraphNode) -> bool:
    """Does a product use the tensor, as it is stored, as input by output?"""
    if slot.operand == 0:  # W @ x
        stored = node.operator == "Gemm" and bool(node.integers.get("transA", (0,))[0])
    else:
        stored = not (node.operator == "Gemm" and bool(node.integers.get("transB", (0,))[0]))
    return stored != slot.turned
