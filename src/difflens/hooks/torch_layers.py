"""What there is to watch in a PyTorch model: its parameters, each once, with what they are."""

from __future__ import annotations

from typing import Any, NamedTuple

from ..runs import Layer
from .torch_flat import Part, parts_of

# How torch names a dtype, and how the house does.
DTYPES = {
    "torch.float64": "F64", "torch.float32": "F32", "torch.float16": "F16",
    "torch.bfloat16": "BF16", "torch.complex64": "C64",
}  # fmt: skip
# What torch.compile and FSDP put between the names of a module and its owner.
_WRAPPED = frozenset({"_orig_mod", "_fsdp_wrapped_module"})
ACTIVATIONS = frozenset({
    "ReLU", "ReLU6", "LeakyReLU", "PReLU", "RReLU", "ELU", "SELU", "CELU", "GELU", "SiLU", "Mish",
    "Tanh", "Sigmoid", "Hardtanh", "Hardsigmoid", "Hardswish", "Softplus", "Softsign", "LogSigmoid",
    "Tanhshrink", "Softshrink", "Hardshrink", "GLU", "Threshold", "Softmax", "LogSoftmax",
    "Softmin", "NewGELUActivation", "QuickGELUActivation", "SiLUActivation", "PytorchGELUTanh",
})  # fmt: skip


class Watched(NamedTuple):
    """One parameter tensor with the module that it belongs to."""

    name: str
    parameter: Any
    module_name: str
    module: Any
    role: str
    part: Part | None = None  # where a flat tensor holds it, and this rank a part

    @property
    def shape(self) -> tuple[int, ...]:
        """The shape of the whole, wherever its parts lie."""
        return tuple(self.parameter.shape) if self.part is None else self.part.shape

    @property
    def is_sharded(self) -> bool:
        """Does this rank hold a part only?"""
        return self.part is not None or bool(getattr(self.parameter, "placements", None))


def bare(model: Any) -> Any:
    """Take off what data parallelism and compilation put around a model."""
    while True:
        inner = getattr(model, "_orig_mod", None)
        if inner is None and type(model).__name__ in {"DistributedDataParallel", "DataParallel"}:
            inner = model.module
        if inner is None:
            return model
        model = inner


def is_compiled(model: Any) -> bool:
    """Is some of it run by torch.compile, which takes our hooks for code to compile?"""
    return any(
        hasattr(module, "_orig_mod") or getattr(module, "_compiled_call_impl", None) is not None
        for module in model.modules()
    )


def parameters_of(model: Any) -> list[Watched]:
    """List every parameter of floats once, under its first name, in order of registration."""
    found = []
    parts, seen = parts_of(model)
    for module_name, module in bare(model).named_modules():
        clean = ".".join(each for each in module_name.split(".") if each not in _WRAPPED)
        for own, parameter in module.named_parameters(recurse=False):
            is_number = parameter.is_floating_point() or parameter.is_complex()
            if id(parameter) in seen or not is_number or parameter.device.type == "meta":
                continue
            seen.add(id(parameter))
            name = f"{clean}.{own}" if clean else own
            part = parts.get(id(parameter))
            found.append(Watched(name, parameter, clean, module, own, part))
    return found


def class_of(module: Any) -> str:
    """Name a module's class; FSDP puts its own in front of it."""
    kind = type(module)
    if kind.__name__.startswith("FSDP") and len(kind.__bases__) > 1:
        kind = kind.__bases__[-1]
    return kind.__name__


def layer_of(
    each: Watched, depth: int | None, activation: str, optimised: set[int] | None
) -> Layer:
    """Say what one parameter is."""
    parameter = each.parameter
    return Layer(
        each.name,
        each.shape,
        class_of(each.module),
        "bias" if "bias" in each.role else "weight" if "weight" in each.role else each.role,
        depth,
        DTYPES.get(str(parameter.dtype), str(parameter.dtype)),
        bool(parameter.requires_grad),
        None if optimised is None else id(parameter) in optimised,
        activation,
    )


def facts_of(model: Any, watched: list[Watched], optimised: set[int] | None) -> dict[str, Any]:
    """Gather what can be said of a model before it runs."""
    modules = list(bare(model).modules())
    kinds = [class_of(module) for module in modules]
    return {
        "dropout": max(map(_dropped, modules), default=0.0),
        "norm_layers": sum("Norm" in kind for kind in kinds),
        "activations": sorted({kind for kind in kinds if kind in ACTIVATIONS}),
        "frozen": [each.name for each in watched if not each.parameter.requires_grad],
        "not_optimised": []
        if optimised is None
        else [
            each.name
            for each in watched
            if each.parameter.requires_grad and id(each.parameter) not in optimised
        ],
    }


def _dropped(module: Any) -> float:
    """Give the share of its input that a module drops in training."""
    share = getattr(module, "p", None) if "Dropout" in class_of(module) else None
    return float(share) if isinstance(share, (int, float)) else 0.0


def local(tensor: Any) -> Any:
    """Give the part of a sharded tensor that lies here, or the tensor itself."""
    return getattr(tensor, "_local_tensor", tensor)
