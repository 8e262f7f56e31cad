"""Who is compared with whom, by names, shapes and dtypes alone.

A wrong pair is worse than none: a name that is not the same on both sides is
matched only where exactly one tensor on each side can be meant. Guessing by
edit distance was not taken: `layers.1` is one letter from `layers.2`.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, NamedTuple

from difflens.core.errors import DifflensError, UnknownName
from difflens.core.natural_order import natural_sorted
from difflens.core.records import Pair, TensorInfo

from .how import ALONE, FRAMEWORK, ROLE, RULES
from .schemes import Facts, facts

if TYPE_CHECKING:
    from difflens.core.records import GraphNode

    from .graph_forms import Graphed

_MATCHES = ("auto", "exact")

Tensors = Mapping[str, TensorInfo]
Nodes = Callable[[], "Sequence[GraphNode] | None"] | None


class Pairing(NamedTuple):
    """The pairs of two models."""

    pairs: list[Pair]  # those that the user wants to see
    all_pairs: list[Pair]
    by_content: bool  # whether lone tensors are matched by what they hold
    graphed: Graphed | None  # what the graph of one side shows, if it has one


def pair_models(
    left: Tensors,
    right: Tensors,
    match: str,
    *,
    nodes: tuple[Nodes, Nodes],
    metadata: Iterable[Mapping[str, str]],
    path: str | None = None,
    ignore: str | None = None,
) -> Pairing:
    """Pair the tensors of two models by the graph of one of them, or by names and shapes.

    `nodes` reads the graph of each side that has one, `metadata` is what both say of themselves.
    """
    graphed = None
    if match == "auto" and any(nodes):
        from .graph import pair_by_graph

        graphed = pair_by_graph(left, right, nodes)
    pairs = graphed.pairs if graphed else pair(left, right, match=match, known=facts(*metadata))
    return Pairing(filter_pairs(pairs, path, ignore), pairs, match == "auto", graphed)


def pair(
    left: Tensors, right: Tensors, *, match: str = "auto", known: Facts | None = None
) -> list[Pair]:
    """Pair the tensors of two models, in natural order of their names.

    `auto` sees through the names of wrappers and of other frameworks, `exact` does
    not. `Pair.how` says what a pair rests on, `Pair.transform` what was undone.

    >>> left = {"module.w": TensorInfo("module.w", "F32", (2,))}
    >>> [each.how for each in pair(left, {"w": TensorInfo("w", "F32", (2,))})]
    ['prefix -module.']
    """
    if match not in _MATCHES:
        raise UnknownName("way to match", match, _MATCHES)
    pairs = {name: Pair(info, right[name]) for name, info in left.items() if name in right}
    if len(pairs) < len(left) or len(pairs) < len(right):
        lone = (
            {name: info for name, info in left.items() if name not in pairs},
            {name: info for name, info in right.items() if name not in pairs},
        )
        if match == "auto" and all(lone):
            from .renamed import pair_renamed  # its tables take 4 ms, and most models need none

            pairs |= pair_renamed(*lone, tuple(pairs), known or Facts())
        pairs |= {name: Pair(info, None, ALONE) for name, info in lone[0].items()}
        pairs |= {name: Pair(None, info, ALONE) for name, info in lone[1].items()}
    return [pairs[name] for name in natural_sorted(pairs)]


def is_prefix_rename(pair: Pair) -> bool:
    """Is it the same tensor under a wrapper's or another framework's name: no difference?"""
    return pair.how.startswith((*RULES, ROLE, FRAMEWORK))


def name_filter(path: str | None, ignore: str | None) -> Callable[[Sequence[str]], bool]:
    """Return what decides whether a tensor of these names is wanted."""
    wanted = _wanted(path)
    try:
        unwanted = re.compile(ignore) if ignore else None
    except re.error as error:
        raise DifflensError(f"{ignore!r} is no regular expression: {error}") from error

    def chooses(names: Sequence[str]) -> bool:
        is_wanted = any(wanted in name for name in names)
        return is_wanted and not (unwanted and any(map(unwanted.search, names)))

    return chooses


def _wanted(path: str | None) -> str:
    return re.sub(r"^tensors?\.", "", path or "")


def filter_pairs(pairs: list[Pair], path: str | None, ignore: str | None) -> list[Pair]:
    """Keep pairs whose name contains `path`, drop those `ignore` finds a match in.

    Either side's name counts, so that a renamed tensor is not torn apart.
    """
    if path is None and ignore is None:
        return pairs
    chooses = name_filter(path, ignore)
    chosen = [
        pair for pair in pairs if chooses([info.name for info in (pair.left, pair.right) if info])
    ]
    if pairs and not chosen:  # a misspelt name must not look like two equal models
        wanted = _wanted(path)
        asked = f"no name contains {wanted!r}" if wanted else "no name is left"
        without = f" without a match of {ignore!r}" if ignore else ""
        raise DifflensError(f"nothing to compare: {asked}{without}")
    return chosen
