"""Whatever is handed in as weights: arrays of any library, lists, files."""

import ml_dtypes
import numpy as np
import pytest
from models.small import tensor, write

from difflens import open_model
from difflens.core.errors import DifflensError, ModelError
from difflens.models.health.analyzer import WeightAnalyzer
from difflens.models.health.streaming import open_tensors

VALUES = np.random.default_rng(0).normal(size=(12, 8)).astype(np.float32)


def looked(weights):
    return WeightAnalyzer().analyze_weight_distribution(weights)


@pytest.mark.parametrize("dtype", ["F64", "F32", "F16", "BF16", "F8_E4M3"])
def test_arrays_and_a_file_of_them_give_the_same(tmp_path, dtype):
    model = {"a.weight": tensor(VALUES, dtype), "b.weight": tensor(VALUES[:3] * 2, dtype)}
    path = write(tmp_path / "m.safetensors", model)
    numpy_type = {"F64": "f8", "F32": "f4", "F16": "f2", "BF16": ml_dtypes.bfloat16,
                  "F8_E4M3": ml_dtypes.float8_e4m3fn}[dtype]  # fmt: skip
    arrays = {"a.weight": VALUES, "b.weight": VALUES[:3] * 2}
    arrays = {name: each.astype(numpy_type) for name, each in arrays.items()}

    from_file, from_arrays = looked(path), looked(arrays)

    assert from_file.layer_analyses == from_arrays.layer_analyses
    assert from_file.overall_statistics == from_arrays.overall_statistics


@pytest.mark.parametrize("kind", ["float32", "float64", "float16", "bfloat16"])
def test_torch_tensors_are_read_without_importing_torch(kind):
    torch = pytest.importorskip("torch")
    dtype = getattr(torch, kind)
    given = torch.nn.Parameter(torch.from_numpy(VALUES).to(dtype).T)

    (layer,) = looked({"w": given}).layer_analyses

    wanted = given.detach().double().numpy()
    assert layer.shape == (8, 12)
    assert layer.statistics.mean == pytest.approx(wanted.mean())
    assert WeightAnalyzer().compute_l2_norm(given) == pytest.approx(np.linalg.norm(wanted))


def test_a_list_is_named_by_places_and_keeps_its_order():
    found = looked([VALUES[:1]] * 12)

    assert [each.name for each in found.layer_analyses] == [str(i) for i in range(12)]


def test_arrays_keep_their_order_and_files_have_the_natural_one(tmp_path):
    names = ["layers.10.w", "layers.2.w", "a"]
    path = write(tmp_path / "m.safetensors", {name: tensor(VALUES) for name in names})

    in_memory, in_file = looked(dict.fromkeys(names, VALUES)), looked(path)

    assert [each.name for each in in_memory.layer_analyses] == names
    assert [each.name for each in in_file.layer_analyses] == names[::-1]


@pytest.mark.parametrize(
    "given",
    [[[1, 2], [3]], ([1, 2], [3]), {"a": np.array([1, 2]), "b": np.array([3], ">f4")},
     [np.array([1, 2], np.uint8), [3.0]], [np.array([1, 2], np.longdouble), [True, True, True]]],
)  # fmt: skip
def test_lists_integers_and_foreign_byte_orders_are_numbers(given):
    found = looked(given)

    assert found.layer_analyses[0].statistics.mean == 1.5


def test_one_array_is_one_layer():
    assert [each.shape for each in looked(VALUES).layer_analyses] == [(12, 8)]


def test_integers_in_a_file_are_left_out_and_named(tmp_path):
    model = {"w": tensor(VALUES), "num_batches_tracked": tensor([3], "I64")}

    found = looked(write(tmp_path / "m.safetensors", model))

    assert found.skipped == {"num_batches_tracked": "I64 holds codes or counters, not weights"}
    assert found.parameters == VALUES.size


def test_an_open_model_stays_open(tmp_path):
    source = open_model(write(tmp_path / "m.safetensors", {"w": tensor(VALUES)}))

    first, second = looked(source), looked(source)

    assert first == second
    source.close()


@pytest.mark.parametrize(
    ("given", "words"),
    [
        (3, "an object of type int holds no arrays"),
        (b"bytes", "an object of type bytes holds no arrays"),
        ({"a": "text"}, "a: an array of <U4 holds no real numbers"),
        ({"a": [1j]}, "holds no real numbers"),
        ([[[1, 2], [3]]], "0: not an array"),
        ({1: [1.0], "1": [2.0]}, "two arrays have one name"),
    ],
)
def test_what_holds_no_numbers_is_refused_in_one_line(given, words):
    """DB-19: declared fallible, and never failed."""
    with pytest.raises(ModelError, match=r"^[^\n]+$") as error:
        looked(given)

    assert words in str(error.value)


def test_a_file_that_is_not_there_is_refused():
    """DB-19."""
    with pytest.raises(DifflensError, match="no such file"):
        looked("nowhere.safetensors")


def test_names_and_shapes_are_known_before_anything_is_read(tmp_path):
    path = write(tmp_path / "m.safetensors", {"w": tensor(VALUES)})

    with open_tensors(path) as tensors:
        assert [info.shape for info in tensors.infos] == [(12, 8)]
