"""Is the right model a blend of the left one and the base, or of several models handed in?"""

from __future__ import annotations

from .change import Change, Numbers

_ITSELF = 1e-6  # a coefficient this near to 0 or 1 is the base or the left model itself


def averaged(change: Change) -> Numbers | None:
    """Give the coefficient c of right = base + c (left - base), or the weights of a blend."""
    if not change.is_measured or not (change.evidence.base or change.evidence.trajectory):
        return None
    fields = change.ask("task_vectors").fields
    merge, blend = fields["merge"], fields["blend"]
    if merge and merge["kind"] != "none" and merge["is_one_coefficient"]:
        c = merge["coefficient"]
        if min(abs(c), abs(1 - c)) > _ITSELF:
            return {"coefficient": c, "r2": max(merge["r2"], merge["slerp_r2"])}
    if blend and blend["is_linear_merge"]:
        weights = {f"weight_{i}": weight for i, weight in enumerate(blend["weights"])}
        return {"r2": blend["least_r2"], **weights}
    return None
