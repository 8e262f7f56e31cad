import json

import numpy as np
import pytest
from scipy.linalg import orthogonal_procrustes
from scipy.stats import ortho_group

from difflens.core.policy import Policy
from difflens.diffs.analyses import analyse
from difflens.diffs.evidence.records import Evidence, Side
from difflens.diffs.story import diff

NAME = "embedding_analysis"
V, D = 600, 16
TABLE = np.random.default_rng(0).normal(size=(V, D))


def ask(left, right, evidence=None, **thresholds):
    found = diff({"model.embed_tokens.weight": left}, {"model.embed_tokens.weight": right})
    return analyse(NAME, found, evidence or Evidence(), Policy({NAME: thresholds}))


def tokens(names):
    return Side(tokens={name: row for row, name in enumerate(names)})


def test_a_rotation_moves_every_row_and_no_meaning():
    turn = ortho_group.rvs(D, random_state=0)

    envelope = ask(TABLE, TABLE @ turn)

    fields = envelope.fields
    assert abs(fields["row_drift"]["cosine_median"]) < 0.2
    assert fields["nearest_neighbor_consistency"] == 1
    assert fields["semantic_drift"] == 0
    assert fields["embedding_alignment"]["procrustes"] == pytest.approx(0, abs=1e-9)
    assert fields["embedding_alignment"]["cka"] == pytest.approx(1)
    assert [each.text for each in envelope.findings] == [
        "the rows turned together: tokens kept their neighbours, so no meaning moved"
    ]


