"""What an HDF5 file holds: its groups walked without recursion, each once, no link followed out."""

from collections.abc import Iterator
from math import prod
from typing import Any, NamedTuple

from .coding import KINDS, Coding, coding, read_text, read_texts
from .wire import Refusal, say

_MOST_OBJECTS, _DEEPEST, _LONGEST_PATH, _MOST_CHARACTERS = 1_000_000, 128, 4096, 128 << 20
_LARGEST_CHUNK = 256 << 20
_BUILT_IN = {1, 2, 3, 4, 5, 6, 32000}  # deflate shuffle fletcher32 szip nbit scaleoffset lzf
_HARD, _EXTERNAL = 0, 64
_CONTIGUOUS, _CHUNKED, _VIRTUAL = 1, 2, 3
_OTHER_FILES = "difflens reads no file that a model points to: store the values in the model"


class Dataset(NamedTuple):
    """A dataset whose values are numbers, its axes in the order they are shown."""

    path: str
    shape: tuple[int, ...]
    coding: Coding
    chunk: tuple[int, ...] | None
    turned: bool  # are its axes stored in reverse?
    offset: int | None  # of contiguous bytes in the file
    direct: bool  # are those the bytes that are shown?
    storage: int


class Walk:
    """The datasets of a file, what was left out and why, and the order that Keras states."""

    def __init__(self, file: Any, options: dict[str, Any]) -> None:
        """Walk the whole file; says that it is at work while it does."""
        self._file, self._options = file, options
        self._unpacked = self._characters = self._objects = 0
        self.left_out: dict[str, str] = {}
        self.aliases: dict[str, str] = {}
        found = sorted(self._datasets(), key=self._place(keras_order(file)))
        self.datasets = [dataset for _, dataset in found]

    @staticmethod
    def _place(order: dict[str, int]) -> Any:
        """Sort by what Keras says, else by where a dataset's header is: as it was written."""
        return lambda found: (order.get(found[1].path, len(order)), found[0])

    def _datasets(self) -> Iterator[tuple[int, Dataset]]:
        from h5py import h5g, h5o

        seen = {h5o.get_info(self._file.id).addr: "/"}
        stack = [("", 0)]
        while stack:
            parent, depth = stack.pop()
            group = h5g.open(self._file.id, encoded(parent or "/"))
            for name in link_names(group):
                path = f"{parent}/{name.decode('utf-8', 'surrogateescape')}".lstrip("/")
                self._check(path, depth)
                if not self._is_hard(group, name, path):
                    continue
                info = h5o.get_info(group, name)
                if info.addr in seen:
                    self._again(path, seen[info.addr], info.type)
                    continue
                seen[info.addr] = path
                if info.type == h5o.TYPE_GROUP:
                    stack.append((path, depth + 1))
                elif info.type == h5o.TYPE_DATASET:
                    dataset = self._described(path)
                    if dataset:
                        yield info.addr, dataset

    def _check(self, path: str, depth: int) -> None:
        """Hold the walk to its limits: a small file can hold more paths than memory does."""
        self._objects += 1
        self._characters += len(path)
        for what, found, most in (
            ("its groups are nested deeper than", depth, _DEEPEST),
            ("a path in it is longer than", len(path), _LONGEST_PATH),
            ("it holds more objects than", self._objects, _MOST_OBJECTS),
            ("its paths together are longer than", self._characters, _MOST_CHARACTERS),
        ):
            if found > most:
                raise Refusal("limit", f"{what} {most}")
        if self._objects % 100 == 0:
            say(at_work=self._objects)

    def _is_hard(self, group: Any, name: bytes, path: str) -> bool:
        """Is this an object of the file itself? What leads out of the file ends the walk."""
        kind = group.links.get_info(name).type
        if kind == _EXTERNAL:
            reason = f"{quoted(path)} is a link to another file, which is not opened"
            raise Refusal("unknown", reason, _OTHER_FILES)
        if kind != _HARD:
            self.left_out[path] = "a soft link, not followed"
        return bool(kind == _HARD)

    def _again(self, path: str, first: str, kind: int) -> None:
        """Note a second name of something."""
        if kind == 0:
            self.left_out[path] = "a group read already under another name"
        elif kind == 1 and first not in self.left_out:
            self.aliases[path] = first

    def _described(self, path: str) -> Dataset | None:
        """Say what a dataset is; None, with a reason noted, where it holds no numbers."""
        dataset = self._file[encoded(path)]
        plan = dataset.id.get_create_plist()
        layout = plan.get_layout()
        if layout == _VIRTUAL or plan.get_external_count():
            what = "virtual" if layout == _VIRTUAL else "kept outside the file"
            reason = f"dataset {quoted(path)} is {what}: it would read other files"
            raise Refusal("unknown", reason, _OTHER_FILES)
        kind = dataset.id.get_type()
        note = read_text(dataset, "dtype") if kind.get_class() == 5 else ""
        code, shape = coding(kind, note), dataset.shape
        if code is None or shape is None:
            what = KINDS[kind.get_class()] if kind.get_class() < len(KINDS) else "unknown"
            self.left_out[path] = f"{what} values" if shape is not None else "no values"
            return None
        turned = self._options["matlab"]
        if turned:
            code = self._matlab(dataset, path, code)
            if code is None:
                return None
        chunk = plan.get_chunk() if layout == _CHUNKED else None
        if turned:
            shape, chunk = shape[::-1], chunk and chunk[::-1]
        offset = dataset.id.get_offset() if layout == _CONTIGUOUS else None
        across = turned and sum(length > 1 for length in shape) > 1
        direct = offset is not None and not across and not code.swap
        storage = dataset.id.get_storage_size()
        found = Dataset(path, shape, code, chunk, turned, offset, direct, storage)
        return found if self._is_readable(found, plan) else None

    def _matlab(self, dataset: Any, path: str, code: Coding) -> Coding | None:
        """See it as MATLAB does: logicals as booleans, no text, and what is empty as that."""
        kind = read_text(dataset, "MATLAB_class")
        if kind in ("char", "cell", "string", "function_handle"):
            self.left_out[path] = f"a MATLAB {kind} array"
            return None
        if read_text(dataset, "MATLAB_empty") not in ("", "0"):
            self.left_out[path] = "an empty MATLAB array"  # what is stored is its shape
            return None
        return Coding("BOOL", 1) if (kind, code.dtype) == ("logical", "U8") else code

    def _is_readable(self, found: Dataset, plan: Any) -> bool:
        """Hold the dataset to the limits and to the filters that are built in."""
        about, item = f"dataset {quoted(found.path)}", found.coding.item
        for i in range(plan.get_nfilters()):
            number, _, _, name = plan.get_filter(i)
            if number not in _BUILT_IN:
                called = f" ({quoted(name.decode('latin-1'))})" if name else ""
                reason = f"{about} is packed by filter {number}{called}, which is not built in"
                hint = "filter plug-ins are never loaded; h5repack -f GZIP=4 stores it plainly"
                raise Refusal("unknown", reason, hint)
        size = prod(found.shape) * item
        if prod(filter(None, found.shape)) * item >= 1 << 63:
            raise Refusal("corrupt", f"{about}: its shape {list(found.shape)} overflows 63 bits")
        if found.chunk and prod(found.chunk) * item > _LARGEST_CHUNK:
            self.left_out[found.path] = f"chunks of {prod(found.chunk) * item} bytes"
            return False
        self._unpacked += size
        whole, most, ratio = (self._options[name] for name in ("size", "bytes", "ratio"))
        kept = min(found.storage, whole)
        for unpacked, stored, what in ((size, kept, about), (self._unpacked, whole, "the file")):
            if unpacked > most and unpacked > ratio * stored:
                reason = f"{what} unpacks from {stored} bytes to {unpacked}"
                name = "hdf5_ratio" if stored else "hdf5_bytes"
                hint = f"raise it with --limit {name}=N if you trust the file"
                raise Refusal("limit", f"{reason}, the limit is {ratio} times", hint)
        return True


