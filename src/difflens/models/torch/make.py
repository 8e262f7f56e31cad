"""What torch's pickles call, described: tensors, dictionaries and plain values out of names.

Each name here stands for one harmless thing. All others stay unmade, and are told by name.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ..containers.pickle_nodes import Blob, Call, Dict, Global, Persistent, Set
from .tensors import (
    ENCODINGS,
    SIZES,
    Quantiser,
    Storages,
    Tensor,
    Unread,
    dtype_name,
    storage_type,
    torch_dtype,
)

Arguments = tuple[Any, ...]

_UTILS = "torch._utils."
_SCHEMES = ("per_tensor_affine", "per_channel_affine", "per_channel_affine_float_qparams")
_SCALES = ("float32", "float64", "int64", "int32")
_LARGEST_SCALE = 1 << 53
_LATIN = ("latin1", "latin-1", "iso-8859-1")

# Names that stand for themselves, or that others speak of.
_PLAIN = frozenset(
    """
    torch.Tensor torch._tensor.Tensor torch.nn.parameter.Parameter torch.nn.Parameter
    torch.nn.parameter.Buffer builtins.object numpy.ndarray numpy.dtype torch.strided
    numpy.core.multiarray._reconstruct numpy._core.multiarray._reconstruct
    numpy.core.multiarray.scalar numpy._core.multiarray.scalar
    numpy.core.numeric._frombuffer numpy._core.numeric._frombuffer
    torch.autograd.variable.Variable torch.per_tensor_affine torch.per_channel_affine
    torch.per_channel_affine_float_qparams torch.contiguous_format builtins.int
    builtins.float builtins.str builtins.bool
