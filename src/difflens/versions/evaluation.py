"""Were two snapshots measured on the same data and the same hardware?

Figures of different data say nothing of the models: such metrics are shown and not judged.
"""

from __future__ import annotations

from ..snapshots import ModelSnapshot
from .metrics import depends


class Conditions:
    """What speaks against comparing two snapshots, and what is only worth knowing."""

    def __init__(self, left: ModelSnapshot, right: ModelSnapshot) -> None:
        """Look at what both say of their evaluation; what one does not say is no obstacle."""
        before, after = left.evaluation, right.evaluation
        self._obstacles: dict[str, str] = {}
        self.warnings: list[str] = []
        if before.fingerprint and after.fingerprint:
            if before.fingerprint != after.fingerprint:
                self._obstacles["data"] = "measured on different data: the fingerprints differ"
        elif _differ(before.dataset, after.dataset):
            self._obstacles["data"] = (
                f"measured on different data: {before.dataset} and {after.dataset}"
            )
        if _differ(before.hardware, after.hardware):
            self._obstacles["hardware"] = (
                f"measured on different hardware: {before.hardware} and {after.hardware}"
            )
        pair = f"{left.key} and {right.key}"
        self.warnings += [f"{pair} were {each}" for each in self._obstacles.values()]
        if _differ(before.precision, after.precision):
            said = f"{before.precision} and {after.precision}"
            self.warnings.append(f"{pair} were measured in different precision: {said}")
        if before.n and after.n and before.n != after.n and "data" not in self._obstacles:
            self.warnings.append(f"{pair} were measured on {before.n} and {after.n} examples")

    def obstacle(self, metric: str) -> str:
        """Say why a metric of the two cannot be compared; empty where it can."""
        return self._obstacles.get(depends(metric), "")


def _differ(left: str | None, right: str | None) -> bool:
    return bool(left and right and left != right)
