"""Makes frames of readings, on the recorder's thread: waits, merges ranks, undoes scale and clip.

Readings of small models come by the hundred between two looks of the recorder. The usual ones,
whole and on the processor, are made in one go: NumPy's price is by the call.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ...records.runs import ACTIVATION_FIELDS
from .. import Reading
from .clipping import Between, Clipping, one
from .extra_fields import rows_of
from .late import resolved
from .pace import Suspicion
from .readers import GRADIENT, WEIGHTS, block, finished, whole_block
from .readings import COLUMNS, ProcessorReader

Finished = tuple[dict[str, float], Any]


class TorchReading(Reading, frozen=True, gc=False):
    """What was begun at one step, and is finished here."""

    scalars: dict[str, Any]
    begun: list[Any]  # kind, reader and promise of each
    factor: Callable[[], Between | None]  # what gradients were multiplied by since backward
    scale: tuple[Any, bool] | None  # the loss scale, and whether gradients still have it
    active: dict[int, Any]
    moved: bool  # did an optimizer step?
    directions: list[Any] | None = None  # means and cosines, where they are asked for
    is_read: bool = True  # or has it scalars alone?


def _answer(_kind: int, reader: Any, promise: Any) -> Any:
    """Wait for what a reader has begun, and return its columns."""
    return reader.answer(promise)[1]


class Frames:
    """Knows the layers, and in which order frames have them."""

    def __init__(
        self,
        counts: Any,
        clipping: Clipping,
        *,
        blank: Any,
        ranks: Any,
        shares: Any,
        is_sharded: Any,
        has_activations: bool,
        suspicion: Suspicion | None = None,
    ) -> None:
        """Store what does not change from frame to frame; `suspicion` sees what comes late."""
        self._suspicion = suspicion
        self._counts, self._clipping = counts, clipping
        self._blank, self._ranks, self._shares = blank, ranks, shares
        self._is_sharded, self._has_activations = is_sharded, has_activations
        self._all = list(range(len(counts)))
        self._order, self._in_order = self._all, True

    def arrange(self, order: list[int]) -> None:
        """Put the layers in this order from now on."""
        self._order, self._in_order = order, order == self._all

    def make(self, reading: TorchReading) -> Finished | None:
        """Make one frame: scalars and block; None if another rank writes."""
        scalars = self._scalars(reading)
        if not reading.is_read:
            return scalars, None
        if self._is_whole(reading):
            (_, gradient), (_, weights) = (
                reader.answer(promise) for _, reader, promise in reading.begun
            )
            divisor = self._divisor(reading, scalars, gradient)
            made = whole_block(gradient, weights, self._counts, divisor)
        else:
            sums = finished(reading.begun, len(self._counts))
            sums.has_moves[:] = sums.has_weights & reading.moved
            if self._ranks.merges:
                loss = self._ranks.merge(reading.step, sums, self._shares, scalars.get("loss"))
                if loss is not None:
                    scalars["loss"] = loss
                if not self._ranks.writes:
                    return None
            divisor = self._divisor(reading, scalars, sums.gradient)
            made = block(sums, self._counts, self._blank, divisor)
        if reading.directions is not None:
            made = self._with_directions(made, reading.directions, divisor)
        if self._has_activations:
            made = self._with_activations(made, reading.active)
        self._watch_norms(made[None])
        return scalars, made if self._in_order else made[:, self._order]

    def make_all(self, readings: list[TorchReading]) -> list[Finished | None]:
        """Make many frames, in one go those of steps that were read in the usual way."""
        read = [reading for reading in readings if reading.is_read]
        made = iter(self._make_read(read))
        return [
            next(made) if reading.is_read else (self._scalars(reading), None)
            for reading in readings
        ]

    def _make_read(self, readings: list[TorchReading]) -> list[Finished | None]:
        import numpy as np

        if len(readings) < 2:
            return [self.make(reading) for reading in readings]
        if all(map(self._is_usual, readings)):
            shape = (len(readings), len(self._counts), COLUMNS)
            gradients, weights = (
                np.frombuffer(
                    b"".join([reading.begun[which][2][1] for reading in readings])
                ).reshape(shape)
                for which in (GRADIENT, WEIGHTS)
            )
        elif all(map(self._is_whole_alone, readings)):
            gradients, weights = (
                np.stack([_answer(*reading.begun[which]) for reading in readings])
                for which in (GRADIENT, WEIGHTS)
            )
        else:
            return [self.make(reading) for reading in readings]
        scalars = [self._scalars(reading) for reading in readings]
        divisors = list(map(self._divisor, readings, scalars, gradients))
        by_frame = np.array(divisors)[:, None, None]
        same = divisors.count(1.0) == len(divisors)
        made = whole_block(gradients, weights, self._counts, 1.0 if same else by_frame)
        self._watch_norms(made)
        if not self._in_order:
            made = made[..., self._order]
        return list(zip(scalars, made, strict=True))

    def _scalars(self, reading: TorchReading) -> dict[str, float]:
        """Return the scalars of a reading; wait for those still on a device."""
        scalars = {
            name: value if type(value) is float else resolved(value)
            for name, value in reading.scalars.items()
        }
        if self._suspicion is not None and callable(reading.scalars.get("loss")):
            self._suspicion.see_loss(scalars["loss"])
        return scalars

    def _watch_norms(self, blocks: Any) -> None:
        """Pass the norm over all gradients to the suspicion."""
        if self._suspicion is None:
            return
        import numpy as np

        odd = np.nansum(blocks[:, 3], axis=1) > 0  # of a norm NaN may also say that there is none
        norms = np.sqrt(np.nansum(np.square(blocks[:, 0], dtype=np.float64), axis=1))
        for norm in np.where(odd, np.nan, norms).tolist():
            self._suspicion.see_norm(norm)

    def _is_usual(self, reading: TorchReading) -> bool:
        """Was every layer read on the processor, with nothing beside it?

        That of `_is_whole` is asked anew, as it is for one reader: this is asked for every step.
        """
        if len(reading.begun) != 2 or not reading.moved or reading.directions is not None:
            return False
        (first, reader, gradient), (second, other, weights) = reading.begun
        return (
            type(reader) is ProcessorReader
            and reader is other
            and first == GRADIENT
            and second == WEIGHTS
            and not gradient[2]
            and gradient[0] == self._all
            and (weights[0] is gradient[0] or weights[0] == self._all)
            and not self._has_activations
            and not self._ranks.merges
        )

    def _is_whole_alone(self, reading: TorchReading) -> bool:
        """Was every layer read, on a device, and nothing beside it?"""
        return not self._has_activations and reading.directions is None and self._is_whole(reading)

    def _is_whole(self, reading: TorchReading) -> bool:
        """Was every layer read, gradient and weights, in one go and on one device?"""
        begun = reading.begun
        return (
            reading.moved
            and not self._ranks.merges
            and len(begun) == 2
            and begun[0][0] == GRADIENT
            and begun[1][0] == WEIGHTS
            and all(each.always_counts and promise[0] == self._all for _, each, promise in begun)
        )

    def _divisor(self, reading: TorchReading, scalars: dict[str, float], gradient: Any) -> float:
        """Find what gradients are to be divided by, and put scale and clip among the scalars."""
        if reading.factor is one and reading.scale is None and "clip_factor" not in scalars:
            scalars["clip_factor"] = 1.0  # the usual step, without a call more
            return 1.0
        divisor, between = 1.0, reading.factor()
        if reading.scale is not None:
            scalars["loss_scale"] = resolved(reading.scale[0])
            divisor = scalars["loss_scale"] if reading.scale[1] else 1.0
            if between is not None and not reading.scale[1] and between.factor != 1.0:
                between = between._replace(factor=between.factor * scalars["loss_scale"])
        clip = scalars.get("clip_factor")
        if clip is None:
            clip = self._clipping.clip_of(between, gradient[:, 2])
        if clip is not None:
            scalars["clip_factor"] = clip
            divisor *= clip if clip > 0 else 1.0
        return divisor

    def _with_directions(self, made: Any, read: list[Any], divisor: float) -> Any:
        import numpy as np

        rows = rows_of(read, made.shape[1], blank=self._blank, divisor=divisor)
        if self._ranks.merges:  # of shards each rank would know its part's alone
            rows[:, self._is_sharded] = self._blank
        return np.concatenate([made, rows])

    def _with_activations(self, made: Any, active: dict[int, Any]) -> Any:
        import numpy as np

        rows = np.full((len(ACTIVATION_FIELDS), made.shape[1]), self._blank, np.float32)
        for place, promise in active.items():
            values = promise().numpy()
            known = ~np.isnan(values) | (np.arange(len(ACTIVATION_FIELDS)) < 2)  # mean, spread
            rows[known, place] = values[known]
        return np.concatenate([made, rows])
