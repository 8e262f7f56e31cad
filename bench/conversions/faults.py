"""What goes wrong in a conversion: each fault changes the weights of a right ONNX file."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator
from itertools import pairwise
from typing import Any

import numpy as np
import onnx
from onnx import numpy_helper

Array = np.ndarray[Any, Any]
Change = dict[str, Array]  # new values by the name of the initializer

_BLOCK = re.compile(r"(?:^|(?<=[._a-z]))[0-9]+(?=[._]|$)")
_FOLDED = ("Conv", "LSTM", "BatchNormalization")  # whose weights an exporter may compute
_LAST_WEIGHT = 5  # inputs of a node before it hold weights; an LSTM's begin of states is later
_MULTIPLY = ("Conv", "Gemm", "MatMul", "LSTM")


class Weights:
    """The initializers of a graph that hold weights of the model, each with its own name there."""

    def __init__(self, graph: onnx.GraphProto, state: dict[str, Array]) -> None:
        """Find them: by their values, or by the node that takes them where values were folded."""
        arrays = {each.name: numpy_helper.to_array(each) for each in graph.initializer}
        self.consumers = {name: node for node in graph.node for name in node.input}
        known = np.unique(np.concatenate([each.ravel() for each in state.values()]))
        by_values = {_signature(array): name for name, array in state.items()}
        self.arrays: dict[str, Array] = {}
        self.names: dict[str, str] = {}
        for name, array in arrays.items():
            if array.dtype.kind != "f" or array.size < 4 or not np.isfinite(array).all():
                continue
            node = self.consumers.get(name)
            is_folded = (
                node is not None and node.op_type in _FOLDED and name in node.input[1:_LAST_WEIGHT]
            )
            if is_folded or np.isin(array, known).mean() > 0.9:
                self.arrays[name] = array
                self.names[name] = by_values.get(_signature(array), name)

    def matrices(self) -> list[str]:
        """Name those that are multiplied with: not embeddings, not tables."""
        chosen = [
            name
            for name, array in self.arrays.items()
            if len(_squeezed(array)) > 1 and self._op(name) not in {"Gather", "Add"}
        ]
        return sorted(chosen, key=lambda name: (self.names[name], name))

    def vectors(self, *words: str) -> list[str]:
        """Name the vectors whose own name has one of the words in it."""
        chosen = [
            name
            for name, array in self.arrays.items()
            if len(_squeezed(array)) == 1
            and np.ptp(array) > 0
            and any(word in self.names[name].lower() for word in words)
        ]
        return sorted(chosen, key=lambda name: (self.names[name], name))

    def of(self, *ops: str) -> list[str]:
        """Name those that a node of one of these kinds takes."""
        return [name for name in self.arrays if self._op(name) in ops]

    def _op(self, name: str) -> str:
        node = self.consumers.get(name)
        return node.op_type if node is not None else ""

    def same_shapes(self, names: Iterable[str]) -> Iterator[tuple[str, str]]:
        """Yield two of one shape and different values."""
        names = list(names)
        for place, one in enumerate(names):
            for other in names[place + 1 :]:
                a, b = self.arrays[one], self.arrays[other]
                if a.shape == b.shape and not np.array_equal(a, b):
                    yield one, other


def _signature(array: Array) -> bytes:
    return np.sort(array.astype(np.float32), axis=None).tobytes()


def _squeezed(array: Array) -> tuple[int, ...]:
    return tuple(size for size in array.shape if size > 1)


def _swap(weights: Weights, one: str, other: str) -> Change:
    return {one: weights.arrays[other], other: weights.arrays[one]}


def transposed(weights: Weights) -> Iterator[Change]:
    """Turn one square matrix."""
    for name in weights.matrices():
        array = weights.arrays[name]
        if array.ndim >= 2 and array.shape[0] == array.shape[1]:
            yield {name: array.swapaxes(0, 1)}


def swapped(weights: Weights) -> Iterator[Change]:
    """Exchange two matrices of one shape."""
    for one, other in weights.same_shapes(weights.matrices()):
        yield _swap(weights, one, other)


def other_layer(weights: Weights) -> Iterator[Change]:
    """Yield one layer all the weights of another."""
    groups: dict[str, dict[str, list[str]]] = {}
    for name, own in weights.names.items():
        number = next(iter(_BLOCK.finditer(own)), None)
        if number:
            stem = own[: number.start()]
            layers = groups.setdefault(stem, {})
            layers.setdefault(number[0], []).append(name)
    for layers in groups.values():
        filled = list(layers.values())
        for place, source in enumerate(filled):
            for target in filled[place + 1 :]:
                change = dict(_by_rest(weights, source, target))
                if change:
                    yield change
    for one, other in weights.same_shapes(weights.matrices()):  # numbers lost: one matrix alone
        yield {other: weights.arrays[one]}


def _by_rest(weights: Weights, source: list[str], target: list[str]) -> Iterator[tuple[str, Array]]:
    arrays = {_BLOCK.sub("N", weights.names[name], 1): weights.arrays[name] for name in source}
    for name in target:
        array = arrays.get(_BLOCK.sub("N", weights.names[name], 1))
        if array is not None and array.shape == weights.arrays[name].shape:
            yield name, array


def bias_zeroed(weights: Weights) -> Iterator[Change]:
    """Lose one bias."""
    for name in weights.vectors("bias"):
        yield {name: np.zeros_like(weights.arrays[name])}
    for name in weights.of("LSTM"):
        if weights.arrays[name].ndim == 2:
            yield {name: np.zeros_like(weights.arrays[name])}


def one_percent(weights: Weights) -> Iterator[Change]:
    """Move one value of one matrix by 1 %."""
    for name in weights.matrices():
        array = weights.arrays[name].copy()
        place = np.unravel_index(np.argmax(np.abs(array)), array.shape)
        array[place] *= 1.01
        yield {name: array}


def rows_permuted(weights: Weights) -> Iterator[Change]:
    """Exchange two rows of one matrix."""
    for name in weights.matrices():
        array = weights.arrays[name]
        rows = next(axis for axis, size in enumerate(array.shape) if size > 1)
        order = [1, 0, *range(2, array.shape[rows])]
        array = array.take(order, axis=rows)
        yield {name: array}


def queries_for_keys(weights: Weights) -> Iterator[Change]:
    """Exchange queries and keys."""
    keys = {own: name for name, own in weights.names.items()}
    for name, own in weights.names.items():
        for query, key in (("q_proj", "k_proj"), (".query.", ".key."), (".q.", ".k.")):
            other = keys.get(own.replace(query, key)) if query in own else None
            if other and weights.arrays[name].shape == weights.arrays[other].shape:
                yield _swap(weights, name, other)


def head_moved(weights: Weights) -> Iterator[Change]:
    """Move the rows of one head of the queries, keys or values behind those of the others."""
    for name, own in weights.names.items():
        array = weights.arrays[name]
        if re.search(r"q_proj|k_proj|v_proj|query|key|value|\.[qkv]\.", own) and array.ndim == 2:
            yield {name: np.roll(array, 8, axis=0)}
            yield {name: np.roll(array, 8, axis=1)}


def other_gain(weights: Weights) -> Iterator[Change]:
    """Yield one norm the gain of another."""
    for one, other in weights.same_shapes(weights.vectors("norm", "ln_", "bn")):
        if weights.names[one].endswith("weight") and weights.names[other].endswith("weight"):
            yield {one: weights.arrays[other]}


def gates_misordered(weights: Weights) -> Iterator[Change]:
    """Write the gates of an LSTM in PyTorch's order, which is not that of ONNX."""
    for name in weights.of("LSTM"):
        array = weights.arrays[name]
        if array.ndim == 3 and array.shape[1] % 4 == 0:
            i, o, f, c = np.split(array, 4, axis=1)
            yield {name: np.concatenate([i, f, c, o], axis=1)}


