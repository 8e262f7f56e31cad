import ml_dtypes
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from difflens.diffs.analyses import analyse
from difflens.diffs.evidence.records import Evidence, Trajectory
from difflens.diffs.methods.merging import bits, threshold, thresholds
from difflens.diffs.story import diff

SHAPE = (400, 500)


def vectors(seed, sigma, count=3, shape=SHAPE):
    random = np.random.default_rng(seed)
    return {f"layers.{i}.weight": random.normal(0, sigma, shape) for i in range(count)}


def mixed(*parts, dtype=np.float32):
    """Add up models, each with its weight."""
    names = parts[0][1]
    return {
        name: sum(weight * model[name].astype(np.float64) for weight, model in parts).astype(dtype)
        for name in names
    }


BASE = mixed((1, vectors(0, 0.02)))
FIRST, SECOND = vectors(1, 0.001), vectors(2, 0.001)
LEFT, RIGHT = mixed((1, BASE), (1, FIRST)), mixed((1, BASE), (1, SECOND))


def told(left, right, base=BASE, points=()):
    evidence = Evidence(
        base=(diff(base, left), diff(base, right)), trajectory=row(left, points, right)
    )
    return analyse("task_vectors", diff(left, right), evidence)


def row(left, points, right):
    """Return the distances between all the models."""
    if not points:
        return None
    models = [left, *points, right]
    distances = {
        name: tuple(
            tuple(float(((a[name].astype("f8") - b[name]) ** 2).sum()) for b in models)
            for a in models
        )
        for name in left
    }
    norms = {n: tuple(float((m[n].astype("f8") ** 2).sum()) for m in models) for n in left}
    names = tuple(f"model {i}" for i in range(len(models)))
    return Trajectory(names, (None,) * len(names), distances, norms, (0,) * len(names))


def test_g12_independent_task_vectors_clash_as_by_chance():
    found = told(LEFT, RIGHT).fields

    assert found["sign_conflict"] == pytest.approx(0.5, abs=0.003)
    assert found["overlap"] == pytest.approx(0.04, abs=0.002)
    assert abs(found["cosine"]) < 4 * found["null"]["cosine_sd"]
    assert abs(found["excess"]["overlap"]) < 4 * found["null"]["overlap_sd"]
    assert found["elements"] == 3 * 200_000


@pytest.mark.parametrize(("rho", "conflict"), [(0.5, 1 / 3), (0.9, 0.1436)])
def test_correlated_task_vectors_clash_by_the_arc_of_their_cosine(rho, conflict):
    other = mixed((1, BASE), (rho, FIRST), (np.sqrt(1 - rho * rho), SECOND))

    found = told(LEFT, other).fields

    assert found["cosine"] == pytest.approx(rho, abs=0.01)
    assert found["sign_conflict"] == pytest.approx(conflict, abs=0.005)


def test_a_task_vector_against_itself_has_no_clash():
    found = told(LEFT, LEFT).fields

    assert found["cosine"] == pytest.approx(1)
    assert found["sign_conflict"] == 0
    assert found["overlap"] == pytest.approx(0.2, abs=1e-4)
    assert found["elected_sign_agreement"] == 1


def test_opposite_task_vectors_clash_everywhere():
    found = told(LEFT, mixed((1, BASE), (-1, FIRST))).fields

    assert found["cosine"] == pytest.approx(-1, abs=1e-6)
    assert found["sign_conflict"] == pytest.approx(1, abs=1e-4)


def test_entries_that_rounding_left_in_place_do_not_vote_and_are_told():
    coarse = [mixed((1, model), dtype=ml_dtypes.bfloat16) for model in (LEFT, RIGHT, BASE)]
    small = mixed((1, coarse[2]), (0.02, FIRST), dtype=ml_dtypes.bfloat16)

    found = told(small, coarse[1], coarse[2]).fields

    assert found["zero_share"]["left"] > 0.5
    assert found["overlap"] <= 1 - found["zero_share"]["left"]