def test_shuffled_rows_are_the_ones_listed():
    random = np.random.default_rng(1)
    chosen = random.choice(V, V // 10, replace=False)
    shuffled = TABLE.copy()
    shuffled[chosen] = TABLE[np.roll(chosen, 1)]

    fields = ask(TABLE, shuffled, listed=V).fields

    assert {row["row"] for row in fields["top_movers"]} == set(chosen.tolist())
    assert fields["row_drift"]["moved"] == len(chosen)


def test_unrelated_rows_keep_neighbours_by_chance_only():
    """Null value k / (V - 1): 0.0050 at V = 2000."""
    left, right = np.random.default_rng(2).normal(size=(2, 2000, 64))

    fields = ask(left, right).fields

    assert fields["null_consistency"] == pytest.approx(0.0050, abs=5e-5)
    assert fields["nearest_neighbor_consistency"] == pytest.approx(0.0050, abs=0.0015)
    assert fields["embedding_alignment"]["cka"] == pytest.approx(0, abs=0.01)
    assert fields["embedding_alignment"]["procrustes"] > 0.9


def test_the_residual_is_scipys():
    right = TABLE + np.random.default_rng(3).normal(size=TABLE.shape)
    left_centred, right_centred = TABLE - TABLE.mean(0), right - right.mean(0)
    turn, _ = orthogonal_procrustes(left_centred, right_centred)
    rest = np.linalg.norm(left_centred @ turn - right_centred) / np.linalg.norm(right_centred)

    assert ask(TABLE, right).fields["embedding_alignment"]["procrustes"] == pytest.approx(rest)


def test_the_interval_is_over_tokens_and_holds_the_estimate():
    right = TABLE + 0.5 * np.random.default_rng(3).normal(size=TABLE.shape)

    envelope = ask(TABLE, right)

    sure = envelope.uncertainty["nearest_neighbor_consistency"]
    assert sure.low < envelope.fields["nearest_neighbor_consistency"] < sure.high
    assert sure.n == V
    turned = envelope.uncertainty["semantic_drift"]
    assert turned.low == pytest.approx(1 - sure.high)
    assert envelope.method == "embedding_analysis/1 seed=0"


def test_rows_are_aligned_by_token_string_whatever_their_order():
    names = [f"token {row}" for row in range(V)]
    order = np.random.default_rng(4).permutation(V)
    evidence = Evidence(left=tokens(names), right=tokens([names[row] for row in order]))

    fields = ask(TABLE, TABLE[order], evidence).fields

    assert fields["row_drift"]["moved"] == 0
    assert fields["nearest_neighbor_consistency"] == 1
    assert fields["rows"]["by"] == "token strings"


def test_added_and_removed_tokens_are_listed_and_only_the_others_compared():
    names = [f"t{row}" for row in range(V)]
    grown = np.concatenate([TABLE[1:], np.ones((2, D))])
    evidence = Evidence(left=tokens(names), right=tokens([*names[1:], "new", "\xc3\xa9"]))

    fields = ask(TABLE, grown, evidence).fields

    assert fields["rows"] == {
        "left": V, "right": V + 1, "aligned": V - 1, "by": "token strings", "added": 2,
        "added_tokens": ["new", "é"], "removed": 1, "removed_tokens": ["t0"],
    }  # fmt: skip
    assert fields["row_drift"]["moved"] == 0


def test_a_grown_vocabulary_without_tokenizers_is_not_compared_by_guess():
    grown = np.concatenate([TABLE, np.ones((8, D))])

    envelope = ask(TABLE, grown)

    assert envelope.status == "partial"
    assert envelope.fields["nearest_neighbor_consistency"] is None
    assert "600 and 608 rows" in envelope.missing[0].why


def test_the_user_may_assert_that_the_first_rows_mean_the_same():
    grown = np.concatenate([TABLE, np.ones((8, D))])

    fields = ask(TABLE, grown, same_prefix=True).fields

    assert fields["rows"]["aligned"] == V
    assert fields["row_drift"]["moved"] == 0


def test_rows_of_another_width_have_neighbours_but_no_distance():
    wide = np.concatenate([TABLE, np.zeros((V, 4))], axis=1)

    envelope = ask(TABLE, wide)

    assert envelope.fields["embedding_dimension_change"] == 4
    assert envelope.fields["row_drift"] is None
    assert envelope.fields["nearest_neighbor_consistency"] == 1
    assert set(envelope.fields["embedding_alignment"]) == {"cka", "tokens", "of"}


def test_rows_as_long_as_the_initial_ones_are_counted_where_the_config_says_how_long():
    trained = TABLE * 0.2
    trained[:5] = np.random.default_rng(5).normal(0, 0.02, (5, D))
    trained[7] = 0
    evidence = Evidence(right=Side(config={"initializer_range": 0.02}))

    fields = ask(trained, trained, evidence).fields

    assert fields["unused_rows"]["right"] == {
        "zero": 1, "initial": 5, "of": V, "first": [0, 1, 2, 3, 4, 7],
    }  # fmt: skip
    assert fields["unused_rows"]["left"]["initial"] is None


def test_a_model_against_itself_is_exactly_the_same():
    envelope = ask(TABLE, TABLE)

    assert envelope.status == "ok"
    assert envelope.fields["row_drift"]["relative_l2_max"] == 0
    assert envelope.fields["semantic_drift"] == 0
    alignment = envelope.fields["embedding_alignment"]
    assert (alignment["procrustes"], alignment["cka"]) == (0.0, 1.0)
    assert envelope.uncertainty["embedding_alignment"] == "exact"
    assert envelope.fields["top_movers"] == []
    assert envelope.findings == ()


def test_rows_that_are_not_finite_are_left_out_and_counted():
    right = TABLE.copy()
    right[3, 3] = np.inf

    envelope = ask(TABLE, right)

    assert "1 sampled rows are zero or not finite, and left out" in envelope.assumptions
    assert envelope.fields["row_drift"]["not_finite"] == 1
    json.dumps(envelope.to_dict(), allow_nan=False)


def test_scaling_both_sides_by_a_power_of_two_moves_no_figure():
    right = TABLE + 0.1 * np.random.default_rng(6).normal(size=TABLE.shape)

    plain, scaled = ask(TABLE, right).fields, ask(TABLE * 8, right * 8).fields

    for name in ("nearest_neighbor_consistency", "row_drift", "top_movers"):
        assert scaled[name] == plain[name]
    assert scaled["embedding_alignment"] == pytest.approx(plain["embedding_alignment"])


def test_sides_may_be_swapped():
    right = TABLE + 0.5 * np.random.default_rng(6).normal(size=TABLE.shape)

    there, back = ask(TABLE, right).fields, ask(right, TABLE).fields

    assert there["nearest_neighbor_consistency"] == back["nearest_neighbor_consistency"]
    assert there["embedding_alignment"]["cka"] == pytest.approx(back["embedding_alignment"]["cka"])
    assert there["row_drift"]["cosine_median"] == back["row_drift"]["cosine_median"]


def test_positions_are_no_tokens():
    model = {"wpe.weight": TABLE, "fc.weight": TABLE}

    assert analyse(NAME, diff(model, model)).status == "not_applicable"


def test_too_few_tokens_have_no_neighbours():
    envelope = ask(TABLE[:6], TABLE[:6] * 2)

    assert envelope.fields["nearest_neighbor_consistency"] is None
    assert envelope.fields["row_drift"]["moved"] == 6


def test_an_alignment_of_some_of_the_tokens_says_that_it_is_a_sample():
    envelope = ask(TABLE, TABLE + np.float32(0.01), sample=40)

    alignment = envelope.fields["embedding_alignment"]
    assert (alignment["tokens"], alignment["of"]) == (40, len(TABLE))
    assert envelope.uncertainty["embedding_alignment"] == f"of a sample: 40 of {len(TABLE)} tokens"