def kernel_flipped(weights: Weights) -> Iterator[Change]:
    """Write the kernel of a convolution back to front."""
    for name in weights.of("Conv"):
        array = weights.arrays[name]
        if array.ndim > 2 and array.shape[-1] > 1:
            yield {name: array[..., ::-1]}


def embedding_shifted(weights: Weights) -> Iterator[Change]:
    """Move all rows of an embedding by one."""
    for name in weights.of("Gather"):
        if weights.arrays[name].ndim == 2:
            yield {name: np.roll(weights.arrays[name], 1, axis=0)}


def mean_for_variance(weights: Weights) -> Iterator[Change]:
    """Exchange the running mean and the running variance of a batch norm."""
    for name in weights.of("BatchNormalization"):
        node = weights.consumers[name]
        mean, variance = node.input[3], node.input[4]
        if name == mean:
            array = np.abs(weights.arrays[mean]) + np.float32(1e-3)
            yield {mean: weights.arrays[variance], variance: array}


def biases_swapped(weights: Weights) -> Iterator[Change]:
    """Exchange two biases of one shape."""
    for one, other in weights.same_shapes(weights.vectors("bias")):
        yield _swap(weights, one, other)


def column_negated(weights: Weights) -> Iterator[Change]:
    """Turn the sign of one column."""
    for name in weights.matrices():
        array = weights.arrays[name].copy()
        array[..., 0] *= -1
        yield {name: array}


