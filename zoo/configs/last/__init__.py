"""Written by ten others who knew no rule, on parents of all sets."""

from __future__ import annotations

from ..controls import Control
from ..faults import Fault
from . import (
    other_layers,
    pictures_layers,
    pictures_losses,
    series_layers,
    series_losses,
    single_layers,
    tables_layers,
    tables_losses,
    tokens_layers,
    tokens_losses,
)

_WRITTEN = (
    other_layers, pictures_layers, pictures_losses, series_layers, series_losses, single_layers,
    tables_layers, tables_losses, tokens_layers, tokens_losses,
)  # fmt: skip

LAST_FAULTS: tuple[Fault, ...] = tuple(fault for each in _WRITTEN for fault in each.FAULTS)
LAST_CONTROLS: tuple[Control, ...] = tuple(one for each in _WRITTEN for one in each.CONTROLS)
