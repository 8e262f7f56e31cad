"""The words of `Pair.how` and `Pair.transform`: what a pair rests on, and what was undone."""

from __future__ import annotations

from difflens.core.records import Pair

ALONE = "alone"  # a tensor without a partner
STRUCTURE = "structure"  # repeated blocks of the same shapes
GRAPH = "graph"
CONTENT = "content"  # the bytes are the same, and nothing else shows it
SIMILAR = "content: correlation"  # the numbers are alike; the correlation follows
RULES = ("prefix ", "inside ", "suffix ")  # the same tensor under a wrapper's name
ROLE = "role "  # the name that another scheme has for it
FRAMEWORK = "framework "
BY_NAME = "by its name alone"  # `Pair.how` if the graph shows nothing more
# `Pair.how` of a tensor without a partner, if one side has a graph.
CONSTANT = "constant of the graph"
FOLDED = "folded into the layer before"
IF_ZERO = "of no effect if it is zero"
NOT_IN_GRAPH = "not in the graph"
ONLY_IN_GRAPH = "only in the graph"
UNCLEAR = "how the graph holds it cannot be told"
UNIDENTIFIED = "which weight it is cannot be told"
UNREAD = "read by no node"

# What `Pair.transform` says beside the layout.
SHUFFLED = "rows shuffled"  # an order that no converter writes
FOLDED_IN = "batch norm folded in"


def is_without_partner(pair: Pair) -> bool:
    """May what it holds show its partner? What no node reads is no weight of a graph."""
    return not (pair.left and pair.right) and pair.how not in (UNCLEAR, UNREAD)


def is_known_layout(pair: Pair) -> bool:
    """Was it found by content, in a layout that converters write?

    Rows in an order that nobody writes are the same numbers, but hardly the same network.
    """
    return pair.how == CONTENT and SHUFFLED not in (pair.transform or "")
