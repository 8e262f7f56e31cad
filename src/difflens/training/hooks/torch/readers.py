"""Which reader reads which parameter, by its device; and the block of a frame made of that."""

from __future__ import annotations

from typing import Any

from ...records.runs import LAYER_FIELDS, MISSING_BITS
from .layers import local
from .readings import Moved, ProcessorReader

GRADIENT, WEIGHTS = 0, 1


class Sums:
    """Sums of one step over all layers, that parts of a sharded tensor can be added to.

    `gradient` and `weights` are (layers, columns) as the kernel gives them; a layer that was not
    read is told by the masks.
    """

    def __init__(self, layers: int) -> None:
        """Begin with nothing read."""
        import numpy as np

        self.gradient, self.weights = np.zeros((layers, 6)), np.zeros((layers, 6))
        self.has_gradient, self.has_weights = np.zeros(layers, bool), np.zeros(layers, bool)
        self.has_moves = np.zeros(layers, bool)

    def put(self, kind: int, places: Any, columns: Any) -> None:
        """Put in what a reader read."""
        into, seen = (
            (self.gradient, self.has_gradient)
            if kind == GRADIENT
            else (self.weights, self.has_weights)
        )
        into[places] = columns
        seen[places] = True


def block(sums: Sums, counts: Any, blank: Any, factor: float = 1.0) -> Any:
    """Return the fields of LAYER_FIELDS; gradients are divided by `factor`, their scale or clip."""
    import numpy as np

    with np.errstate(over="ignore", invalid="ignore", divide="ignore"):
        made = whole_block(sums.gradient, sums.weights, counts, factor)
    counts_of = made[3:5]
    counts_of[np.isnan(counts_of)] = blank  # a reader that did not count this time
    made[:5, ~sums.has_gradient] = blank
    made[5, ~sums.has_weights] = blank
    made[6, ~(sums.has_weights & sums.has_moves)] = blank
    return made


def whole_block(gradient: Any, weights: Any, counts: Any, factor: Any = 1.0) -> Any:
    """Return the block of a step in which every layer was read, or the blocks of many such steps.

    Of many, `factor` may be one for each, in an array that fits the blocks. What is divided and
    rooted here may not be finite; the recorder's thread does not mind.
    """
    import numpy as np

    made = np.empty((*gradient.shape[:-2], len(LAYER_FIELDS), len(counts)), np.float32)
    columns, moved = gradient.swapaxes(-1, -2), weights.swapaxes(-1, -2)
    made[..., 0, :] = np.sqrt(columns[..., 0, :])
    finite = counts - np.nan_to_num(columns[..., 3, :])
    made[..., 1, :] = columns[..., 1, :] / np.fmax(finite, 1)
    made[..., 2:5, :] = columns[..., 2:5, :]
    made[..., 5:, :] = np.sqrt(moved[..., ::5, :])  # squares and moves, the first and the last
    if not isinstance(factor, float) or factor != 1.0:
        # A number alone would divide by fewer digits than an array of them does.
        made[..., :3, :] /= np.atleast_1d(np.asarray(factor, np.float64))
    lost = finite < 1
    if lost.any():  # of no finite value there is neither a mean nor a largest
        sizes = made[..., 1:3, :]
        missing = np.array(MISSING_BITS, np.uint32).view(np.float32)[()]
        sizes[np.broadcast_to(lost[..., None, :], sizes.shape)] = missing
    return made


# Without our kernels, weights and their copy are four times the traffic of the gradients: on
# every step they would cost percents of it, on one in sixteen they cost next to nothing.
_SELDOM = 16


