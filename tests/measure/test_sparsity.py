import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from lanes import examples
from measure.taken import BF16, noise, take
from scipy import stats

from difflens.measure.sparsity import Sparsity


def pruned(left, part, *, random=False):
    """Set a part of the weights to zero: the smallest, or any."""
    order = np.abs(left).ravel()
    if random:
        order = np.random.default_rng(5).random(order.size)
    right = left.copy()
    right.flat[np.argsort(order)[: int(part * order.size)]] = 0
    return right


def two_of_four(left):
    groups = left.reshape(-1, 4).copy()
    smallest = np.argsort(np.abs(groups), axis=1)[:, :2]
    np.put_along_axis(groups, smallest, 0, axis=1)
    return groups.reshape(left.shape)


def test_unstructured_zeros_comply_with_two_of_four_in_eleven_of_sixteen_groups():
    """G10: 0.6875 ± 0.01."""
    left = noise(512, 512)

    found = take(Sparsity, left, pruned(left, 0.5, random=True))

    assert found.right_two_of_four == pytest.approx(0.6875, abs=0.01)
    assert found.left_two_of_four == 0


def test_true_two_of_four_complies_everywhere():
    """G10: 1.0, and only then."""
    left = noise(64, 128)

    right = two_of_four(left)
    assert take(Sparsity, left, right).right_two_of_four == 1
    right[0, :4] = 1
    assert take(Sparsity, left, right).right_two_of_four == 1 - 1 / (64 * 32)


def test_a_short_last_group_may_hold_two_weights_of_any_kind():
    left = noise(20, 10)
    right = np.zeros_like(left)
    right[:, 8:] = 1

    assert take(Sparsity, left, right).right_two_of_four == 1
    assert take(Sparsity, left, right).left_two_of_four == pytest.approx(1 / 3)


def test_groups_of_a_convolution_run_along_its_inputs():
    left = noise(8, 4, 3, 3)
    right = left.copy()
    right[:, 2:] = 0

    assert take(Sparsity, left, right).right_two_of_four == 1
    right[:, 2:], right[:, :, 1:] = left[:, 2:], 0
    assert take(Sparsity, left, right).right_two_of_four == pytest.approx(2 / 3)


def test_four_of_eight_is_weaker_than_two_of_four():
    left = noise(64, 64)
    right = left.copy()
    right[:, ::8] = right[:, 1::8] = right[:, 2::8] = right[:, 3::8] = 0

    found = take(Sparsity, left, right)

    assert (found.right_four_of_eight, found.right_two_of_four) == (1, 0.5)


@pytest.mark.parametrize("dtype", [np.float32, BF16, np.float16])
def test_magnitude_pruning_zeroes_the_smallest_and_leaves_the_rest(dtype):
    """Methods 7.1: AUC 1, survivors bit-equal."""
    left = noise(128, 128).astype(dtype)

    found = take(Sparsity, left, pruned(left, 0.3))

    assert found.pruning_auc == pytest.approx(1, abs=2e-3 if dtype == BF16 else 1e-5)
    assert found.survivors_changed == 0
    assert found.newly_zeroed == pytest.approx(0.3, abs=1e-3)
    assert found.right_zero_fraction == pytest.approx(0.3, abs=1e-3)
    assert found.mask_jaccard == pytest.approx(0, abs=1e-3)


def test_random_pruning_has_no_order():
    left = noise(256, 256)

    assert take(Sparsity, left, pruned(left, 0.3, random=True)).pruning_auc == pytest.approx(
        0.5, abs=0.01
    )


@examples(30)
@given(st.lists(st.tuples(st.integers(1, 9), st.booleans()), min_size=2, max_size=40))
def test_the_auc_is_that_of_mann_and_whitney(weights):
    left = np.array([size for size, _ in weights], np.float32)
    zeroed = np.array([gone for _, gone in weights])
    if zeroed.all() or not zeroed.any():
        return

    found = take(Sparsity, left, np.where(zeroed, 0, left).astype(np.float32))

    wins = stats.mannwhitneyu(left[~zeroed], left[zeroed]).statistic
    assert found.pruning_auc == pytest.approx(wins / zeroed.sum() / (~zeroed).sum())


def test_masks_overlap_as_planted():
    left, right = noise(40, 40), noise(40, 40, seed=1)
    left[:20] = 0
    right[10:30] = 0

    found = take(Sparsity, left, right)

    assert found.mask_jaccard == pytest.approx(10 / 30)
    assert found.newly_zeroed == pytest.approx(10 / 20)
    assert found.survivors_changed == 1
    assert (found.left_zeros, found.right_zeros) == (800, 800)


def test_blocks_of_zeros_are_counted_where_they_are_whole():
    left, right = noise(70, 50), noise(70, 50, seed=1)
    right[32:64, :5] = 0
    right[:16, 16:32] = 0

    found = take(Sparsity, left, right)

    assert found.right_blocks_32x1 == pytest.approx(5 / 100)
    assert found.right_blocks_16x16 == pytest.approx(1 / 12)
    assert found.left_blocks_16x16 == 0


def test_steps_do_not_matter(monkeypatch):
    left, right = noise(200, 30), pruned(noise(200, 30), 0.9)
    whole = take(Sparsity, left, right)

    monkeypatch.setattr("difflens.measure.sparsity.STEP", 30 * 32)

    assert take(Sparsity, left, right) == whole


def test_a_vector_has_no_pattern():
    found = take(Sparsity, noise(100), np.zeros(100, np.float32))

    assert found.right_zero_fraction == 1
    assert found.right_two_of_four is None
    assert found.right_blocks_32x1 is None
    assert found.survivors_changed is None
