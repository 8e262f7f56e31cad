"""Makes frames of readings, on the recorder's thread: waits, merges ranks, undoes scale and clip.

Readings of small models come by the hundred between two looks of the recorder. The usual ones,
whole and on the processor, are made in one go: NumPy's price is by the call.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ..records import Record
from .torch_activations import FIELDS
from .torch_blocks import GRADIENT, WEIGHTS, block, whole_block
from .torch_clipping import Between, Clipping, one
from .torch_directions import rows_of
from .torch_late import kept
from .torch_readers import finished
from .torch_readings import COLUMNS, ProcessorReader

Finished = tuple[dict[str, float], Any]


class Raw(Record, frozen=True, gc=False):
    """What was begun at one step, and is finished here.

    A struct is made without a function of Python, and a collector that looks at hundreds of those
    that wait would do so on the loop's time.
    """

    number: int
    scalars: dict[str, Any]
    begun: list[Any]  # kind, reader and promise of each
    factor: Callable[[], Between | None]  # what gradients were multiplied by since backward
    scale: tuple[Any, bool] | None  # the loss scale, and whether gradients still have it
    active: dict[int, Any]
    moved: bool  # did an optimizer step?
    directions: list[Any] | None = None  # means and cosines, where they are asked for


def _told(raw: Raw) -> dict[str, float]:
    """Give its scalars, those that were promised among them."""
    return {
        name: value if type(value) is float else kept(value) for name, value in raw.scalars.items()
    }


def _answer(_kind: int, reader: Any, promise: Any) -> Any:
    """Wait for what a reader has begun, and give its columns."""
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
    ) -> None:
        """Take what does not change from frame to frame."""
        self._counts, self._clipping = counts, clipping
        self._blank, self._ranks, self._shares = blank, ranks, shares
        self._is_sharded, self._has_activations = is_sharded, has_activations
        self._all = list(range(len(counts)))
        self._order, self._in_order = self._all, True

    def arrange(self, order: list[int]) -> None:
        """Give the layers in this order from now on."""
        self._order, self._in_order = order, order == self._all

    def make(self, raw: Raw) -> Finished | None:
        """Make one frame: scalars and block; None where another rank writes."""
        told = _told(raw)
        if self._is_whole(raw):
            (_, gradient), (_, weights) = (
                reader.answer(promise) for _, reader, promise in raw.begun
            )
            divisor = self._divisor(raw, told, gradient)
            made = whole_block(gradient, weights, self._counts, divisor)
        else:
            sums = finished(raw.begun, len(self._counts))
            sums.has_moves[:] = sums.has_weights & raw.moved
            if self._ranks.merges:
                loss = self._ranks.merge(raw.number, sums, self._shares, told.get("loss"))
                if loss is not None:
                    told["loss"] = loss
                if not self._ranks.writes:
                    return None
            divisor = self._divisor(raw, told, sums.gradient)
            made = block(sums, self._counts, self._blank, divisor)
        if raw.directions is not None:
            made = self._with_directions(made, raw.directions, divisor)
        if self._has_activations:
            made = self._with_activations(made, raw.active)
        return told, made if self._in_order else made[:, self._order]

    def make_all(self, raws: list[Raw]) -> list[Finished | None]:
        """Make many frames, in one go where all of them are the usual kind."""
        import numpy as np

        if len(raws) < 2:
            return [self.make(raw) for raw in raws]
        if all(map(self._is_usual, raws)):
            shape = (len(raws), len(self._counts), COLUMNS)
            gradients, weights = (
                np.frombuffer(b"".join([raw.begun[which][2][1] for raw in raws])).reshape(shape)
                for which in (GRADIENT, WEIGHTS)
            )
        elif all(map(self._is_whole_alone, raws)):
            gradients, weights = (
                np.stack([_answer(*raw.begun[which]) for raw in raws])
                for which in (GRADIENT, WEIGHTS)
            )
        else:
            return [self.make(raw) for raw in raws]
        told = [_told(raw) for raw in raws]
        divisors = list(map(self._divisor, raws, told, gradients))
        by_frame = np.array(divisors)[:, None, None]
        same = divisors.count(1.0) == len(divisors)
        made = whole_block(gradients, weights, self._counts, 1.0 if same else by_frame)
        if not self._in_order:
            made = made[..., self._order]
        return list(zip(told, made, strict=True))

    def _is_usual(self, raw: Raw) -> bool:
        """Is it whole, from the processor, and nothing beside it?

        That of `_is_whole` is asked anew, as it is for one reader: this is asked for every step.
        """
        if len(raw.begun) != 2 or not raw.moved or raw.directions is not None:
            return False
        (first, reader, gradient), (second, other, weights) = raw.begun
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

    def _is_whole_alone(self, raw: Raw) -> bool:
        """Was every layer read, on a device, and nothing beside it?"""
        return not self._has_activations and raw.directions is None and self._is_whole(raw)

    def _is_whole(self, raw: Raw) -> bool:
        """Was every layer read, gradient and weights, in one go and on one device?"""
        begun = raw.begun
        return (
            raw.moved
            and not self._ranks.merges
            and len(begun) == 2
            and begun[0][0] == GRADIENT
            and begun[1][0] == WEIGHTS
            and all(each.always_counts and promise[0] == self._all for _, each, promise in begun)
        )

    def _divisor(self, raw: Raw, told: dict[str, float], gradient: Any) -> float:
        """Find what gradients are to be divided by, and put scale and clip among the scalars."""
        if raw.factor is one and raw.scale is None and "clip_factor" not in told:
            told["clip_factor"] = 1.0  # the usual step, without a call more
            return 1.0
        divisor, between = 1.0, raw.factor()
        if raw.scale is not None:
            told["loss_scale"] = kept(raw.scale[0])
            divisor = told["loss_scale"] if raw.scale[1] else 1.0
            if between is not None and not raw.scale[1] and between.factor != 1.0:
                between = between._replace(factor=between.factor * told["loss_scale"])
        clip = told.get("clip_factor")
        if clip is None:
            clip = self._clipping.clip_of(between, gradient[:, 2])
        if clip is not None:
            told["clip_factor"] = clip
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

        rows = np.full((len(FIELDS), made.shape[1]), self._blank, np.float32)
        for place, promise in active.items():
            values = promise().numpy()
            known = ~np.isnan(values) | (np.arange(len(FIELDS)) < 2)  # mean, spread
            rows[known, place] = values[known]
        return np.concatenate([made, rows])
