"""Groups of units that may change places, and those of feed-forward layers."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any, NamedTuple

from difflens.core.records import TensorInfo

if TYPE_CHECKING:
    from numpy.typing import NDArray


class Slot(NamedTuple):
    """Units along one axis of a tensor: [blocks, units, inner] seen along that axis.

    Four gates of an LSTM are four blocks of its units; a head is one unit of `inner` rows.
    `part` says what the tensor does for its units: those that make them come first in a group.
    """

    name: str
    part: str
    units: int
    axis: int = 0
    blocks: int = 1
    inner: int = 1

    @property
    def length(self) -> int:
        """The length of the axis."""
        return self.units * self.blocks * self.inner


class Group(NamedTuple):
    """Units that may change places together, in every slot at once."""

    name: str
    kind: str  # mlp, heads, recurrent, chain
    units: int
    slots: tuple[Slot, ...]

    def slot(self, part: str) -> Slot | None:
        """Return the first slot of a part."""
        return next((slot for slot in self.slots if slot.part == part), None)

    @property
    def names(self) -> set[str]:
        """The tensors it touches."""
        return {slot.name for slot in self.slots}


def by_unit(array: NDArray[Any], slot: Slot) -> NDArray[Any]:
    """See a tensor as a matrix with one row a unit."""
    import numpy as np

    moved = np.moveaxis(array, slot.axis, 0)
    rest = array.size // slot.length if slot.length else 0
    shaped = moved.reshape(slot.blocks, slot.units, slot.inner, rest)
    return shaped.transpose(1, 0, 2, 3).reshape(slot.units, slot.blocks * slot.inner * rest)


def reordered(array: NDArray[Any], slot: Slot, order: NDArray[Any]) -> NDArray[Any]:
    """Put unit order[i] at place i."""
    import numpy as np

    places = np.arange(slot.length).reshape(slot.blocks, slot.units, slot.inner)
    return array.take(places[:, order].ravel(), axis=slot.axis)


# up, gate or None, down: the ends of module names that stand beside each other.
_LAYOUTS: tuple[tuple[str, str | None, str], ...] = (
    ("up_proj", "gate_proj", "down_proj"),
    ("ffn_up", "ffn_gate", "ffn_down"),
    ("w3", "w1", "w2"),
    ("wi_1", "wi_0", "wo"),
    ("up_proj", None, "down_proj"),
    ("ffn_up", None, "ffn_down"),
    ("wi", None, "wo"),
    ("c_fc", None, "c_proj"),
    ("fc_in", None, "fc_out"),
    ("fc1", None, "fc2"),
    ("lin1", None, "lin2"),
    ("linear1", None, "linear2"),
    ("dense_h_to_4h", None, "dense_4h_to_h"),
    ("intermediate.dense", None, "output.dense"),
)
_FUSED = (("gate_up_proj", "down_proj"),)  # [2 * units, in]: gate above up
_EITHER_WAY = frozenset({"c_fc"})  # GPT-2 stores [in, out], others [out, in]


def feedforward(tensors: Mapping[str, TensorInfo]) -> Iterator[Group]:
    """Yield a group for every feed-forward layer whose shapes agree."""
    seen: set[str] = set()
    for name in tensors:
        for up, gate, down in _LAYOUTS:
            prefix = _prefix(name, up)
            if prefix is not None and prefix not in seen:
                group = _group(tensors, prefix, (up, gate, down))
                if group:
                    seen.add(prefix)
                    yield group
        for up, down in _FUSED:
            prefix = _prefix(name, up)
            if prefix is not None and prefix not in seen:
                group = _fused(tensors, prefix, up, down)
                if group:
                    seen.add(prefix)
                    yield group


def _prefix(name: str, module: str) -> str | None:
    """Return what stands before `module.weight`, its dot included."""
    end = f"{module}.weight"
    rest = name[: -len(end)]
    return rest if name.endswith(end) and (not rest or rest.endswith(".")) else None


def _group(
    tensors: Mapping[str, TensorInfo], prefix: str, layout: tuple[str, str | None, str]
) -> Group | None:
    up, gate, down = (f"{prefix}{part}.weight" if part else None for part in layout)
    infos = [tensors.get(name) for name in (up, gate, down) if name]
    if any(info is None or len(info.shape) != 2 for info in infos):
        return None
    first, *_, last = (info.shape for info in infos if info)
    axis = 1 if layout[0] in _EITHER_WAY and first[1] > first[0] else 0
    units, width = first[axis], first[1 - axis]
    if last[1 - axis] != units or last[axis] != width:
        return None
    if any(info and info.shape != first for info in infos[:-1]):
        return None
    slots = [Slot(str(up), "up", units, axis)]
    if gate:
        slots.append(Slot(gate, "gate", units, axis))
    slots.append(Slot(str(down), "down", units, 1 - axis))
    return _complete(tensors, prefix, slots, units, f"{prefix}{layout[2]}.bias")


def _fused(tensors: Mapping[str, TensorInfo], prefix: str, up: str, down: str) -> Group | None:
    first, last = (tensors.get(f"{prefix}{part}.weight") for part in (up, down))
    if not (first and last and len(first.shape) == len(last.shape) == 2):
        return None
    units = last.shape[1]
    if first.shape != (2 * units, last.shape[0]):
        return None
    slots = [Slot(first.name, "gate_up", units, 0, 2), Slot(last.name, "down", units, 1)]
    return _complete(tensors, prefix, slots, units, f"{prefix}{down}.bias")


def _complete(
    tensors: Mapping[str, TensorInfo], prefix: str, slots: list[Slot], units: int, beyond: str
) -> Group | None:
    """Add the biases and gains of the hidden units; None if a stranger may read them."""
    known = {slot.name for slot in slots}
    for slot in list(slots):
        bias = tensors.get(slot.name.removesuffix("weight") + "bias")
        if slot.part != "down" and bias and bias.shape == (slot.units * slot.blocks,):
            slots.append(Slot(bias.name, "bias", units, 0, slot.blocks))
            known.add(bias.name)
    own = tensors.items() if prefix.endswith(("mlp.", "ffn.")) else ()
    for name, info in own:
        beside = name.startswith(prefix) and units in info.shape
        if not beside or name in known or name == beyond:
            continue
        if info.shape != (units,):
            return None
        slots.append(Slot(name, "gain", units))
    return Group(prefix.rstrip(".") or slots[0].name, "mlp", units, tuple(slots))
