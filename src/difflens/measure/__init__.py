"""Numbers about pairs: one file per measure, and the engine that takes them chunk by chunk."""

from difflens.engines.threads import Threads

from .pairs import deltas
from .scan import Scan

__all__ = ["Scan", "Threads", "deltas"]
