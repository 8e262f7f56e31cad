import pytest

from difflens.core.errors import DifflensError, UnknownName
from difflens.core.limits import DEFAULTS, check, parse


def test_a_limit_is_read_as_written_on_the_command_line():
    assert parse(["rank=80", "json_depth=3"]) == {"rank": 80, "json_depth": 3}


@pytest.mark.parametrize("text", ["rank", "rank=", "rank=-1", "rank=1.5", "rank=x", "rank=²"])
def test_a_limit_that_is_no_whole_number_is_refused(text):
    with pytest.raises(DifflensError, match="expected a whole number"):
        parse([text])


def test_a_limit_nobody_knows_is_answered_with_the_nearest():
    with pytest.raises(UnknownName) as caught:
        parse(["rnak=3"])
    assert caught.value.hint == "did you mean rank?"
    with pytest.raises(UnknownName):
        check({"nothing": 1})


def test_what_is_not_raised_keeps_its_default():
    assert check(None) == DEFAULTS
    assert check({"rank": 1}) == DEFAULTS | {"rank": 1}
