"""Opens whatever a caller passes as a model: a path, a torch module, arrays by name, an open model.

Not accepted: a list of arrays (it has no names), a Keras model and an optimizer. The error says
what to pass in their place.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from os import PathLike, fspath
from typing import Any, Protocol, runtime_checkable

from difflens.core.addresses import Address, Location, locate
from difflens.core.dtypes import BY_NUMPY_NAME
from difflens.core.errors import ModelError
from difflens.core.once import Call, as_call
from difflens.core.protocols import Encoding, TensorSource
from difflens.core.records import TensorInfo
from difflens.storage.places import pin

from .computed import BorrowedSource
from .describe import ALREADY_OPEN, IN_MEMORY
from .formats import open_model

# A weight in one of these types is stored as it is: nothing in the model is packed or scaled.
_WIDE = frozenset({"F16", "BF16", "F32", "F64", "BOOL"})
_MOST_SENT = 1 << 20  # bytes of an array that are sent to other processes
_HINT = (
    "pass a path, a torch module, a mapping of names to arrays, or what open_model returned; "
    "of a Keras model pass {weight.path: weight.numpy() for weight in model.weights}"
)


@runtime_checkable
class Module(Protocol):
    """What has a state dict, as `torch.nn.Module` does."""

    def state_dict(self) -> Mapping[str, Any]:
        """Return the arrays by name."""


Model = str | PathLike[str] | Address | Mapping[str, Any] | Module | TensorSource


def place_of(model: Model) -> Location | None:
    """Return where a model lies, with its commit on the hub; None for one in memory."""
    return pin(locate(model)) if isinstance(model, (str, PathLike, Address)) else None


def open_input(
    model: Model, form: str | None = None, limits: Mapping[str, int] | None = None
) -> tuple[str, TensorSource]:
    """Open a model and return the name to show for it, and its source.

    `form` and `limits` are those of `open_model`, and have no effect on what is not a path.
    """
    if isinstance(model, (str, PathLike, Address)):
        place = locate(model)
        if isinstance(place, Address) or isinstance(model, Address):
            place = pin(place)
            return str(place), open_model(place, format=form, limits=limits)
        return fspath(model), open_model(model, format=form, limits=limits)
    if isinstance(model, TensorSource):
        return ALREADY_OPEN, BorrowedSource(model)
    arrays = model.state_dict() if isinstance(model, Module) else model
    if not isinstance(arrays, Mapping):
        kind = f"{type(model).__module__}.{type(model).__qualname__}".removeprefix("builtins.")
        raise ModelError(IN_MEMORY, f"an object of type {kind} is not a model", hint=_HINT)
    return IN_MEMORY, MemorySource(arrays)


def open_inputs(
    models: Sequence[Model], form: str | None = None, limits: Mapping[str, int] | None = None
) -> list[tuple[str, TensorSource]]:
    """Open several models; if all of them are at addresses, at the same time."""
    places = [place_of(model) for model in models]
    addresses = [place for place in places if isinstance(place, Address)]
    if len(addresses) < len(places):
        return [open_input(model, form, limits) for model in models]
    from .folders.together import open_together

    sources = open_together(lambda at: open_model(at, format=form, limits=limits), addresses)
    return list(zip(map(str, addresses), sources, strict=True))


def resolve_weights(
    left: TensorSource, right: TensorSource, metadata: tuple[Mapping[str, str], Mapping[str, str]]
) -> tuple[TensorSource, TensorSource]:
    """Decode the quantised weights of two models, and merge an adapter into the base beside it."""
    if all(map(_is_plain, (left, right))):
        return left, right  # the decoders need not be imported
    from .adapters import adapter_config, apply_adapter, is_adapter
    from .quantised.weights import decode_quantised

    left, right = decode_quantised(left, metadata[0]), decode_quantised(right, metadata[1])
    adapters = is_adapter(left), is_adapter(right)
    if adapters == (True, False):
        return apply_adapter(right, left, adapter_config(metadata[0])), right
    if adapters == (False, True):
        return left, apply_adapter(left, right, adapter_config(metadata[1]))
    return left, right


def _is_plain(source: TensorSource) -> bool:
    return all(
        info.dtype in _WIDE and ".lora_" not in name for name, info in source.tensors.items()
    )


# Arrays are recognised by what they offer (the buffer protocol, `numpy()`), never by importing the
# framework they come from. The names of nested mappings, such as the parameters of Flax, are joined
# with dots.


class MemorySource:
    """A mapping of names to arrays, read like any other model."""

    format = "memory"

    def __init__(self, arrays: Mapping[str, Any]) -> None:
        """Look at the type and shape of every array; copy only those that are not contiguous."""
        self.metadata: dict[str, str] = {}
        self.warnings: list[str] = []
        self.tensors: dict[str, TensorInfo] = {}
        self.arrays: dict[str, InMemory] = {}
        for name, array in flatten(arrays):
            if name in self.tensors:
                raise ModelError(name, "two arrays have this name", hint="1 and '1' are one name")
            dtype, shape, view = _described(name, array)
            self.tensors[name] = TensorInfo(name, dtype, shape)
            self.arrays[name] = InMemory(name, view)

    def read_into(self, name: str, start: int, stop: int, buffer: memoryview) -> int:
        """Copy bytes [start, stop) of the array."""
        return self.arrays[name].read_into(start, buffer[: stop - start])

    def encoding(self, name: str) -> Encoding:
        """Return the array's bytes."""
        return self.arrays[name]

    def __reduce__(self) -> Call:
        """Send every array to another process: possible only if they are small."""
        arrays = [(info, self.arrays[name]) for name, info in self.tensors.items()]
        return as_call(_received, *arrays)

    def confirm(self) -> None:
        """Do nothing: memory has no identity to check."""

    def close(self) -> None:
        """Release the arrays."""
        self.arrays.clear()


