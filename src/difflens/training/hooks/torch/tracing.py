"""The first forward pass, looked at closely: in which order modules run, what goes in and out.

Every hook here is gone after the first step. Functions such as `torch.relu` are seen through a
function mode around that one pass; under torch.compile nothing is traced, because compiled code
takes hooks for code, and the order of registration stands in.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from typing import Any

from .late import Silent, later
from .layers import ACTIVATIONS, bare, class_of, is_compiled

_ROWS = 256  # of input and output that are kept to describe them
_FUNCTIONS = {
    "relu": "ReLU",
    "relu_": "ReLU",
    "relu6": "ReLU6",
    "leaky_relu": "LeakyReLU",
    "elu": "ELU",
    "selu": "SELU",
    "celu": "CELU",
    "gelu": "GELU",
    "silu": "SiLU",
    "mish": "Mish",
    "tanh": "Tanh",
    "tanh_": "Tanh",
    "sigmoid": "Sigmoid",
    "sigmoid_": "Sigmoid",
    "softplus": "Softplus",
    "hardtanh": "Hardtanh",
    "hardswish": "Hardswish",
    "softmax": "Softmax",
    "log_softmax": "LogSoftmax",
    "logsigmoid": "LogSigmoid",
    "glu": "GLU",
}


class Tracing:
    """What the first pass shows; `close` takes every hook away."""

    def __init__(self, model: Any) -> None:
        """Hook the modules that do something themselves: leaves, and owners of parameters."""
        self._events: list[tuple[int, str]] = []
        self._handles: list[Any] = []
        self._mode: Any = None
        self._inside = 0
        self.input: Callable[[], Any] | None = None
        self.output: Callable[[], Any] | None = None
        self.input_dtype = ""
        self.output_shape: list[int] = []
        self.amp: str | None = None
        self.has_run = False
        if is_compiled(model):
            return
        root = bare(model)
        for module in root.modules():
            leaf = not any(True for _ in module.children())
            if leaf or any(True for _ in module.parameters(recurse=False)):
                self._hook(module.register_forward_pre_hook, self._enters)
                self._hook(module.register_forward_hook, self._left, always_call=True)
        self._hook(root.register_forward_pre_hook, self._begins, with_kwargs=True)
        self._hook(root.register_forward_hook, self._ends, always_call=True)

    def _hook(self, register: Callable[..., Any], call: Callable[..., None], **how: Any) -> None:
        def safely(*args: Any) -> None:
            with suppress(Exception):  # nothing of ours reaches the loop
                call(*args)

        self._handles.append(register(Silent(safely), **how))

    def _enters(self, module: Any, _args: Any) -> None:
        self._inside += class_of(module) in ACTIVATIONS

    def _left(self, module: Any, _args: Any, _output: Any) -> None:
        self._inside -= class_of(module) in ACTIVATIONS
        self._events.append((id(module), class_of(module)))

    def _begins(self, _module: Any, args: Any, options: Any) -> None:
        import torch

        if self.has_run or self._mode is not None or not torch.is_grad_enabled():
            return
        given = _first_tensor((*args, *options.values()))
        if given is not None:
            self.input_dtype = str(given.dtype).removeprefix("torch.")
            self.input = later(given[:_ROWS]) if given.dim() else None
            device = given.device.type
            if torch.is_autocast_enabled(device):
                self.amp = str(torch.get_autocast_dtype(device)).removeprefix("torch.")
        self._mode = _functions(self)
        self._mode.__enter__()

    def _ends(self, _module: Any, _args: Any, output: Any) -> None:
        mode, self._mode = self._mode, None
        if mode is not None:
            mode.__exit__(None, None, None)
            self.has_run = True
            tensor = _first_tensor((output,))
            if tensor is not None and tensor.dim():
                self.output_shape = list(tensor.shape)
                self.output = later(tensor[:_ROWS])

    def called(self, function: str) -> None:
        """Take down a non-linearity that is a function, not a module."""
        if not self._inside and function in _FUNCTIONS:
            self._events.append((0, _FUNCTIONS[function]))

    def depths(self) -> dict[int, int]:
        """Return each module's place in the order of first execution, by identity."""
        order = dict.fromkeys(module for module, _ in self._events if module)
        return {module: place for place, module in enumerate(order)}

    def activations(self) -> dict[int, str]:
        """Return the non-linearity that ran next behind each module, by identity."""
        behind_of: dict[int, str] = {}
        for (module, kind), (_, behind) in zip(self._events, self._events[1:], strict=False):
            if module and kind not in ACTIVATIONS and behind in ACTIVATIONS:
                behind_of.setdefault(module, behind)
        # A norm between a layer and its non-linearity belongs to both.
        for before, norm, last in zip(
            self._events, self._events[1:], self._events[2:], strict=False
        ):
            if "Norm" in norm[1] and last[1] in ACTIVATIONS and before[1] not in ACTIVATIONS:
                behind_of.setdefault(before[0], last[1])
        return behind_of

    def facts(self) -> dict[str, Any]:
        """Say what ran last, and in which precision."""
        kinds = [kind for _, kind in self._events if kind not in {"Identity", "Flatten", "Dropout"}]
        return {"final_module": kinds[-1] if kinds else None, "amp": self.amp}

    def seen(self) -> dict[str, Any]:
        """Describe input and output; waits for the device, so never on the loop's thread."""
        facts: dict[str, Any] = {}
        if self.input is not None:
            facts["input"] = {"dtype": self.input_dtype, **_input_facts(self.input())}
        if self.output is not None:
            facts["output"] = {"shape": self.output_shape, **_output_facts(self.output())}
        return facts

    def close(self) -> None:
        """Take every hook away, and leave the function mode where a pass was broken off."""
        for handle in self._handles:
            handle.remove()
        self._handles.clear()


