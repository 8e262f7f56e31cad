"""Policy in, verdict out: what the counts of a diff add up to."""

from .verdict import verdict

__all__ = ["verdict"]