def _received(*arrays: tuple[TensorInfo, InMemory]) -> MemorySource:
    source = MemorySource({})
    for info, encoding in arrays:
        source.tensors[info.name] = info
        source.arrays[info.name] = encoding
    return source


class InMemory:
    """An array in the memory of this process."""

    content_key = None  # nothing is known of it but its bytes

    def __init__(self, name: str, data: memoryview | bytes) -> None:
        """Store its name, for an error, and its bytes."""
        self.name = name
        self.data = memoryview(data)

    def read_into(self, start: int, buffer: memoryview) -> int:
        """Copy bytes of the array."""
        part = self.data[start : start + len(buffer)]
        buffer[: len(part)] = part
        return len(part)

    def __reduce__(self) -> Call:
        """Send its bytes to another process, if they are few."""
        size = len(self.data)
        if size > _MOST_SENT:
            reason = f"an array of {size} bytes is in memory, and is not sent to a cluster"
            hint = "save the model where the cluster can read it, and pass its path or address"
            raise ModelError(self.name, reason, hint=hint)
        return as_call(InMemory, self.name, bytes(self.data))


def flatten(arrays: Mapping[Any, Any], prefix: str = "") -> Iterator[tuple[str, Any]]:
    """Yield the arrays of nested mappings, their names joined with dots."""
    for name, value in arrays.items():
        if isinstance(value, Mapping):
            yield from flatten(value, f"{prefix}{name}.")
        else:
            yield f"{prefix}{name}", value


def _described(name: str, array: Any) -> tuple[str, tuple[int, ...], memoryview]:
    import numpy as np

    if not hasattr(array, "dtype"):
        kind = type(array).__name__
        hint = "pass the weights alone, for example checkpoint['model']"
        raise ModelError(name, f"this is of type {kind}, not an array", hint=hint)
    kind = str(array.dtype).removeprefix("torch.")
    dtype = BY_NUMPY_NAME.get(kind)
    if dtype is None:
        known = ", ".join(sorted(BY_NUMPY_NAME))
        raise ModelError(name, f"an array of {kind} cannot be compared", hint=f"known: {known}")
    if hasattr(array, "detach"):  # a torch tensor: numpy knows neither its BF16 nor its F8
        array = array.detach().cpu().contiguous()
        shape = tuple(int(length) for length in array.shape)
        flat = array.reshape(-1).view(_torch_bytes(array)).numpy()
    else:
        array = np.asarray(array)
        shape = array.shape
        flat = np.ascontiguousarray(array).reshape(-1).view(np.uint8)
    return dtype, shape, memoryview(flat).cast("B")


def _torch_bytes(tensor: Any) -> Any:
    import sys

    return sys.modules[type(tensor).__module__.partition(".")[0]].uint8
