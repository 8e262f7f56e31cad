"""Holds an answer against what was done: right, vague, mixed or wrong, and why.

Wrong is every claim that is not in the label: a kind that was not done, a tensor that it was not
done to, a number that misses. Right is an answer that names everything; vague one that names
a part of it, or a coarser kind; mixed one that gives no name.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Any, NamedTuple

from .answers import Answer, Claim
from .pairs import Expected, Wanted

OUTCOMES = ("right", "vague", "mixed", "wrong")
_NOTHING = frozenset({"mixed", "unknown", ""})
# Numbers that count over all records of a kind; any other number holds for each record.
_SUMMED = frozenset({"rows", "elements", "matrices"})


class Verdict(NamedTuple):
    """How right an answer was, and what speaks against it."""

    outcome: str
    reasons: tuple[str, ...] = ()
    rank: str | None = None  # exact, below, above or unnamed, where a rank was to be named
    dtype: str = ""


def judge(expected: tuple[Expected, ...], answer: Answer) -> Verdict:
    """Score one answer."""
    if answer.error:
        return Verdict("wrong", (answer.error,))
    claims = [each for each in _placed(expected, answer.claims) if each.kind not in _NOTHING]
    false = [*_false_claims(expected, claims), *_false_words(expected, answer)]
    rank = _rank(expected, claims)
    if false:
        return Verdict("wrong", tuple(false), rank)
    due = [each for each in expected if not each.optional]
    if not due:
        return Verdict("right", (), rank)
    missing = [line for each in due for line in _missing(each, claims, records=answer.records)]
    if not missing:
        return Verdict("right", (), rank)
    named = any(_claims_of(each, claims) for each in due)
    return Verdict("vague" if named else "mixed", tuple(missing), rank)


def _placed(expected: tuple[Expected, ...], claims: tuple[Claim, ...]) -> list[Claim]:
    """Read a tag of a place, as `bias_only`, as training if there was some, else as no name."""
    is_trained = any("trained" in each.kinds for each in expected)
    kind = "trained" if is_trained else "mixed"
    return [each._replace(kind=kind) if each.kind == "place" else each for each in claims]


def _false_claims(expected: tuple[Expected, ...], claims: list[Claim]) -> list[str]:
    reasons = []
    for claim in claims:
        fitting = [each for each in expected if claim.kind in each.kinds | set(each.vague)]
        if not fitting:
            reasons.append(f"{claim.kind} was not done")
            continue
        reasons.extend(_false_names(claim, fitting))
        # Of several labels of one kind, the one with most of the tensors is meant.
        exact = [each for each in fitting if claim.kind in each.kinds]
        if exact:
            reasons.extend(_false_numbers(claim, max(exact, key=lambda e: _overlap(e, claim))))
    for each in expected:
        reasons.extend(_false_sums(each, claims))
    return reasons


def _overlap(each: Expected, claim: Claim) -> int:
    return len((each.names or frozenset()) & (claim.names or frozenset()))


def _false_names(claim: Claim, fitting: list[Expected]) -> list[str]:
    if claim.names is None or any(each.names is None for each in fitting):
        return []
    allowed = frozenset().union(*((each.names or frozenset()) | each.maybe for each in fitting))
    beyond = sorted(claim.names - allowed)
    if not beyond:
        return []
    return [f"{claim.kind} was not done to {beyond[0]} ({len(beyond)} such tensors)"]


def _false_numbers(claim: Claim, each: Expected) -> list[str]:
    return [
        f"{claim.kind}: {key} is {claim.numbers[key]}, not {wanted}"
        for key, wanted in each.numbers.items()
        if key not in _SUMMED and claim.numbers.get(key) is not None
        and not is_right(claim.numbers[key], wanted)
    ]  # fmt: skip


def _false_sums(each: Expected, claims: list[Claim]) -> list[str]:
    reasons = []
    own = [claim for claim in claims if claim.kind in each.kinds]
    for key in _SUMMED & set(each.numbers):
        values = [value for claim in own if (value := claim.numbers.get(key)) is not None]
        if values and len(values) == len(own) and not is_right(sum(values), each.numbers[key]):
            reasons.append(f"{each.kind}: {key} is {sum(values)}, not {each.numbers[key]}")
    return reasons


def is_right(value: Any, wanted: Wanted) -> bool:
    """Is a number or word what was wanted?

    >>> (
    ...     is_right(8, (6.0, 8.0)),
    ...     is_right("F8_E4M3", frozenset({"e4m3"})),
    ...     is_right(["b", "a"], "a,b"),
    ... )
    (True, True, True)
    """
    if isinstance(value, dict):
        value = list(value.values())
    if isinstance(value, (list, tuple)):
        if isinstance(wanted, tuple):
            return all(is_right(each, wanted) for each in value)
        value = ",".join(sorted(map(str, value)))
    if isinstance(wanted, frozenset):
        return any(each in str(value).lower() for each in wanted)
    if isinstance(wanted, str):
        return str(value) == wanted
    if isinstance(value, (str, bool)) or value is None:
        return False
    if isinstance(wanted, tuple):
        return bool(wanted[0] - 1e-9 <= value <= wanted[1] + 1e-9)
    return bool(value == wanted)


def _claims_of(each: Expected, claims: Iterable[Claim]) -> list[Claim]:
    return [claim for claim in claims if claim.kind in each.kinds | set(each.vague)]


def _missing(each: Expected, claims: list[Claim], *, records: bool) -> list[str]:
    """List what an answer leaves out of one change; a tag has its numbers in the sentence."""
    own = [claim for claim in claims if claim.kind in each.kinds]
    if not own:
        return [f"{each.kind} is not named"]
    reasons = [
        f"{each.kind}: {key} is missing"
        for key in each.numbers
        if records and all(claim.numbers.get(key) is None for claim in own)
    ]
    if each.names and all(claim.names is not None for claim in own):
        named = frozenset().union(*(claim.names or frozenset() for claim in own))
        left_out = sorted(each.names - named)
        if left_out:
            reasons.append(f"{each.kind}: {left_out[0]} is missing ({len(left_out)} such tensors)")
    return reasons


# Words of the sentence that name a kind, and the kinds that they may stand for.
_WORDS = (
    (r"\bLoRA\b", {"low_rank", "adapter_merged", "outer_product"}),
    (r"\bfull fine-tun", {"trained"}),
    (r"\bpruned to\b|\bof the weights of .* pruned", {"pruned"}),
    (r"\bquantised to\b", {"quantised", "palette"}),
    (r"\babliterat", {"abliterated"}),
)


def _false_words(expected: tuple[Expected, ...], answer: Answer) -> list[str]:
    """Find ranks and kinds in the sentence that were not done."""
    kinds = {kind for each in expected for kind in (*each.kinds, *each.vague)}
    reasons = [
        f"the sentence says {match[0]!r}"
        for pattern, meant in _WORDS
        if (match := re.search(pattern, answer.sentence)) and not meant & kinds
    ]
    most = max(
        (_most(each.numbers["rank"]) for each in expected if "rank" in each.numbers), default=1
    )
    reasons.extend(
        f"the sentence says rank {rank}, the truth is {most:g}"
        for rank in map(int, re.findall(r"\brank[- ](\d+)", answer.sentence))
        if rank > most
    )
    return reasons


def _most(wanted: Wanted) -> float:
    return float(wanted[1] if isinstance(wanted, tuple) else wanted)  # type: ignore[arg-type]


def _rank(expected: tuple[Expected, ...], claims: list[Claim]) -> str | None:
    """Hold the ranks named against those that were added: the worst of them counts."""
    due = [each for each in expected if each.factors]
    if not due:
        return None
    answers = set()
    for each in due:
        most = _most(each.numbers["rank"])
        own = [claim for claim in claims if claim.kind == "low_rank" and _is_about(claim, each)]
        ranks = [claim.numbers["rank"] for claim in own if claim.numbers.get("rank") is not None]
        if not ranks:
            answers.add("unnamed")
        for rank in ranks:
            high = max(rank) if isinstance(rank, (tuple, list)) else rank
            low = min(rank) if isinstance(rank, (tuple, list)) else rank
            answers.add("above" if high > most else "below" if low < most else "exact")
    return next(each for each in ("above", "below", "unnamed", "exact") if each in answers)


def _is_about(claim: Claim, each: Expected) -> bool:
    return claim.names is None or bool(claim.names & (each.names or frozenset()))
