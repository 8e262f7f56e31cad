"""Written by seven others who knew no rule, in the spirit of the specification's table."""

from __future__ import annotations

from ..controls import Control
from ..faults import Fault
from . import images, mixed, plain, series, signals, tables, tokens

_WRITTEN = (images, mixed, plain, series, signals, tables, tokens)

ACCEPTANCE_FAULTS: tuple[Fault, ...] = tuple(fault for each in _WRITTEN for fault in each.FAULTS)
ACCEPTANCE_CONTROLS: tuple[Control, ...] = tuple(one for each in _WRITTEN for one in each.CONTROLS)
