import numpy as np
import pytest

from difflens.diffs.analyses import analyse
from difflens.diffs.evidence.records import Activations, Behaviour, Evidence, Patterns, Side
from difflens.diffs.story import diff

NAME = "attention_pattern_diff"
SHAPE = (12, 2, 3)


def patterns(js, **more):
    random = np.random.default_rng(0)
    drawn = {
        name: random.uniform(size=SHAPE)
        for name in ("left_sink", "right_sink", "left_entropy", "right_entropy")
    }
    return Patterns(js=js, **drawn, **more)


def ask(found, **sides):
    run = Activations(Behaviour(), Behaviour(), SHAPE[0], patterns=found)
    return analyse(NAME, diff({}, {}), Evidence(activations=run, **sides))


def test_similarity_is_one_less_the_mean_divergence_with_an_interval_over_sequences():
    js = np.random.default_rng(1).uniform(size=SHAPE)

    envelope = ask(patterns(js))

    assert envelope.fields["pattern_similarity"] == pytest.approx(1 - js.mean())
    np.testing.assert_allclose(envelope.fields["js_per_head"], js.mean(axis=0))
    sure = envelope.uncertainty["pattern_similarity"]
    assert sure.low < envelope.fields["pattern_similarity"] < sure.high
    assert sure.n == SHAPE[0]
    assert "over sequences" in sure.method


def test_attention_that_does_not_differ_is_exactly_alike_and_no_finding():
    envelope = ask(patterns(np.zeros(SHAPE)))

    assert envelope.fields["pattern_similarity"] == 1
    assert envelope.findings == ()


def test_sinks_and_entropies_are_told_by_side_with_their_difference():
    found = patterns(np.zeros(SHAPE))

    fields = ask(found).fields

    for name, left, right in (
        ("sink_mass", found.left_sink, found.right_sink),
        ("entropy", found.left_entropy, found.right_entropy),
    ):
        assert fields[name]["left"] == pytest.approx(left.mean())
        assert fields[name]["difference"] == pytest.approx((right - left).mean())


def test_both_baselines_are_printed_and_a_missing_one_is_excused():
    whole = ask(patterns(np.zeros(SHAPE), floor=np.full(SHAPE, 0.01), ceiling=np.full(SHAPE, 0.4)))
    none = ask(patterns(np.zeros(SHAPE)))

    assert whole.fields["baselines"] == pytest.approx({"floor": 0.01, "ceiling": 0.4})
    assert none.fields["baselines"] is None
    assert any(line.startswith("no floor") for line in none.assumptions)


def test_heads_that_differ_most_are_findings():
    js = np.zeros(SHAPE)
    js[:, 1, 2] = 0.5

    (finding,) = ask(patterns(js)).findings

    assert finding.text == "head 2 of layer 1 attends differently: JS 0.500 of 1"
    assert finding.evidence == {"js": 0.5, "heads_compared": 6}


def test_without_a_run_it_says_what_to_hand_in():
    envelope = analyse(NAME, diff({}, {}))

    assert envelope.status == "not_enough_information"
    assert {each.needs for each in envelope.missing} == {
        "--sample FILE and --model-code module:callable"
    }


def test_a_model_that_shows_no_attention_says_why():
    run = Activations(Behaviour(reasons={"attentions": "it returned none"}), Behaviour(), 1)

    envelope = analyse(NAME, diff({}, {}), Evidence(activations=run))

    assert {each.why for each in envelope.missing} == {"left: it returned none"}


def test_models_with_different_tokenizers_do_not_read_the_same_text():
    sides = {"left": Side(tokens={"a": 0}), "right": Side(tokens={"b": 0})}

    assert ask(patterns(np.zeros(SHAPE)), **sides).status == "not_applicable"
