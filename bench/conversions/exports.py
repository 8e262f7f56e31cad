"""Exports of a network to ONNX: by both exporters, and in the guises a right export may have."""

from __future__ import annotations

import contextlib
import copy
import inspect
import io
import logging
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import onnxruntime
import torch
from torch import nn

from .networks import Network, Wrapped

EXPORTERS = ("torchscript", "dynamo")
RIGHT = "right"


def export(
    module: nn.Module, inputs: tuple[Any, ...], exporter: str, **how: Any
) -> onnx.ModelProto:
    """Export as PyTorch does, without what it prints."""
    stream: Any = io.BytesIO()  # both exporters take it; only the older one says so
    names = [f"input{n}" for n in range(len(inputs))]
    logging.disable(logging.WARNING)
    try:
        with (
            warnings.catch_warnings(),
            contextlib.redirect_stdout(io.StringIO()),
            contextlib.redirect_stderr(io.StringIO()),
            torch.no_grad(),
        ):
            warnings.simplefilter("ignore")
            torch.onnx.export(
                module, inputs, stream, input_names=names, dynamo=exporter == "dynamo", **how
            )
    finally:
        logging.disable(logging.NOTSET)
    return onnx.load_from_string(stream.getvalue())


def plainly(network: Network, exporter: str) -> onnx.ModelProto:
    """Export the network as it is."""
    return export(network.exported, network.inputs, exporter)


def halved(network: Network, exporter: str) -> onnx.ModelProto:
    """Export the network in half precision."""
    module = copy.deepcopy(network.exported).half()
    inputs = tuple(each.half() if each.is_floating_point() else each for each in network.inputs)
    return export(module, inputs, exporter)


def wrapped(network: Network, exporter: str) -> onnx.ModelProto:
    """Export the network inside one more module, whose name goes before all others."""
    return export(Wrapped(network.exported).eval(), network.inputs, exporter)


def dynamic(network: Network, exporter: str) -> onnx.ModelProto:
    """Export for any number of examples, and for texts of any length."""
    axes = [
        {0: "batch", 1: "length"} if not each.is_floating_point() else {0: "batch"}
        for each in network.inputs
    ]
    if exporter == "torchscript":
        named = {f"input{n}": each for n, each in enumerate(axes)}
        return export(network.exported, network.inputs, exporter, dynamic_axes=named)
    auto = torch.export.Dim.DYNAMIC
    shapes: Any = [dict.fromkeys(each, auto) for each in axes]
    # A module that takes `*inputs` has them under that one name.
    takes_any = "inputs" in inspect.signature(network.exported.forward).parameters
    return export(
        network.exported,
        network.inputs,
        exporter,
        dynamic_shapes=(tuple(shapes),) if takes_any else tuple(shapes),
    )


def unfolded(network: Network, exporter: str) -> onnx.ModelProto:
    """Export without folding of constants: a weight is followed by a node that turns it."""
    return export(network.exported, network.inputs, exporter, do_constant_folding=False)


def renamed(model: onnx.ModelProto) -> onnx.ModelProto:
    """Number the initializers, as optimisers of graphs do; nodes keep their names."""
    changed = onnx.ModelProto()
    changed.CopyFrom(model)
    names = {each.name: f"t{n}" for n, each in enumerate(changed.graph.initializer)}
    for each in changed.graph.initializer:
        each.name = names[each.name]
    for node in changed.graph.node:
        for place, name in enumerate(node.input):
            node.input[place] = names.get(name, name)
    return changed


def save(model: onnx.ModelProto, path: Path, *, external: bool = False) -> Path:
    """Write the file, with its weights inside or beside it."""
    written = onnx.ModelProto()
    written.CopyFrom(model)  # saving beside the file takes the values out of the message
    onnx.save(
        written,
        path,
        save_as_external_data=external,
        location=f"{path.name}.data" if external else None,
        size_threshold=0,
    )
    return path


Array = np.ndarray[Any, Any]


class Function:
    """What a graph computes of the inputs of its network."""

    def __init__(self, inputs: tuple[Any, ...]) -> None:
        """Keep the inputs."""
        self._inputs = [each.numpy() for each in inputs]

    def of(self, model: onnx.ModelProto) -> np.ndarray[Any, Any]:
        """Run the graph."""
        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads = 1
        options.log_severity_level = 4
        session = onnxruntime.InferenceSession(model.SerializeToString(), options)
        feeds = {
            each.name: array.astype(np.float16) if "float16" in each.type else array
            for each, array in zip(session.get_inputs(), self._inputs, strict=True)
        }
        return np.asarray(session.run(None, feeds)[0], np.float64)

    def differs(self, one: np.ndarray[Any, Any], model: onnx.ModelProto) -> bool:
        """Does the graph compute something else? A difference of rounding is none."""
        other = self.of(model)
        return bool(np.abs(one - other).max() > 1e-6 * np.abs(one).max())
