"""Makes frames of readings, on the recorder's thread: waits, merges ranks, undoes scale and clip.

Readings of small models come by the hundred between two looks of the recorder. The usual ones,
whole and on the processor, are made in one go: NumPy's price is by the call.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

from .torch_activations import FIELDS
from .torch_blocks import GRADIENT, WEIGHTS, block, whole_block
from .torch_late import kept
from .torch_readers import finished
from .torch_readings import COLUMNS, ProcessorReader

Finished = tuple[dict[str, float], Any]


class Raw(NamedTuple):
    """What was begun at one step, and is finished here."""

    number: int
    scalars: dict[str, Any]
    begun: list[Any]  # kind, reader and promise of each
    factor: Callable[[], float | None]  # what gradients were multiplied by since backward
    scale: tuple[Any, bool] | None  # the loss scale, and whether gradients still have it
    active: dict[int, Any]
    moved: bool  # did an optimizer step?


class Frames:
    """Knows the layers, and in which order frames have them."""

    def __init__(
        self, counts: Any, *, blank: Any, ranks: Any, shares: Any, has_activations: bool
    ) -> None:
        """Take what does not change from frame to frame."""
        self._counts, self._blank, self._ranks, self._shares = counts, blank, ranks, shares
        self._has_activations = has_activations
        self._all = list(range(len(counts)))
        self._order, self._in_order = self._all, True
        self.clip_of: Callable[[float | None], float | None] = lambda factor: factor

    def arrange(self, order: list[int]) -> None:
        """Give the layers in this order from now on."""
        self._order, self._in_order = order, order == self._all

    def make(self, raw: Raw) -> Finished | None:
        """Make one frame: scalars and block; None where another rank writes."""
        told = {name: kept(value) for name, value in raw.scalars.items()}
        if self._is_whole(raw):
            (_, gradient), (_, weights) = (
                reader.answer(promise) for _, reader, promise in raw.begun
            )
            made = whole_block(gradient, weights, self._counts, self._divisor(raw, told))
        else:
            sums = finished(raw.begun, len(self._counts))
            sums.has_moves[:] = sums.has_weights & raw.moved
            if self._ranks.merges:
                loss = self._ranks.merge(raw.number, sums, self._shares, told.get("loss"))
                if loss is not None:
                    told["loss"] = loss
                if not self._ranks.writes:
                    return None
            made = block(sums, self._counts, self._blank, self._divisor(raw, told))
        if self._has_activations:
            made = self._with_activations(made, raw.active)
        return told, made if self._in_order else made[:, self._order]

    def make_all(self, raws: list[Raw]) -> list[Finished | None]:
        """Make many frames, in one go where all of them are the usual kind."""
        import numpy as np

        if len(raws) < 2 or not all(map(self._is_usual, raws)):
            return [self.make(raw) for raw in raws]
        shape = (len(raws), len(self._counts), COLUMNS)
        gradients, weights = (
            np.frombuffer(b"".join([raw.begun[which][2][1] for raw in raws])).reshape(shape)
            for which in (GRADIENT, WEIGHTS)
        )
        made = whole_block(gradients, weights, self._counts)
        if not self._in_order:
            made = made[..., self._order]
        return [(self._usual_scalars(raw), one) for raw, one in zip(raws, made, strict=True)]

    def _usual_scalars(self, raw: Raw) -> dict[str, float]:
        told = {name: kept(value) for name, value in raw.scalars.items()}
        self._divisor(raw, told)
        return told

    def _is_usual(self, raw: Raw) -> bool:
        """Is it whole, from the processor, with gradients that nothing touched?"""
        return (
            raw.scale is None
            and not self._has_activations
            and raw.factor in {one, unknown}
            and "clip_factor" not in raw.scalars
            and self._is_whole(raw)
            and all(
                type(reader) is ProcessorReader and not promise[2]
                for _, reader, promise in raw.begun
            )
        )

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

    def _divisor(self, raw: Raw, told: dict[str, float]) -> float:
        """Find what gradients are to be divided by, and put scale and clip among the scalars."""
        divisor, between = 1.0, raw.factor()
        if raw.scale is not None:
            told["loss_scale"] = kept(raw.scale[0])
            divisor = told["loss_scale"] if raw.scale[1] else 1.0
            if between is not None and not raw.scale[1] and between != 1.0:
                between *= told["loss_scale"]
        clip = told.get("clip_factor", self.clip_of(between))
        if clip is not None:
            told["clip_factor"] = clip
            divisor *= clip if clip > 0 else 1.0
        return divisor

    def _with_activations(self, made: Any, active: dict[int, Any]) -> Any:
        import numpy as np

        rows = np.full((len(FIELDS), made.shape[1]), self._blank, np.float32)
        for place, promise in active.items():
            values = promise().numpy()
            known = ~np.isnan(values) | (np.arange(len(FIELDS)) < 2)  # mean, spread
            rows[known, place] = values[known]
        return np.concatenate([made, rows])


def one() -> float | None:
    """Promise that nothing touched the gradients."""
    return 1.0


def unknown() -> float | None:
    """Promise nothing."""
    return None
