"""The library: what a script or a notebook sees."""

import numpy as np
import pytest
from models.small import arrays, write

import difflens
from difflens.diffs import inspection


@pytest.fixture
def paths(tmp_path):
    left = write(tmp_path / "left.safetensors", arrays(w=[1, 2, 2], frozen=[1]))
    right = write(tmp_path / "right.safetensors", arrays(w=[1, 2, 5], frozen=[1]))
    return left, right


def test_a_diff_reads_nothing_but_headers_until_somebody_looks(paths, monkeypatch):
    def read(*_: object) -> int:
        raise AssertionError("a tensor was read")

    monkeypatch.setattr("difflens.models.containers.encodings.Straight.read_into", read)
    found = difflens.diff(*paths)

    assert [pair.name for pair in found.pairs] == ["frozen", "w"]
    assert "left.safetensors" in repr(found)
    with pytest.raises(AssertionError, match="a tensor was read"):
        found.changed  # noqa: B018


def test_a_diff_is_asked_for_one_tensor_by_its_name(paths):
    found = difflens.diff(*paths)

    assert found["w"].relative_l2 == 1.0
    assert found["w"].max_abs_index == (2,)
    with pytest.raises(KeyError):
        found["nothing"]
    with pytest.raises(AttributeError, match="no figure is called 'relative_l3'"):
        found["w"].relative_l3  # noqa: B018


def test_a_diff_names_what_changed_and_analyses_itself(paths):
    found = difflens.diff(*paths)

    assert [delta.name for delta in found.changed] == ["w"]
    assert found.analyse("change_summary").fields["frozen"] == 1
    assert found.report().verdict.differs


def test_a_diff_shows_itself_as_text_in_colour_and_as_a_page(paths):
    found = difflens.diff(*paths)

    assert "~ w: relative_l2=1.0e+00" in str(found)
    assert "relative_l2" in found.__rich__().plain
    assert found._repr_html_().startswith('<iframe srcdoc="&lt;!')


def test_a_diff_says_on_one_line_what_it_is(paths):
    assert repr(difflens.diff({"w": np.ones(1)}, {"w": np.ones(1)})) == (
        "<difflens.diff of (in memory) and (in memory), 1 pairs>"
    )
    totals = difflens.diff(*paths).report().totals
    assert repr(totals) == (
        "Totals(tensors=2, identical=1, changed=1, elements=4, changed_elements=1, relative_l2=1, "
        "median_relative_l2=1, moved=1, compared=2)"
    )


def test_a_diff_is_a_collection_of_deltas(paths):
    found = difflens.diff(*paths)

    assert [delta.name for delta in found] == ["frozen", "w"]
    assert "w" in found
    assert "v" not in found
    with pytest.raises(KeyError, match="no tensor is called 'frozn': did you mean 'frozen'"):
        found["frozn"]


def test_torch_modules_and_state_dicts_are_models():
    torch = pytest.importorskip("torch")
    left, right = torch.nn.Linear(3, 2), torch.nn.Linear(3, 2)
    arrays = {name: value.detach().numpy() for name, value in right.named_parameters()}

    for before in (left, left.state_dict()):
        for after in (right, right.state_dict(), arrays):
            found = difflens.diff(before, after)
            assert [delta.kind for delta in found] == ["changed", "changed"]
            assert found.to_dict()["totals"]["tensors"] == 2
    assert difflens.diff(right, arrays).changed == ()
    half = difflens.diff(left, torch.nn.Linear(3, 2).bfloat16())["weight"]
    assert (half.kind, half.pair.right.dtype) == ("recast", "BF16")


def test_arrays_in_memory_are_models_too():
    left = {"w": np.arange(6.0).reshape(2, 3), "gone": np.ones(2, "int8")}
    right = {"w": np.arange(6.0).reshape(2, 3)[:, ::-1]}

    found = difflens.diff(left, right)

    assert {delta.name: delta.kind for delta in found.deltas} == {"w": "changed", "gone": "removed"}
    assert found["w"].max_abs == 2.0


def test_inspecting_one_model_needs_no_second_one(paths):
    seen = inspection.inspect(paths[1], statistics=True, digests=True)

    assert [each.info.name for each in seen.tensors] == ["frozen", "w"]
    assert seen.tensors[1].stats is not None
    assert seen.tensors[1].stats.max == 5.0
    assert seen.nonfinite == {}
    assert len(seen.tensors[1].sha256 or "") == 64
