"""The nearest relatives of a model among those that are recorded."""

from __future__ import annotations

from difflens.core.kept import Kept


class Relative(Kept, frozen=True, kw_only=True):
    """One recorded model beside the one that was asked about.

    Hashes prove which tensors are the same; `relative_l2` is estimated, over the float tensors that
    both have, and null if there are none.
    """

    key: str
    same: int  # tensors that hold the same bits
    moved: int  # tensors of the same shape that do not
    lacking: int  # tensors of the model that this one does not have
    further: int  # tensors that this one has beside those
    same_architecture: bool
    shared: float  # part of the model's parameters that lie in tensors that are the same
    relative_l2: float | None = None
    estimated_error: float | None = None  # one standard deviation, relative; null: exact


class Relatives(Kept, frozen=True, kw_only=True):
    """The relatives of a model, the nearest first."""

    model: str
    searched: int  # recorded models that have a fingerprint
    unsearched: int  # recorded models that have none
    relatives: tuple[Relative, ...] = ()
