"""Gates about the file of a model: it decodes, its numbers are finite, it fits its settings."""

from __future__ import annotations

from typing import Any, Literal, NamedTuple

from difflens.measure.matrices import has_numbers
from difflens.models.anatomy.network import Shapes, network_of, shapes
from difflens.models.anatomy.settings import settings

from ..answer import Question
from ..diff import Diff
from ..evidence.records import Evidence, Side
from .networks import infos
from .representations import embedding_table, readable

_SHOWN = 3  # tokens that are named


class Agreement(NamedTuple):
    """What does not fit between one side's tokens and its embedding; None if nothing is known.

    `rows` is None if the model has no embedding of tokens.
    """

    rows: int | None
    tokens: int | None
    faults: tuple[str, ...] = ()


class Change(NamedTuple):
    """How the two vocabularies differ: tokens added, gone, at another row; special ones that moved.

    None if a side's tokens are not known.
    """

    added: int
    removed: int
    moved: int
    special: tuple[str, ...]


def agreement(diff: Diff, evidence: Evidence) -> Agreement:
    """Hold the right side's tokens against the rows of its embedding."""
    table = embedding_table(diff) if diff.pairs else None
    rows = table.right.shape[0] if table else None
    side = evidence.right
    if side.tokens is None:
        return Agreement(rows, None)
    return Agreement(rows, len(side.tokens), tuple(_faults(side, rows)) if rows else ())


def _faults(side: Side, rows: int) -> list[str]:
    tokens, special = side.tokens or {}, side.special_tokens or {}
    outside = [name for name, row in tokens.items() if not 0 <= row < rows]
    faults = [f"{len(outside)} tokens have no row: {_some(outside)}"] * bool(outside)
    lost = [name for name, row in special.items() if not 0 <= row < rows]
    faults += [f"special tokens have no row: {_some(lost)}"] * bool(lost)
    other = [name for name, row in special.items() if name in tokens and tokens[name] != row]
    faults += [f"special tokens stand at two ids: {_some(other)}"] * bool(other)
    return faults


def change(evidence: Evidence) -> Change | None:
    """Compare the tokens of both sides, by name."""
    left, right = evidence.left, evidence.right
    if left.tokens is None or right.tokens is None:
        return None
    before, after = left.tokens, right.tokens
    special = _special(left, right) if left.special_tokens is not None else ()
    return Change(
        len(after.keys() - before.keys()),
        len(before.keys() - after.keys()),
        sum(after.get(name, row) != row for name, row in before.items()),
        special,
    )


def _special(left: Side, right: Side) -> tuple[str, ...]:
    before, after = left.special_tokens or {}, right.special_tokens or {}
    return tuple(sorted(name for name, row in before.items() if after.get(name) != row))


def _some(names: list[str]) -> str:
    shown = ", ".join(readable(name) for name in names[:_SHOWN])
    return shown + (", ..." if len(names) > _SHOWN else "")


Word = Literal["pass", "fail", "unknown", "not_applicable"]


class Gate(NamedTuple):
    """A gate and its answer; `needs` is what would settle one that is unknown."""

    name: str
    word: Word
    evidence: str
    needs: str = ""

    def to_dict(self, *, required: bool) -> dict[str, Any]:
        """Return it as plain data."""
        return {
            "name": self.name,
            "result": self.word,
            "required": required,
            "evidence": self.evidence,
            "needs": self.needs,
        }


_COMPARED = ("layers", "hidden", "ffn", "vocab", "experts")
_HEADERS = "only headers were read"
_VALUES = "tensor values (leave --shape-only out)"
_SATURATION = "dtype_saturation"


def loads(asked: Question) -> Gate:
    """Every tensor of the right model was read and decoded."""
    if not asked.diff.has_values:
        return Gate("loads", "unknown", _HEADERS, _VALUES)
    opaque = [
        delta.name for delta in asked.diff.deltas if delta.pair.right and delta.kind == "uncompared"
    ]
    if opaque:
        said = f"{len(opaque)} tensors could not be decoded, {opaque[0]} the first"
        return Gate("loads", "unknown", said, "a reader for their dtype")
    return Gate("loads", "pass", f"{asked.diff.right.tensor_count} tensors read and decoded")


def finite(asked: Question) -> Gate:
    """No value of the right model is NaN or infinite, none is newly at the end of its dtype."""
    if not asked.diff.has_values:
        return Gate("finite", "unknown", _HEADERS, _VALUES)
    broken = nonfinite(asked.diff)
    if broken:
        total, first = sum(broken.values()), next(iter(broken))
        said = f"{total} values of {len(broken)} tensors are NaN or infinite, {first} the first"
        return Gate("finite", "fail", said)
    found = asked.answer.ask("anomaly_detection").findings
    full = [each.subject for each in found if each.text.startswith(_SATURATION)]
    if full:
        said = f"{len(full)} tensors are newly at the end of their dtype, {full[0]} the first"
        return Gate("finite", "fail", said)
    return Gate("finite", "pass", "every value is finite, none newly at the end of its dtype")


