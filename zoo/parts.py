"""The parts of the zoo: on which runs rules are chosen, and which are held back."""

from __future__ import annotations

from dataclasses import replace
from typing import NamedTuple, TypeVar

from .configs.controls import CONTROLS, Control
from .configs.crossed import crossed_controls, crossed_faults
from .configs.faults import FAULTS, Fault
from .configs.images_controls import IMAGES_CONTROLS
from .configs.images_faults import IMAGES_FAULTS
from .configs.series_controls import SERIES_CONTROLS
from .configs.series_faults import SERIES_FAULTS
from .configs.unseen_controls import UNSEEN_CONTROLS
from .configs.unseen_faults import UNSEEN_FAULTS
from .configs.variants import VARIANTS


class Part(NamedTuple):
    """The faults and controls of one part; no configuration is in two of them."""

    faults: tuple[Fault, ...]
    controls: tuple[Control, ...]

    @property
    def configurations(self) -> list[Fault | Control]:
        """All that is recorded."""
        return [*self.faults, *self.controls]


_Configuration = TypeVar("_Configuration", Fault, Control)


def _reseeded(each: _Configuration) -> _Configuration:
    return replace(each, id=f"{each.id}-reseeded", seeds=_FRESH_SEEDS)


_REPORTED_SEEDS = tuple(range(20, 27))  # of controls: a rate of false alarms asks for many
_BLIND_FAULTS = (*IMAGES_FAULTS, *SERIES_FAULTS)
_BLIND_CONTROLS = (*IMAGES_CONTROLS, *SERIES_CONTROLS)
_FRESH_SEEDS = (50, 51, 52)
_KNOWN_FAULTS = (*FAULTS, *VARIANTS, *UNSEEN_FAULTS, *_BLIND_FAULTS[::2])

# Rules and thresholds are chosen on the first three. Of known faults `reseeded` holds seeds
# back; `report` is new altogether, and asked once, when the rules stand. Two engineers who knew no
# rule wrote the blind ones; which half is which was settled beforehand.
PARTS = {
    "tune": Part((*FAULTS, *VARIANTS, *UNSEEN_FAULTS), (*CONTROLS, *UNSEEN_CONTROLS)),
    "trial": Part(_BLIND_FAULTS[::2], _BLIND_CONTROLS[::2]),
    "crossed": Part(crossed_faults(_KNOWN_FAULTS), crossed_controls(_KNOWN_FAULTS)),
    "reseeded": Part(
        tuple(_reseeded(each) for each in (*FAULTS, *VARIANTS)), tuple(map(_reseeded, CONTROLS))
    ),
    "report": Part(
        _BLIND_FAULTS[1::2],
        tuple(replace(each, seeds=_REPORTED_SEEDS) for each in _BLIND_CONTROLS[1::2]),
    ),
}
ALL_FAULTS: tuple[Fault, ...] = tuple(each for part in PARTS.values() for each in part.faults)
