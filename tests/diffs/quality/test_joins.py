from diffs.analyses.scores import examples
from hypothesis import given
from hypothesis import strategies as st

from difflens.diffs.evidence.records import Example
from difflens.diffs.quality.sides import join, metrics_of

IDS = st.lists(st.sampled_from("abcdefgh"), max_size=8, unique=True)


def made(ids, metric="accuracy"):
    return tuple(Example(name, float(ord(name)), metric) for name in ids)


@given(IDS, IDS)
def test_only_what_both_sides_have_is_joined(left, right):
    found = join(made(left), made(right), "accuracy")

    assert set(found.ids) == set(left) & set(right)
    assert found.left == found.right
    assert len(found.ids) + found.only_left == len(left)
    assert len(found.ids) + found.only_right == len(right)


@given(IDS, IDS, st.randoms())
def test_the_order_of_a_file_does_not_matter(left, right, random):
    shuffled = random.sample(left, len(left))

    assert join(made(shuffled), made(right), "accuracy") == join(
        made(left), made(right), "accuracy"
    )


@given(IDS, IDS)
def test_swapping_the_sides_swaps_the_scores(left, right):
    one = join(made(left), made(right), "accuracy")
    other = join(made(right), made(left), "accuracy")

    assert (one.ids, one.left, one.right) == (other.ids, other.right, other.left)


def test_several_answers_to_one_question_are_averaged_and_counted_once():
    left = (*examples([1.0]), *examples([0.0]))
    right = (*examples([1.0]), *examples([1.0]))

    found = join(left, right, "accuracy")

    assert (found.left, found.right, found.repeats) == ((0.5,), (1.0,), 1)
    assert "1 answered several times, averaged" in found.about


def test_examples_without_a_cluster_are_clusters_of_their_own():
    left = (Example("a", 1.0, "m", "page"), Example("b", 1.0, "m", "page"), Example("c", 0.0, "m"))
    found = join(left, left, "m")

    assert len(set(found.clusters)) == 2
    assert found.clusters[0] == found.clusters[1]
    assert "1 without a cluster" in found.about


def test_no_cluster_at_all_is_none():
    assert join(examples([1, 0]), examples([0, 1]), "accuracy").clusters is None


def test_metrics_are_those_that_both_sides_have():
    left = examples([1], "a") + examples([1], "b")

    assert metrics_of(left, examples([1], "b") + examples([1], "c")) == ["b"]