def nonfinite(diff: Diff) -> dict[str, int]:
    """Count NaN and infinities of the right model by tensor, identical ones too; where any are."""

    def count() -> dict[str, int]:
        found = {}
        for delta in diff.deltas:
            info = delta.pair.right
            if info is None or not has_numbers(info):
                continue
            stats = delta.stats("right")
            number = stats.nonfinite if stats else _counted(diff, info.name)
            if number:
                found[delta.name] = number
        return found

    told: dict[str, int] = diff.remember(("nonfinite", "right"), count)
    return told


def _counted(diff: Diff, name: str) -> int:
    import numpy as np

    pieces = diff.values("right", name).pieces()
    return sum(piece.size - int(np.count_nonzero(np.isfinite(piece))) for piece in pieces)


def structure(asked: Question) -> Gate:
    """Sizes in the right model's settings are those of its tensors."""
    said = settings(asked.evidence.right.config, asked.diff.described["right"])
    told, seen = network_of(said, Shapes()), shapes(infos(asked.diff, "right"))
    both = [(name, getattr(told, name), getattr(seen, name)) for name in _COMPARED]
    known = [each for each in both if each[1] is not None and each[2] is not None]
    if not known:
        why = "no settings say what sizes to expect"
        return Gate("structure", "unknown", why, "--config-right")
    # Embeddings are often padded: more rows than words are no fault.
    wrong = [
        f"{name} is {want} in the settings, {have} in the tensors"
        for name, want, have in known
        if (have < want if name == "vocab" else have != want)
    ]
    if wrong:
        return Gate("structure", "fail", "; ".join(wrong))
    names = ", ".join(f"{name} {have}" for name, _, have in known)
    return Gate("structure", "pass", f"settings and tensors agree: {names}")


def vocabulary(asked: Question) -> Gate:
    """Every token and special token has its row in the embedding."""
    found = agreement(asked.diff, asked.evidence)
    if found.rows is None:
        return Gate("vocabulary", "not_applicable", "there is no embedding of tokens")
    if found.tokens is None:
        why = f"the embedding has {found.rows} rows, and no tokenizer was handed in"
        return Gate("vocabulary", "unknown", why, "--tokenizer-right")
    if found.faults:
        return Gate("vocabulary", "fail", "; ".join(found.faults))
    said = f"{found.tokens} tokens fit the {found.rows} rows of the embedding"
    return Gate("vocabulary", "pass", said)


def dtypes(asked: Question) -> Gate:
    """Every dtype and encoding is one that the user says is supported."""
    supported = asked.answer["dtypes"]
    used = sorted({info.stored or info.dtype for info in infos(asked.diff, "right")})
    if supported is None:
        why = f"the model uses {', '.join(used)}; what can be served was not said"
        return Gate("dtypes", "unknown", why, "[deployment_readiness] dtypes in --policy")
    wanted = [supported] if isinstance(supported, str) else list(supported)
    other = [name for name in used if name not in wanted]
    if other:
        return Gate("dtypes", "fail", f"not among the supported ones: {', '.join(other)}")
    return Gate("dtypes", "pass", f"supported: {', '.join(used)}")


def licence(asked: Question) -> Gate:
    """Under which licence the right model stands is written down."""
    said = asked.evidence.right.licence or asked.diff.described["right"].get("general.license")
    if not said:
        needs = "LICENSE or a model card beside the right model"
        return Gate("licence", "unknown", "none was found", needs)
    before = asked.evidence.left.licence
    changed = f" (left: {before})" if before and before != said else ""
    return Gate("licence", "pass", f"{said}{changed}")


def lineage(asked: Question) -> Gate:
    """The right model comes from the left one, if that was declared."""
    declared = asked.answer["lineage"]
    if declared is None:
        needs = '[deployment_readiness] lineage = "derived" in --policy'
        return Gate("lineage", "unknown", "no descent was declared", needs)
    found = asked.answer.ask("lineage").fields.get("verdict")
    said = f"declared {declared}, found {found}"
    close = {"identical", "same_up_to_rounding"}
    if found == declared or (declared == "derived" and found in close):
        return Gate("lineage", "pass", said)
    if found in {None, "inconclusive"}:
        return Gate("lineage", "unknown", said, "models whose layers can be compared")
    return Gate("lineage", "fail", said)
