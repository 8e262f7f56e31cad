"""`WeightAnalyzer`: the door to all that is asked of weights and gradients."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from ..weight_results import (
    GradientExplosionAnalysis,
    WeightConfig,
    WeightDistributionAnalysis,
    WeightDriftAnalysis,
)
from .handed import opened
from .layers import Progress, analyse
from .moments import l2_norm


class WeightAnalyzer:
    """Looks at weights and gradients: arrays by name, a list of arrays, or a model file.

    Files are read piece by piece. Every threshold stands in `config`.

    >>> found = WeightAnalyzer().analyze_weight_distribution({"w": [[1.0, 2.0], [3.0, 4.0]]})
    >>> found.overall_statistics.mean, found.distribution_health.status.value
    (2.5, 'Excellent')
    """

    def __init__(self, config: WeightConfig | Mapping[str, Any] | None = None) -> None:
        """Take thresholds; what is not set keeps its default."""
        if isinstance(config, WeightConfig):
            self.config = config
        else:
            self.config = WeightConfig(**_known(config or {}))

    def detect_gradient_explosion(
        self,
        gradients: Any,
        threshold: float,
        *,
        weights: Any = None,
        history: Sequence[float] = (),
    ) -> GradientExplosionAnalysis:
        """Say which layers' gradients have a norm above the threshold or are not finite.

        `weights` (the same names) allow the ratio of gradient to weight; `history`, the global
        norms of past steps, a value to clip at.
        """
        from .explosion import explosion

        return explosion(gradients, threshold, self.config, weights=weights, history=history)

    def analyze_weight_distribution(
        self,
        weights: Any,
        *,
        activations: Mapping[str, Any] | None = None,
        threads: int | None = None,
        progress: Progress | None = None,
    ) -> WeightDistributionAnalysis:
        """Describe each tensor and all of them, and say what is wrong with which.

        `activations` by layer allow units without weights to be called dead.
        """
        with opened(weights) as tensors:
            return analyse(
                tensors, self.config, activations or {}, threads=threads, progress=progress
            )

    def analyze_weight_drift(
        self, left: Any, right: Any, *, threads: int | None = None
    ) -> WeightDriftAnalysis:
        """Say how far the weights moved from left to right, tensor by tensor of one name."""
        from .drift import drift

        with opened(left) as before, opened(right) as after:
            return drift(before, after, self.config, threads=threads)

    def compute_l2_norm(self, array: Any) -> float:
        """Give √Σx² in float64, without overflow; NaN and infinities stay what they are.

        >>> WeightAnalyzer().compute_l2_norm([3.0, 4.0])
        5.0
        """
        if hasattr(array, "detach"):
            array = array.detach().cpu().double().numpy()
        return l2_norm(array)


def _known(settings: Mapping[str, Any]) -> dict[str, Any]:
    """Refuse a setting that does not exist: a misspelt threshold would be ignored."""
    from ..errors import UnknownName

    for name in settings:
        if name not in WeightConfig.__struct_fields__:
            raise UnknownName("setting", str(name), WeightConfig.__struct_fields__)
    return dict(settings)
