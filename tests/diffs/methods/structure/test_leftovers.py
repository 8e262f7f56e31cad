import warnings

import numpy as np
import pytest
from diffs.methods.structure.models import decoder, trained
from diffs.methods.structure.records import found, kinds

MODEL = decoder(2) | {"model.embed_positions.weight": trained(np.random.default_rng(9), (40, 32))}


def test_a_table_of_positions_that_was_extended_keeps_its_first_rows():
    name = "model.embed_positions.weight"
    right = MODEL | {name: np.concatenate([MODEL[name], MODEL[name]])}

    (record,) = found(MODEL, right)

    assert record.kind == "reshaped"
    assert record.text == f"{name} reshaped: [40, 32] to [80, 32], the first 40 rows unchanged"


def test_what_one_side_alone_has_is_listed():
    extra = {"adapter.weight": np.ones((4, 4), np.float32), "adapter.bias": np.ones(4, np.float32)}

    (added,) = found(MODEL, MODEL | extra)
    (removed,) = found(MODEL | extra, MODEL)

    assert (added.kind, added.names) == ("tensors_added", ["adapter.bias", "adapter.weight"])
    assert removed.text == "2 tensors of adapter removed"
    assert removed.numbers == {"tensors": 2, "elements": 20}


def test_strangers_lack_and_add_nothing():
    assert kinds(MODEL, decoder(2, seed=4)) == []


def test_what_torch_quantises_dynamically_is_paired_with_what_it_was(tmp_path):
    """`quantize_dynamic` packs a weight and its bias, and adds scales of activations."""
    torch = pytest.importorskip("torch")
    from difflens import diff

    torch.manual_seed(0)
    linear = torch.nn.Linear
    model = torch.nn.Sequential(linear(64, 48), torch.nn.ReLU(), linear(48, 10))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        packed = torch.ao.quantization.quantize_dynamic(model, {linear}, dtype=torch.qint8)
    torch.save(model.state_dict(), tmp_path / "left.pt")
    torch.save(packed.state_dict(), tmp_path / "right.pt")

    compared = diff(tmp_path / "left.pt", tmp_path / "right.pt")

    pairs = {each.pair.left.name: each for each in compared.deltas if each.pair.left}
    assert pairs["0.weight"].relative_l2 < 0.01
    assert pairs["2.bias"].kind == "identical"
    assert kinds(tmp_path / "left.pt", tmp_path / "right.pt") == []


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("garbage", [np.nan, np.inf, 3e38, 0.0])
def test_garbage_raises_no_warning_and_explains_nothing(garbage):
    """NaN, infinities and numbers whose squares overflow are in no record."""
    right = {
        name: np.full_like(value, garbage) if "mlp" in name else value
        for name, value in MODEL.items()
    }
    bytes_swapped = {name: value.byteswap() for name, value in MODEL.items()}

    assert kinds(MODEL, right) == kinds(right, MODEL) == []
    assert kinds(MODEL, bytes_swapped) == []


def test_a_vocabulary_of_garbage_keeps_no_row():
    name = "model.embed_tokens.weight"
    right = MODEL | {name: np.full((70, 32), np.nan, np.float32)}

    record = found(MODEL, right)[0]

    assert record.numbers["shared"] == 0


def test_tensors_without_elements_are_no_trouble():
    empty = {name: value[:0] for name, value in MODEL.items()}

    assert kinds(MODEL, empty) == kinds(empty, MODEL) == kinds(empty, empty) == []
