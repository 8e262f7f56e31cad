import pytest
from hypothesis import given
from hypothesis import strategies as st

from difflens.render.document.numbers import before_after, count, percent, scientific, size


@given(st.floats(0, 1, exclude_min=True, exclude_max=True))
def test_a_share_between_none_and_all_never_reads_as_either(fraction: float) -> None:
    assert percent(fraction) not in {"0%", "100%", "100.00%", "0.0%"}


@pytest.mark.parametrize(
    ("fraction", "expected"),
    [(0.5, "50%"), (0.0123, "1.2%"), (0.996, "99.60%"), (0.00042, "0.04%"), (None, "unknown")],
)
def test_shares_keep_two_digits_or_so(fraction: float | None, expected: str) -> None:
    assert expected == percent(fraction)


@given(st.floats(-1e3, 1e3), st.floats(-1e3, 1e3))
def test_a_move_prints_alike_only_below_four_digits(left: float, right: float) -> None:
    before, after = before_after(left, right).split("->")

    if before == after:
        assert left == pytest.approx(right, rel=1e-3, abs=1e-9) or f"{left:.4g}" == f"{right:.4g}"


def test_equal_statistics_keep_four_decimals() -> None:
    assert before_after(0.02, 0.02) == "0.0200->0.0200"
    assert before_after(0.0, -0.0) == "0.0000->0.0000"


@pytest.mark.parametrize("value", [float("nan"), float("inf"), None])
def test_what_is_not_finite_is_not_known(value: float | None) -> None:
    assert scientific(value) == "unknown"
    assert percent(value) == "unknown"
    assert before_after(value, 1.0) == "unknown->1.0000"


def test_units_never_show_a_thousand_of_the_smaller_one() -> None:
    assert [count(n) for n in (0, 999, 1000, 99_960, 999_499, 999_500)] == [
        "0", "999", "1.0k", "100k", "999k", "1.0M",
    ]  # fmt: skip
    assert size(999_999_999) == "1.0 GB"
