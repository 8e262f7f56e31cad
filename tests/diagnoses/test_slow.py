from diagnoses.histories import asked, only

from difflens.testing.histories import falling, faulty, level, recorded


def test_small_steps_and_a_loss_that_hardly_moves_are_slow():
    assert only("slow", faulty()["slow"]).fix.code == "scale_lr"


def test_the_same_small_steps_in_a_run_that_learns_are_not():
    assert asked("slow", recorded(falling(), update_l2=1e-3)) == []


def test_steps_of_a_usual_size_are_not_to_blame():
    assert asked("slow", recorded(level(), update_l2=0.02)) == []