def _functions(tracing: Tracing) -> Any:
    from torch.overrides import TorchFunctionMode

    class Functions(TorchFunctionMode):
        """Names the functions that are called; changes nothing."""

        def __torch_function__(
            self, func: Any, types: Any, args: Any = (), kwargs: Any = None
        ) -> Any:
            del types
            tracing.called(getattr(func, "__name__", ""))
            return func(*args, **(kwargs or {}))

    return Functions()


def _first_tensor(values: Any) -> Any:
    import torch

    for value in values.values() if isinstance(values, dict) else values:
        if isinstance(value, torch.Tensor):
            return value
        if isinstance(value, (tuple, list, dict)):
            tensor = _first_tensor(value)
            if tensor is not None:
                return tensor
    return None


def _doubles(values: Any) -> Any:
    """Return a tensor's values to NumPy, which computes on the thread that asks.

    An operation of torch on the recorder's thread would begin threads there, too; and where there
    are more of them than processors, OpenMP lets those of the loop sleep at every barrier from
    then on, which makes a step half as long again.
    """
    import numpy as np
    import torch

    if values.dtype == torch.bfloat16:  # which NumPy lacks: the upper half of 32 bits
        halves = values.view(torch.int16).numpy().view(np.uint16)
        return (halves.astype(np.uint32) << 16).view(np.float32).astype(np.float64)
    return values.numpy().astype(np.float64)


def _input_facts(values: Any) -> dict[str, Any]:
    import numpy as np

    if not values.is_floating_point() or not values.numel():
        return {}
    doubles = _doubles(values)
    flat = doubles.reshape(len(doubles), -1)
    with np.errstate(all="ignore"):  # of values that are not finite the facts are not either
        spread = flat.std(0, ddof=1) if len(flat) > 1 else None
        return {
            "mean": float(flat.mean()),
            "std": float(flat.std(ddof=1)) if flat.size > 1 else None,
            "min": float(flat.min()),
            "max": float(flat.max()),
            "features_std_min": None if spread is None else float(spread.min()),
            "features_std_max": None if spread is None else float(spread.max()),
        }


def _output_facts(values: Any) -> dict[str, Any]:
    import numpy as np

    if not values.is_floating_point() or not values.numel():
        return {}
    rows = _doubles(values).reshape(-1, values.shape[-1])
    least, most = float(rows.min()), float(rows.max())
    with np.errstate(all="ignore"):
        off = float(np.abs(rows.sum(-1) - 1).max())
    # Sums of probabilities in 16 bits are one to about a hundredth.
    probable = rows.shape[-1] > 1 and least >= 0 and off < 1e-2
    return {"rows_sum_to_one": bool(probable), "min": least, "max": most}
