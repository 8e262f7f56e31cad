"""Each remedy changes what it says, and none puts the parent back by stealth."""

from __future__ import annotations

from dataclasses import asdict, replace

import pytest

from zoo.configs import Config
from zoo.configs.faults import FAULTS
from zoo.configs.unseen_faults import UNSEEN_FAULTS
from zoo.fixes import FIXES, mend

FAULTY = replace(
    Config(), lr=0.5, momentum=0.98, warmup=0, clip=None, init="zero", init_scale=3.0,
    hidden_bias=-8.0, activation="sigmoid", norm="none", residual=False, optimised="last",
    calls_step=False, zero_grad="never", train_mode=False, detach_after=1, softmax=True,
    loss_sign=-1, order="sorted", labels="permuted", input_scale=100.0, target_scale=1000.0,
    skip_nonfinite=False, loss="naive-log", batch=1, kick_step=5, kick_factor=60.0, bad_step=7,
    schedule="early-zero", recurrent="identity", recurrent_scale=0.3, memory_bias=-6.0,
    ending="relu", gate_bias=-9.0, norm_scale=0.1, entry_scale=20.0, alike="*", copied=True,
    left_out="*", rates=(("*", 2.0),), norms_eval=True, cut_branches=True, augment="turn",
    odd_column=50.0, held_scale=9.0, own_eps=0.0, flip_step=3, burst_step=4, averaged=0.9,
    restored=5, doubled=2, loss_scale=1e-7, unscaled=False, norm_momentum=0.0,
    held_loss="auto", class_weights="inverted", mixed_up=True, batch_first=False, pads="read",
    dropout=0.95, penalty=-0.02, l1=0.05, prior=-0.3, scale_period=10,
    skip_gain=2.5, samples=30,
)  # fmt: skip
START = {"init", "init_scale", "hidden_bias", "recurrent", "recurrent_scale", "memory_bias",
         "gate_bias", "norm_scale", "entry_scale", "alike", "copied"}  # fmt: skip
STEP = {"kick_step", "kick_factor", "bad_step", "flip_step", "burst_step"}
CASES = {
    "scale_lr": ({"factor": 0.1}, {"lr"}),
    "set_lr": ({"value": 0.01}, {"lr"}),
    "warmup": ({"steps": 50}, {"warmup"}),
    "clip_gradients": ({"max_norm": 1.0}, {"clip"}),
    "reinitialise": ({"scheme": "kaiming"}, START),
    "change_activation": ({"to": "LeakyReLU"}, {"activation"}),
    "add_normalisation": ({"kind": "layer"}, {"norm"}),
    "add_residual": ({}, {"residual"}),
    "add_to_optimizer": ({"layers": ["hidden.0"]}, {"optimised", "left_out", "rates"}),
    "unscale_shortcuts": ({}, {"skip_gain"}),
    "call_step": ({}, {"calls_step"}),
    "call_zero_grad": ({}, {"zero_grad"}),
    "train_mode": ({}, {"train_mode", "norms_eval"}),
    "remove_detach": ({"layers": []}, {"detach_after", "cut_branches"}),
    "remove_softmax": ({}, {"softmax", "ending"}),
    "negate_loss": ({}, {"loss_sign"}),
    "match_loss": ({}, {"loss"}),
    "balance_classes": ({}, {"class_weights"}),
    "shuffle": ({}, {"order"}),
    "check_labels": ({}, {"labels", "augment"}),
    "follow_example": ({}, {"labels", "augment", "mixed_up", "batch_first", "pads"}),
    "match_shapes": ({}, set()),  # this one's loss has no rows and columns to mix up
    "scale_inputs": ({}, {"input_scale", "odd_column", "held_scale"}),
    "scale_targets": ({}, {"target_scale"}),
    "scale_penalty": ({"factor": -0.01}, {"penalty", "l1", "prior"}),
    "normalise_scores": ({}, set()),  # this one's loss has a softmax
    "check_signs": ({}, {"penalty", "prior"}),
    "skip_nonfinite": ({}, {"skip_nonfinite"}),
    "stable_loss": ({}, {"loss", "own_eps"}),
    "lower_momentum": ({"value": 0.9}, {"momentum"}),
    "larger_batch": ({"factor": 32}, {"batch"}),
    "regularise": ({"dropout": 0.5, "weight_decay": 0.1}, {"dropout", "weight_decay", "optimiser"}),
    "lower_dropout": ({"value": 0.1}, {"dropout"}),
    "stop_early": ({"step": 40}, {"stop_step"}),
    "more_data": ({"factor": 20.0}, {"samples"}),
    "fix_schedule": ({"hold": 0.01}, {"schedule", "lr"}),
    "rewind_and_skip": ({"step": 5}, STEP),
    "leave_weights": ({}, {"averaged", "restored"}),
    "step_once": ({}, {"doubled"}),
    "scale_loss": ({"factor": 1024.0}, {"loss_scale", "scale_period", "unscaled"}),
    "scale_attention": ({}, set()),  # this one has none
    "scale_embeddings": ({"factor": 0.5}, {"entry_scale"}),
    "norm_momentum": ({"value": 0.1}, {"norm_momentum"}),
    "unscale_gradients": ({}, {"unscaled"}),
}