def keras_order(file: Any) -> dict[str, int]:
    """Return the places of the weights as Keras lists them: layers in order, weights in order."""
    order: dict[str, int] = {}
    for base in ("model_weights", ""):
        group = member(file, base)
        if group is None:
            continue
        for layer in [*read_texts(group, "layer_names"), "top_level_model_weights"]:
            path = f"{base}/{layer}".lstrip("/")
            inner = member(file, path)
            for weight in read_texts(inner, "weight_names") if inner is not None else ():
                order.setdefault(f"{path}/{weight}", len(order))
    return order


def member(file: Any, path: str) -> Any:
    """Return a group that is really in the file; None if a link or nothing is there."""
    from h5py import h5g

    group = h5g.open(file.id, b"/")
    for part in filter(None, path.split("/")):
        name = encoded(part)
        if part == "." or name not in group or group.links.get_info(name).type != _HARD:
            return None
        if h5g.get_objinfo(group, name).type != h5g.GROUP:
            return None
        group = h5g.open(group, name)
    return file[encoded(path)] if path else file


def link_names(group: Any) -> list[bytes]:
    """Return the names in a group."""
    names: list[bytes] = []
    group.links.iterate(names.append)
    return names


def encoded(path: str) -> bytes:
    """Return a path as HDF5 keeps it."""
    return path.encode("utf-8", "surrogateescape")


def quoted(text: str) -> str:
    """Quote a name; the parent makes it harmless."""
    return f"'{text[:200]}'"
