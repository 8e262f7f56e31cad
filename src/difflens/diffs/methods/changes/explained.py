"""One thing that was done to a model: its kind, where, and how much of the change it explains."""

from __future__ import annotations

from typing import Any, NamedTuple


class Explained(NamedTuple):
    """A record of `changes`: what was done to some tensors, and its part of the distance."""

    kind: str
    names: list[str]  # of the left model; of the right where only the right has the tensor
    of: int  # pairs of tensors in all
    where: str
    share: float | None  # part of sum ‖d‖² that it explains; None where no distance exists
    numbers: dict[str, Any]
    text: str

    def as_dict(self) -> dict[str, Any]:
        """Return the record as it is printed."""
        return {
            "kind": self.kind,
            "tensors": len(self.names),
            "of": self.of,
            "where": self.where,
            "names": self.names,
            "share": self.share,
            "numbers": self.numbers,
            "text": self.text,
        }