FAULTS: dict[str, Callable[[Weights], Iterator[Change]]] = {
    "transposed": transposed,
    "swapped": swapped,
    "other layer": other_layer,
    "bias zeroed": bias_zeroed,
    "1 % off": one_percent,
    "rows permuted": rows_permuted,
    "q and k swapped": queries_for_keys,
    "head moved": head_moved,
    "gain of another": other_gain,
    "gates misordered": gates_misordered,
    "kernel flipped": kernel_flipped,
    "embedding shifted": embedding_shifted,
    "mean for variance": mean_for_variance,
    "biases swapped": biases_swapped,
    "column negated": column_negated,
}


def put(model: onnx.ModelProto, change: Change) -> onnx.ModelProto:
    """Copy a model with some initializers changed; dtypes and shapes stay."""
    changed = onnx.ModelProto()
    changed.CopyFrom(model)
    for each in changed.graph.initializer:
        if each.name in change:
            dtype = numpy_helper.to_array(each).dtype
            array = np.ascontiguousarray(change[each.name], dtype)
            each.CopyFrom(numpy_helper.from_array(array, each.name))
    return changed


def flip_gemm(model: onnx.ModelProto) -> Iterator[onnx.ModelProto]:
    """Turn `transB` of one node over a square matrix: no weight changes, the function does."""
    square = {
        t.name for t in model.graph.initializer if len(t.dims) == 2 and t.dims[0] == t.dims[1]
    }
    for place, node in enumerate(model.graph.node):
        if node.op_type == "Gemm" and node.input[1] in square:
            changed = onnx.ModelProto()
            changed.CopyFrom(model)
            attributes = changed.graph.node[place].attribute
            others = [each for each in attributes if each.name != "transB"]
            turned = any(each.name == "transB" and each.i for each in attributes)
            del attributes[:]
            attributes.extend([*others, onnx.helper.make_attribute("transB", int(not turned))])
            yield changed


def rewire(model: onnx.ModelProto) -> Iterator[onnx.ModelProto]:
    """Let two nodes take each other's matrix: no weight changes, the function does."""
    shapes = {t.name: tuple(t.dims) for t in model.graph.initializer if len(t.dims) >= 2}
    takers: dict[tuple[Any, ...], list[int]] = {}
    for place, node in enumerate(model.graph.node):
        if node.op_type in _MULTIPLY and len(node.input) > 1 and node.input[1] in shapes:
            takers.setdefault((node.op_type, shapes[node.input[1]]), []).append(place)
    for places in takers.values():
        for one, other in pairwise(places):
            changed = onnx.ModelProto()
            changed.CopyFrom(model)
            first, second = changed.graph.node[one], changed.graph.node[other]
            first.input[1], second.input[1] = second.input[1], first.input[1]
            yield changed


GRAPH_FAULTS: dict[str, Callable[[onnx.ModelProto], Iterator[onnx.ModelProto]]] = {
    "transB turned": flip_gemm,
    "rewired": rewire,
}
