"""What there is to watch in a PyTorch model: each parameter once, and modules in a wrong mode."""

from __future__ import annotations

from typing import Any, NamedTuple

from ...records.runs import Layer

# `FullyShardedDataParallel` leaves a parameter with the numbers that lie on this rank, in one
# dimension and perhaps none; its shape is only known to the flat tensor. FSDP2 needs none of this:
# its parameters know their shape, and their gradients come with them.


class Part(NamedTuple):
    """One parameter of which this rank holds a part."""

    shape: tuple[int, ...]  # of the whole
    flat: Any  # the tensor that backward gives the gradient to
    adds: bool  # is this part to be added to those of other ranks? Not where it only repeats


def parts_of(model: Any) -> tuple[dict[int, Part], set[int]]:
    """Find the parts by identity, and the parameters that repeat one of them under another name."""
    parts: dict[int, Part] = {}
    repeated: set[int] = set()
    for module in model.modules():
        handle = getattr(module, "_handle", None)
        if type(module).__name__ != "FullyShardedDataParallel" or handle is None:
            continue
        flat, adds = handle.flat_param, _adds(module, handle)
        if flat._params is None:  # noqa: SLF001  FSDP tells nobody
            parts[id(flat)] = Part((sum(flat._numels),), flat, adds)  # noqa: SLF001
            continue
        for parameter, shape in zip(flat._params, flat._shapes, strict=True):  # noqa: SLF001
            parts[id(parameter)] = Part(tuple(shape), flat, adds)
        repeated |= {id(each) for each in flat._shared_params} - parts.keys()  # noqa: SLF001
    return parts, repeated


def _adds(module: Any, handle: Any) -> bool:
    import torch.distributed as processes

    if not handle.uses_sharded_strategy:
        return bool(processes.get_rank() == 0)
    # Sharded within a node and repeated on the others: the first node's parts count.
    across = getattr(module, "_inter_node_pg", None)
    return across is None or bool(processes.get_rank(across) == 0)


# How torch names a dtype, and how the house does.
DTYPES = {
    "torch.float64": "F64",
    "torch.float32": "F32",
    "torch.float16": "F16",
    "torch.bfloat16": "BF16",
    "torch.complex64": "C64",
}
# What torch.compile and FSDP put between the names of a module and its owner.
_WRAPPED = frozenset({"_orig_mod", "_fsdp_wrapped_module"})
ACTIVATIONS = frozenset(
    """
    ReLU ReLU6 LeakyReLU PReLU RReLU ELU SELU CELU GELU SiLU Mish Tanh Sigmoid Hardtanh
    Hardsigmoid Hardswish Softplus Softsign LogSigmoid Tanhshrink Softshrink Hardshrink GLU
    Threshold Softmax LogSoftmax Softmin NewGELUActivation QuickGELUActivation
    SiLUActivation PytorchGELUTanh
""".split()
)


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
    watched = []
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
            watched.append(Watched(name, parameter, clean, module, own, part))
    return watched


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
    """Describe a model before it runs."""
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
    """Return the share of its input that a module drops in training."""
    share = getattr(module, "p", None) if "Dropout" in class_of(module) else None
    return float(share) if isinstance(share, (int, float)) else 0.0


def local(tensor: Any) -> Any:
    """Return the part of a sharded tensor that lies here, or the tensor itself."""
    return getattr(tensor, "_local_tensor", tensor)


_OFTEN, _SELDOM = 4, 64  # steps looked at in a row at first, and then one in so many


class Modes:
    """Notices batch norms and dropouts that are in eval mode while the optimizer steps."""

    def __init__(self, root: Any) -> None:
        """Find the modules that a mode matters to."""
        self._modules = [(name, each) for name, each in root.named_modules() if _matters(each)]
        self.are_there = bool(self._modules)
        self._root, self._mode = root, True
        self._looks = 0
        self._found: set[str] = set()
        self.has_news = False

    def look(self) -> None:
        """Look at the modes: at the first steps, now and again, and when the whole has changed."""
        self._looks += 1
        before, self._mode = self._mode, self._root.training
        if self._looks <= _OFTEN or self._looks % _SELDOM == 0 or self._mode is not before:
            now = {name for name, module in self._modules if not module.training}
            self.has_news = self.has_news or not now <= self._found
            self._found |= now

    def news(self) -> list[str]:
        """Return the names of all that were seen so."""
        self.has_news = False
        return sorted(self._found)

    def close(self) -> None:
        """Let go of the modules."""
        self._modules, self._root = [], None


def _matters(module: Any) -> bool:
    kind = type(module).__name__
    if "Dropout" in kind:
        return bool(getattr(module, "p", 0))
    return "BatchNorm" in kind and getattr(module, "track_running_stats", True)
