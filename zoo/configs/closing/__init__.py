"""Written by eight who knew no rule, on the parents of the third set."""

from __future__ import annotations

from ..controls import Control
from ..faults import Fault
from . import (
    signals_layers,
    signals_losses,
    structures_layers,
    structures_losses,
    tables_layers,
    tables_losses,
    tokens_layers,
    tokens_losses,
)

_WRITTEN = (
    signals_layers, signals_losses, structures_layers, structures_losses, tables_layers,
    tables_losses, tokens_layers, tokens_losses,
)  # fmt: skip

CLOSING_FAULTS: tuple[Fault, ...] = tuple(fault for each in _WRITTEN for fault in each.FAULTS)
CLOSING_CONTROLS: tuple[Control, ...] = tuple(one for each in _WRITTEN for one in each.CONTROLS)
