import math
import sys
from types import SimpleNamespace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from lanes import examples
from measure.taken import BF16, low_rank, noise, take

from difflens.diffs.story import diff
from difflens.measure import gram, matrices, spectrum
from difflens.measure.resources import one_thread_each
from difflens.measure.spectrum import DeltaSpectrum, SideSpectrum


def svd(matrix):
    return np.linalg.svd(np.asarray(matrix, np.float64), compute_uv=False)


def effective(values):
    shares = values[values > 0] / values.sum()
    return math.exp(-(shares * np.log(shares)).sum())


def merged(rank, update, seed=0, size=768):
    """Merge a low-rank update of that relative size into a matrix, both stored in BF16."""
    base = noise(size, size, seed=seed, scale=0.02).astype(BF16)
    wide = base.astype(np.float64)
    added = low_rank(size, size, rank, seed + 1) * update * np.linalg.norm(wide)
    return base, (wide + added).astype(BF16)


@pytest.mark.parametrize("update", [0.003, 0.01, 0.05])
@pytest.mark.parametrize("rank", [8, 16])
def test_a_merged_lora_in_bf16_has_its_rank_above_the_rounding_noise(rank, update):
    """G5: 6 of 6."""
    left, right = merged(rank, update)

    found = take(DeltaSpectrum, left, right)

    assert found.rank_above_noise == rank
    assert found.noise_source == "rounding"


def test_the_numerical_rank_of_a_merged_lora_is_full():
    """G5: which is why it is not what is counted."""
    left, right = merged(8, 0.01)

    with one_thread_each():
        rank = np.linalg.matrix_rank(right.astype(np.float64) - left.astype(np.float64))

    assert rank == 768


def test_the_rounding_edge_is_where_the_first_noise_value_is():
    """An upper bound: both sides were rounded to BF16, which is √2 above one rounding."""
    left, right = merged(8, 0.05)
    found = take(DeltaSpectrum, left, right)

    first = found.values[8]
    assert first < found.noise_edge < 1.75 * first


def test_a_gaussian_delta_is_not_of_low_rank():
    """G6: effective rank 617 ± 6, stable rank 192 ± 5."""
    left = noise(768, 768, scale=0.02)
    found = take(DeltaSpectrum, left, left + noise(768, 768, seed=1, scale=0.001))

    assert found.effective_rank == pytest.approx(617, abs=6)
    assert found.stable_rank == pytest.approx(192, abs=5)
    assert found.noise_source == "median"
    assert found.rank_above_noise == 0
    assert found.energy_at_rank[64] < 0.3


def test_stable_rank_of_a_wide_gaussian_matrix():
    """Methods 5.1: 256 x 1024 gives 113.8."""
    found = take(SideSpectrum, noise(256, 1024), noise(256, 1024))

    assert found.left_stable_rank == pytest.approx(113.8, rel=0.03)


@pytest.mark.parametrize("spikes", [0, 5, 20])
def test_spikes_in_noise_that_is_not_rounding_are_counted(spikes):
    """Methods 5.2: by the median singular value, 0, 5 and 20 of 0, 5 and 20."""
    size = 256
    delta = noise(size, size, seed=spikes).astype(np.float64)
    strength = 4 * math.sqrt(size)
    if spikes:
        delta += low_rank(size, size, spikes) * strength * math.sqrt(spikes) * 1.5

    found = take(DeltaSpectrum, np.zeros((size, size)), delta)

    assert found.noise_source == "median"
    assert found.rank_above_noise == spikes


@pytest.mark.parametrize("rank", [1, 4, 16])
def test_an_isotropic_delta_of_rank_r_has_every_rank_r(rank):
    random = np.random.default_rng(rank)
    left_basis, _ = np.linalg.qr(random.normal(size=(64, rank)))
    right_basis, _ = np.linalg.qr(random.normal(size=(48, rank)))

    found = take(DeltaSpectrum, np.zeros((64, 48)), left_basis @ right_basis.T)

    assert found.stable_rank == pytest.approx(rank)
    assert found.effective_rank == pytest.approx(rank, rel=1e-3)
    assert found.participation_ratio == pytest.approx(rank)
    assert found.rank_above_noise == rank
    assert found.extractable_at_r == pytest.approx(1)


@examples(15)
@given(st.integers(16, 70), st.integers(16, 70), st.integers(0, 99))
def test_singular_values_are_those_of_a_decomposition(rows, columns, seed):
    left, right = noise(rows, columns, seed=seed), noise(rows, columns, seed=seed + 1)

    change, sides = take(DeltaSpectrum, left, right), take(SideSpectrum, left, right)

    expected = svd(right.astype(np.float64) - left)
    assert change.values == pytest.approx(expected, rel=1e-9, abs=1e-6 * expected[0])
    assert change.norm == pytest.approx(np.linalg.norm(expected))
    assert change.effective_rank == pytest.approx(effective(expected), rel=1e-6)
    assert sides.left_values == pytest.approx(svd(left), rel=1e-9, abs=1e-6 * svd(left)[0])
    assert sides.right_values == pytest.approx(svd(right), rel=1e-9, abs=1e-6 * svd(right)[0])


