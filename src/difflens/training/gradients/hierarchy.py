"""Layers in groups: thirds of the depth, and blocks by the path of their module.

Groups come from the network, not from the size of the norms: cut-offs at 0.1 and 1 put vanishing
layers among the easy ones and say nothing of where in the network they lie.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

import numpy as np

from difflens.core.findings import Interval, Missing

from ..records.gradients import (
    HEALTHS,
    GradientHierarchy,
    GroupCharacteristics,
    HierarchyLevel,
    LayerGradientDetails,
    LayerGroup,
    OptimizationDifficulty,
)
from .levels import Whitened, cross_level, whitened

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from .signals import LayerSignal, Signals

THIRDS = ("input third", "middle third", "output third")
_SENSITIVITY = Missing(
    "learning_rate_sensitivity",
    "runs with several learning rates",
    "one run does not say what another rate would do",
)
_FEW = 64  # columns up to which all eigenvalues are as quick as one
_IMPACT = Missing("optimization_impact", "runs with and without a change", "it was not estimated")


def hierarchy(signals: Signals, details: Mapping[str, LayerGradientDetails]) -> GradientHierarchy:
    """Group the layers, and say in numbers what the groups have in common."""
    layers = [each for each in signals.layers if each.name in details]
    if not layers:
        return GradientHierarchy(missing=(Missing("layer_groups", "layers", "there are none"),))
    common = whitened(layers)
    thirds = _thirds(layers)
    blocks = _blocks(layers)
    groups = [_group(name, names, "depth", details, common) for name, names in thirds.items()]
    groups += [_group(name, names, "block", details, common) for name, names in blocks.items()]
    levels = _levels(thirds, blocks, details)
    interactions = cross_level(list(thirds.values()), common)
    why = (Missing("cross_level_interactions", "", "no two levels move together beyond chance"),)
    return GradientHierarchy(
        layer_groups=tuple(groups),
        hierarchy_levels=levels,
        cross_level_interactions=interactions,
        missing=() if interactions else why,
    )


def _thirds(layers: Sequence[LayerSignal]) -> dict[str, list[str]]:
    """Part the layers by depth, as it was recorded or else by their order."""
    known = all(each.depth is not None for each in layers)
    depths = [each.depth or 0 if known else place for place, each in enumerate(layers)]
    ranks = np.unique(depths, return_inverse=True)[1]
    parts = ranks * len(THIRDS) // (int(ranks.max()) + 1)
    thirds = {
        word: [each.name for each, part in zip(layers, parts, strict=True) if part == third]
        for third, word in enumerate(THIRDS)
    }
    return {word: names for word, names in thirds.items() if names}


def block_of(name: str) -> str:
    """Name the block of a layer: its path up to the first number, or else its first word.

    >>> block_of("model.layers.12.mlp.up.weight"), block_of("encoder.fc.bias"), block_of("conv1")
    ('model.layers.12', 'encoder', 'conv1')
    """
    numbered = re.match(r"(.*?(?:^|\.)\d+)(?:\.|$)", name)
    return numbered.group(1) if numbered else name.partition(".")[0]


def _blocks(layers: Sequence[LayerSignal]) -> dict[str, list[str]]:
    blocks: dict[str, list[str]] = {}
    for each in layers:
        blocks.setdefault(block_of(each.name), []).append(each.name)
    return {f"block {word}": names for word, names in blocks.items() if len(names) > 1}


def _group(
    name: str,
    names: Sequence[str],
    by: str,
    details: Mapping[str, LayerGradientDetails],
    common: Whitened,
) -> LayerGroup:
    """Put one group into numbers; what its members do not share is null with a reason."""
    means = [m for each in names if (m := details[each].gradient_statistics.mean) is not None]
    healths = dict.fromkeys(HEALTHS, 0)
    for each in names:
        healths[details[each].health_metrics.overall_health] += 1
    columns = common.of(names)
    together, noise = _synchronisation(columns)
    coherence, ends = _coherence(columns)
    few = "two layers with the same records"
    why = f"{columns.shape[1]} of {len(names)} layers vary on shared records"
    reasons = [_SENSITIVITY]
    if together is None:
        reasons += [
            Missing("gradient_synchronization", few, why),
            Missing("synchronization_of_noise", few, why),
        ]
    difficulty = _difficulty({str(word): number for word, number in healths.items()})
    if difficulty is None:
        reasons.append(Missing("optimization_difficulty", "more records", "no layer is judged"))
    if not means:
        reasons.append(Missing("average_gradient_norm", "a finite norm", "no layer has one"))
    return LayerGroup(
        group_name=name,
        layers=tuple(names),
        group_characteristics=GroupCharacteristics(
            average_gradient_norm=_mean(means),
            gradient_synchronization=together,
            synchronization_of_noise=noise,
            optimization_difficulty=difficulty,
            health={str(word): number for word, number in healths.items() if number},
            missing=tuple(reasons),
        ),
        internal_coherence=coherence,
        coherence_interval=ends,
        by=by,
        missing=()
        if coherence is not None
        else (Missing("internal_coherence", few, why), Missing("coherence_interval", few, why)),
    )


def _mean(values: Sequence[float]) -> float | None:
    """Return the mean; divided before it is summed, so that it stays in range."""
    return sum(each / len(values) for each in values) if values else None


def _difficulty(healths: Mapping[str, int]) -> OptimizationDifficulty | None:
    judged = sum(healths.values()) - healths["Unknown"]
    if not judged:
        return None
    if healths["Critical"]:
        return "VeryDifficult" if 2 * healths["Critical"] >= judged else "Difficult"
    return "Moderate" if healths["Warning"] else "Easy"


def _synchronisation(columns: NDArray[np.float64]) -> tuple[float | None, float | None]:
    """Return the share of the first principal component, and what noise alone would reach.

    The edge of noise is (1 + sqrt(m/n))²/m of m columns of n records (Marchenko & Pastur 1967).
    """
    n, m = columns.shape
    if m < 2:
        return None, None
    gram = columns.T @ columns if m <= n else columns @ columns.T
    largest = _largest(gram) / n
    return min(largest / m, 1.0), min((1 + (m / n) ** 0.5) ** 2 / m, 1.0)


def _largest(gram: NDArray[np.float64]) -> float:
    """Return the largest eigenvalue, by Lanczos (1950) for a large matrix.

    All of 500 take a second and more where other programs want the processors too, one of them
    some milliseconds.
    """
    from scipy.sparse.linalg import ArpackNoConvergence, eigsh

    if len(gram) > _FEW:
        start = np.random.default_rng(0).normal(
            size=len(gram)
        )  # fixed: the same run, the same bits
        try:
            return float(eigsh(gram, k=1, which="LA", v0=start, return_eigenvectors=False)[0])
        except ArpackNoConvergence:
            pass
    return float(np.linalg.eigvalsh(gram)[-1])


def _coherence(columns: NDArray[np.float64]) -> tuple[float | None, Interval | None]:
    """Return the mean correlation of all pairs, with its interval.

    With s_t the sum of the standardised columns at t, the mean over pairs is
    (mean s² - m)/(m (m - 1)), so that its error is that of a mean over records.
    """
    n, m = columns.shape
    if m < 2:
        return None, None
    pairs = (columns.sum(axis=1) ** 2 - (columns**2).sum(axis=1)) / (m * (m - 1))
    mean, error = float(pairs.mean()), float(pairs.std(ddof=1)) / n**0.5
    low, high = max(mean - 1.96 * error, -1.0), min(mean + 1.96 * error, 1.0)
    return mean, Interval(low, high, method="normal, over pre-whitened records", n=n)


def _levels(
    thirds: Mapping[str, Sequence[str]],
    blocks: Mapping[str, Sequence[str]],
    details: Mapping[str, LayerGradientDetails],
) -> tuple[HierarchyLevel, ...]:
    """Return each third its share of the squared norm, and the blocks that begin in it."""
    energies = {
        word: sum(_square(details[each]) for each in names) for word, names in thirds.items()
    }
    total = sum(energies.values())
    home = {name: word for word, names in thirds.items() for name in names}
    why = Missing("level_importance", "a norm above zero", "no layer has one")
    return tuple(
        HierarchyLevel(
            level_id=place,
            level_name=word,
            layer_groups=(
                word,
                *(block for block, names in blocks.items() if home[names[0]] == word),
            ),
            level_importance=energies[word] / total if total > 0 else None,
            missing=(_IMPACT,) if total > 0 else (_IMPACT, why),
        )
        for place, word in enumerate(thirds)
    )


def _square(detail: LayerGradientDetails) -> float:
    """Return the square of a typical norm; a finite one that overflows squared counts as 10³⁰⁰."""
    return min(detail.gradient_statistics.median or 0.0, 1e150) ** 2
