"""Written by nine others who knew no rule, on parents of all sets, with seeds of their own."""

from __future__ import annotations

from ..controls import Control
from ..faults import Fault
from . import coders, images, mixed, plain, series, signals, structures, tables, tokens

_WRITTEN = (coders, images, mixed, plain, series, signals, structures, tables, tokens)

FINAL_FAULTS: tuple[Fault, ...] = tuple(fault for each in _WRITTEN for fault in each.FAULTS)
FINAL_CONTROLS: tuple[Control, ...] = tuple(one for each in _WRITTEN for one in each.CONTROLS)
