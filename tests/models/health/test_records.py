"""The records about weights: settings that mean something, numbers that agree."""

import pytest

from difflens.core.errors import InvalidConfig, SnapshotError
from difflens.models.health.records import WeightConfig, WeightStatistics


def test_the_defaults_are_settings_that_pass():
    assert WeightConfig.from_json(WeightConfig().to_json()) == WeightConfig()


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ({"exact_elements": -1}, "exact_elements is -1"),
        ({"exact_elements": 1.5}, "exact_elements is 1.5, not a whole number"),
        ({"outlier_alpha": 0}, "outlier_alpha is 0"),
        ({"outlier_alpha": 2}, "outlier_alpha is 2"),
        ({"skewness": None}, "skewness is not set"),
        ({"skewness": float("nan")}, "skewness is nan"),
        ({"kurtosis": "large"}, "kurtosis is 'large', not a number"),
        ({"scale_ratio": 0.5}, "scale_ratio is 0.5; it must be at least 1"),
        ({"zero_rows": (0.1, 0.2)}, "it needs 3 numbers"),
        ({"zero_rows": 0.1}, "it needs 3 numbers"),
        ({"zero_rows": (0.1, 0.2, 3)}, "zero_rows is 3"),
        ({"drift_bands": (0.1, 0.01, 0.5)}, "drift_bands is 0.1, above drift_bands"),
        ({"rms_threshold": 0}, "rms_threshold is 0; it must be above"),
        ({"explosion_bands": (2, -5, 10)}, "explosion_bands is -5"),
    ],
)
def test_settings_without_a_meaning_are_refused(settings, words):
    with pytest.raises(InvalidConfig) as error:
        WeightConfig(**settings)

    assert words in str(error.value)


def test_statistics_that_contradict_each_other_are_refused():
    with pytest.raises(SnapshotError, match="min is 2"):
        WeightStatistics(min=2.0, max=1.0)
    with pytest.raises(SnapshotError, match="std_dev"):
        WeightStatistics(std_dev=-1.0)
    with pytest.raises(SnapshotError, match="zero_fraction"):
        WeightStatistics(zero_fraction=1.5)


def test_nulls_have_their_reasons():
    assert WeightStatistics().unexplained() == []
    assert WeightStatistics(nan=1, negative_infinite=2).nonfinite == 3
