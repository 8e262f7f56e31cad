"""The layout of `blame` and `bisect`: the verdict, the culprits, both answers, the proof."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Literal

from difflens.repair.blame.records import Bisection, Blame, Culprit

from ..document.document import Document, Line, Mood, Name, Part, Table, part, table
from ..document.numbers import percent, plural, size

_MOODS: dict[str, Mood] = {"found": "good", "diffuse": "open", "undecided": "open"}
_WORDS = {"found": "Found", "diffuse": "Spread", "undecided": "Cannot tell"}
_HEADS = ("rank", "culprit", "repairs", "breaks", "what changed")
_MOST_NAMES = 4


def blame_document(result: Blame) -> Document:
    """Lay out what is to blame."""
    return Document(
        title="blame",
        opening=f"blame: {result.sentence} ({_effort(result)})",
        verdict="",
        word=_WORDS[result.verdict],
        mood=_MOODS[result.verdict],
        parts=(
            *part("Culprits", (), _culprits(result)),
            *part("Shares of the damage", (), _shares(result)),
            *part("Answers", _answers(result)),
        ),
        tiles=((str(result.evaluations), "evaluations"), (str(result.changed), "changes")),
    )


def bisection_document(result: Bisection) -> Document:
    """Lay out the first bad checkpoint, and what is to blame."""
    inner = blame_document(result.blame) if result.blame else None
    first = [
        Line(result.last_good, "last good", "+", badge="passes"),
        Line(result.first_bad, "first bad", "-", badge="fails"),
    ]
    parts: tuple[Part, ...] = tuple(part("Checkpoints", first)) if result.first_bad else ()
    opening = f"bisect: {result.sentence} ({plural(result.evaluations, 'evaluation')})"
    if inner is not None:
        blamed = [Line(inner.opening.partition(": ")[2], "blame")]
        parts = (*parts, *part("Blame", blamed), *inner.parts)
    return Document(
        title="bisect",
        opening=opening,
        verdict="",
        word=inner.word if inner else "Cannot tell",
        mood=inner.mood if inner else "open",
        parts=parts,
    )


def _culprits(result: Blame) -> Table:
    rows = [
        (str(each.rank), Name(_names(each)), _yes(each.repairs), _yes(each.breaks), each.change)
        for each in result.culprits
    ]
    return table(_HEADS, rows)


def _names(each: Culprit) -> str:
    shown = [f"{name} {each.rows[name]}" if name in each.rows else name for name in each.tensors]
    more = len(shown) - _MOST_NAMES
    return ", ".join(shown[:_MOST_NAMES]) + (f" and {more} more" if more > 0 else "")


def _yes(answer: bool | None) -> str:
    return {True: "yes", False: "no", None: "unknown"}[answer]


def _shares(result: Blame) -> Table:
    ordered = sorted(result.shares.items(), key=lambda item: -item[1])
    return table(("group", "share"), [(Name(name), percent(share)) for name, share in ordered])


def _answers(result: Blame) -> Iterator[Line]:
    rows = {name: text for each in result.culprits for name, text in each.rows.items()}
    if result.repair:
        undone = f"{size(result.undone_bytes)} of {size(result.changed_bytes)} that differ"
        names = [f"{name} {rows[name]}" if name in rows else name for name in result.repair]
        yield Line(f"put back {_some(names)}: {undone}", "repair")
    if result.cause:
        yield Line(f"{_some(result.cause)} breaks GOOD", "cause")
    if result.interaction:
        yield Line(result.interaction, "together")
    proof = result.proof
    if proof.bad_without_repair_passes is not None or proof.good_with_cause_fails is not None:
        yield Line(
            f"BAD with the repair {_passes(proof.bad_without_repair_passes)}, "
            f"GOOD with the cause {_fails(proof.good_with_cause_fails)}, on fresh hybrids",
            "proof",
            _sign(result),
            badge="proved" if result.verdict == "found" else "",
        )
    if result.noise:
        figures = ", ".join(f"{name} {value:.3g}" for name, value in result.noise.items())
        yield Line(figures, "noise")
    if result.repair_patch:
        yield Line(result.repair_patch, "patch")


def _sign(result: Blame) -> Literal["+", "?"]:
    return "+" if result.verdict == "found" else "?"


def _passes(answer: bool | None) -> str:
    return {True: "passes", False: "fails", None: "is undecided"}[answer]


def _fails(answer: bool | None) -> str:
    return {True: "fails", False: "passes", None: "is undecided"}[answer]


def _some(names: Sequence[str]) -> str:
    more = len(names) - _MOST_NAMES
    return ", ".join(names[:_MOST_NAMES]) + (f" and {more} more" if more > 0 else "")


def _effort(result: Blame) -> str:
    runs, hybrids = plural(result.evaluations, "evaluation"), plural(result.hybrids, "hybrid")
    return f"{runs}, {hybrids}"
