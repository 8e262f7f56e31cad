"""Gates about the file itself: it decodes, its numbers are finite, it is what its settings say."""

from __future__ import annotations

from ...diffs import Diff
from ...measure.matrices import has_numbers
from .. import analyse
from ..anatomy.network import infos, known_of
from ..anatomy.settings import settings
from ..anatomy.shapes import Shapes, shapes
from .gate import Asked, Gate
from .vocabulary import agreement

_COMPARED = ("layers", "hidden", "ffn", "vocab", "experts")
_HEADERS = "only headers were read"
_VALUES = "tensor values (leave --shape-only out)"
_SATURATION = "dtype_saturation"


def loads(asked: Asked) -> Gate:
    """Every tensor of the right model was read and decoded."""
    if not asked.diff.has_values:
        return Gate("loads", "unknown", _HEADERS, _VALUES)
    opaque = [delta.name for delta in asked.diff.deltas
              if delta.pair.right and delta.kind == "uncompared"]  # fmt: skip
    if opaque:
        said = f"{len(opaque)} tensors could not be decoded, {opaque[0]} the first"
        return Gate("loads", "unknown", said, "a reader for their dtype")
    return Gate("loads", "pass", f"{asked.diff.right.tensor_count} tensors read and decoded")


def finite(asked: Asked) -> Gate:
    """No value of the right model is NaN or infinite, none is newly at the end of its dtype."""
    if not asked.diff.has_values:
        return Gate("finite", "unknown", _HEADERS, _VALUES)
    broken = nonfinite(asked.diff)
    if broken:
        total, first = sum(broken.values()), next(iter(broken))
        said = f"{total} values of {len(broken)} tensors are NaN or infinite, {first} the first"
        return Gate("finite", "fail", said)
    found = analyse("anomaly_detection", asked.diff, asked.evidence, asked.policy).findings
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


def structure(asked: Asked) -> Gate:
    """Sizes in the right model's settings are those of its tensors."""
    said = settings(asked.evidence.right.config, asked.diff.described["right"])
    told, seen = known_of(said, Shapes()), shapes(infos(asked.diff, "right"))
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


def vocabulary(asked: Asked) -> Gate:
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


def dtypes(asked: Asked) -> Gate:
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


def licence(asked: Asked) -> Gate:
    """Under which licence the right model stands is written down."""
    said = asked.evidence.right.licence or asked.diff.described["right"].get("general.license")
    if not said:
        needs = "LICENSE or a model card beside the right model"
        return Gate("licence", "unknown", "none was found", needs)
    before = asked.evidence.left.licence
    changed = f" (left: {before})" if before and before != said else ""
    return Gate("licence", "pass", f"{said}{changed}")


def lineage(asked: Asked) -> Gate:
    """The right model comes from the left one, if that was declared."""
    declared = asked.answer["lineage"]
    if declared is None:
        needs = '[deployment_readiness] lineage = "derived" in --policy'
        return Gate("lineage", "unknown", "no descent was declared", needs)
    found = analyse("lineage", asked.diff, asked.evidence, asked.policy).fields["verdict"]
    said = f"declared {declared}, found {found}"
    close = {"identical", "same_up_to_rounding"}
    if found == declared or (declared == "derived" and found in close):
        return Gate("lineage", "pass", said)
    if found in {None, "inconclusive"}:
        return Gate("lineage", "unknown", said, "models whose layers can be compared")
    return Gate("lineage", "fail", said)
