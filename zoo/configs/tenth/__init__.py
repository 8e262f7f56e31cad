"""Written by one who knew no rule, in the spirit of the specification's table."""

from __future__ import annotations

from ..controls import Control
from ..faults import Fault
from . import controls, faults

TENTH_FAULTS: tuple[Fault, ...] = faults.FAULTS
TENTH_CONTROLS: tuple[Control, ...] = controls.CONTROLS
