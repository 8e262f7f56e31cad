"""Is a converted model the same model? Same, same within storage rounding, or not, and where."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from typing import Any, Literal, NamedTuple

from ..records import Envelope, Figures, Finding, Report, Row, Verdict

NAME = "verify_conversion"
SAME = "same model"
SAME_BUT = "same within storage rounding"
DIFFERENT = "not the same"

Word = Literal["same", "rounded", "different"]

_MOST_NAMED = 5
# Formats that hold a graph beside the weights, and so constants that belong to no weight.
_GRAPHS = frozenset({"onnx", "frozen-graph", "saved-model"})
_FEW = 16  # elements of an integer tensor that is an axis, a shape or a counter
_SHUFFLED = "rows shuffled"  # as `measure.content` says it: an order no converter writes
_WORDS = {"uncompared": "not compared", "paired": "values not read", "reshaped": "another shape"}
_BASIS = {
    "verdict": "the worst of all pairs; tied weights, metadata and constants of a graph do not"
    " count",
    "worst": "tensors that are not the same, the furthest first; what has no distance before those",
    "pairs": "rows of the report",
    "rounded": "pairs of which no element moved by more than half a unit in the last place of the"
    " coarser dtype",
    "different": "pairs that moved further, or have no partner, or could not be compared",
    "constants": "what only a graph has: zeros, or a few integers; and counters of training steps",
    "transforms": "what was undone before comparing, with the number of pairs",
}


class Conversion(NamedTuple):
    """The answer: in a word, in a sentence, and with the rows it rests on."""

    word: Word
    sentence: str
    rows: int
    rounded: tuple[Row, ...]
    worst: tuple[Row, ...]
    transforms: dict[str, int]
    constants: int = 0


def conversion(rows: Iterable[Row], *, left_format: str = "", right_format: str = "") -> Conversion:
    """Judge the rows of a report; a pure function of kinds, figures and transforms."""
    given = tuple(rows)
    graphs = {"removed": left_format in _GRAPHS, "added": right_format in _GRAPHS}
    rows = tuple(row for row in given if not _is_constant(row, graphs))
    return _judged(rows)._replace(constants=len(given) - len(rows))


def _is_constant(row: Row, graphs: dict[str, bool]) -> bool:
    """Does only a graph need it? Exporters write shapes, axes and the zeros a state begins with."""
    info, stats = row.left or row.right, row.left_stats or row.right_stats
    if info is None or row.kind not in graphs or not any(graphs.values()):
        return False
    if not graphs[row.kind]:  # batch norm counts its steps, which no graph needs
        return info.name.endswith("num_batches_tracked")
    few = info.dtype[0] in "IUB" and info.dtype != "BF16" and info.count <= _FEW
    return few or (stats is not None and stats.zeros == info.count)


def _judged(rows: tuple[Row, ...]) -> Conversion:
    words = [_word(row) for row in rows]
    rounded = tuple(row for row, word in zip(rows, words, strict=True) if word == "rounded")
    different = [row for row, word in zip(rows, words, strict=True) if word == "different"]
    worst = tuple(sorted(different, key=_distance, reverse=True))
    transforms = dict(Counter(row.transform for row in rows if row.transform))
    undone = ", ".join(f"{said} ({number})" for said, number in transforms.items())
    beside = f"; undone: {undone}" if undone else ""
    if worst:
        return Conversion(
            "different", _not_the_same(worst, len(rows)), len(rows), rounded, worst, transforms
        )
    if rounded:
        text = f"{SAME_BUT}: {len(rounded)} of {_tensors(len(rows))} rounded, {_dtypes(rounded)}"
        return Conversion("rounded", f"{text}{beside}", len(rows), rounded, (), transforms)
    text = f"{SAME}: {_all(len(rows))}{beside}"
    return Conversion("same", text, len(rows), (), (), transforms)


def verified(report: Report) -> Report:
    """Put this judgement in the place of the usual verdict, and beside the analyses."""
    formats = {"left_format": report.left.format, "right_format": report.right.format}
    found = conversion(report.tensors, **formats)
    fields: dict[str, Any] = {name: getattr(report, name) for name in report.__struct_fields__}
    differs = found.word == "different"
    fields["verdict"] = Verdict(differs, "different" if differs else "equal", found.sentence)
    fields["analyses"] = (*report.analyses, _envelope(found))
    return Report(**fields)


def _envelope(found: Conversion) -> Envelope:
    named = found.worst[:_MOST_NAMED]
    verdict = {"same": SAME, "rounded": SAME_BUT, "different": DIFFERENT}[found.word]
    return Envelope(
        NAME,
        "ok",
        {
            "verdict": verdict,
            "worst": [row.name for row in named],
            "pairs": found.rows,
            "rounded": len(found.rounded),
            "different": len(found.worst),
            "constants": found.constants,
            "transforms": found.transforms,
        },
        basis=_BASIS,
        uncertainty=dict.fromkeys(("pairs", "rounded", "different"), "exact"),
        method=f"{NAME}/1",
        findings=tuple(_finding(row) for row in named),
    )


def _finding(row: Row) -> Finding:
    known = row.figures or Figures()
    evidence = {"relative_l2": known.relative_l2, "sqnr_db": known.sqnr_db}
    return Finding("not_the_same", row.name, _what(row), evidence)


def _word(row: Row) -> Word:
    if row.kind == "tied":
        return "same"
    if row.kind not in {"identical", "within_epsilon", "changed", "recast"}:
        return "different"
    if _SHUFFLED in (row.transform or ""):
        return "different"
    if row.kind == "identical" or row.figures is None or row.figures.changed_count == 0:
        return "same"
    return "rounded" if row.figures.within_storage_rounding else "different"


def _distance(row: Row) -> float:
    known = row.figures.relative_l2 if row.figures else None
    return float("inf") if known is None else known


def _not_the_same(worst: tuple[Row, ...], rows: int) -> str:
    named = ", ".join(f"{row.name} ({_what(row)})" for row in worst[:_MOST_NAMED])
    more = f", and {len(worst) - _MOST_NAMED} more" if len(worst) > _MOST_NAMED else ""
    text = f"{DIFFERENT}: {len(worst)} of {_tensors(rows)}: {named}{more}"
    quantised = [row for row in worst if _quantised(row)]
    if not quantised:
        return text
    encodings = ", ".join(sorted({_quantised(row) for row in quantised}))
    known = [row.figures.sqnr_db for row in quantised if row.figures]
    ratios = [ratio for ratio in known if ratio is not None]
    loss = f"; the worst of them keeps an SQNR of {min(ratios):.1f} dB" if ratios else ""
    return f"{text}; {len(quantised)} quantised ({encodings}){loss}"


def _what(row: Row) -> str:
    if _SHUFFLED in (row.transform or "") and row.kind == "identical":
        return _SHUFFLED
    if row.kind in {"changed", "recast", "within_epsilon"} and row.figures:
        distance = row.figures.relative_l2
        return "values changed" if distance is None else f"relative_l2={distance:.1e}"
    return _WORDS.get(row.kind, row.kind)


def _quantised(row: Row) -> str:
    """Name the encoding that one side alone has; empty where there is none."""
    stored = {side.stored for side in (row.left, row.right) if side}
    one_sided = len(stored) > 1 and row.left and row.right
    return " and ".join(sorted(filter(None, stored))) if one_sided else ""


def _dtypes(rounded: tuple[Row, ...]) -> str:
    sides = {f"{row.left.dtype} -> {row.right.dtype}" for row in rounded if row.left and row.right}
    return ", ".join(sorted(sides))


def _tensors(number: int) -> str:
    return f"{number:,} tensor{'' if number == 1 else 's'}"


def _all(number: int) -> str:
    if number < 2:
        return "the one tensor holds the same values" if number else "neither side holds a tensor"
    return f"all {_tensors(number)} hold the same values"
