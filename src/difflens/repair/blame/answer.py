"""Puts into words and records what an inquiry found."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from difflens.models.anatomy.places import listed

from .hybrids import Models
from .inquiry import Alone, Inquiry
from .judge import Judge
from .pieces import Piece, Selection
from .records import Blame, BlameProof, BlameVerdict, Culprit
from .rows import described
from .shares import share_damage
from .units import Unit

_NAMED = 3  # tensors named in a sentence


def answered(inquiry: Inquiry, judge: Judge, models: Models) -> tuple[Blame, Selection]:
    """Ask for the repair, the cause and the proof; return the answer and what to put back."""
    units = inquiry.repair()
    if units is None:
        return _diffuse(judge, models, inquiry), frozenset()
    pieces = inquiry.narrowed(units)
    breaks = inquiry.breaks(pieces, fresh=True)  # the proof, if it does
    if breaks is not True and any(piece.axis is not None for piece in pieces):
        complete = frozenset(Piece(piece.name) for piece in pieces)
        if inquiry.breaks(complete) is True:
            pieces, breaks = complete, True
    cause = list(units) if breaks is True else inquiry.cause(units)
    if cause is None:
        return _diffuse(judge, models, inquiry, units), pieces
    concerned = [*units, *(unit for unit in cause if unit not in units)]
    alone = inquiry.alone(concerned) if len(concerned) > 1 else [Alone(True, True)]
    if breaks is True and len(units) > 1:
        # The smallest of several causes: one that breaks the good model by itself.
        cause = next(([u] for u, a in zip(units, alone, strict=False) if a.breaks), cause)
    proof = _proof(inquiry, pieces, cause)
    verdict: BlameVerdict = (
        "found" if proof.bad_without_repair_passes and proof.good_with_cause_fails else "undecided"
    )
    interaction = _interaction(units, cause, alone)
    made = _record(
        judge,
        models,
        len(inquiry.units),
        verdict=verdict,
        sentence=_sentence(verdict, units, pieces, interaction, models),
        culprits=_culprits(concerned, alone, pieces, models, inquiry.units),
        repair=tuple(sorted(piece.name for piece in pieces)),
        cause=tuple(sorted(name for unit in cause for name in unit.names)),
        interaction=interaction,
        proof=proof,
        undone_bytes=_size(pieces, models),
    )
    return made, pieces


def _proof(inquiry: Inquiry, pieces: Selection, cause: Sequence[Unit]) -> BlameProof:
    same = {name for unit in cause for name in unit.names} == {piece.name for piece in pieces}
    broken = pieces if same else frozenset(Piece(name) for unit in cause for name in unit.names)
    return BlameProof(inquiry.mends(pieces, fresh=True), inquiry.breaks(broken, fresh=True))


def _interaction(units: Sequence[Unit], cause: Sequence[Unit], alone: Sequence[Alone]) -> str:
    if len(alone) < 2:
        return ""
    if len(cause) > 1 and not any(each.breaks for each in alone):
        if all(each.repairs for each in alone):
            return "they break it only together: to put back any one of them is enough"
        return "none of them breaks it alone"
    if len(units) > 1 and all(each.breaks for each in alone):
        return "each of them breaks it alone: all must be put back"
    return "they act together"


def _culprits(
    units: Sequence[Unit],
    alone: Sequence[Alone],
    pieces: Selection,
    models: Models,
    ranked: Sequence[Unit],
) -> tuple[Culprit, ...]:
    rows = {
        piece.name: described(piece, models.length(piece.name, piece.axis))
        for piece in pieces
        if piece.axis is not None
    }
    culprits = []
    for unit, each in zip(units, alone, strict=True):
        place = next(
            (at for at, other in enumerate(ranked) if set(unit.names) <= set(other.names)), 0
        )
        own = {name: rows[name] for name in unit.names if name in rows}
        culprits.append(Culprit(unit.names, unit.words, own, place + 1, each.repairs, each.breaks))
    return tuple(sorted(culprits, key=lambda each: (not each.repairs, not each.breaks, each.rank)))


def _sentence(
    verdict: str, units: Sequence[Unit], pieces: Selection, interaction: str, models: Models
) -> str:
    names = [name for unit in units for name in unit.names]
    of = f"of {len(models.changes)} changes"
    shown = listed(names[:_NAMED], len(names))
    if verdict != "found":
        return f"cannot tell: {shown} may be to blame ({of}), the proof did not hold"
    rows = [piece for piece in pieces if piece.axis is not None]
    if len(rows) == len(names) == 1:
        piece = rows[0]
        shown = f"{shown}, {described(piece, models.length(piece.name, piece.axis or 0))},"
    verb = "is" if len(names) == 1 else "are"
    words = units[0].words if len(units) == 1 else interaction
    return f"{shown} {verb} to blame, {of}" + (f": {words}" if words else "")


def _diffuse(judge: Judge, models: Models, inquiry: Inquiry, units: Sequence[Unit] = ()) -> Blame:
    shares = share_damage(judge, models.changes)
    largest = max(shares, key=lambda each: shares[each])
    sentence = (
        f"the damage is spread over many of {len(models.changes)} changes: "
        f"the largest share, {shares[largest]:.0%}, is that of {largest}"
    )
    names = [name for unit in units for name in unit.names]
    if names:
        sentence += f"; to put back {listed(names[:_NAMED], len(names))} is enough to pass"
    return _record(
        judge,
        models,
        len(inquiry.units),
        verdict="diffuse",
        sentence=sentence,
        repair=tuple(sorted(names)),
        shares=shares,
        undone_bytes=sum(models.changes[name].size_bytes for name in names),
    )


def undecided(judge: Judge, models: Models, units: int) -> Blame:
    """Say that the check is too noisy, or that the budget ended."""
    apart = judge.levels.separation if judge.levels else None
    if judge.rules.budget is not None and judge.runs >= judge.rules.budget:
        sentence = f"cannot tell after {judge.runs} evaluations: the budget ended"
    elif apart is not None:
        sentence = (
            f"cannot tell: GOOD and BAD are {apart:.2g} deviations apart, too near for the noise"
        )
    else:
        sentence = "cannot tell: GOOD and BAD do not differ beyond the noise"
    return _record(judge, models, units, verdict="undecided", sentence=sentence)


def _record(judge: Judge, models: Models, units: int, **fields: Any) -> Blame:
    """Make the record, with the counts that every answer has."""
    noise = {}
    if judge.is_noisy and judge.levels:
        noise = {"separation": judge.levels.separation, "error": judge.rules.error}
    return Blame(
        evaluations=judge.taken,
        hybrids=len(judge.hybrids),
        changed=len(models.changes),
        units=units,
        noise=noise,
        changed_bytes=sum(each.size_bytes for each in models.changes.values()),
        **fields,
    )


def _size(pieces: Selection, models: Models) -> int:
    """Count the bytes that a repair undoes."""
    total = 0
    for piece in pieces:
        size = models.changes[piece.name].size_bytes
        if piece.axis is not None:
            length = models.length(piece.name, piece.axis)
            size = size * sum(stop - start for start, stop in piece.spans) // max(1, length)
        total += size
    return total
