import ml_dtypes
import numpy as np
import pytest
from diffs.methods.structure.models import trained
from diffs.methods.structure.records import found, kinds


def network(seed=0, bias=True):
    random = np.random.default_rng(seed)
    model = {
        "conv1.weight": trained(random, (16, 3, 3, 3)),
        "conv2.weight": trained(random, (24, 16, 3, 3)),
        "fc.weight": trained(random, (10, 24)),
    }
    for name, size in (("bn1", 16), ("bn2", 24)):
        model[f"{name}.weight"] = (1 + 0.3 * random.standard_normal(size)).astype("f4")
        model[f"{name}.bias"] = (0.3 * random.standard_normal(size)).astype("f4")
        model[f"{name}.running_mean"] = random.standard_normal(size).astype("f4")
        model[f"{name}.running_var"] = np.exp(random.standard_normal(size)).astype("f4")
        model[f"{name}.num_batches_tracked"] = np.array(7)
    if bias:
        model["conv2.bias"] = random.standard_normal(24).astype("f4")
    return model


def fused(model, epsilon=1e-5):
    """Fold both norms, as `torch.nn.utils.fusion` does."""
    right = {name: value for name, value in model.items() if "bn" not in name}
    for conv, norm in (("conv1", "bn1"), ("conv2", "bn2")):
        scale = model[f"{norm}.weight"] / np.sqrt(model[f"{norm}.running_var"] + epsilon)
        right[f"{conv}.weight"] = model[f"{conv}.weight"] * scale[:, None, None, None]
        bias = model.get(f"{conv}.bias", 0)
        shift = (bias - model[f"{norm}.running_mean"]) * scale + model[f"{norm}.bias"]
        right[f"{conv}.bias"] = shift.astype("f4")
    return right


@pytest.mark.parametrize("epsilon", [1e-5, 1e-3])
@pytest.mark.parametrize("dtype", [np.float32, ml_dtypes.bfloat16])
def test_batch_norms_folded_into_the_layers_before_are_explained(epsilon, dtype):
    right = {name: value.astype(dtype) for name, value in fused(network(), epsilon).items()}

    (record,) = found(network(), right)

    assert record.kind == "norms_folded"
    assert record.numbers == {"what": "batch norm", "folded": 2}
    assert record.text == "2 batch norms folded into conv1 and conv2"
    assert {"bn1.running_var", "bn2.num_batches_tracked", "conv1.bias"} <= set(record.names)
    assert record.share == pytest.approx(1, abs=1e-3)


def test_torch_folds_as_we_read_it():
    torch = pytest.importorskip("torch")
    from torch.nn.utils.fusion import fuse_conv_bn_eval

    conv, norm = torch.nn.Conv2d(3, 16, 3), torch.nn.BatchNorm2d(16)
    torch.nn.init.normal_(norm.weight, 1, 0.3)
    norm(conv(torch.randn(8, 3, 9, 9)))
    model = torch.nn.ModuleDict({"conv": conv, "bn": norm}).eval()
    left = {name: value.numpy() for name, value in model.state_dict().items()}
    left["fc.weight"] = trained(np.random.default_rng(0), (10, 16))
    right = {
        f"conv.{name}": value.numpy()
        for name, value in fuse_conv_bn_eval(conv.eval(), norm.eval()).state_dict().items()
    }

    assert kinds(left, right | {"fc.weight": left["fc.weight"]}) == ["norms_folded"]


def test_a_norm_that_was_only_dropped_was_not_folded():
    left = network()

    assert kinds(left, {k: v for k, v in left.items() if "bn" not in k}) == ["tensors_removed"]


def test_a_layer_whose_bias_does_not_agree_is_left_out():
    right = fused(network())
    right["conv2.bias"] = right["conv2.bias"] + 1

    record, rest = found(network(), right)

    assert record.text == "1 batch norm folded into conv1"
    assert rest.kind == "tensors_removed"


def test_the_norm_of_another_model_was_not_folded():
    assert "norms_folded" not in kinds(network(), fused(network(seed=3)))


def with_lengths(seed=0, spelling=(".weight_g", ".weight_v")):
    random = np.random.default_rng(seed)
    return {
        f"a{spelling[0]}": np.exp(random.normal(0, 0.4, (48, 1))).astype("f4"),
        f"a{spelling[1]}": trained(random, (48, 32)),
        "a.bias": trained(random, (48,)),
        "b.weight": trained(random, (20, 48)),
    }


PARAMETRIZED = (".parametrizations.weight.original0", ".parametrizations.weight.original1")


@pytest.mark.parametrize("spelling", [(".weight_g", ".weight_v"), PARAMETRIZED])
def test_weight_norms_that_were_multiplied_out_are_explained(spelling):
    left = with_lengths(spelling=spelling)
    length, direction = (left[f"a{each}"] for each in spelling)
    weight = length * direction / np.linalg.norm(direction, axis=1, keepdims=True)
    right = {"a.weight": weight, "a.bias": left["a.bias"], "b.weight": left["b.weight"]}

    (record,) = found(left, right)

    assert record.kind == "weight_norm_folded"
    assert f"a{spelling[0]}" in record.names


def test_a_direction_that_took_the_place_of_the_weight_was_not_multiplied_out():
    left = with_lengths()
    right = {"a.weight": left["a.weight_v"], "a.bias": left["a.bias"], "b.weight": left["b.weight"]}

    assert "weight_norm_folded" not in kinds(left, right)


PADDLE = {"weight": "w_0", "bias": "b_0", "running_mean": "w_1", "running_var": "w_2"}
KERAS = {
    "weight": "gamma:0",
    "bias": "beta:0",
    "running_mean": "moving_mean:0",
    "running_var": "moving_variance:0",
}


def as_paddle(model):
    """Name tensors as Paddle's exporter does, each with a number behind it."""
    names = {}
    for at, (name, value) in enumerate(model.items()):
        module, _, part = name.rpartition(".")
        names[f"{module}.{PADDLE.get(part, part)}_deepcopy_{at}"] = value
    return names


def as_keras(model):
    """Put the outputs of convolutions last, and name tensors as Keras does."""
    names = {}
    for name, value in model.items():
        module, _, part = name.rpartition(".")
        if "bn" in module:
            names[f"{module}.{module}_1.{KERAS.get(part, part)}"] = value
        elif value.ndim == 4:
            kernel = np.ascontiguousarray(value.transpose(2, 3, 1, 0))
            names[f"{module}.{module}_1.kernel:0"] = kernel
        else:
            names[f"{module}.{module}_1.{part}:0"] = value
    return names


@pytest.mark.parametrize("renamed", [as_paddle, as_keras])
@pytest.mark.parametrize("bias", [True, False])
def test_batch_norms_of_other_libraries_are_explained(renamed, bias):
    model = {k: v for k, v in network(bias=bias).items() if "batches" not in k}
    left, right = renamed(model), fused(model)
    right = {
        name: value
        for name, value in renamed(right | {k: v for k, v in model.items() if "bn" in k}).items()
        if "bn" not in name
    }
    after = {name.partition("_deepcopy")[0]: value for name, value in right.items()}
    right = {
        next((old for old in left if old.partition("_deepcopy")[0] == name), name): value
        for name, value in after.items()
    }

    (record,) = found(left, right)

    assert record.kind == "norms_folded"
    assert record.numbers == {"what": "batch norm", "folded": 2}
    assert len(record.names) == 12
