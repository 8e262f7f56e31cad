r"""The records of the change zoo: pairs of models, what was done, and what may be said of it.

A pair is built from a base model by a chain of edits. Each edit returns the edited model and what
an answer should say of it, so labels are written by what does the editing and never by hand.

    def build(base: Model) -> Built:
        return edited(stored(base, "BF16"), lora(r"(query|value)\\.weight", rank=8, seed=1))

    PAIRS = [Pair("lora-r8-bf16", "dev", "minilm", "low_rank", build)]
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import NamedTuple

from .model import Array, Model, stored

# A number is right where it equals a string or an int, is one of a frozenset, or lies within
# (least, most), the ends included.
Wanted = str | int | float | tuple[float, float] | frozenset[str]
STORAGE = frozenset({"cast", "quantised", "dequantised", "palette"})


class Expected(NamedTuple):
    """One thing that was done, as a record of `changes` should say it."""

    kind: str
    names: frozenset[str] | None = None  # tensors that must be named; None: names are not scored
    numbers: Mapping[str, Wanted] = {}
    maybe: frozenset[str] = frozenset()  # tensors that may be named as well
    also: tuple[str, ...] = ()  # kinds that are as right as `kind`
    vague: tuple[str, ...] = ()  # kinds that are right, but say less
    optional: bool = False  # right where it is said, nothing missing where it is not
    factors: Mapping[str, tuple[Array, Array]] = {}  # what was added: B, A of B @ A, by name

    @property
    def kinds(self) -> frozenset[str]:
        """The kinds that are wholly right."""
        return frozenset((self.kind, *self.also))


class Built(NamedTuple):
    """Two models, what was done, and what else difflens is handed: `base`, `checkpoint`."""

    left: Model
    right: Model
    expected: tuple[Expected, ...]
    evidence: Mapping[str, Model] = {}


class Pair(NamedTuple):
    """A pair that can be built: `build` gets the base model by name, and draws from fixed seeds.

    `kind` is the row of the table it counts in: its main kind, or kinds joined by " + ". Pairs on
    which nothing was done have the kind `unchanged`, and expect nothing.
    """

    id: str
    part: str  # a key of evaluate.PARTS
    base: str  # a name of bases.WHEELS, bases.BASES or networks.FAMILIES
    kind: str
    build: Callable[[Model], Built]


def make(
    part: str,
    id_: str,
    base: str,
    kind: str,
    *edits: Edit,
    dtype: str | None = None,
    renamed: Edit | None = None,
) -> Pair:
    """Return the pair that edits make of a base, stored in one dtype before where one is named."""

    def build(model: Model) -> Built:
        return edited(stored(model, dtype) if dtype else model, *edits, renamed=renamed)

    return Pair(id_, part, base, kind, build)


class Edited(NamedTuple):
    """A model after an edit, and what is to be said of that edit."""

    model: Model
    expected: tuple[Expected, ...]


Edit = Callable[[Model], Edited]


def edited(
    left: Model,
    *edits: Edit,
    evidence: Mapping[str, Model] | None = None,
    renamed: Edit | None = None,
) -> Built:
    """Apply edits one after the other, and settle which tensors an answer must name.

    Tensors are renamed last, by an edit of its own: answers name them as the left model does.

    A tensor must be named for an edit of values where it differs from what the storage edits
    alone would have made of it; for a storage edit where nothing but storage changed it.
    """
    right, reference = left, left
    expected: list[Expected] = []
    for edit in edits:
        right, more = edit(right)
        if any(each.kind in STORAGE for each in more):
            reference = edit(reference).model
        expected.extend(more)
    settled = _settled(left, right, reference, _joined(expected))
    return Built(left, renamed(right).model if renamed else right, settled, evidence or {})


def _joined(expected: list[Expected]) -> list[Expected]:
    """Join what one kind with the same numbers was done to, as an answer does."""
    joined: list[Expected] = []
    for each in expected:
        like = [
            at
            for at, other in enumerate(joined)
            if other.kind == each.kind and other.numbers == each.numbers
            and None not in (other.names, each.names)
        ]  # fmt: skip
        if not like:
            joined.append(each)
            continue
        other = joined[like[0]]
        joined[like[0]] = other._replace(
            names=(other.names or frozenset()) | (each.names or frozenset()),
            maybe=other.maybe | each.maybe,
            factors={**other.factors, **each.factors},
        )
    return joined


def _settled(
    left: Model, right: Model, reference: Model, expected: list[Expected]
) -> tuple[Expected, ...]:
    """Require of each change the tensors that show it, and allow the others it was applied to."""
    values = [_require(each, reference, right) for each in expected if each.kind not in STORAGE]
    claimed = frozenset().union(*(each.names or frozenset() for each in values))
    storage = [_require(each, left, reference) for each in expected if each.kind in STORAGE]
    storage = [
        each._replace(names=each.names - claimed) if each.names is not None else each
        for each in storage
    ]
    kept = [_allow(each, left, right) for each in (*storage, *values)]
    due = [_rank(each, left, right) for each in kept if is_due(each)]
    return with_bystanders(tuple(due), left, right)


_BUFFER = re.compile(r"running_(mean|var)$|moving_(mean|variance)(:0)?$|num_batches_tracked$")
_FEW = 2  # elements of a tensor that say nothing of what kind of change it was


def with_bystanders(
    expected: tuple[Expected, ...], left: Model, right: Model
) -> tuple[Expected, ...]:
    """Ask for no buffer and no tensor of an element or two, and allow what is true of them.

    That the statistics of a batch norm changed, or one element, is no false claim.
    """
    differing = {name for name in left.tensors if _differs(name, left, right)}
    buffers = frozenset(name for name in differing if _BUFFER.search(name))
    tiny = frozenset(name for name in differing if left.tensors[name].size <= _FEW)
    lenient = [_excuse(each, buffers | tiny) for each in expected]
    beside = [
        Expected(kind, frozenset(), maybe=names, optional=True)
        for kind, names in (("state_changed", buffers), ("sparse_edit", tiny - buffers))
        if names and expected
    ]
    return (*lenient, *beside)


def _excuse(each: Expected, names: frozenset[str]) -> Expected:
    """Take names off what must be named, unless nothing would be left."""
    if not each.names or each.names <= names:
        return each
    return each._replace(names=each.names - names, maybe=each.maybe | (each.names & names))


def is_due(each: Expected) -> bool:
    """Is there anything to say: a tensor, or a change that has no tensors?"""
    return each.names is None or bool(each.names or each.maybe)


def _require(each: Expected, before: Model, after: Model) -> Expected:
    if each.names is None:
        return each
    moved = frozenset(name for name in each.names if _differs(name, before, after))
    return each._replace(names=moved, maybe=each.maybe | each.names)


def _allow(each: Expected, left: Model, right: Model) -> Expected:
    return each._replace(
        maybe=frozenset(name for name in each.maybe if _differs(name, left, right))
    )


def _differs(name: str, before: Model, after: Model) -> bool:
    one, other = before.tensors.get(name), after.tensors.get(name)
    if one is None or other is None:
        return True
    same = one.dtype == other.dtype and one.shape == other.shape
    return not same or one.tobytes() != other.tobytes()


def _rank(each: Expected, left: Model, right: Model) -> Expected:
    """Set the ranks that can be seen: of all that was added, what storage noise did not drown."""
    if not each.factors:
        return each
    from .ranks import visible

    return each._replace(numbers={**each.numbers, "rank": visible(each, left, right)})
