"""Numbers about pairs: one file a measure, and the engine that takes them chunk by chunk."""

from .engine import Threads
from .pairs import deltas
from .scan import Scan

__all__ = ["Scan", "Threads", "deltas"]
