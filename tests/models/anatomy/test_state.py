"""What of a checkpoint is a weight and what is state, in the words of each framework."""

from time import perf_counter

import pytest

from difflens.core.records import TensorInfo
from difflens.models.anatomy.state import find_state, weights_of

NET = {"net.0.weight": (8, 4), "net.0.bias": (8,), "net.2.weight": (2, 8), "net.2.bias": (2,)}


def infos(shapes):
    return {name: TensorInfo(name, "F32", tuple(shape)) for name, shape in shapes.items()}


def state_of(shapes, metadata=None):
    return find_state(infos(shapes), metadata or {})


def torch_state(holder, slots=("exp_avg", "exp_avg_sq"), names=range(4)):
    shapes = {
        f"{holder}.state.{name}.{slot}": shape
        for name, shape in zip(names, NET.values(), strict=True)
        for slot in slots
    }
    return shapes | {f"{holder}.state.{name}.step": () for name in names}


TORCH = [
    "optimizer", "optimizer_state_dict", "optim", "opt", "optimizer_states.0", "optim_state",
    "optimizer_G", "g_optim", "checkpoint.optimizer", "optimizers.0", "optimizer_D_state",
]  # fmt: skip


@pytest.mark.parametrize("holder", TORCH)
def test_moments_of_torch_optimizers_are_state(holder):
    moments = torch_state(holder)

    assert set(state_of(NET | moments)) == set(moments)


@pytest.mark.parametrize("slots", [("momentum_buffer",), ("square_avg",), ("exp_avg_sq_row",)])
def test_each_optimizer_names_its_slot(slots):
    moments = torch_state("optimizer", slots)

    found = state_of(NET | moments)

    assert {each.slot for each in found.values()} == {*slots, "step"}


def test_fsdp_names_parameters_in_full():
    moments = torch_state("optim", names=NET)

    found = state_of(NET | moments)

    assert set(found) == set(moments)
    assert found["optim.state.net.0.weight.exp_avg"].slot == "exp_avg"


def test_unknown_slots_are_state_where_parameter_groups_stand_beside_them():
    moments = torch_state("optimizer", ("brand_new", "strange"))

    assert not state_of(NET | moments)
    found = state_of(NET | moments, {"optimizer.param_groups.0.lr": "0.1"})
    assert set(found) == set(moments)


def test_deepspeed_partitions_are_state():
    shapes = {
        "optimizer_state_dict.base_optimizer_state.state.0.exp_avg": (58,),
        "optimizer_state_dict.single_partition_of_fp32_groups.0": (58,),
    }

    assert set(state_of(NET | shapes)) == set(shapes)


def test_keras_3_lists_its_variables():
    weights = {f"layers.dense.vars.{at}": each for at, each in enumerate(NET.values())}
    moments = [(), (), *(shape for shape in NET.values() for _ in range(2))]
    listed = {f"optimizer.vars.{at}": shape for at, shape in enumerate(moments)}

    found = state_of(weights | listed)

    assert set(found) == set(listed)
    assert (found["optimizer.vars.0"].slot, found["optimizer.vars.1"].slot) == ("step", "lr")


@pytest.mark.parametrize("ending", ["_momentum", "_velocity", "/m:0", ".v"])
def test_older_keras_names_slots_after_weights(ending):
    listed = {f"optimizer_weights.adam.{name}{ending}": shape for name, shape in NET.items()}

    assert set(state_of(NET | listed)) == set(listed)


def test_slots_of_tensorflow_stand_beside_their_weight():
    net = {"dense/kernel": (4, 8), "dense/bias": (8,)}
    slots = {f"{name}/Adam{last}": shape for name, shape in net.items() for last in ("", "_1")}
    powers = {"beta1_power": (), "beta2_power": ()}

    found = state_of(net | slots | powers | {"global_step": ()})

    assert set(found) == {*slots, *powers, "global_step"}


def test_slots_of_tensorflow_2_stand_beside_their_weight():
    net = {"layer/kernel": (4, 8), "layer/bias": (8,)}
    slots = {f"{name}/.OPTIMIZER_SLOT/optimizer/{slot}": shape
             for name, shape in net.items() for slot in "mv"}  # fmt: skip
    numbers = {"optimizer/iter": (), "optimizer/learning_rate": (), "save_counter": ()}

    found = state_of(net | slots | numbers)

    assert set(found) == {*slots, *numbers}
    assert found["layer/kernel/.OPTIMIZER_SLOT/optimizer/m"].slot == "m"


def test_moments_of_optax_are_state():
    net = {"params.norm.scale": (8,), "params.linear.kernel": (4, 8)}
    moments = {
        f"opt_state.0.{slot}.{name.removeprefix('params.')}": shape
        for name, shape in net.items()
        for slot in ("mu", "nu")
    }

    found = state_of(net | moments | {"opt_state.0.count": (), "step": ()})

    assert set(found) == {*moments, "opt_state.0.count", "step"}
    assert found["opt_state.0.mu.linear.kernel"].slot == "mu"


