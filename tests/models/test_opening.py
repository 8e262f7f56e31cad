"""What a caller may pass as a model, and what it becomes."""

import numpy as np
import pytest
from models.small import tensor, write

import difflens
from difflens.core.errors import ModelError
from difflens.core.protocols import TensorSource
from difflens.models.opening import open_input, resolve_weights
from difflens.models.quantised.schemes import scheme

ARRAY = np.arange(6, dtype=np.float32).reshape(2, 3)


class Net:
    """What difflens needs of a `torch.nn.Module`."""

    def state_dict(self):
        return {"fc.weight": ARRAY}


def test_a_path_arrays_a_module_and_an_open_model_are_the_same_model(tmp_path):
    path = write(tmp_path / "m.safetensors", {"fc.weight": tensor(ARRAY)})
    source = difflens.open_model(path)

    for model in (path, str(path), {"fc.weight": ARRAY}, {"fc": {"weight": ARRAY}}, Net(), source):
        found = difflens.diff(path, model)
        assert [(delta.name, delta.kind) for delta in found.deltas] == [("fc.weight", "identical")]

    source.close()


def test_a_model_without_a_path_has_a_name_in_brackets(tmp_path):
    source = difflens.open_model(write(tmp_path / "m.safetensors", {"w": tensor(ARRAY)}))

    names = [open_input(model)[0] for model in ({"w": ARRAY}, Net(), source)]

    assert names == ["(in memory)", "(in memory)", "(opened before)"]


def test_an_open_model_stays_open_and_gets_no_warnings(tmp_path):
    source = difflens.open_model(write(tmp_path / "m.safetensors", {"w": tensor(ARRAY)}))

    _, borrowed = open_input(source)
    borrowed.warnings.append("a warning of the diff")
    borrowed.close()

    assert isinstance(borrowed, TensorSource)
    assert source.warnings == []
    assert source.read_into("w", 0, 4, memoryview(bytearray(4))) == 4


def test_a_torch_module_and_arrays_of_jax_are_models():
    torch = pytest.importorskip("torch")
    jax = pytest.importorskip("jax")
    module = torch.nn.Linear(3, 2, bias=False)
    weight = module.weight.detach().numpy()

    assert difflens.diff(module, {"weight": weight})["weight"].kind == "identical"
    params = {"params": {"kernel": jax.numpy.asarray(weight)}}
    assert difflens.diff(params, {"params.kernel": weight})["params.kernel"].kind == "identical"


@pytest.mark.parametrize(
    ("model", "words"),
    [
        ([ARRAY], "an object of type list is not a model"),
        (ARRAY, "an object of type numpy.ndarray is not a model"),
        (3, "an object of type int is not a model"),
        ({"model": {"w": ARRAY}, "epoch": 3}, "epoch: this is of type int, not an array"),
        ({"w": np.array(["text"])}, "w: an array of <U4 cannot be compared"),
    ],
)
def test_what_is_not_a_model_is_refused_with_a_hint(model, words):
    with pytest.raises(ModelError, match=r"^[^\n]+$") as error:
        difflens.diff(model, {"w": ARRAY})

    assert words in str(error.value)
    assert error.value.hint


def test_models_stored_as_they_are_need_no_decoder():
    (_, left), (_, right) = (open_input({"mlp.weight": np.ones(2)}) for _ in range(2))

    assert resolve_weights(left, right, ({}, {})) == (left, right)


def test_a_quantised_side_is_decoded():
    arrays = {"w.weight": np.ones((4, 4), np.int8), "w.SCB": np.full(4, 127, np.float32)}
    (_, left), (_, right) = open_input(arrays), open_input({"w.weight": np.ones((4, 4), "f4")})

    decoded, _ = resolve_weights(left, right, ({}, {}))

    assert decoded.tensors["w.weight"].dtype == "F32"


def test_every_scheme_registers_the_endings_of_its_parts():
    entries = list(scheme.ours())

    assert {"awq", "bitsandbytes", "compressed-tensors", "gptq"} <= {each.name for each in entries}
    assert all(each.summary and each.options["endings"] for each in entries)
