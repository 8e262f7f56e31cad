import numpy as np
import pytest
from scipy.stats import ortho_group

from difflens.core.policy import Policy
from difflens.diffs.analyses import analyse
from difflens.diffs.story import diff
from difflens.stats.clustering import adjusted_rand

NAME = "clustering_change"
K, SIZE, WIDTH = 16, 20, 24
QUICK = {"repeats": 5, "restarts": 5}


def planted(labels, seed=0):
    random = np.random.default_rng(seed)
    centres = np.random.default_rng(1).normal(size=(K, WIDTH))
    return centres[labels] + 0.05 * random.normal(size=(len(labels), WIDTH))


LABELS = np.repeat(np.arange(K), SIZE)


def ask(left, right, name="model.embed_tokens.weight", **thresholds):
    found = diff({name: left}, {name: right})
    return analyse(NAME, found, policy=Policy({NAME: QUICK | thresholds}))


def test_moving_a_tenth_of_the_rows_to_the_next_group_is_measured_as_it_is():
    moved = LABELS.copy()
    chosen = np.random.default_rng(2).choice(len(LABELS), len(LABELS) // 10, replace=False)
    moved[chosen] = (moved[chosen] + 1) % K

    envelope = ask(planted(LABELS), planted(moved), k=K)

    fields = envelope.fields
    assert fields["ari"] == pytest.approx(adjusted_rand(LABELS, moved), abs=1e-9)
    assert 0.78 < fields["ari"] < 0.85
    assert fields["ari_self_a"] == fields["ari_self_b"] == 1
    assert fields["verdict"] == "changed"
    assert fields["moved_rows"]["count"] == len(chosen)
    assert {row["row"] for row in fields["moved_rows"]["first"]} <= set(chosen.tolist())
    assert len(envelope.findings) == 1


def test_rows_without_structure_have_no_stable_groups():
    left, right = np.random.default_rng(3).normal(size=(2, 400, 64))

    envelope = ask(left, right, k=20)

    assert envelope.fields["verdict"] == "no stable clusters"
    assert envelope.fields["ari_self_a"] < 0.3
    assert envelope.findings == ()


def test_a_rotation_moves_no_row():
    left = planted(LABELS)
    turned = left @ ortho_group.rvs(WIDTH, random_state=0)

    fields = ask(left, turned, k=K).fields

    assert fields["ari"] == 1
    assert fields["verdict"] == "within noise"
    assert fields["moved_rows"]["count"] == 0


def test_the_number_of_groups_is_the_one_that_fits_best():
    assert ask(planted(LABELS), planted(LABELS, 5)).fields["cluster_count"] == K


def test_a_model_against_itself_has_not_changed():
    random = np.random.default_rng(6).normal(size=(200, 8))

    envelope = ask(random, random)

    assert envelope.fields["ari"] == 1
    assert envelope.fields["moved_rows"]["count"] == 0
    assert envelope.findings == ()


def test_wide_rows_are_grouped_by_their_leading_coordinates_and_said_so():
    spread = ortho_group.rvs(128, random_state=1)[:WIDTH]

    envelope = ask(planted(LABELS) @ spread, planted(LABELS, 8) @ spread, k=K)

    assert envelope.fields["ari"] == 1
    assert any("64 leading principal coordinates" in line for line in envelope.assumptions)


def test_a_classifier_is_grouped_where_there_is_no_embedding():
    envelope = ask(planted(LABELS), planted(LABELS, 9), name="classifier.weight", k=K)

    assert envelope.fields["ari"] == 1


def test_scaling_both_sides_changes_nothing():
    left, right = planted(LABELS), planted(LABELS, 10)

    assert ask(left * 4, right * 4, k=K).fields == ask(left, right, k=K).fields


def test_few_rows_have_no_groups():
    envelope = ask(planted(LABELS)[:20], planted(LABELS)[:20])

    assert envelope.status == "not_enough_information"
    assert "20 usable rows are too few" in envelope.missing[0].why


def test_other_numbers_of_rows_need_tokenizers():
    envelope = ask(planted(LABELS), planted(LABELS)[:-1])

    assert envelope.status == "not_enough_information"
    assert envelope.missing[0].needs == "tokenizer files beside both models"


def test_a_model_with_neither_is_not_its_matter():
    model = {"mlp.weight": np.ones((40, 4))}

    assert analyse(NAME, diff(model, model)).status == "not_applicable"


def test_headers_alone_are_not_enough():
    model = {"classifier.weight": np.ones((40, 4))}

    assert analyse(NAME, diff(model, model, shape_only=True)).status == "not_enough_information"