class Readers:
    """Reads all parameters, each with the reader of its device.

    `between` is the number of readings from one look at weights to the next.
    """

    def __init__(
        self, parameters: list[Any], *, fused: bool = True, updates: int | str = "auto"
    ) -> None:
        """Choose readers; `fused` allows the Triton kernel where there is one.

        With `updates` a number, weights are read whole, once in so many readings.
        """
        self._parameters, self._fused, self._updates = parameters, fused, updates
        self._begun: list[tuple[int, Any, Any]] = []
        self._choose()

    def _choose(self) -> None:
        by_device: dict[Any, set[int]] = {}
        for place, parameter in enumerate(self._parameters):
            by_device.setdefault(local(parameter).device, set()).add(place)
        self.devices = sorted(map(str, by_device))
        self._readers = [(self._reader(device), places) for device, places in by_device.items()]
        self._only = self._readers[0][0] if len(self._readers) == 1 else None
        slow = any(reader.is_slow_with_weights for reader, _ in self._readers)
        usual = _SELDOM if slow else 1
        self.between = usual if self._updates == "auto" else int(self._updates)

    @property
    def sampled(self) -> int:
        """Of how many tensors weights and updates are estimated from a sample."""
        return sum(reader.sampled for reader, _ in self._readers)

    def _reader(self, device: Any) -> Any:
        if device.type == "cpu":
            return ProcessorReader(self._parameters)
        if device.type == "cuda" and self._fused:
            from .fused import FusedReader, is_there

            if is_there():
                return FusedReader(self._parameters, device, sampled=self._updates == "auto")
        from .foreach import ForeachReader

        return ForeachReader(self._parameters, device)

    def _split(self, places: list[int]) -> list[tuple[Any, list[int]]]:
        parts = [(reader, [i for i in places if i in own]) for reader, own in self._readers]
        return [(reader, part) for reader, part in parts if part]

    def gradients(self, places: list[int]) -> None:
        """Begin to read the gradients that are there."""
        try:
            if self._only is not None:  # the usual case without a call more, here and below
                self._begun.append((GRADIENT, self._only, self._only.gradients(places)))
                return
            for reader, part in self._split(places):
                self._begun.append((GRADIENT, reader, reader.gradients(part)))
        except Exception as error:  # noqa: BLE001
            self._recover(error)

    def before(self, places: list[int], *, all_stale: bool) -> None:
        """See that the copies are the weights that the step begins with."""
        try:
            if self._only is not None:
                self._only.before(places, all_stale=all_stale)
                return
            for reader, part in self._split(places):
                reader.before(part, all_stale=all_stale)
        except Exception as error:  # noqa: BLE001
            self._recover(error)

    def weights(self, places: list[int]) -> None:
        """Begin to read weights and how far they moved from their copies."""
        try:
            if self._only is not None:
                self._begun.append((WEIGHTS, self._only, self._only.weights(places)))
                return
            for reader, part in self._split(places):
                self._begun.append((WEIGHTS, reader, reader.weights(part)))
        except Exception as error:  # noqa: BLE001
            self._recover(error)

    def _recover(self, error: Exception) -> None:
        """Go on with other readers where that may help; this step is not read."""
        if not isinstance(error, Moved):  # that is, the model went to another device
            if not self._fused or self.devices == ["cpu"]:
                raise error
            # Triton is there and cannot compile: torch's own kernels read from now on.
            self._fused = False
        self._start_again()

    def _start_again(self) -> None:
        self._begun.clear()
        self._choose()

    def collect(self) -> list[tuple[int, Any, Any]]:
        """Return what was begun since the last time, to be finished on any thread."""
        begun, self._begun = self._begun, []
        return begun

    def device_seconds(self) -> float:
        """Return the time that a device spent on the last reading that is over; 0 without one."""
        return float(sum(reader.device_seconds() for reader, _ in self._readers))

    def close(self) -> None:
        """Let go of every parameter."""
        for reader, _ in self._readers:
            reader.close()
        self._parameters, self._readers, self._begun, self._only = [], [], [], None


def finished(begun: list[tuple[int, Any, Any]], layers: int) -> Sums:
    """Wait for what was begun, and put it together."""
    sums = Sums(layers)
    for kind, reader, promise in begun:
        places, columns = reader.answer(promise)
        sums.put(kind, places, columns)
    return sums
