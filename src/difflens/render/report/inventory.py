"""Text and JSON about one model looked at alone: what `show` and `check` print."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from typing import Any

from difflens.core.escape import for_terminal
from difflens.core.records import Inspected, ModelInfo, Stats, Tensor, View

from ..document.numbers import count, plural
from ..document.text import Column, table_lines
from .state import state_line

_UNITS = ("B", "KiB", "MiB", "GiB", "TiB")
_MOST_BAD = 20


def size(number: float) -> str:
    """Write a number of bytes for people.

    >>> size(1536)
    '1.5 KiB'
    """
    for unit in _UNITS[:-1]:
        if number < 1024:
            return f"{number:.0f} {unit}" if unit == "B" else f"{number:.1f} {unit}"
        number /= 1024
    return f"{number:.1f} {_UNITS[-1]}"


def show_text(shown: Inspected, view: View) -> str:
    """List a model's tensors for people."""
    lines = [_headline(shown), *_metadata(shown), *_table(shown, view), *_state(shown)]
    lines += [
        f"= {for_terminal(name)}: stored once, with {for_terminal(other)}"
        for name, other in shown.aliases.items()
    ]
    lines += [f"refused: {for_terminal(name)}" for name in shown.refused]
    return "\n".join(lines) + "\n"


def show_stable(shown: Inspected) -> str:
    """List a model so that two listings can be diffed: no path, a fingerprint a tensor."""
    lines = [
        f"# {for_terminal(key)}: {for_terminal(value)}"
        for key, value in sorted(shown.metadata.items())
    ]
    for each in shown.tensors:
        stats = each.stats or Stats()
        moments = f"mean={_number(stats.mean)} std={_number(stats.std)}"
        print_ = f" sha256={each.sha256[:16]}" if each.sha256 else ""
        shape = list(each.info.shape)
        lines.append(f"{for_terminal(each.info.name)} {each.info.dtype} {shape} {moments}{print_}")
    return "\n".join(lines) + "\n"


def show_json(shown: Inspected) -> str:
    """Return all that is known as one JSON object."""
    return _json(shown.to_dict())


def checked_text(checked: Iterable[Inspected]) -> str:
    """Say of each model whether it is whole and finite."""
    lines: list[str] = []
    for each in checked:
        bad = each.nonfinite
        facts = f"{_headline(each)}, read to the last byte"
        if not bad and not each.refused:
            lines.append(f"ok   {facts}, all finite")
            continue
        lines.append(f"BAD  {facts}: {_faults(each)}")
        lines.extend(f"     refused: {for_terminal(name)}" for name in each.refused[:_MOST_BAD])
        held = {tensor.info.name: tensor.stats or Stats() for tensor in each.tensors}
        worst = list(bad)[:_MOST_BAD]
        lines.extend(f"     {for_terminal(name)}: {_kinds(held[name])}" for name in worst)
        if len(bad) > _MOST_BAD:
            lines.append(f"     and {len(bad) - _MOST_BAD} more")
    return "\n".join(lines) + "\n"


def _faults(checked: Inspected) -> str:
    bad, refused = checked.nonfinite, checked.refused
    faults = [f"NaN or infinities in {plural(len(bad), 'tensor')}"] if bad else ["all finite"]
    if refused:
        faults.append(f"names {plural(len(refused), 'object')} that loading it would make or call")
    return "; ".join(faults)


def checked_json(checked: Iterable[Inspected]) -> str:
    """Return each model's answer as JSON."""
    rows = [
        {
            "path": each.model.path,
            "format": each.model.format,
            "tensors": len(each.tensors),
            "finite": not each.nonfinite,
            "nonfinite": each.nonfinite,
            "refused": list(each.refused),
            "warnings": list(each.warnings),
        }
        for each in checked
    ]
    return _json(rows)


def _json(value: Any) -> str:
    # ASCII by default, and DEL beside it: a name that commands the terminal stays a string.
    return json.dumps(value, indent=1).replace("\x7f", "\\u007f") + "\n"


def _headline(shown: Inspected) -> str:
    return f"{for_terminal(shown.model.path)}: {outline(shown.model)}"


def outline(model: ModelInfo) -> str:
    """Describe a model in a few words: its format, its tensors, its size."""
    dtypes = ", ".join(f"{number:,} {dtype}" for dtype, number in model.dtypes.items())
    facts = [
        model.format,
        f"{plural(model.tensor_count, 'tensor')} ({dtypes})" if dtypes else "no tensors",
        f"{count(model.parameter_count)} parameters",
        size(model.size_bytes),
    ]
    return ", ".join(facts)


def _metadata(shown: Inspected) -> list[str]:
    return [
        f"  {for_terminal(key)}: {for_terminal(value)}"
        for key, value in sorted(shown.metadata.items())
    ]


def _state(shown: Inspected) -> Iterator[str]:
    """Summarise what lies beside the weights, a line for each part."""
    if shown.state:
        beside = shown.model
        number = plural(beside.state_tensors, "tensor") if beside.state_tensors else "numbers"
        yield f"beside the weights: {number}, {size(beside.state_bytes)}"
    yield from (f"  {state_line(each)}" for each in shown.state)


def _table(shown: Inspected, view: View) -> Iterator[str]:
    rows = [_cells(each) for each in shown.tensors if not each.is_state]
    if rows:
        names, *rest = zip(*rows, strict=True)
        columns = [Column("", names, "name")]
        columns += [Column("", cells, "value", right=True) for cells in rest]
        yield from table_lines(columns, view.width if view.fitted else None)


def _cells(each: Tensor) -> list[str]:
    info, stats = each.info, each.stats
    encoding = info.stored or info.dtype
    cells = [info.name, encoding, str(list(info.shape)), size(info.size_bytes)]
    if stats is not None:
        cells += [f"{key}={_number(getattr(stats, key))}" for key in ("mean", "std", "min", "max")]
        cells += [_kinds(stats)]
    return cells


def _kinds(stats: Stats) -> str:
    kinds = {"NaN": stats.nan, "+inf": stats.positive_infinite, "-inf": stats.negative_infinite}
    return ", ".join(f"{number:,} {name}" for name, number in kinds.items() if number)


def _number(value: float | None) -> str:
    return "?" if value is None else f"{value:.4g}"