@pytest.mark.parametrize("shape", [(700, 40), (40, 700)])
def test_chunks_and_parts_of_rows_change_nothing(shape, monkeypatch):
    left, right = (noise(*shape, seed=seed).astype(BF16) for seed in (0, 1))
    whole = take(DeltaSpectrum, left, right), take(SideSpectrum, left, right)

    monkeypatch.setattr(matrices, "_DEPTH", 48)
    monkeypatch.setattr(matrices, "_WIDE", 100)
    monkeypatch.setattr(matrices, "HELD", 100)
    parts = take(DeltaSpectrum, left, right), take(SideSpectrum, left, right)

    assert parts[0].values == pytest.approx(whole[0].values, rel=1e-4)
    assert parts[1].left_values == pytest.approx(whole[1].left_values, rel=1e-4)
    assert parts[1].alignment.cosines == pytest.approx(whole[1].alignment.cosines, rel=1e-4)


def test_threads_change_nothing_bit_for_bit():
    left = {f"{i}.weight": noise(200, 100, seed=i).astype(BF16) for i in range(6)}
    right = {name: value + noise(200, 100, seed=9).astype(BF16) for name, value in left.items()}

    one, many = (list(diff(left, right, threads=n).measured(DeltaSpectrum)) for n in (1, 3))

    assert [each for _, each in one] == [each for _, each in many]


def test_a_matrix_too_large_for_a_whole_spectrum_has_its_largest_values(monkeypatch):
    left = np.zeros((300, 200), np.float32)
    right = (low_rank(300, 200, 5) + noise(300, 200, scale=1e-5)).astype(np.float32)
    monkeypatch.setattr(spectrum, "FULL", 100)

    change, sides = take(DeltaSpectrum, left, right), take(SideSpectrum, left, right)

    expected = svd(right)
    assert len(change.values) == 64
    assert change.values[:5] == pytest.approx(expected[:5], rel=1e-6)
    assert change.values == pytest.approx(expected[:64], rel=0.05)
    assert change.effective_rank is None
    assert change.stable_rank == pytest.approx((expected**2).sum() / expected[0] ** 2, rel=1e-6)
    assert change.extractable_at(65) is None
    assert sides.right_values[:5] == pytest.approx(expected[:5], rel=1e-6)
    assert sides.right_effective_rank is None
    assert sides.alignment is None


def test_of_a_stack_of_experts_the_one_that_moved_most_is_told():
    left = noise(4, 32, 24)
    right = left.copy()
    right[2] += noise(32, 24, seed=1, scale=0.1)
    right[3, 0, 0] += 0.01

    found = take(DeltaSpectrum, left, right, "mlp.experts.up_proj")

    assert (found.stack, found.which, found.rows, found.columns) == (4, 2, 32, 24)
    assert found.norm == pytest.approx(np.linalg.norm(right[2] - left[2]), rel=1e-5)


def test_a_convolution_is_a_matrix_of_outputs_by_all_else():
    left, right = noise(20, 4, 3, 3), noise(20, 4, 3, 3, seed=1)

    found = take(DeltaSpectrum, left, right)

    assert (found.rows, found.columns) == (20, 36)
    assert found.values == pytest.approx(svd((right - left).reshape(20, 36)), rel=1e-5)


@pytest.mark.parametrize("shape", [(8, 100), (100,), (100, 15), (4, 4, 3, 3)])
def test_what_is_too_small_is_left_alone(shape):
    assert take(DeltaSpectrum, noise(*shape), noise(*shape, seed=1)) is None
    assert take(SideSpectrum, noise(*shape), noise(*shape, seed=1)) is None


def test_what_is_not_finite_did_not_move_and_is_counted():
    left, right = noise(32, 32), noise(32, 32, seed=1)
    clean = right.copy()
    right[3, 4], left[5, 6] = np.nan, np.inf
    clean[3, 4], clean[5, 6] = left[3, 4], left[5, 6] = 0, 0
    left[5, 6] = np.inf

    found = take(DeltaSpectrum, left, right)

    assert found.dropped == 2
    assert found.norm < np.linalg.norm(noise(32, 32, seed=1) - noise(32, 32))


def test_squares_that_overflow_leave_the_matrix_out():
    assert take(DeltaSpectrum, np.zeros((16, 16)), np.full((16, 16), 1e200)) is None
    assert take(SideSpectrum, np.zeros((16, 16)), np.full((16, 16), 1e200)) is None


def test_scaling_both_sides_by_a_power_of_two_scales_values_alone():
    left, right = noise(64, 32).astype(BF16), noise(64, 32, seed=1).astype(BF16)

    plain = take(DeltaSpectrum, left, right)
    scaled = take(DeltaSpectrum, left * BF16(8), right * BF16(8))

    assert scaled.values == tuple(8 * value for value in plain.values)
    assert scaled.effective_rank == plain.effective_rank
    assert scaled.rank_above_noise == plain.rank_above_noise


