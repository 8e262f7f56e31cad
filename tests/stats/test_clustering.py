"""Groupings are found and compared as scikit-learn does."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from lanes import examples
from scipy.spatial.distance import cdist
from sklearn import metrics
from sklearn.cluster import AgglomerativeClustering, KMeans

from difflens.stats import clustering
from difflens.stats.clustering import (
    adjusted_mutual_information,
    adjusted_rand,
    average_linkage,
    k_means,
    silhouette,
    silhouette_of_distances,
)

LABELS = st.lists(st.tuples(st.integers(0, 4), st.integers(0, 4)), min_size=2, max_size=40)


def blobs(k: int = 20, each: int = 20, columns: int = 16, seed: int = 0) -> np.ndarray:
    random = np.random.default_rng(seed)
    centres = np.repeat(10 * random.standard_normal((k, columns)), each, axis=0)
    return centres + random.standard_normal(centres.shape)


def loss(rows: np.ndarray, labels: np.ndarray) -> float:
    groups = [rows[labels == label] for label in set(labels.tolist())]
    return sum(float(((group - group.mean(axis=0)) ** 2).sum()) for group in groups)


@given(LABELS)
def test_agreement_is_that_of_scikit_learn(pairs):
    left, right = zip(*pairs, strict=True)

    assert adjusted_rand(left, right) == pytest.approx(metrics.adjusted_rand_score(left, right))
    assert adjusted_mutual_information(left, right) == pytest.approx(
        metrics.adjusted_mutual_info_score(left, right), abs=1e-9
    )


@given(LABELS)
def test_agreement_knows_no_sides_and_no_names(pairs):
    left, right = zip(*pairs, strict=True)
    renamed = [7 - label for label in right]

    for agreement in (adjusted_rand, adjusted_mutual_information):
        assert agreement(left, right) == pytest.approx(agreement(right, left), abs=1e-12)
        assert agreement(left, right) == pytest.approx(agreement(left, renamed), abs=1e-12)


@examples(30)
@given(st.integers(0, 999), st.integers(1, 6))
def test_the_silhouette_is_that_of_scikit_learn(seed, k):
    random = np.random.default_rng(seed)
    rows, labels = random.standard_normal((30, 3)), random.integers(0, k, 30)
    found = silhouette(rows, labels)

    if len(set(labels.tolist())) < 2:
        assert found is None
    else:
        assert found == pytest.approx(metrics.silhouette_score(rows, labels), abs=1e-9)
        assert found == pytest.approx(silhouette_of_distances(cdist(rows, rows), labels), abs=1e-9)


def test_rows_that_coincide_have_a_silhouette_of_zero():
    assert silhouette(np.ones((4, 2)), [0, 0, 1, 1]) == 0.0


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_blobs_are_found_as_they_were_made(dtype):
    rows = blobs().astype(dtype)
    labels = k_means(rows, 20)

    assert labels.tolist() == np.repeat(range(20), 20).tolist()


@pytest.mark.parametrize("seed", range(3))
def test_the_loss_is_no_worse_than_scikit_learns(seed):
    rows = np.random.default_rng(seed).standard_normal((300, 5))
    theirs = KMeans(8, n_init=10, random_state=seed).fit(rows).inertia_

    assert loss(rows, k_means(rows, 8, seed=seed)) <= 1.02 * theirs


def test_the_same_seed_gives_the_same_groups():
    rows = np.random.default_rng(0).standard_normal((200, 4))

    assert np.array_equal(k_means(rows, 9, seed=3), k_means(rows, 9, seed=3))


def test_an_iteration_cut_short_still_gives_a_grouping(monkeypatch):
    monkeypatch.setattr(clustering, "_ROUNDS", 1)
    labels = k_means(blobs(), 20)

    assert adjusted_rand(labels, np.repeat(range(20), 20)) > 0.8


def test_noise_has_no_stable_groups_and_blobs_have():
    noise = np.random.default_rng(0).standard_normal((2000, 64))
    structure = blobs()

    of_noise, of_structure = (
        adjusted_rand(k_means(rows, 20, 1, seed=1), k_means(rows, 20, restarts, seed=2))
        for rows, restarts in ((noise, 1), (structure, 10))
    )
    assert of_noise == pytest.approx(0.046, abs=0.03)
    assert of_structure > 0.9
    assert adjusted_rand(k_means(structure, 20, seed=1), k_means(structure, 20, seed=2)) == 1.0


def test_a_tenth_of_the_rows_moved_to_the_next_group_is_measured_as_it_is():
    rows = blobs(each=40)
    labels = np.repeat(range(20), 40)
    moved = np.random.default_rng(1).choice(800, 80, replace=False)
    true = labels.copy()
    true[moved] = (labels[moved] + 1) % 20
    centres = np.array([rows[labels == label].mean(axis=0) for label in range(20)])
    right = rows.copy()
    right[moved] += centres[true[moved]] - centres[labels[moved]]
    measured = adjusted_rand(k_means(rows, 20), k_means(right, 20))

    assert measured == adjusted_rand(labels, true)
    assert measured == pytest.approx(0.812, abs=0.02)


@pytest.mark.parametrize("k", [1, 2, 4, 6])
def test_rows_that_coincide_are_parted_without_complaint(k):
    rows = np.repeat(np.array([[0.0, 1.0], [5.0, 5.0]]), 3, axis=0)
    labels = k_means(rows, k)

    assert loss(rows, labels) == (0 if k > 1 else pytest.approx(61.5))
    assert len(labels) == 6


@examples(20)
@given(st.integers(0, 999), st.integers(1, 6))
def test_average_linkage_is_that_of_scikit_learn(seed, k):
    rows = np.random.default_rng(seed).standard_normal((12, 3))
    distances = cdist(rows, rows)
    theirs = AgglomerativeClustering(k, metric="precomputed", linkage="average").fit(distances)

    assert adjusted_rand(average_linkage(distances, k), theirs.labels_) == 1.0


def test_one_row_is_one_group():
    assert average_linkage(np.zeros((1, 1)), 1).tolist() == [0]
    assert adjusted_rand([1], [2]) == adjusted_mutual_information([1], [2]) == 1.0


@pytest.mark.parametrize(
    "call",
    [
        lambda: k_means(np.ones((3, 2)), 4),
        lambda: k_means(np.ones((3, 2)), 0),
        lambda: average_linkage(np.zeros((3, 3)), 4),
        lambda: adjusted_rand([1], [1, 2]),
        lambda: adjusted_rand([], []),
    ],
)
def test_what_cannot_be_parted_or_compared_is_refused(call):
    with pytest.raises(ValueError, match=r"groups of|labels against"):
        call()
