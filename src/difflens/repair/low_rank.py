"""Recovers the two thin matrices whose product was added to a tensor."""
from __future__ import annotations
def recovered(base, target, origin, info, most):
    return iter(())
