import numpy as np
import pytest
from diffs.methods.attention.heads import HEADS, SIZE, ask, llama, parts

from difflens.core.policy import Policy
from difflens.diffs.evidence.records import Activations, Behaviour, Evidence

NAME = "head_importance"


def ran(left, right, **more):
    return Evidence(
        activations=Activations(
            Behaviour(head_scores=left, **more), Behaviour(head_scores=right, **more), len(left)
        )
    )


def test_from_weights_alone_it_is_said_to_be_a_proxy():
    envelope = ask(NAME, llama(parts()), llama(parts(1)))

    assert envelope.fields["proxy"] is True
    assert envelope.fields["method"].startswith("proxy: ")
    assert envelope.fields["importance"] is None
    assert "importance" not in envelope.fields["head_rankings"]["left"][0]
    assert {each.needs for each in envelope.missing} == {
        "--sample FILE with `labels`, and --model-code module:callable"
    }


def test_a_head_whose_output_columns_are_zero_has_no_share():
    layers = parts()
    layers[0]["o"][:, :SIZE] = 0

    rows = ask(NAME, llama(parts()), llama(layers)).fields["head_rankings"]["right"]

    assert rows[-1] == {
        "layer": 0, "head": 0, "ov_norm_share": 0.0,
        "qk_norm_share": rows[-1]["qk_norm_share"],
    }  # fmt: skip


def test_scaling_values_up_and_outputs_down_moves_no_share():
    layers = parts()
    layers[0]["v"][:SIZE] *= 8
    layers[0]["o"][:, :SIZE] /= 8

    fields = ask(NAME, llama(parts()), llama(layers)).fields

    assert fields["head_rankings"]["left"] == fields["head_rankings"]["right"]
    assert fields["rank_correlation_ab"]["ov_norm_share"] == pytest.approx(1)


def test_shares_are_relative_to_their_layer():
    rows = ask(NAME, llama(parts()), llama(parts(1))).fields["head_rankings"]["left"]

    for layer in (0, 1):
        squares = [row["ov_norm_share"] ** 2 for row in rows if row["layer"] == layer]
        assert len(squares) == HEADS
        assert sum(squares) == pytest.approx(1)


def test_with_a_run_it_is_michels_score_over_the_norm_of_its_layer():
    scores = np.random.default_rng(0).uniform(size=(20, 2, HEADS))

    envelope = ask(NAME, {}, {}, ran(scores, scores * 3))

    assert envelope.fields["proxy"] is False
    found = {(row["layer"], row["head"]): row for row in envelope.fields["importance"]["left"]}
    mean = scores.mean(axis=0)
    for (layer, head), row in found.items():
        expected = mean[layer, head] / np.linalg.norm(mean[layer])
        assert row["importance"] == pytest.approx(expected)
        assert row["low"] < row["importance"] < row["high"]
    assert envelope.fields["rank_correlation_ab"]["importance"] == pytest.approx(1)


def test_only_heads_that_were_taken_out_within_a_margin_are_prunable():
    scores = np.random.default_rng(0).uniform(size=(4, 1, 2))
    rises = {(0, 0): (0.001, 0.002, 0.0, 0.001), (0, 1): (0.5, 0.1, 0.0, 0.3)}
    evidence = ran(scores, scores, ablations=rises)

    without = ask(NAME, {}, {}, evidence)
    within = ask(NAME, {}, {}, evidence, Policy({NAME: {"prune_margin": 0.01}}))

    assert without.fields["prunable"] is None
    needs = {each.field: each.needs for each in without.missing}
    assert "prune_margin" in needs["prunable"]
    (head,) = within.fields["prunable"]["right"]
    assert (head["layer"], head["head"]) == (0, 0)
    assert head["high"] < 0.01


def test_a_run_without_scores_falls_back_to_proxies_and_says_why():
    reasons = {"head_scores": "the sample has no `labels`"}
    evidence = Evidence(activations=Activations(Behaviour(reasons=reasons), Behaviour(), 1))

    envelope = ask(NAME, llama(parts()), llama(parts(1)), evidence,
                   Policy({NAME: {"heads": HEADS}}))  # fmt: skip

    assert envelope.fields["proxy"] is True
    assert {each.why for each in envelope.missing} == {"the sample has no `labels`"}


@pytest.mark.parametrize(
    ("model", "status"), [({}, "not_applicable"), (llama(parts()), "not_enough_information")]
)
def test_without_attention_or_a_number_of_heads_nothing_is_ranked(model, status):
    envelope = ask(NAME, model, model, Evidence())

    assert envelope.status == status
    assert set(envelope.fields.values()) == {None}
