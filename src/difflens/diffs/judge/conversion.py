"""Is a converted model the same model? Same, within storage rounding, not, or nobody can tell."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, Literal, NamedTuple

from difflens.core.findings import Envelope, Finding
from difflens.core.records import Figures, MetadataChange, Report, Row, Verdict

from ..pairing.how import (
    BY_NAME,
    CONSTANT,
    CONTENT,
    FOLDED,
    FOLDED_IN,
    IF_ZERO,
    NOT_IN_GRAPH,
    ONLY_IN_GRAPH,
    SHUFFLED,
    SIMILAR,
    UNCLEAR,
    UNIDENTIFIED,
    UNREAD,
)
from .verdict import function_changes, function_sentence, function_word

NAME = "verify_conversion"
SAME = "same model"
SAME_BUT = "same within storage rounding"
DIFFERENT = "not the same"
NOTHING = "nothing to compare: neither side holds a weight"
UNKNOWN = "cannot tell"

Word = Literal["same", "rounded", "different", "unknown"]

_MOST_NAMED = 5
# Formats that hold a graph beside the weights, and so constants that belong to no weight.
_GRAPHS = frozenset({"onnx", "frozen-graph", "saved-model"})
_FEW = 16  # elements of an integer tensor that is an axis, a shape or a counter
_WORDS = {"uncompared": "not compared", "paired": "values not read", "reshaped": "another shape"}
_VERDICTS: dict[Word, Literal["equal", "different", "cannot_tell"]] = {
    "same": "equal",
    "rounded": "equal",
    "different": "different",
    "unknown": "cannot_tell",
}
_BASIS = {
    "verdict": "the worst of all pairs, and settings that change the function; tied weights, other"
    " metadata and constants of a graph do not count",
    "worst": "tensors that are not the same, the furthest first; what has no distance before those",
    "pairs": "rows of the report",
    "rounded": "pairs of which no element moved by more than half a unit in the last place of the"
    " coarser dtype",
    "different": "pairs that moved further, or have no partner, or could not be compared",
    "unknown": "tensors of which neither name nor graph nor shape says which weight they are",
    "constants": "what sits in no weight's place in the graph, biases of zeros that it leaves out,"
    " the parts of folded norms, counters of training steps",
    "function": "settings that change what the model computes: config.json and the tokenizer",
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
    unknown: tuple[Row, ...] = ()


def conversion(rows: Iterable[Row], *, left_format: str = "", right_format: str = "") -> Conversion:
    """Judge the rows of a report; a pure function of kinds, figures and transforms."""
    given = tuple(rows)
    graphs = {"removed": left_format in _GRAPHS, "added": right_format in _GRAPHS}
    rows = tuple(row for row in given if not _is_constant(row, graphs))
    answer = _judged(rows)
    if answer.word in ("same", "rounded"):
        beside = _reservations(given, graphs)
        answer = answer._replace(sentence="; ".join([answer.sentence, *beside]))
    return answer._replace(constants=len(given) - len(rows))


def _reservations(rows: tuple[Row, ...], graphs: dict[str, bool]) -> Iterator[str]:
    """Say what a verdict of sameness does not rest on."""
    named = sum(row.how == BY_NAME for row in rows)
    if named:
        yield f"known by name alone: {_tensors(named)}"
    constants = sum(_is_unchecked(row, graphs) for row in rows)
    if constants:
        some = "1 constant" if constants == 1 else f"{constants} constants"
        yield f"not compared: {some} that only the graph holds"


def _is_unchecked(row: Row, graphs: dict[str, bool]) -> bool:
    """Is it a table of numbers that nothing on the other side vouches for: angles, a mask?"""
    info = row.left or row.right
    known = row.how == CONSTANT and graphs.get(row.kind, False)
    return known and info is not None and info.dtype[0] in "FB" and info.count > 1


def _is_constant(row: Row, graphs: dict[str, bool]) -> bool:
    """Does only a graph need it? Exporters write shapes, axes and the zeros a state begins with."""
    info, stats = row.left or row.right, row.left_stats or row.right_stats
    if row.how in (CONSTANT, FOLDED, UNREAD):
        return True
    if row.how in (NOT_IN_GRAPH, ONLY_IN_GRAPH, UNCLEAR, UNIDENTIFIED):
        return False
    if row.how == IF_ZERO:
        return info is not None and stats is not None and stats.zeros == info.count
    if info is None or row.kind not in graphs or not any(graphs.values()):
        return False
    if not graphs[row.kind]:  # batch norm counts its steps, which no graph needs
        return info.name.endswith("num_batches_tracked")
    few = info.dtype[0] in "IUB" and info.dtype != "BF16" and info.count <= _FEW
    return few or (stats is not None and stats.zeros == info.count)


def _judged(rows: tuple[Row, ...]) -> Conversion:
    if not rows:
        return Conversion("different", NOTHING, 0, (), (), {})
    words = [
        "unknown" if is_guess else _word(row)
        for row, is_guess in zip(rows, _are_guesses(rows), strict=True)
    ]

    def of(wanted: str) -> tuple[Row, ...]:
        return tuple(row for row, word in zip(rows, words, strict=True) if word == wanted)

    rounded, unknown = of("rounded"), of("unknown")
    worst = tuple(sorted(of("different"), key=_distance, reverse=True))
    transforms = dict(Counter(row.transform for row in rows if row.transform))
    undone = ", ".join(f"{transform} ({number})" for transform, number in transforms.items())
    beside = f"; undone: {undone}" if undone else ""
    word: Word = "same"
    text = f"{SAME}: {_all(len(rows))}{beside}"
    if worst:
        word, text = "different", _not_the_same(worst, len(rows))
    elif unknown:
        word, text = "unknown", _cannot_tell(unknown, len(rows))
    elif rounded:
        some = f"{len(rounded)} of {_tensors(len(rows))} rounded, {_dtypes(rounded)}"
        word, text = "rounded", f"{SAME_BUT}: {some}{beside}"
    return Conversion(word, text, len(rows), rounded, worst, transforms, unknown=unknown)


def _are_guesses(rows: Sequence[Row]) -> list[bool]:
    """Tell which pairs only their values made, where another tensor or side up has their shape.

    Two that changed places hold the same values as two that did not.
    """
    by_value = [row.how == CONTENT and bool(row.left and row.right) for row in rows]
    sizes = [_sizes(row) for row in rows]
    counts = Counter(size for size, is_one in zip(sizes, by_value, strict=True) if is_one)
    return [
        is_one and (counts[size] > 1 or (len(size) == 2 and size[0] == size[1]))
        for size, is_one in zip(sizes, by_value, strict=True)
    ]


def _sizes(row: Row) -> tuple[int, ...]:
    info = row.left or row.right
    return tuple(sorted(size for size in info.shape if size != 1)) if info else ()


def _cannot_tell(unknown: tuple[Row, ...], rows: int) -> str:
    named = ", ".join(row.name for row in unknown[:_MOST_NAMED])
    more = f", and {len(unknown) - _MOST_NAMED} more" if len(unknown) > _MOST_NAMED else ""
    why = "which weight each is cannot be told without names or scopes"
    return f"{UNKNOWN}: {len(unknown)} of {_tensors(rows)}: {why}: {named}{more}"


def judge_conversion(report: Report) -> Report:
    """Put this judgement in the place of the usual verdict, and beside the analyses."""
    if not report.tensors:  # the usual verdict says it: nothing was compared
        return report
    formats = {"left_format": report.left.format, "right_format": report.right.format}
    answer = conversion(report.tensors, **formats)
    fields: dict[str, Any] = {name: getattr(report, name) for name in report.__struct_fields__}
    function = function_changes(report.metadata)
    fields["verdict"] = _verdict(answer, function)
    fields["analyses"] = (*report.analyses, _envelope(answer, function))
    return Report(**fields)


def _verdict(answer: Conversion, function: tuple[MetadataChange, ...]) -> Verdict:
    """Judge weights and settings: the same weights under another config are another model."""
    if not function:
        word = _VERDICTS[answer.word]
        return Verdict(word != "equal", word, answer.sentence)
    changed = function_sentence(function)
    if answer.word == "different":
        text = f"{answer.sentence}; the function changed as well: {changed}"
        return Verdict(True, "different", text)
    weights = answer.sentence.partition(": ")[2]
    text = f"{DIFFERENT}: the function changed: {changed}; the weights: {weights}"
    return Verdict(True, function_word(function), text)


def _envelope(answer: Conversion, function: tuple[MetadataChange, ...]) -> Envelope:
    named = answer.worst[:_MOST_NAMED]
    sentences = {"same": SAME, "rounded": SAME_BUT, "different": DIFFERENT, "unknown": UNKNOWN}
    verdict = DIFFERENT if function else sentences[answer.word]
    return Envelope(
        NAME,
        "ok",
        {
            "verdict": verdict,
            "worst": [row.name for row in named],
            "pairs": answer.rows,
            "rounded": len(answer.rounded),
            "different": len(answer.worst),
            "unknown": len(answer.unknown),
            "constants": answer.constants,
            "transforms": answer.transforms,
            **({"function": [change.text for change in function]} if function else {}),
        },
        basis={name: _BASIS[name] for name in _BASIS if function or name != "function"},
        uncertainty=dict.fromkeys(("pairs", "rounded", "different", "unknown"), "exact"),
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
    if row.how in (UNCLEAR, UNIDENTIFIED):
        return "unknown"
    is_pair = row.kind in {"identical", "within_epsilon", "changed", "recast"}
    if not is_pair or SHUFFLED in (row.transform or "") or row.how.startswith(SIMILAR):
        return "different"
    if FOLDED_IN in (row.transform or "") and row.kind == "identical":
        return "rounded"
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
    if SHUFFLED in (row.transform or "") and row.kind == "identical":
        return SHUFFLED
    if row.kind in {"changed", "recast", "within_epsilon"} and row.figures:
        distance = row.figures.relative_l2
        return "values changed" if distance is None else f"relative_l2={distance:.1e}"
    if row.how in (IF_ZERO, NOT_IN_GRAPH, ONLY_IN_GRAPH):
        is_graph = row.how == ONLY_IN_GRAPH or (row.how == IF_ZERO and row.kind == "added")
        return ONLY_IN_GRAPH if is_graph else NOT_IN_GRAPH
    return _WORDS.get(row.kind, row.kind)


def _quantised(row: Row) -> str:
    """Name the encoding that one side alone has; empty if there is none."""
    stored = {side.stored for side in (row.left, row.right) if side}
    one_sided = len(stored) > 1 and row.left and row.right
    return " and ".join(sorted(filter(None, stored))) if one_sided else ""


def _dtypes(rounded: tuple[Row, ...]) -> str:
    sides = {f"{row.left.dtype} -> {row.right.dtype}" for row in rounded if row.left and row.right}
    return ", ".join(sorted(sides))


def _tensors(number: int) -> str:
    return f"{number:,} tensor{'' if number == 1 else 's'}"


def _all(number: int) -> str:
    if number == 1:
        return "the one tensor holds the same values"
    return f"all {_tensors(number)} hold the same values"