def test_merge_coefficients_come_out_to_a_millionth():
    merged = mixed((1, BASE), (0.3, FIRST), (0.7, SECOND))

    found = told(LEFT, merged, points=[RIGHT]).fields["blend"]

    assert found["weights"] == pytest.approx([0.3, 0.7], abs=1e-6)
    assert found["is_linear_merge"]


def test_a_merge_whose_weights_do_not_add_up_to_one_needs_the_base_among_the_models():
    merged = mixed((1, BASE), (0.4, FIRST), (0.4, SECOND))

    alone = told(LEFT, merged, points=[RIGHT]).fields["blend"]
    found = told(LEFT, merged, points=[RIGHT, BASE]).fields["blend"]

    assert not alone["is_linear_merge"]
    assert found["weights"] == pytest.approx([0.4, 0.4, 0.2], abs=1e-6)


@pytest.mark.parametrize("c", [0.5, 0.25, 1.5, -0.5])
def test_a_model_on_the_line_through_the_base_is_a_linear_merge(c):
    found = told(LEFT, mixed((1, BASE), (c, FIRST))).fields["merge"]

    assert found["coefficient"] == pytest.approx(c, abs=1e-6)
    assert found["kind"] == "linear"
    assert found["is_one_coefficient"]


def arc(left, base, t):
    """Interpolate tensor by tensor on the sphere."""
    other = {}
    for name in base:
        a, b = left[name].astype("f8"), base[name].astype("f8")
        w = np.arccos((a * b).sum() / np.linalg.norm(a) / np.linalg.norm(b))
        other[name] = ((np.sin(t * w) * a + np.sin((1 - t) * w) * b) / np.sin(w)).astype("f4")
    return other


@pytest.mark.parametrize("t", [0.3, 0.5])
def test_a_model_on_the_arc_is_a_spherical_merge(t):
    stranger = mixed((1, vectors(5, 0.02)))

    found = told(stranger, arc(stranger, BASE, t)).fields["merge"]

    assert found["kind"] == "slerp"
    assert found["slerp_t"] == pytest.approx(t, abs=1e-5)


def test_a_model_beside_the_line_is_no_merge():
    assert told(LEFT, RIGHT).fields["merge"]["kind"] == "none"


def test_a_coefficient_for_each_tensor_is_not_one_coefficient():
    parts = {name: FIRST[name] * (0.2 + 0.3 * i) for i, name in enumerate(FIRST)}

    found = told(LEFT, mixed((1, BASE), (1, parts))).fields["merge"]

    assert found["kind"] == "linear"
    assert not found["is_one_coefficient"]


def test_swapping_the_sides_keeps_what_has_no_side():
    other = mixed((1, BASE), (0.5, FIRST), (0.5, SECOND))

    there, back = told(LEFT, other).fields, told(other, LEFT).fields

    for field in ("cosine", "sign_conflict", "overlap", "elected_sign_agreement"):
        assert back[field] == pytest.approx(there[field])


def test_without_a_base_every_field_says_what_it_needs():
    envelope = analyse("task_vectors", diff(LEFT, RIGHT))

    assert envelope.status == "not_enough_information"
    assert {each.needs for each in envelope.missing if each.field != "blend"} == {"--base"}


def test_large_tensors_are_streamed_with_the_same_result(monkeypatch):
    plain = told(LEFT, RIGHT).fields
    monkeypatch.setattr("difflens.diffs.methods.merging.PIECE", 30_000)

    streamed = told(LEFT, RIGHT).fields

    assert streamed["overlap"] == plain["overlap"]
    assert streamed["cosine"] == pytest.approx(plain["cosine"], abs=1e-12)


VALUES = arrays(np.float64, st.integers(1, 60), elements=st.floats(-4, 4, width=32))


@given(values=VALUES, data=st.data())
def test_trimming_keeps_the_largest_and_never_a_zero(values, data):
    kept = data.draw(st.integers(1, len(values)))
    halves = [values[: len(values) // 2], values[len(values) // 2 :]]
    expected = max(1, int(np.sort(bits(values))[::-1][kept - 1]))

    assert threshold(values, kept) == expected
    assert thresholds(lambda: ((half,) for half in halves), kept) == [expected]
