import json
import math

import ml_dtypes
import numpy as np
import pytest

from difflens.core.policy import Policy
from difflens.diffs.analyses import analyse, analysis
from difflens.diffs.methods.spectra import heavy_tail, outliers
from difflens.diffs.story import diff

BF16 = ml_dtypes.bfloat16
THRESHOLDS = analysis["spectral_analysis"].options["thresholds"]
LIMITS = {name: threshold.value for name, threshold in THRESHOLDS.items()}


def random(seed, *shape, scale=0.02):
    return np.random.default_rng(seed).normal(0, scale, shape)


def model(dtype=BF16, layers=2, size=96):
    tensors = {
        f"model.layers.{i}.{part}.weight": random(10 * i + j, size, size).astype(dtype)
        for i in range(layers)
        for j, part in enumerate(["self_attn.q_proj", "self_attn.v_proj", "mlp.up_proj"])
    }
    return tensors | {"model.norm.weight": np.ones(size, dtype)}


def adapted(base, rank=4, *parts, update=0.05):
    """Merge a LoRA of that rank into the matrices whose names contain a part."""
    tuned = dict(base)
    for seed, (name, value) in enumerate(base.items()):
        if any(part in name for part in parts):
            rows, columns = value.shape
            added = random(seed, rows, rank) @ random(seed + 99, rank, columns)
            wide = value.astype(np.float64)
            added *= update * np.linalg.norm(wide) / np.linalg.norm(added)
            tuned[name] = (wide + added).astype(value.dtype)
    return tuned


def spectral(left, right, policy=None, **options):
    return analyse("spectral-analysis", diff(left, right, **options), policy=policy or Policy())


BASE = model()


def test_a_merged_lora_is_recognised_by_equal_small_ranks():
    envelope = spectral(BASE, adapted(BASE, 4, "q_proj", "v_proj"))

    assert envelope.fields["merged_lora_evidence"] == "consistent"
    assert envelope.fields["merged_lora"]["rank_by_role"] == {
        "attention_q": [4], "attention_v": [4]
    }  # fmt: skip
    assert envelope.fields["rank_above_noise"] == 4
    (found,) = [each for each in envelope.findings if not each.subject]
    assert found.evidence == {"rank": 4, "matrices": 4}


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        (lambda base: adapted(base, 30, "q_proj"), "above 0.125 of their smaller side"),
        (lambda base: adapted(adapted(base, 4, "0.self_attn.q"), 6, "1.self_attn.q"), "differ"),
        (lambda base: adapted(base, 4, "q_proj") | {"model.norm.weight": np.zeros(96, BF16)},
         "1 tensors that are no matrices changed too"),
        (lambda base: base | {"model.layers.0.mlp.up_proj.weight":
                              (base["model.layers.0.mlp.up_proj.weight"].astype(np.float64)
                               + random(5, 96, 96, scale=0.002)).astype(BF16)},
         "more than rounding explains"),
    ],
    ids=["high rank", "ranks differ", "norms too", "full fine-tune"],
)  # fmt: skip
def test_what_speaks_against_a_merged_lora_is_said(change, reason):
    fields = spectral(BASE, change(BASE)).fields

    assert fields["merged_lora_evidence"] == "not_consistent"
    assert any(reason in said for said in fields["merged_lora"]["against"])


def test_the_noise_margin_is_the_users():
    policy = Policy({"spectral_analysis": {"noise_margin": 1000.0}})

    envelope = spectral(BASE, adapted(BASE, 4, "q_proj"), policy)

    assert envelope.fields["rank_above_noise"] == 0
    assert envelope.policy["noise_margin"] == {"value": 1000.0, "source": "user"}


def test_a_spike_is_a_finding_with_its_cosine():
    """G7, through the analysis."""
    size = 128
    left_basis, right_basis = (np.linalg.qr(random(seed, size, size))[0] for seed in (0, 1))
    base = left_basis * np.linspace(10, 1, size) @ right_basis.T
    one, other = (each / np.linalg.norm(each) for each in random(2, 2, size))
    spiked = base + 20 * np.outer(one, other)

    envelope = spectral({"w.weight": base}, {"w.weight": spiked})

    assert envelope.fields["intruders"] == {"count": 1, "matrices": 1, "looked_at": 1}
    (found,) = [each for each in envelope.findings if each.subject == "w.weight"]
    assert found.evidence["intruders"] == 1
    assert found.evidence["max_cosine"] < 0.5
    row = envelope.fields["matrices"][0]["intruders"]
    total = np.linalg.svd(spiked, compute_uv=False)
    assert row["share"] == pytest.approx(total[0] / total.sum())
    assert 0 < row["subspace_angle_degrees"] <= 90


def test_planted_outliers_of_a_noise_matrix_are_counted():
    """Methods 5.4, with the threshold of Tracy and Widom."""
    rows, columns = 200, 400
    for spikes in (0, 5, 20):
        left, right = (np.linalg.qr(random(seed, size, 20))[0][:, :spikes]
                       for seed, size in ((1, rows), (2, columns)))  # fmt: skip
        matrix = random(3, rows, columns, scale=1) + 100 * left @ right.T
        values = np.linalg.svd(matrix, compute_uv=False)

        found = outliers(values.tolist(), rows, columns, 0.05, 0.1)

        assert found["outliers"] == spikes
        assert found["sigma_bulk"] == pytest.approx(1, rel=0.1)
        assert found["verdict"] == "bulk_MP"