""".split()
)
_TENSORS = _PLAIN & {
    "torch.Tensor",
    "torch._tensor.Tensor",
    "torch.nn.parameter.Parameter",
    "torch.nn.Parameter",
    "torch.nn.parameter.Buffer",
    "torch.autograd.variable.Variable",
}
_DOTTED = {"__builtin__": "builtins", "copy_reg": "copyreg"}


def dotted(name: Any) -> str:
    """Write a name as Python 3 does; what is no name is no text."""
    if type(name) is Persistent and type(name.id) is tuple and len(name.id) in (3, 4):
        name = name.id[-3]  # the class of a module, with its source beside it
    if type(name) is not Global:
        return ""
    return f"{_DOTTED.get(name.module, name.module)}.{name.name}"


def is_known(name: Global) -> bool:
    """Is this a name we understand?"""
    if name.module == "torch" and dtype_name(name.name) in ENCODINGS | SIZES:
        return True
    text = dotted(name)
    return storage_type(name) is not None or text in _PLAIN or text in _MAKERS


def is_parameter(name: Any) -> bool:
    """Is this a class whose objects are tensors?"""
    return dotted(name) in _TENSORS


class Maker:
    """Turns the calls of one pickle into what they stand for."""

    def __init__(self, storages: Storages) -> None:
        """Store the storages that tensors refer to."""
        self.storages = storages
        self.broken = storages.broken

    def __call__(self, function: Any, arguments: Arguments) -> Any:
        """Return what the call stands for; None leaves it a call."""
        name = dotted(function)
        maker = _MAKERS.get(name)
        if maker:
            try:
                return maker(self, *arguments)
            except TypeError as error:
                if error.__traceback__ and error.__traceback__.tb_next:
                    raise
                count = len(arguments)
                raise self.broken(f"{name} is called with {count} arguments") from None
        if type(function) is Global and storage_type(function):
            raise self.broken(f"{name} is called; storages are kept, not made")
        if is_parameter(function) and arguments and type(arguments[0]) in (Tensor, Unread):
            return arguments[0]
        return None


def _tensor(maker: Maker, storage: Any, offset: Any, shape: Any, stride: Any) -> Any:
    found, dtype = maker.storages.of(storage)
    return maker.storages.tensor(found, dtype, offset, shape, stride)


def _tensor_2(maker: Maker, storage: Any, offset: Any, shape: Any, stride: Any, *rest: Any) -> Any:
    """Make a tensor; the rest is requires_grad, hooks, and the bits beside it."""
    found, dtype = maker.storages.of(storage)
    marks = rest[2] if len(rest) > 2 else None
    return maker.storages.tensor(found, dtype, offset, shape, stride, marks)


def _tensor_3(  # noqa: PLR0917  torch's own arguments
    maker: Maker,
    storage: Any,
    offset: Any,
    shape: Any,
    stride: Any,
    _gradient: Any,
    _hooks: Any,
    dtype: Any,
    marks: Any = None,
) -> Any:
    found, _ = maker.storages.of(storage)
    name = torch_dtype(dtype)
    if name is None:
        raise maker.broken("a tensor's dtype is none of torch's")
    return maker.storages.tensor(found, name, offset, shape, stride, marks)


def _quantised(  # noqa: PLR0917  torch's own arguments
    maker: Maker, storage: Any, offset: Any, shape: Any, stride: Any, how: Any, *_: Any
) -> Any:
    found, dtype = maker.storages.of(storage)
    scheme = how[0] if type(how) is tuple and how else None
    name = scheme.name if type(scheme) is Global and scheme.module == "torch" else ""
    if name not in _SCHEMES or len(how) != (3 if name == _SCHEMES[0] else 4):
        return Unread(f"{dtype} tensor of an unknown scheme")
    scale, zero, axis = how[1], how[2], how[3] if len(how) == 4 else None
    if axis is None:
        right = _is_scale(scale) and _is_scale(zero) and type(zero) is int
    else:
        right = type(axis) is int and type(shape) is tuple and 0 <= axis < len(shape)
        right = right and _channels(scale) == _channels(zero) == shape[axis]
    if not right:
        raise maker.broken("a quantised tensor's scale, zero point or axis does not fit it")
    quantiser = Quantiser(scale, zero, axis)
    return maker.storages.tensor(found, dtype, offset, shape, stride, None, quantiser)


def _channels(value: Any) -> int | None:
    """Count the scales or zero points of the channels."""
    if type(value) is list:
        return len(value) if all(map(_is_scale, value)) else None
    plain = type(value) is Tensor and len(value.shape) == 1 and value.dtype in _SCALES
    return value.shape[0] if plain else None


def _is_scale(value: Any) -> bool:
    return type(value) is float or (type(value) is int and abs(value) <= _LARGEST_SCALE)


def _inner(maker: Maker, data: Any, *_: Any) -> Any:
    """Return the tensor a parameter is made of."""
    if type(data) not in (Tensor, Unread, Call):
        raise maker.broken("a parameter is made of something that is no tensor")
    return data


def _subclass(maker: Maker, function: Any, kind: Any, arguments: Any, state: Any) -> Any:
    """Return the tensor a subclass is made of, or a call with its state where it has no storage."""
    if type(arguments) is not tuple:
        raise maker.broken("a tensor is made with arguments that are no tuple")
    made = maker(function, arguments) if dotted(function) in _REBUILD else None
    if type(made) is Tensor:
        return made
    call = Call(kind, ())
    call.state = state
    return call


def _unread(kind: str) -> Callable[..., Unread]:
    return lambda _maker, *_: Unread(kind)


def _from_cpu(_maker: Maker, data: Any, dtype: Any, *_: Any) -> Any:
    same = type(data) is Tensor and torch_dtype(dtype) == data.dtype
    return data if same else Unread("device tensor")


def _dictionary(maker: Maker, pairs: Any = ()) -> Dict:
    if type(pairs) is Dict:
        maker.storages.charge(len(pairs.flat))
        return Dict(list(pairs.flat))
    flat: list[Any] = []
    maker.storages.charge(len(pairs) if type(pairs) in (list, tuple) else 0)
    elements: Any = pairs if type(pairs) in (list, tuple) else (None,)
    for pair in elements:
        if type(pair) not in (list, tuple) or len(pair) != 2:
            raise maker.broken("a dictionary is made of something that is no list of pairs")
        flat.extend(pair)
    return Dict(flat)


def _default_dictionary(maker: Maker, _factory: Any = None, pairs: Any = ()) -> Dict:
    return _dictionary(maker, pairs)


def _set(maker: Maker, elements: Any = ()) -> Set:
    if type(elements) not in (list, tuple):
        raise maker.broken("a set is made of something that is no list")
    maker.storages.charge(len(elements))
    return Set(list(elements))


def _list(maker: Maker, elements: Any = (), _tag: Any = None) -> list[Any]:
    return _set(maker, elements).elements


def _tuple(maker: Maker, elements: Any = ()) -> tuple[Any, ...]:
    return tuple(_set(maker, elements).elements)


def _bytes(maker: Maker, text: Any = b"", encoding: Any = "latin-1") -> Any:
    """Return the bytes that Python 3 wrote as text for protocol 2; no declared size is used."""
    if type(text) is str and encoding in _LATIN:
        maker.storages.charge(len(text))
        try:
            return text.encode("latin-1")
        except UnicodeEncodeError:
            raise maker.broken("bytes are written as text that is no latin-1") from None
    if type(text) in (bytes, Blob) and encoding in _LATIN:
        return text
    raise maker.broken("bytes are made of something that is no latin-1 text")


def _device(maker: Maker, kind: Any, index: Any = None) -> str:
    if type(kind) is not str or (index is not None and not _is_scale(index)):
        raise maker.broken("a device is named by something that is no text")
    return kind if index is None else f"{kind}:{index}"


def _complex(maker: Maker, real: Any = 0.0, imaginary: Any = 0.0) -> complex:
    if type(real) not in (int, float) or type(imaginary) not in (int, float):
        raise maker.broken("a complex number is made of something that is no number")
    try:
        return complex(real, imaginary)
    except OverflowError:
        raise maker.broken("a complex number is made of too large a number") from None


def _path(maker: Maker, *parts: Any) -> str:
    """Write a path of a file system; nobody follows it."""
    if not all(type(part) is str for part in parts):
        raise maker.broken("a path is made of something that is no text")
    maker.storages.charge(sum(map(len, parts)))
    return "/".join(parts).replace("//", "/", 1)


def _layout(_maker: Maker, name: Any) -> Any:
    return name if type(name) is str else None


def _object(maker: Maker, kind: Any, _base: Any = None, state: Any = None) -> Call:
    """Describe an object as protocols 0 and 1 make it."""
    call = Call(kind, ())
    if type(state) is Dict:
        call.flat = _dictionary(maker, state).flat
    elif state is not None:
        call.arguments = (state,)
    return call


def _first(_maker: Maker, value: Any, *_: Any) -> Any:
    return value


_REBUILD: dict[str, Callable[..., Any]] = {
    f"{_UTILS}_rebuild_tensor": _tensor,
    f"{_UTILS}_rebuild_tensor_v2": _tensor_2,
    f"{_UTILS}_rebuild_tensor_v3": _tensor_3,
    f"{_UTILS}_rebuild_qtensor": _quantised,
    f"{_UTILS}_rebuild_parameter": _inner,
    f"{_UTILS}_rebuild_parameter_with_state": _inner,
    f"{_UTILS}_rebuild_sparse_tensor": _unread("sparse tensor"),
    f"{_UTILS}_rebuild_sparse_csr_tensor": _unread("sparse tensor"),
    f"{_UTILS}_rebuild_nested_tensor": _unread("nested tensor"),
    f"{_UTILS}_rebuild_meta_tensor_no_storage": _unread("meta tensor"),
    f"{_UTILS}_rebuild_device_tensor_from_cpu_tensor": _from_cpu,
    f"{_UTILS}_rebuild_device_tensor_from_numpy": _inner,
    f"{_UTILS}_rebuild_xla_tensor": _inner,
    f"{_UTILS}_rebuild_wrapper_subclass": _unread("wrapper tensor"),
}
_MAKERS: dict[str, Callable[..., Any]] = _REBUILD | {
    "torch._tensor._rebuild_from_type_v2": _subclass,
    "torch._tensor._rebuild_from_type": _subclass,
    "torch.tensor._rebuild_from_type": _subclass,
    "torch.serialization._get_layout": _layout,
    "torch.Size": _tuple,
    "torch.device": _device,
    "torch.jit._pickle.build_intlist": _list,
    "torch.jit._pickle.build_tensorlist": _list,
    "torch.jit._pickle.build_doublelist": _list,
    "torch.jit._pickle.build_boollist": _list,
    "torch.jit._pickle.restore_type_tag": _first,
    "collections.OrderedDict": _dictionary,
    "collections.defaultdict": _default_dictionary,
    "collections.Counter": _dictionary,
    "builtins.set": _set,
    "builtins.frozenset": _set,
    "builtins.list": _list,
    "builtins.tuple": _tuple,
    "builtins.dict": _dictionary,
    "builtins.complex": _complex,
    "builtins.bytes": _bytes,
    "builtins.bytearray": _bytes,
    "_codecs.encode": _bytes,
    "copyreg._reconstructor": _object,
    "pathlib.PosixPath": _path,
    "pathlib.PurePosixPath": _path,
    "pathlib.WindowsPath": _path,
}