def test_every_remedy_that_was_agreed_can_be_applied():
    assert set(CASES) == set(FIXES)


@pytest.mark.parametrize("code", sorted(CASES))
def test_a_remedy_changes_what_it_names_and_nothing_else(code):
    parameters, named = CASES[code]
    after = mend(FAULTY, {"code": code, "parameters": parameters})
    before, changed = asdict(FAULTY), asdict(after)

    assert {knob for knob in before if before[knob] != changed[knob]} == named


def test_larger_batches_come_with_a_lower_rate_where_the_remedy_names_one():
    asked = {"factor": 4, "lr_factor": 0.5}
    after = mend(FAULTY, {"code": "larger_batch", "parameters": asked})

    assert after == replace(FAULTY, batch=4 * FAULTY.batch, lr=FAULTY.lr / 2)


def test_a_remedy_nobody_knows_is_none():
    assert mend(FAULTY, {"code": "pray", "parameters": {}}) is None
    assert mend(FAULTY, {"code": "scale_lr", "parameters": {}}) is None
    assert mend(FAULTY, {"code": "reinitialise", "parameters": {"scheme": "wishful"}}) is None


def test_the_right_remedy_puts_a_one_knob_fault_right():
    wrong = {fault.id: fault for fault in (*FAULTS, *UNSEEN_FAULTS)}
    for name, code in (
        ("W1", "add_to_optimizer"), ("W2", "call_step"), ("W3", "call_zero_grad"),
        ("W4", "remove_detach"), ("W5", "train_mode"), ("L1", "remove_softmax"),
        ("L2", "negate_loss"), ("X1", "check_labels"), ("X2", "shuffle"), ("N1", "stable_loss"),
        ("S5", "fix_schedule"), ("UW3", "add_to_optimizer"), ("UW4", "remove_detach"),
        ("UW8", "call_step"), ("UR3", "train_mode"), ("UR5", "call_zero_grad"),
        ("UL8", "remove_softmax"), ("UX1", "check_labels"), ("UX5", "scale_inputs"),
        ("UX6", "check_labels"), ("UN1", "stable_loss"), ("UK1", "rewind_and_skip"),
    ):  # fmt: skip
        assert mend(wrong[name].config, {"code": code}) == wrong[name].parent.config


def test_a_remedy_mends_what_a_fault_switches_later():
    late = Config(switch_step=90, switched=(("train_mode", False),))

    assert mend(late, {"code": "train_mode"}) == Config()
    assert mend(late, {"code": "shuffle"}) == late
    assert mend(late, {"code": "set_lr", "parameters": {"value": 0.5}}) == replace(late, lr=0.5)


def test_a_stable_loss_is_the_same_loss_and_no_other():
    summed = Config(loss="sum")

    assert mend(Config(loss="naive-softmax"), {"code": "stable_loss"}) == Config()
    assert mend(summed, {"code": "stable_loss"}) == summed


def test_a_scale_of_the_loss_that_is_set_does_not_grow_any_more():
    growing = Config(half=True, scale_period=10)
    scale = {"code": "scale_loss", "parameters": {"factor": 1.0}}

    assert mend(growing, scale) == Config(half=True)


def test_one_shape_for_both_takes_the_broadcast_out_of_a_loss():
    assert mend(Config(loss="broadcast"), {"code": "match_shapes"}) == Config()


def test_a_convolution_gets_a_norm_that_it_has():
    cnn = Config(model="cnn")

    assert mend(cnn, {"code": "add_normalisation", "parameters": {"kind": "layer"}}).norm == "batch"
    assert mend(cnn, {"code": "add_normalisation", "parameters": {"kind": "group"}}).norm == "group"


def test_a_loss_that_takes_rates_for_logarithms_takes_their_start_along():
    rates = replace(Config(), loss="poisson-rate", output_bias=5.0)

    mended = mend(rates, {"code": "stable_loss"})

    assert (mended.loss, round(mended.output_bias, 2)) == ("poisson", 1.61)


def test_scores_get_the_loss_that_normalises_them():
    assert mend(Config(loss="nll-of-scores"), {"code": "normalise_scores"}) == Config()


def test_all_the_data_there_is_cannot_be_made_more():
    more = {"code": "more_data", "parameters": {"factor": 20.0}}

    assert mend(Config(), more) == Config()
    assert mend(Config(samples=30), more) == Config(samples=600)
