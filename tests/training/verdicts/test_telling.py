from difflens.testing.histories import falling, recorded
from difflens.training.diagnoses import diagnose


def test_what_could_not_be_judged_is_said_with_what_it_needs():
    told = diagnose(recorded(falling(), layers=()))

    assert any("lr-high" in each and "update_l2" in each for each in told.warnings)


def test_damage_and_gaps_of_the_recording_are_passed_on():
    history = recorded(falling())._replace(damage=("3 bytes are torn",), dropped=4)

    told = diagnose(history)

    assert told.warnings[:2] == ("3 bytes are torn", "4 frames are missing between those recorded")