AVERAGES = [
    "ema", "model_ema", "ema_state_dict", "state_dict_ema", "ema_model", "swa_model", "teacher",
    "ema.module", "ema.ema_model", "params_ema", "callbacks.EMA.ema",
]  # fmt: skip


@pytest.mark.parametrize("holder", AVERAGES)
@pytest.mark.parametrize("front", ["", "model.", "module.", "student."])
def test_averages_are_state_and_know_their_weight(holder, front):
    net = {f"{front}{name}": shape for name, shape in NET.items()}
    copies = {f"{holder}.{name}": shape for name, shape in NET.items()}

    found = state_of(net | copies)

    assert {name: each.weight for name, each in found.items()} == {
        f"{holder}.{name}": f"{front}{name}" for name in NET
    }


def test_averages_without_dots_know_their_weight():
    copies = {f"model_ema.{name.replace('.', '')}": shape for name, shape in NET.items()}
    net = {f"model.{name}": shape for name, shape in NET.items()}

    found = state_of(net | {"first_stage.weight": (9, 9)} | copies | {"model_ema.decay": ()})

    assert found["model_ema.net0weight"].weight == "model.net.0.weight"
    assert found["model_ema.decay"].weight is None
    assert len(found) == 5


def test_a_numbered_list_of_averages_follows_the_order_of_the_parameters():
    copies = {f"ema.shadow_params.{at}": shape for at, shape in enumerate(NET.values())}

    found = state_of(NET | copies)

    assert [each.weight for each in found.values()] == list(NET)


def test_averages_of_one_part_are_state():
    net = {f"g.{name}": shape for name, shape in NET.items()}
    other = {f"d.{at}.weight": (5, 5) for at in range(20)}
    copies = {f"g_ema.{name}": shape for name, shape in NET.items()}

    assert set(state_of(net | other | copies)) == set(copies)


@pytest.mark.parametrize("module", ["optimizer", "ema", "teacher", "opt", "scheduler", "amp"])
def test_a_module_of_such_a_name_keeps_its_weights(module):
    learned = {f"{module}.lstm.weight_ih": (32, 4), f"{module}.lstm.bias": (32,)}
    same_shape = {f"{module}.head.weight": (8, 4), f"{module}.head.bias": (8,)}

    assert not state_of(NET | learned | same_shape)


def test_a_module_called_optimizer_keeps_its_weights_beside_a_real_optimizer():
    learned = {"optimizer.lstm.weight_ih": (32, 4), "optimizer.lstm.bias": (32,)}
    moments = torch_state("optimizer")

    found = state_of(NET | learned | moments, {"optimizer.param_groups.0.lr": "0.1"})

    assert set(found) == set(moments)


def test_one_weight_like_an_average_of_a_norm_is_no_average():
    net = {"norm.weight": (64,), "norm.bias": (64,), "head.weight": (64, 64), "head.bias": (64,)}

    assert not state_of(net | {"ema.weight": (64,), "ema.bias": (64,)})


def test_an_average_inside_a_block_is_a_part_of_the_network():
    block = {f"layers.{at}.ema.weight": (64,) for at in range(3)}

    assert not state_of(block | {f"layers.{at}.weight": (64,) for at in range(3)})


@pytest.mark.parametrize("only", [torch_state("optimizer"), {"ema.net.0.weight": (8, 4)}])
def test_a_file_of_state_alone_is_compared_as_it_is(only):
    assert not state_of(only, {"optimizer.param_groups.0.lr": "0.1"})


def test_what_a_trainer_keeps_beside_the_weights_is_state():
    beside = {"callbacks.Stop.best_score": (), "loops.fit.total": (), "scaler.scale": ()}

    assert not state_of(NET | beside)
    assert set(state_of(NET | beside, {"pytorch-lightning_version": "2.6"})) == set(beside)


def test_the_state_of_random_numbers_is_state_if_it_is_integers():
    tensors = infos(NET | {"rng_state": (5056,)})
    assert not find_state(tensors, {})

    tensors["rng_state"] = TensorInfo("rng_state", "U8", (5056,))
    assert set(find_state(tensors, {})) == {"rng_state"}


def test_weights_are_what_is_left():
    tensors = infos(NET | torch_state("optimizer"))

    assert list(weights_of(tensors, find_state(tensors, {}))) == list(NET)


@pytest.mark.parametrize(
    "names",
    [
        ["a/OPTIMIZER_SLOT/" * 50_000],
        [f"ema_{at}.w" for at in range(20_000)],
        [f"opt_{at}.m" for at in range(20_000)],
        ["opt_" * 100_000 + ".m"],
    ],
    ids=["slots", "averages", "optimizers", "long"],
)
def test_hostile_names_are_looked_at_quickly(names):
    start = perf_counter()

    assert not state_of(NET | dict.fromkeys(names, (9, 9)))
    assert perf_counter() - start < 5