def test_both_sides_of_an_identical_pair_have_one_spectrum():
    value = noise(40, 30)

    found = take(SideSpectrum, value, value.copy())

    assert found.left_values == found.right_values
    assert found.alignment is None


def test_a_side_that_is_not_there_has_no_spectrum():
    ((_, found),) = diff({}, {"w.weight": noise(40, 30)}).measured(SideSpectrum)

    assert found.left_values == ()
    assert found.left_stable_rank is None
    assert found.right_values == pytest.approx(svd(noise(40, 30)), rel=1e-6)


def planted(strength, size=256):
    """Methods 5.3: a spectrum from 10 down to 1, and a random direction of that strength."""
    random = np.random.default_rng(0)
    left_basis, _ = np.linalg.qr(random.normal(size=(size, size)))
    right_basis, _ = np.linalg.qr(random.normal(size=(size, size)))
    base = left_basis * np.linspace(10, 1, size) @ right_basis.T
    one, other = (each / np.linalg.norm(each) for each in random.normal(size=(2, size)))
    return base, base + strength * np.outer(one, other)


@pytest.mark.long
@pytest.mark.parametrize(("strength", "intruders"), [(0, 0), (0.001, 0), (20, 1), (40, 1)])
def test_a_random_spike_is_one_intruder(strength, intruders):
    """G7, and methods 5.3: k = 10, cosine below 0.5; those of an intruder are about 0.22."""
    base, spiked = planted(strength)
    spiked[0, 0] += 1e-9  # identical matrices are not decomposed twice

    found = take(SideSpectrum, base, spiked).alignment

    assert sum(cosine < 0.5 for cosine in found.cosines) == intruders
    if intruders:
        assert min(found.cosines) == pytest.approx(0.22, abs=0.06)


@pytest.mark.long
def test_a_spike_that_hardly_leaves_the_bulk_is_at_the_limit():
    """Methods 5.3: at t = 5 the cosine is 0.48 in one draw; it is 0.37 to 0.56 in others."""
    found = take(SideSpectrum, *planted(5)).alignment

    assert min(found.cosines) == pytest.approx(0.47, abs=0.12)


def test_cosines_are_the_largest_over_all_left_vectors():
    for shape in ((90, 60), (60, 90)):
        left, right = noise(*shape), noise(*shape, seed=1)
        before, after = (np.linalg.svd(each.astype(np.float64))[0] for each in (left, right))
        basis = before[:, : min(shape)]

        found = take(SideSpectrum, left, right).alignment

        expected = np.abs(basis.T @ after[:, :10]).max(axis=0)
        assert found.cosines == pytest.approx(expected, rel=1e-5)
        angle = np.linalg.svd(basis[:, :10].T @ after[:, :10], compute_uv=False)[-1]
        assert found.subspace_cosine == pytest.approx(angle, rel=1e-4, abs=1e-7)


@pytest.mark.long
@pytest.mark.parametrize("share", [0.001, 0.01, 0.1])
def test_noise_brings_no_intruder(share):
    """Methods 5.3; the base's values fall from 10 to 1 by a constant factor."""
    left, _, right = np.linalg.svd(noise(256, 256).astype(np.float64))
    base = left * np.geomspace(10, 1, 256) @ right

    shaken = base + noise(256, 256, seed=1, scale=share * np.linalg.norm(base) / 256)

    assert min(take(SideSpectrum, base, shaken).alignment.cosines) >= 0.5


@pytest.mark.long
def test_rescaled_singular_values_bring_no_intruder():
    """G7: in-basis rescaling, 0."""
    base, _ = planted(0)
    left, values, right = np.linalg.svd(base)

    rescaled = left * (values * np.linspace(1, 2, 256)) @ right

    assert min(take(SideSpectrum, base, rescaled).alignment.cosines) > 0.99


def test_a_gpu_is_used_only_where_torch_is_already_at_work_on_one(monkeypatch):
    monkeypatch.delitem(sys.modules, "torch", raising=False)
    assert gram.accelerator() is None
    for there in (True, False):
        fake = SimpleNamespace(cuda=SimpleNamespace(is_available=lambda there=there: there))
        monkeypatch.setitem(sys.modules, "torch", fake)
        assert (gram.accelerator() is fake) is there
    monkeypatch.setitem(sys.modules, "torch", SimpleNamespace())
    assert gram.accelerator() is None


def test_memory_is_told_with_the_gram_matrices():
    small = gram.size_bytes(matrices.Matrix(100_000, 1024))
    assert small < gram.size_bytes(matrices.Matrix(100_000, 4096)) < 600 << 20


def test_numbers_beyond_the_squares_of_a_float32_have_the_same_ranks():
    left, right = noise(64, 32).astype(BF16), noise(64, 32, seed=1).astype(BF16)
    plain = take(DeltaSpectrum, left, right)

    for scale in (2.0**-90, 2.0**90):
        scaled = take(DeltaSpectrum, left * BF16(scale), right * BF16(scale))
        assert scaled.effective_rank == pytest.approx(plain.effective_rank, rel=1e-5)
        assert scaled.norm == pytest.approx(plain.norm * scale, rel=1e-5)
