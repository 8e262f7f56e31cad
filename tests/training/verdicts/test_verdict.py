from hypothesis import given
from hypothesis import strategies as some

from difflens.training.records.runs import Fix, RunFinding
from difflens.training.verdicts.verdict import EXPLAINS, causes


def found(name, since=0, severity="critical", **more):
    return RunFinding(
        name, severity, name, more.pop("evidence", {"n": 1.0}), since_step=since, **more
    )


def names(findings):
    return [each.name for each in causes(findings)]


def test_a_high_learning_rate_explains_dead_units_and_a_swinging_loss():
    (told,) = causes([found("dead", 30), found("oscillating", 0), found("lr-high", 3)])

    assert told.name == "lr-high"
    assert set(told.also) == {"dead", "oscillating"}


def test_a_cause_explains_nothing_that_was_there_before_it():
    assert set(names([found("dead", 0), found("lr-high", 100)])) == {"dead", "lr-high"}


def test_nan_explains_an_explosion_after_it_and_is_explained_by_one_before():
    after = causes([found("exploding", 90), found("nan", 60)])
    before = causes([found("exploding", 0), found("nan", 60)])

    assert [each.name for each in after] == ["nan"]
    assert [(each.name, each.also) for each in before] == [("exploding", ("nan",))]


def test_one_cause_is_told_once():
    twice = [found("data", fix=Fix("shuffle")), found("data", fix=Fix("shuffle"))]

    assert names(twice) == ["data"]


def test_what_is_only_info_comes_last_and_explains_nothing():
    told = causes([found("wiring", severity="info"), found("dead")])

    assert [each.name for each in told] == ["dead", "wiring"]


def test_the_order_in_which_diagnoses_spoke_does_not_matter():
    findings = [found(name, since) for since, name in enumerate(EXPLAINS)]

    assert causes(findings) == causes(findings[::-1])


def test_everything_at_once_still_has_a_cause():
    assert causes([found(name) for name in EXPLAINS])


def test_every_name_of_the_table_is_a_diagnosis():
    from difflens.training.diagnoses import diagnosis

    assert set(EXPLAINS) == {entry.name for entry in diagnosis.ours()}
    assert all(effects <= set(EXPLAINS) for effects in EXPLAINS.values())


EACH = some.builds(found, some.sampled_from(sorted(EXPLAINS)), some.integers(0, 300),
                   some.sampled_from(["warning", "critical"]))  # fmt: skip


@given(some.lists(EACH, min_size=1, max_size=8))
def test_whatever_explains_what_every_finding_is_told_or_named(findings):
    told = causes(findings)

    assert told
    named = {each.name for each in told} | {name for each in told for name in each.also}
    assert named == {each.name for each in findings}


def test_a_circle_of_explanations_is_told_by_its_first():
    """Each may explain the next: lr-high the dead units, these the swings, those the leap."""
    circle = [found("spike", 100, fix=Fix("rewind_and_skip")), found("dead", 104),
              found("exploding", 106), found("nan", 109), found("lr-high", 112)]  # fmt: skip

    assert len(causes(circle)) >= 1


def test_a_single_large_step_explains_what_looks_like_a_high_learning_rate():
    slip = found("spike", 100, "warning", fix=Fix("rewind_and_skip"))

    assert names([slip, found("lr-high", 100)]) == ["spike"]
    assert names([found("spike", 100), found("lr-high", 100)]) == ["lr-high"]


def test_units_that_die_explain_the_leap_they_make():
    (told,) = causes([found("spike", 100, "warning"), found("dead", 100)])

    assert (told.name, told.also) == ("dead", ("spike",))


def test_a_bad_step_within_the_points_of_a_trend_explains_it():
    rewind = Fix("rewind_and_skip", {"step": 150})
    (told,) = causes([found("diverging", 140), found("spike", 150, fix=rewind)])

    assert (told.name, told.also) == ("spike", ("diverging",))


def test_a_trend_whose_cause_is_known_explains_the_end_it_comes_to():
    grows = found("diverging", 11, fix=Fix("scale_penalty", {"factor": -0.01}))
    (told,) = causes([grows, found("exploding", 30), found("dead", 44), found("lr-high", 40)])

    assert (told.name, set(told.also)) == ("diverging", {"exploding", "dead", "lr-high"})


def test_a_trend_that_only_foretells_is_part_of_what_it_comes_to():
    (told,) = causes([found("diverging", 11), found("exploding", 30)])

    assert told.name == "exploding"


def test_gradients_that_pile_up_explain_weights_that_grow_along_themselves():
    grows = found("diverging", 40, fix=Fix("scale_penalty", {"factor": -0.01}))

    assert names([grows, found("wiring", 8)]) == ["wiring"]


def test_a_rate_that_climbs_explains_batches_that_seem_unlike_those_before():
    climbs = found("diverging", 144, fix=Fix("fix_schedule", {"hold": 0.1}))

    assert names([climbs, found("data", 176)]) == ["diverging"]
    assert names([climbs, found("data", 140)]) == ["data"]
    assert set(names([found("diverging", 144), found("data", 176)])) == {"diverging", "data"}


def test_a_rate_below_zero_explains_the_end_that_it_brings():
    rate = Fix("fix_schedule", {"hold": 0.1})
    below, trend = (
        RunFinding("diverging", "critical", "", {"lr": lr}, since_step=80, fix=rate)
        for lr in (-0.1, 0.1)
    )
    end = [found("lr-high", 101), found("nan", 119)]

    assert names([below, *end]) == ["diverging"]
    assert "lr-high" in names([trend, *end])


def test_a_step_that_threw_the_weights_explains_labels_that_seem_wrong_since():
    skipped = found("spike", 260, fix=Fix("rewind_and_skip", {"step": 260}))

    assert names([skipped, found("data", 270)]) == ["spike"]
    assert names([skipped, found("data", 0)]) == ["data"]


def test_a_step_that_struck_a_sound_run_explains_what_is_read_off_the_whole_of_it():
    """Rate and labels are doubted from the first step on, though the run had learned."""
    skip = Fix("rewind_and_skip", {"step": 200})
    sound = found("spike", 200, fix=skip)
    sound.evidence["sound_before"] = True
    labels = found("data", 0)
    labels.evidence["loss_fall"] = 0.01

    back = found("diverging", 150)
    back.evidence["held_back_rise"] = 4.0

    assert names([found("lr-high", 3), labels, sound]) == ["spike"]
    assert names([back, sound]) == ["spike"]
    assert names([found("lr-high", 3), found("spike", 200, fix=skip)]) == ["lr-high"]


def test_what_changed_at_a_step_of_a_sound_run_is_not_explained_by_what_is_read_off_the_whole():
    data = found("data", 90, evidence={"sound_before": True})

    for name in ("lr-high", "plateau", "dead"):
        (told,) = causes([found(name, 0), data])
        assert (told.name, told.also) == ("data", (name,))
