"""Asks `change_summary` about a pair, through Python or the command line, and reads the answer."""

from __future__ import annotations

import json
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from .model import write
from .pairs import Built


class Claim(NamedTuple):
    """One record of an answer: what it says was done; names are None where it gives none."""

    kind: str
    names: frozenset[str] | None
    numbers: Mapping[str, Any]
    text: str = ""


class Row(NamedTuple):
    """A pair of tensors in the answer: its name on the left, its own name, and how it differs."""

    left: str | None
    name: str
    kind: str


class Answer(NamedTuple):
    """What was said of a pair; `records` tells whether the answer has a field `changes`."""

    claims: tuple[Claim, ...]
    sentence: str
    records: bool
    error: str = ""


def ask(built: Built, *, command_line: bool = False) -> Answer:
    """Write both models into a folder, ask, and remove the folder."""
    with tempfile.TemporaryDirectory(prefix="difflens-zoo-") as name:
        folder = Path(name)
        left, right = write(built.left, folder / "left"), write(built.right, folder / "right")
        beside = {key: write(model, folder / key) for key, model in built.evidence.items()}
        try:
            return (_by_command if command_line else _by_library)(left, right, beside)
        except Exception as error:  # noqa: BLE001  a crash is an answer, and a wrong one
            return Answer((), "", records=False, error=f"{type(error).__name__}: {error}")


def _sorted_evidence(beside: Mapping[str, Path]) -> tuple[str | None, list[str]]:
    """Split evidence into the base and the checkpoints, in the order they were listed."""
    checkpoints = [str(path) for key, path in beside.items() if key.startswith("checkpoint")]
    return (str(beside["base"]) if "base" in beside else None), checkpoints


def _by_library(left: Path, right: Path, beside: Mapping[str, Path]) -> Answer:
    from difflens import diff, gather

    base, checkpoints = _sorted_evidence(beside)
    compared = diff(str(left), str(right))
    evidence = gather(str(left), str(right), base=base, checkpoints=checkpoints)
    fields = compared.analyse("change_summary", evidence).fields
    rows = [Row(_name(each.pair.left), each.name, each.kind) for each in compared.deltas]
    return read(fields, rows)


def _name(info: Any) -> str | None:
    return info.name if info else None


def _by_command(left: Path, right: Path, beside: Mapping[str, Path]) -> Answer:
    from click.testing import CliRunner

    from difflens.cli.diff import command

    base, checkpoints = _sorted_evidence(beside)
    arguments = [str(left), str(right), "--change-summary", "-o", "full-json"]
    arguments += ["--base", base] if base else []
    for path in checkpoints:
        arguments += ["--checkpoint", path]
    result = CliRunner().invoke(command, arguments, standalone_mode=False)
    if result.exception or result.return_value == 2:
        raise RuntimeError(result.exception or result.output)
    report = json.loads(result.stdout)
    fields = next(each for each in report["analyses"] if each["name"] == "change_summary")["fields"]
    rows = [
        Row((each["left"] or {}).get("name"), each["name"], each["kind"])
        for each in report["tensors"]
    ]
    return read(fields, rows)


def read(fields: Mapping[str, Any], rows: Sequence[Row]) -> Answer:
    """Read the field `changes`; where there is none, the first of `patterns`.

    Tensors that were renamed may be named as either side has them.
    """
    lefts = {each.left for each in rows}
    renamed = {each.name: each.left for each in rows if each.left and each.name not in lefts}
    answer = _read(fields, rows)
    claims = tuple(
        each._replace(names=frozenset(renamed.get(name, name) for name in each.names))
        if each.names is not None
        else each
        for each in answer.claims
    )
    return answer._replace(claims=claims)


def _read(fields: Mapping[str, Any], rows: Sequence[Row]) -> Answer:
    sentence = str(fields["sentence"])
    if "changes" in fields:
        claims = tuple(
            Claim(
                each["kind"],
                frozenset(each["names"]),
                each.get("numbers") or {},
                each.get("text", ""),
            )
            for each in fields["changes"] or ()
        )
        return Answer(claims, sentence, records=True)
    claim = _of_pattern(fields, rows)
    return Answer((claim,) if claim else (), sentence, records=False)


# Tags that have another name as a kind. Three say where something changed, not what: a place.
_KINDS = {
    "dtype_cast": "cast", "uniform_scale": "scaled", "full_finetune": "trained",
    "sparse_delta": "sparse_edit", "head_only": "place", "bias_only": "place", "norm_only": "place",
}  # fmt: skip
_SAME = frozenset({"identical", "tied"})


def _of_pattern(fields: Mapping[str, Any], rows: Sequence[Row]) -> Claim | None:
    """Read a tag as a claim about every tensor that differs: a tag is said only if it is."""
    tags = fields["patterns"] or ()
    if not tags or tags[0] in {"bitwise_identical", "within_epsilon", "mixed"}:
        return None
    tag, found = tags[0], fields["evidence"].get(tags[0], {})
    names = frozenset(each.name for each in rows if each.kind not in _SAME)
    kind, numbers = _KINDS.get(tag, tag), dict(found)
    if tag == "low_rank" and found["rank"] != found["least_rank"]:
        numbers["rank"] = (found["least_rank"], found["rank"])
    if tag == "row_edit":
        kind = "outer_product" if "rank" in found else kind
        numbers |= {"rows": found.get("rows_changed")}
    if tag == "pruned":
        numbers["sparsity"] = found["zeros"]
        numbers["pattern"] = _pattern(found)
    # A grid is said of the tensors that lie on it, and the tag does not list them.
    return Claim(kind, None if tag == "quantised" else names, numbers)


def _pattern(found: Mapping[str, float]) -> str:
    if found.get("two_of_four") == 1:
        return "2:4"
    return "4:8" if found.get("four_of_eight") == 1 else "unstructured"
