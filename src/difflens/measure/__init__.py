"""Numbers about pairs: one file a measure, and the engine that takes them chunk by chunk."""

from .pairs import deltas
from .engine import Threads
from .scan import Scan

__all__ = ["Scan", "Threads", "deltas"]
