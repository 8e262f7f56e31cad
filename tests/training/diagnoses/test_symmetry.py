import numpy as np
from training.diagnoses.histories import asked, only

from difflens.testing.histories import falling, faulty, level, network, noise, recorded

FIRST_ZERO = [0.0] * 2 + [1.0] * (len(network()) - 2)


def test_weights_that_are_all_zero_are_told_within_five_steps():
    found = only("symmetry", faulty()["symmetry"])

    assert (found.severity, found.since_step) == ("critical", 0)


def test_one_matrix_that_starts_at_zero_is_a_custom():
    assert asked("symmetry", recorded(level(60), weight_l2=FIRST_ZERO)) == []


def test_zero_weights_of_a_network_that_learns_are_no_fault():
    assert asked("symmetry", recorded(falling(), weight_l2=0.0)) == []


def test_weights_of_one_constant_are_told_by_gradients_that_are_all_alike():
    sizes = np.geomspace(1e-3, 1e-2, 12)
    alike = recorded(level(20), grad_max_abs=sizes, grad_mean_abs=sizes)
    drawn = recorded(level(20), grad_max_abs=4 * sizes, grad_mean_abs=sizes)
    learns = recorded(falling(60, pace=0.06), grad_max_abs=sizes, grad_mean_abs=sizes)

    assert only("symmetry", alike).fix.code == "reinitialise"
    assert asked("symmetry", drawn) == asked("symmetry", learns) == []


def test_elements_clipped_to_one_bound_in_every_layer_are_not_symmetry():
    clipped = recorded(level(20), grad_max_abs=1e-5, grad_mean_abs=1e-5)

    assert asked("symmetry", clipped) == asked("vanishing", clipped) == []


def test_units_that_start_alike_are_told_where_the_loss_rests_high():
    sizes = np.geomspace(1e-3, 1e-2, 12)
    found = recorded(falling(120, end=1.0, pace=0.1), grad_max_abs=sizes, grad_mean_abs=sizes)

    assert only("symmetry", found).fix.code == "reinitialise"


def test_units_that_were_seen_to_start_as_the_same_numbers_are_told_where_most_layers_have_them():
    most = {"alike_units": [f"hidden.{place}.weight" for place in range(4)]}
    one = {"alike_units": ["hidden.0.weight"]}

    found = only("symmetry", recorded(level(60), facts=most))

    assert found.layers == tuple(most["alike_units"])
    assert asked("symmetry", recorded(level(60), facts=one)) == []


def test_hidden_units_that_start_alike_stay_told_however_far_the_loss_falls():
    hidden = {"alike_units": [f"hidden.{place}.weight" for place in range(4)]}
    two = network(2)
    last = {"alike_units": ["hidden.1.weight"]}

    assert only("symmetry", recorded(falling(200, end=1e-3), facts=hidden)).severity == "warning"
    assert asked("symmetry", recorded(falling(200), layers=two, facts=last)) == []


def test_outputs_alone_that_start_alike_are_told_where_nothing_came_back_and_the_loss_is_stuck():
    facts = {"alike_units": ["hidden.5.weight"]}
    back = np.full((60, 12), 1e-2)
    back[0, :10] = 0.0

    found = only("symmetry", recorded(level(60), facts=facts, grad_l2=back))

    assert found.layers == ("hidden.5.weight",)
    assert asked("symmetry", recorded(level(60), facts=facts)) == []
    assert asked("symmetry", recorded(falling(60), facts=facts, grad_l2=back)) == []


def test_a_start_fits_the_model_s_non_linearity_where_no_layer_has_one_of_its_own():
    facts = {"alike_units": [f"hidden.{place}.weight" for place in range(4)]}

    def scheme(kind):
        history = recorded(level(60), layers=network(6, ""), facts={**facts, "activations": [kind]})
        return only("symmetry", history).fix.parameters["scheme"]

    assert (scheme("ELU"), scheme("ReLU")) == ("xavier", "kaiming")


def test_layers_side_by_side_that_are_copies_and_get_the_same_gradients_are_told():
    weights = np.arange(1.0, 13.0)
    drawn = recorded(level(60), weight_l2=weights, grad_l2=np.outer(noise(60, 0.2), weights))
    weights[:10:2] = 3.0  # all matrices but the last
    pulls = np.outer(noise(60, 0.2), weights)

    found = only("symmetry", recorded(level(60), weight_l2=weights, grad_l2=pulls))

    assert found.layers == tuple(f"hidden.{place}.weight" for place in range(5))
    assert asked("symmetry", drawn) == []
    pulls[:, 2] *= noise(60, 0.2, seed=1)
    pulls[:, 4] *= noise(60, 0.2, seed=2)
    pulls[:, 6] *= noise(60, 0.2, seed=3)
    assert asked("symmetry", recorded(level(60), weight_l2=weights, grad_l2=pulls)) == []
    assert asked("symmetry", recorded(falling(60), weight_l2=weights, grad_l2=pulls)) == []


def test_weights_are_drawn_anew_as_fits_what_stands_behind_them():
    def scheme(activation):
        stack = network(activation=activation)
        return only("symmetry", recorded(level(20), layers=stack, weight_l2=0.0)).fix.parameters

    assert scheme("ReLU")["scheme"] == scheme("")["scheme"] == "kaiming"
    assert scheme("GELU")["scheme"] == scheme("Tanh")["scheme"] == "xavier"


def test_two_layers_in_a_row_that_start_alike_are_told_however_many_others_do_not():
    row = {"alike_units": ["hidden.2.weight", "hidden.3.weight"]}
    apart = {"alike_units": ["hidden.1.weight", "hidden.3.weight"]}

    found = only("symmetry", recorded(falling(120, end=0.6), facts=row))

    assert found.layers == tuple(row["alike_units"])
    assert asked("symmetry", recorded(falling(120, end=0.6), facts=apart)) == []
