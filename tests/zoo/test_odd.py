"""The part `odd`: new to the last run, with a label each; and its knobs do what they say."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest
import torch

from zoo.configs import Config
from zoo.configs.odd_parents import ODD_PARENTS
from zoo.data import load
from zoo.loop import Loop
from zoo.odd_losses import ODD_LOSSES
from zoo.parts import PARTS

SMALL = Config(
    data="blobs", depth=3, width=8, optimiser="sgd", lr=0.05, batch=32, steps=6, activation="tanh"
)
ODD = PARTS["odd"]


class Noting:
    """Keeps what it is told of each step."""

    def __init__(self):
        self.losses, self.rates = [], []

    def step(self, loss=None, lr=None, **_scalars):
        self.losses.append(float(loss))
        self.rates.append(lr)


def trained(**changes):
    loop, heard = Loop(replace(SMALL, **changes), 0), Noting()
    first = weights(loop)
    loop.run(heard)
    return loop, first, heard


def weights(loop):
    return {name: each.detach().clone() for name, each in loop.model.named_parameters()}


def moved(**changes):
    loop, first, _ = trained(**changes)
    return {name for name, each in weights(loop).items() if not torch.equal(each, first[name])}


def test_the_part_has_faults_of_nearly_every_class_and_controls_beside_them():
    assert len(ODD.faults) == 20
    assert len(ODD.controls) == 12
    assert len({fault.name for fault in ODD.faults}) >= 15
    assert sum(bool(fault.layers) for fault in ODD.faults) >= 6
    assert all(each.seeds == (130, 131, 132) for each in ODD.configurations)


@pytest.mark.parametrize("part", sorted(set(PARTS) - {"odd"}))
def test_the_part_shares_no_configuration_id_parent_or_seed_with_another(part):
    known = PARTS[part].configurations

    assert not {each.config.key for each in known} & {
        each.config.key for each in ODD.configurations
    }
    assert not {each.id for each in known} & {each.id for each in ODD.configurations}
    assert not {seed for each in known for seed in each.seeds} & {130, 131, 132}
    assert not {fault.parent_name for fault in PARTS[part].faults} & set(ODD_PARENTS)


def test_every_parent_of_the_part_is_that_of_a_fault_and_every_control_is_another_run():
    parents = {each.config.key for each in ODD_PARENTS.values()}

    assert {fault.parent_name for fault in ODD.faults} == set(ODD_PARENTS)
    assert not parents & {each.config.key for each in ODD.configurations}


def test_every_pattern_of_layers_fits_parameters_of_its_network():
    from fnmatch import fnmatch

    for fault in ODD.faults:
        names = [name for name, _ in Loop(fault.config, 130).model.named_parameters()]
        assert all(any(fnmatch(name, one) for name in names) for one in fault.layers), fault.id


def test_an_example_that_was_read_is_changed_for_good_and_what_is_held_back_is_not():
    loop, plain = Loop(replace(SMALL, in_place=(0.5, 1.0)), 0), Loop(SMALL, 0)
    places = np.arange(4)
    read = [loop._batch(places, 0)[0].numpy() for _ in range(2)]

    assert np.array_equal(read[0], plain.data.inputs[:4])
    assert np.allclose(read[1], read[0] * 0.5 + 1.0)
    assert np.array_equal(loop.data.inputs[4:], plain.data.inputs[4:])
    assert np.array_equal(loop.data.held_inputs, plain.data.held_inputs)


def test_the_answer_leaks_into_training_alone():
    for name in ("blobs", "friedman"):
        data = load(replace(SMALL, data=name, leak=True), 0)
        columns = data.outputs
        answers = data.inputs[:, -columns:]
        wanted = np.eye(data.classes)[data.targets] if data.classes else data.targets

        assert np.allclose(answers, wanted)
        assert not data.held_inputs[:, -columns:].any()


def test_what_is_missing_has_its_stand_in_everywhere_else_nothing_changes():
    whole, gaps = load(SMALL, 0), load(replace(SMALL, missing=0.1, missing_as=-999.0), 0)
    gone = gaps.inputs == -999

    assert 0.05 < gone.mean() < 0.15
    assert np.array_equal(gaps.inputs[~gone], whole.inputs[~gone])
    assert (gaps.held_inputs == -999).any()


def test_an_identifier_is_one_column_of_many():
    data, whole = load(replace(SMALL, identifiers=30), 0), load(SMALL, 0)
    codes = data.inputs[:, whole.inputs.shape[1] :]

    assert codes.shape[1] == 30
    assert ((codes != 0).sum(axis=1) == 1).all()
    assert not np.array_equal(codes[:200], data.held_inputs[:200, -30:])


def test_late_gradients_are_those_of_an_earlier_step():
    assert not moved(delay=3, steps=3)
    late, plain = trained(delay=3, steps=4)[0], trained(steps=1)[0]

    assert all(map(torch.allclose, weights(late).values(), weights(plain).values()))


def test_signs_move_every_weight_by_the_rate():
    loop, first, _ = trained(signs=True, steps=1)

    for name, each in weights(loop).items():
        way = (each - first[name]).abs()
        assert torch.allclose(way[way > 0], torch.tensor(0.05), rtol=1e-3)


def test_the_greatest_elements_are_sent_and_no_other():
    loop, first, _ = trained(top_share=0.1, steps=1)
    now = weights(loop)

    assert {
        name: int((each != first[name]).sum()) for name, each in now.items() if "bias" not in name
    } == {name: round(0.1 * each.numel()) for name, each in now.items() if "bias" not in name}


def test_a_rate_by_polyak_is_the_loss_by_the_squared_gradient_up_to_its_limit():
    loop, _, free = trained(polyak=1e9, steps=1)
    squared = sum(float(each.grad.square().sum()) for each in loop.model.parameters())
    _, _, limited = trained(polyak=1e-3, steps=3)

    assert free.rates[0] == pytest.approx(free.losses[0] / squared, rel=1e-4)
    assert limited.rates == [1e-3] * 3


def test_moments_in_half_precision_are_numbers_that_half_precision_has():
    loop, _, _ = trained(optimiser="adam", lr=1e-3, state_in="float16")
    kept = [state["exp_avg_sq"] for state in loop.optimiser.state.values()]

    assert all(torch.equal(each, each.half().float()) for each in kept)
    assert any((each == 0).any() for each in kept)


@pytest.mark.parametrize(("mode", "factor"), [("min", 1.0), ("max", 0.01), ("", 1.0)])
def test_a_rate_is_lowered_where_validation_seems_to_stand_still(mode, factor):
    loop = Loop(replace(SMALL, reduces=mode), 0)
    for loss in (1.0, 0.9, 0.8, 0.7, 0.6):
        loop.odd.validated(loop.config, loss)

    assert loop.odd.factor == pytest.approx(factor)


def test_a_rate_that_was_lowered_is_the_one_that_steps():
    loop, heard = Loop(SMALL, 0), Noting()
    loop.odd.factor = 0.1
    loop.run(heard)

    assert heard.rates == pytest.approx([0.005] * 6)


def test_pruned_weights_stay_at_zero_and_the_others_learn():
    loop, first, _ = trained(pruned=(("hidden.1.linear.weight", 0.5),))
    pruned = weights(loop)["hidden.1.linear.weight"] == 0

    assert 0.3 < float(pruned.float().mean()) < 0.7
    assert "hidden.1.linear.weight" in moved(pruned=(("hidden.1.linear.weight", 0.5),))
    assert not (weights(loop)["hidden.0.linear.weight"] == 0).any()
    assert not (first["hidden.1.linear.weight"] == 0).any()


def test_a_reversed_gradient_goes_the_other_way():
    plain, first, _ = trained(steps=1)
    turned, _, _ = trained(steps=1, reversed_for="hidden.0.*")
    a, b = weights(plain), weights(turned)

    for name, start in first.items():
        sign = -1 if name.startswith("hidden.0.") else 1
        assert torch.allclose(b[name] - start, sign * (a[name] - start), atol=1e-6)


def test_frozen_layers_stay_until_they_are_thawed():
    frozen = moved(events=((0, "freeze", "hidden.*"),))

    assert frozen == {"output.weight", "output.bias"}
    assert "hidden.0.linear.weight" in moved(
        events=((0, "freeze", "hidden.*"), (4, "thaw", "hidden.*"))
    )


def test_new_tensors_are_not_known_to_the_optimiser_until_it_is_made_anew():
    assert not moved(events=((0, "assign", "*"),))
    assert moved(events=((0, "assign", "*"), (0, "rebuild", "")))


def test_an_optimiser_that_is_made_anew_has_forgotten_and_goes_on():
    plain, _, _ = trained(momentum=0.9)
    again, _, _ = trained(momentum=0.9, events=((3, "rebuild", ""),))

    assert not any(map(torch.equal, weights(plain).values(), weights(again).values()))
    assert len(moved(momentum=0.9, events=((3, "rebuild", ""),))) == 8


def test_rotated_layers_are_those_of_the_next():
    loop, first, _ = trained(lr=0.0, events=((2, "rotate", "hidden.[12].*"),))
    now = weights(loop)

    assert torch.equal(now["hidden.1.linear.weight"], first["hidden.2.linear.weight"])
    assert torch.equal(now["hidden.2.linear.weight"], first["hidden.1.linear.weight"])
    assert torch.equal(now["hidden.0.linear.weight"], first["hidden.0.linear.weight"])


def test_an_event_that_nobody_knows_is_an_error():
    with pytest.raises(ValueError, match="no event 'thunder'"):
        trained(events=((0, "thunder", "*"),))


def test_copied_units_stay_copies():
    loop, first, _ = trained(widened=4)

    for each in (first, weights(loop)):
        rows = each["hidden.1.linear.weight"]
        assert torch.allclose(rows, rows[::4].repeat_interleave(4, 0), atol=1e-5)
    assert len(moved(widened=4)) == 8


def test_layers_of_one_seed_start_as_one():
    first = weights(Loop(replace(SMALL, same_layers=True), 0))

    assert torch.equal(first["hidden.1.linear.weight"], first["hidden.2.linear.weight"])
    assert first["hidden.0.linear.weight"].std() > 0


def test_a_great_epsilon_leaves_nothing_of_a_signal():
    def spread(**changes):
        loop = Loop(replace(SMALL, norm="layer", **changes), 0)
        with torch.no_grad():
            return float(loop.model(torch.from_numpy(loop.data.inputs)).std())

    assert spread(norm_eps=1e5) < 1e-4 * spread()


@pytest.mark.parametrize(("start", "learns"), [("up", True), ("both", False)])
def test_adapters_learn_unless_both_halves_are_zero_and_what_they_adapt_never_does(start, learns):
    found = moved(model="odd-adapters", code=3, adapters=start, steps=4)

    assert ({"hidden.0.down.weight", "hidden.0.up.weight"} <= found) is learns
    assert not any(".base." in name for name in found)
    assert "output.weight" in found


def test_a_loss_that_is_capped_teaches_nothing_beyond_its_cap():
    scores = torch.tensor([[0.0, 9.0], [9.0, 8.8]], requires_grad=True)
    ODD_LOSSES["capped"](SMALL, scores, torch.tensor([0, 0])).backward()

    assert not scores.grad[0].any()
    assert scores.grad[1].any()


def test_a_mean_over_nothing_is_no_number():
    scores, nothing, some = torch.zeros(2, 3), torch.tensor([0, 0]), torch.tensor([0, 2])

    assert math.isnan(float(ODD_LOSSES["ignoring"](SMALL, scores, nothing)))
    assert float(ODD_LOSSES["ignoring"](SMALL, scores, some)) == pytest.approx(math.log(3))


def test_a_spread_that_nothing_holds_lowers_the_loss_for_ever():
    targets = torch.ones(4, 1)
    losses = [
        float(ODD_LOSSES["gaussian-short"](SMALL, torch.tensor([[0.0, spread]] * 4), targets))
        for spread in (0.0, 5.0, 50.0)
    ]

    assert losses == sorted(losses, reverse=True)
    assert losses[-1] < 1e-9


def test_mixed_examples_are_nearer_to_their_own():
    from zoo.mishaps import augmented

    torch.manual_seed(3)
    given = torch.randn(16, 64)
    mixed = augmented("mix", given)

    assert not torch.equal(mixed, given)
    assert ((mixed - given).norm(dim=1) <= (mixed - given.roll(1, 0)).norm(dim=1) + 1e-5).all()
