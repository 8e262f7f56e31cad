"""Batch norms that an exporter folded into the layer before them."""

from __future__ import annotations

from .identify import FOLDING, Identities
from .scopes import follows, matched
from .slots import BIAS, WEIGHT, Slot


class Norms:
    """The batch norms of a model that its graph does not show, by the layer they follow."""

    def __init__(self, known: Identities) -> None:
        """Find them: by the module of the node, or by their order and numbers beside it."""
        self._known = known
        shown = set(known.targets.values())
        ends = "running_var"
        paths = [
            name.removesuffix(ends)
            for name in known.weights
            if name.endswith(f".{ends}") or name == ends
        ]
        self._free = {path for path in paths if f"{path}{ends}" not in shown}
        self.of: dict[str, str] = {}
        folded: dict[str, str] = {}
        for slot, name in known.targets.items():
            if not self._free or not self._can_fold(slot):
                continue
            norm = next((path for path in known.paths(slot) if path in self._free), None)
            if norm is not None:
                self._add(name, norm)
            elif known.name_of(slot) != name:  # a folded weight lost its name
                folded[name.removesuffix(f".{WEIGHT}")] = name
        norms = {path.rstrip("."): path for path in self._free}
        sure = matched(folded, sorted(norms))
        for layer, norm in sure.items():
            self._add(folded[layer], norms[norm])
        # Layers with a norm in them, and nothing says which: both stay unknown.
        self.unclear: set[str] = set()
        for layer in folded.keys() - sure.keys():
            rivals = [norm for norm in norms if norms[norm] in self._free and follows(norm, layer)]
            self.unclear |= {part for norm in rivals for part in self.parts(norms[norm])}
            if rivals:
                self.unclear |= {f"{layer}.{WEIGHT}", f"{layer}.{BIAS}"}

    def _can_fold(self, slot: Slot) -> bool:
        return slot.role == WEIGHT and self._known.nodes[slot.node].operator in FOLDING

    def _add(self, name: str, norm: str) -> None:
        self.of[name] = norm
        self._free.discard(norm)

    def parts(self, norm: str) -> list[str]:
        """Name the tensors of a norm."""
        ends = (WEIGHT, BIAS, "running_mean", "running_var", "num_batches_tracked")
        return [norm + end for end in ends if norm + end in self._known.weights]
