"""Merges: the right model as a mixture of models that were handed in, with the name of its kind."""

from __future__ import annotations

from collections import Counter
from pathlib import PurePath
from typing import Any

from difflens.core.records import MOVED, SAME

from ...answer import Answer
from ...diff import Diff
from ...evidence.records import Evidence
from ..changes.explained import Explained
from .adapters import is_merged_with_adapter
from .curves import Line, fit_arc, fit_line
from .elements import Elements, fit_elected, fit_sparse
from .mixtures import Mixture, Source, measure
from .records import counted, energies, explained, name_of

_NONE = 1e-3  # weights this near to zero are none
_TENTH = 10  # of two curves that both fit, one is named if it leaves a tenth of the other
_GENERIC = frozenset({"model", "pytorch_model", "adapter_model", "weights", "checkpoint", "last"})
_SURE = 0.999  # of the kept elements are the largest ones


def merged_models(diff: Diff, evidence: Evidence, answer: Answer) -> list[Explained]:  # noqa: ARG001
    """Explain the right by the left, a common base and further checkpoints; nothing without."""
    mixture = _mixture(diff, evidence)
    if mixture is None or not mixture.known:
        return []
    has_base = evidence.base is not None
    line, arc = fit_line(mixture), fit_arc(mixture)
    if line and line.fits and _is_one_model(line):
        return []
    if arc and arc.fits and line and arc.rest * _TENTH <= line.rest:
        first, second = mixture.origin.label, mixture.parts[0].label
        text = f"SLERP of {first} and {second} at t = {arc.t:.4g}"
        return _record(diff, "slerp", text, {"t": arc.t, "models": [first, second]}, arc.rest)
    if line and line.fits:
        return _linear(diff, mixture, line, has_base=has_base)
    return _by_element(diff, mixture)


def _mixture(diff: Diff, evidence: Evidence) -> Mixture | None:
    """Choose the origin: the base where one was handed in, else the left."""
    trajectory = evidence.trajectory
    others = [each for each in (trajectory.diffs[1:] if trajectory else ()) if _is_model(each)]
    if not (evidence.base or others) or not diff.has_values:
        return None
    diffs = [diff, *others] if evidence.base is None else [evidence.base[1], diff, *others]
    paths = [each.left.path for each in diffs]
    labels = _labels(paths, has_base=evidence.base is not None)
    sources = [Source(label, each) for label, each in zip(labels, diffs, strict=True)]
    if not all(map(_is_moved, diffs)):
        return None  # the right is one of them
    parts = [each for each in sources[1:] if _is_in_memory(each) or each.diff.left.path != paths[0]]
    return measure(sources[0], parts) if parts else None


def _is_model(diff: Diff) -> bool:
    """Is it a model of its own? An adapter was merged into the right to be compared."""
    return not is_merged_with_adapter(diff)


def _is_moved(diff: Diff) -> bool:
    return any(each.kind in MOVED for each in diff.deltas)


def _is_in_memory(source: Source) -> bool:
    return source.diff.left.path.startswith("(")


def _labels(paths: list[str], *, has_base: bool) -> list[str]:
    """Name models by their files; by their folders where files have the name that all have.

    >>> _labels(["a/model.safetensors", "runs/b.pt"], has_base=False)
    ['a', 'b']
    """
    roles = ["base", "left"] if has_base else ["left"]
    roles += [f"checkpoint {at + 1}" for at in range(len(paths) - len(roles))]
    labels = []
    for path, fallback in zip(paths, roles, strict=True):
        pure = PurePath(path)
        name = pure.stem if pure.suffix else pure.name
        if name.lower() in _GENERIC:
            name = pure.parent.name
        labels.append(fallback if path.startswith("(") or not name else name)
    doubled = Counter(labels)
    return [
        label if doubled[label] == 1 else f"{PurePath(path).parent.name}/{label}"
        for label, path in zip(labels, paths, strict=True)
    ]


def _is_one_model(line: Line) -> bool:
    """Is the right just one of the models?"""
    return sum(abs(weight) > _NONE for weight in line.all_weights) < 2


def _linear(diff: Diff, mixture: Mixture, line: Line, *, has_base: bool) -> list[Explained]:
    labels = [mixture.origin.label, *(each.label for each in mixture.parts)]
    weights = dict(zip(labels, line.all_weights, strict=True))
    numbers: dict[str, Any] = {"weights": weights, "rest": line.worst}
    if has_base and len(mixture.parts) == 1:
        numbers["coefficient"] = line.all_weights[1]  # right = base + c (left - base)
    used = {label: weight for label, weight in weights.items() if abs(weight) > _NONE}
    sum_text = _sum(used)
    if has_base and len(mixture.parts) > 1 and abs(line.all_weights[0]) > 10 * _NONE:
        # More or less than an average of the models: each one's move is added to the base.
        moves = " + ".join(
            f"{weight:.4g} x ({label} - {labels[0]})"
            for label, weight in weights.items()
            if label != labels[0] and abs(weight) > _NONE
        )
        text = f"task arithmetic: {labels[0]} + {moves}".replace("+ -", "- ")
        return _record(diff, "task_arithmetic", text, numbers, line.rest)
    if min(used.values()) < -_NONE:
        numbers["c"] = max(used.values())
        return _record(diff, "extrapolated", f"extrapolated: {sum_text}", numbers, line.rest)
    decay = _decay(list(weights.values())) if not has_base else None
    if decay:
        numbers["decay"] = decay
        text = f"an exponential moving average (decay {decay:.4g}) of {len(weights)} models"
        return _record(diff, "ema", f"{text}: {sum_text}", numbers, line.rest)
    text = f"the average of {len(used)} models: {sum_text}"
    return _record(diff, "averaged", text, numbers, line.rest)


