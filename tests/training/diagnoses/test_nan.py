import math

import numpy as np
from training.diagnoses.histories import asked, only

from difflens.testing.histories import falling, network, recorded
from difflens.training.records.runs import Layer

NAN = float("nan")


def broken(step, points=100, value=NAN):
    losses = falling(points)
    losses[step:] = value
    return losses


def test_a_nan_norm_is_found_not_passed_over_as_healthy():
    """DC-19, DC-17: the reference sorts NaN away or dies of it."""
    values = [NAN if step >= 60 else 1e-2 for step in range(100)]

    found = only("nan", recorded(broken(60), grad_l2=values))

    assert (found.severity, found.since_step) == ("critical", 60)
    assert found.evidence["first_in"] == "loss"


def test_the_first_layer_is_named_where_one_gradient_broke_first():
    values = np.full((50, 12), 1e-2)
    values[30:, 4] = np.inf

    found = only("nan", recorded(falling(50), grad_l2=values))

    assert found.layers == (network()[4].name,)
    assert found.evidence["first_in"] == "gradient"


def test_a_loss_scaler_that_skips_a_step_is_no_fault():
    values = np.full(100, 1e-2)
    values[[3, 50]] = np.inf

    assert (
        asked("nan", recorded(falling(100), grad_l2=values, scalars={"loss_scale": 1024.0})) == []
    )


def test_an_operation_of_the_loss_is_told_from_a_bad_sample():
    losses = broken(60)
    in_loss = np.where(np.arange(100) > 60, NAN, 0.5)
    in_data = np.where(np.arange(100) >= 60, NAN, 0.5)

    operation = only("nan", recorded(losses, act_mean=in_loss))
    sample = only("nan", recorded(losses, act_mean=in_data))

    assert (operation.fix.code, sample.fix.code) == ("stable_loss", "skip_nonfinite")


def test_a_bad_sample_that_batch_norms_would_keep_is_left_out_before_the_forward_pass():
    norm = Layer("norm.weight", (32,), "BatchNorm1d", "weight", 9, "F32", optimised=True)
    in_data = np.where(np.arange(100) >= 60, NAN, 0.5)

    found = only("nan", recorded(broken(60), layers=(*network(), norm), act_mean=in_data))

    assert (found.fix.code, found.fix.parameters) == ("rewind_and_skip", {"step": 60})


def test_evidence_can_be_written_as_json():
    found = only("nan", recorded(broken(60, value=math.inf)))

    assert all(
        not isinstance(each, float) or math.isfinite(each) for each in found.evidence.values()
    )


def test_a_target_that_is_missing_is_a_sample_since_a_squared_error_has_no_logarithm():
    losses = falling(60, start=1.0)
    losses[40:] = NAN
    gradients = np.where(np.arange(60) < 40, 1e-2, NAN)
    squared = {"output": {"shape": [32, 1], "min": -1.0, "max": 1.0}}

    found = only("nan", recorded(losses, grad_l2=gradients, act_mean=0.1, facts=squared))

    assert found.fix.code == "skip_nonfinite"


def test_inputs_that_were_not_scaled_are_to_blame_where_the_first_pass_overflows():
    facts = {"input": {"min": -65.0, "max": 148.0, "features_std_max": 87.0},
             "output": {"shape": [96, 76], "min": None, "max": None}}  # fmt: skip

    assert only("nan", recorded([NAN] * 5, facts=facts, grad_l2=NAN)).fix.code == "scale_inputs"


def test_a_gradient_that_overflows_asks_for_the_scale_of_the_loss_to_go():
    norms, hit = np.full((50, 12), 1e-2), np.zeros((50, 12))
    norms[30:, 4], hit[30:, 4] = np.inf, 1.0

    found = only("nan", recorded(falling(50), grad_l2=norms, grad_nonfinite=hit))

    assert (found.fix.code, found.fix.parameters) == ("scale_loss", {"factor": 1.0})


def test_a_network_that_breaks_inside_asks_for_that_batch_to_be_left_out():
    active = np.ones((50, 12))
    active[30:, 6:] = NAN
    classes = {"output": {"shape": [64, 10], "min": -3.0, "max": 3.0}}

    found = only("nan", recorded(broken(30, 50), facts=classes, act_mean=active))

    assert found.fix.code == "skip_nonfinite"
