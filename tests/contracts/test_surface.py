"""What users rely on stays: public names, the command line, the fields of the JSON schemas."""

from tools.surface import LIST, differences


def test_nothing_of_the_public_surface_is_gone():
    _added, gone = differences()
    assert not gone, f"gone, and still in {LIST.name}"