def _sum(weights: dict[str, float]) -> str:
    ordered = sorted(weights.items(), key=lambda item: -item[1])
    text = " + ".join(f"{weight:.4g} x {label}" for label, weight in ordered)
    return text.replace("+ -", "- ")


def _decay(weights: list[float]) -> float | None:
    """Return b where the weights are b^n, (1 - b) b^(n-1), ..., (1 - b): those of a moving average.

    It moves by 1 - b of its distance at each of n further models.
    """
    n = len(weights) - 1
    if n < 2 or min(weights) <= _NONE:
        return None
    decay = 1 - weights[-1]
    wanted = [decay**n, *((1 - decay) * decay ** (n - at) for at in range(1, n + 1))]
    close = all(abs(a - b) <= 5e-3 for a, b in zip(weights, wanted, strict=True))
    equal = max(weights) - min(weights) <= 5e-3
    return decay if close and not equal else None


def _by_element(diff: Diff, mixture: Mixture) -> list[Explained]:
    """Name a merge that drops elements."""
    origin = mixture.origin.label
    sparse = fit_sparse(mixture)
    if sparse and _NONE < sparse.kept < 1 - _NONE:
        part = mixture.parts[0].label
        is_trimmed = sparse.largest >= _SURE
        numbers: dict[str, Any] = {
            "density": sparse.kept,
            "scale": sparse.scale,
            "models": [origin, part],
        }
        move = f"({part} - {origin})"
        rescaled = abs(sparse.scale * sparse.kept - 1) <= 0.02 + 0.02 * sparse.scale
        if is_trimmed:
            text = f"{origin} + the largest {100 * sparse.kept:.3g} % of {move}"
        else:
            numbers["drop"] = 1 - sparse.kept
            text = f"{origin} + {100 * sparse.kept:.3g} % of {move} at random"
        text += f", times {sparse.scale:.4g}" if abs(sparse.scale - 1) > _NONE else ""
        name = "ties" if is_trimmed else "dare"
        why = "TIES" if is_trimmed else "DARE" if rescaled else "random dropping"
        return _record(diff, name, f"{why}: {text}", numbers, _rest(mixture, sparse.elements))
    elected = fit_elected(mixture)
    if elected:
        labels = [each.label for each in mixture.parts]
        numbers = {"density": elected.density, "scale": elected.scale, "models": [origin, *labels]}
        text = (
            f"TIES of {' and '.join(labels)} on {origin}: the largest"
            f" {100 * elected.density:.3g} % of each move, elected signs averaged"
        )
        text += f", times {elected.scale:.4g}" if abs(elected.scale - 1) > 10 * _NONE else ""
        return _record(diff, "ties", text, numbers, _rest(mixture, elected.elements))
    return []


def _rest(mixture: Mixture, found: Elements) -> float:
    """Return what is left of the whole move, of which large tensors gave a sample."""
    whole = sum(float(gram[-1, -1]) for gram in mixture.grams.values())
    return whole * found.rest / found.moved


def _record(
    diff: Diff, kind: str, text: str, numbers: dict[str, Any], rest: float
) -> list[Explained]:
    names = [name_of(each) for each in diff.deltas if each.kind not in SAME]
    known = energies(diff)
    moved = [name for name in names if name in known]
    if not moved:
        return []
    return [explained(diff, kind, moved, text, numbers, rest=rest), *_casts(diff)]


def _casts(diff: Diff) -> list[Explained]:
    """Name the dtypes that the result of a merge was stored in, where they are others."""
    recast: dict[tuple[str, str], list[str]] = {}
    for delta in diff.deltas:
        left, right = delta.pair.left, delta.pair.right
        if delta.kind == "recast" and left and right:
            recast.setdefault((left.dtype, right.dtype), []).append(name_of(delta))
    records = []
    for (before, after), names in recast.items():
        text = (
            f"cast from {before} to {after}: {len(names)} of {counted(len(diff.deltas), 'tensor')}"
        )
        numbers = {"from": before, "to": after, "stored": after, "rounding": None}
        found = explained(diff, "cast", names, text, numbers)
        records.append(found._replace(share=0.0))  # what it left is part of what the merge left
    return records