def test_a_spectrum_without_a_bulk_of_noise_has_no_outliers():
    values = np.geomspace(100, 0.01, 200).tolist()

    found = outliers(values, 200, 400, 0.05, 0.1)

    assert found["verdict"] == "bulk_not_MP"
    assert found["outliers"] is None
    assert found["bulk_fit_ks"] > 0.1


def test_the_exponent_of_a_pareto_tail_is_found():
    """G8: density exponent 2.5, n = 2000: 2.50 ± 0.15."""
    eigenvalues = 1 + np.random.default_rng(1).pareto(1.5, 2000)

    found = heavy_tail(np.sqrt(np.sort(eigenvalues)[::-1]).tolist(), LIMITS)

    assert found["alpha"] == pytest.approx(2.5, abs=0.15)
    assert found["low"] < found["alpha"] < found["high"]
    assert found["weightwatcher_label"] == "none"


def test_a_gaussian_matrix_has_no_tail_to_fit():
    """Methods 5.5: a high alpha means that no tail was fitted."""
    values = np.linalg.svd(random(0, 300, 300, scale=1), compute_uv=False)

    found = heavy_tail(values.tolist(), LIMITS)

    assert found["alpha"] is None
    assert found["why"]


def test_the_envelope_carries_what_charts_draw():
    envelope = spectral(BASE, adapted(BASE, 4, "proj"))

    spectra = envelope.fields["spectra"]
    assert len(spectra) == 6
    for each in spectra:
        assert each["noise_edge"] > 0
        assert 0 < len(each["singular_values"]) <= 64
        assert each["singular_values"] == sorted(each["singular_values"], reverse=True)


def test_distances_and_ranks_of_each_matrix_are_those_of_its_change():
    tuned = adapted(BASE, 96, "up_proj")
    name = "model.layers.1.mlp.up_proj.weight"
    left, right = (each[name].astype(np.float64) for each in (BASE, tuned))

    (row,) = [each for each in spectral(BASE, tuned).fields["matrices"] if each["name"] == name]

    values = np.linalg.svd(right - left, compute_uv=False)
    shares = values / values.sum()
    assert row["relative_l2"] == pytest.approx(np.linalg.norm(right - left) / np.linalg.norm(left))
    assert row["effective_rank"] == pytest.approx(
        math.exp(-(shares * np.log(shares)).sum()), rel=1e-3
    )
    assert row["stable_rank"] == pytest.approx((values**2).sum() / values[0] ** 2, rel=1e-4)
    assert row["energy_at_rank"]["16"] == pytest.approx(
        (values[:16] ** 2).sum() / (values**2).sum(), rel=1e-4
    )


def test_a_model_against_itself_has_nothing_to_tell():
    envelope = spectral(BASE, BASE)

    assert envelope.fields["matrices"] == []
    assert envelope.fields["relative_l2"] == 0
    assert envelope.findings == ()


def test_headers_alone_are_not_enough():
    envelope = spectral(BASE, BASE, shape_only=True)

    assert envelope.status == "not_enough_information"
    assert set(envelope.fields.values()) == {None}
    assert {each.field for each in envelope.missing} == set(envelope.fields)


def test_swapped_sides_have_the_same_magnitudes():
    tuned = adapted(BASE, 4, "q_proj")

    there, back = spectral(BASE, tuned).fields, spectral(tuned, BASE).fields

    for name in ("effective_rank", "stable_rank", "rank_above_noise", "matrices_changed"):
        assert back[name] == pytest.approx(there[name], rel=1e-6)
    assert back["cosine"] == pytest.approx(there["cosine"])


def test_a_frozen_matrix_more_moves_no_figure():
    tuned = adapted(BASE, 4, "q_proj")
    extra = {"stranger.weight": random(7, 64, 64).astype(BF16)}

    assert spectral(BASE | extra, tuned | extra).fields == spectral(BASE, tuned).fields


def test_the_envelope_is_plain_json_without_nan_or_infinity():
    tuned = adapted(BASE, 4, "q_proj")
    name = "model.layers.0.self_attn.q_proj.weight"
    tuned[name] = tuned[name].copy()
    tuned[name][0, :3] = np.inf, -np.inf, np.nan

    envelope = spectral(BASE, tuned)

    json.dumps(envelope.to_dict(), allow_nan=False)
    assert any("3 elements not finite" in line for line in envelope.assumptions)


def test_every_field_says_where_it_comes_from_or_what_it_needs():
    envelope = spectral(BASE, adapted(BASE, 4, "q_proj"))

    nulls = {name for name, value in envelope.fields.items() if value is None}
    assert nulls == {each.field for each in envelope.missing}
    assert set(envelope.fields) - nulls <= set(envelope.basis)
    assert set(envelope.policy) == set(THRESHOLDS)
