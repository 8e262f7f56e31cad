import ml_dtypes
import numpy as np
import pytest
import torch
from diffs.analyses.optimizers import BEFORE, Trained, adam_state
from diffs.analyses.small import changed, decoder, nudged

from difflens.core.policy import Policy
from difflens.diffs.analyses import ask
from difflens.diffs.evidence.optimizer import optimizer
from difflens.diffs.evidence.records import Evidence, Log, Side
from difflens.diffs.story import diff

MODEL = decoder()
TUNED = changed(MODEL, nudged, "mlp")


def rates(evidence=None, policy=None, left=MODEL, right=TUNED):
    thresholds = {"learning_rate_analysis": policy or {}}
    return ask("learning_rate_analysis", diff(left, right), evidence or Evidence(),
               Policy(thresholds))  # fmt: skip


@pytest.fixture
def read(tmp_path):
    """Save what torch trained, and read its optimiser as difflens does."""

    def reader(trained):
        torch.save(trained.optimizer.state_dict(), tmp_path / "optimizer.pt")
        return Evidence(right=Side(optimizer=optimizer(tmp_path / "optimizer.pt")))

    return reader


def test_one_step_of_adamw_gives_back_its_rate_and_decay(read):
    trained = Trained(width=160)

    fields = rates(read(trained), left=trained.left, right=trained.right).fields

    assert fields["lr_estimate"] == pytest.approx(3e-4, rel=1e-6)
    # torch multiplies weights by 1 - lr wd, which a float32 can hold only to 6e-8.
    applied = (1 - float(np.float32(1 - 3e-4 * 0.01))) / 3e-4
    assert fields["weight_decay_estimate"] == pytest.approx(applied, rel=1e-3)
    assert fields["weight_decay_estimate"] == pytest.approx(0.01, rel=1e-2)


def test_a_step_whose_decay_is_not_rounded_gives_back_the_decay():
    random = np.random.default_rng(0)
    before = random.normal(0, 0.02, (512, 512)).astype("f4")
    first = random.normal(0, 1e-3, before.shape).astype("f4")
    second = (first**2 + random.uniform(0, 1e-6, before.shape)).astype("f4")
    state = adam_state([(first, second)], step=1000.0)
    update = first / (1 - 0.9**1000) / (np.sqrt(second / (1 - 0.999**1000)) + 1e-8)
    after = (before - 3e-4 * (update + 0.01 * before.astype("f8"))).astype("f4")

    fields = rates(
        Evidence(right=Side(optimizer=state)), left={"w": before}, right={"w": after}
    ).fields

    assert fields["lr_estimate"] == pytest.approx(3e-4, rel=1e-6)
    assert fields["weight_decay_estimate"] == pytest.approx(0.01, rel=1e-3)


def test_in_double_precision_the_rate_is_exact(read):
    trained = Trained(dtype=torch.float64, width=32)

    fields = rates(read(trained), left=trained.left, right=trained.right).fields

    assert fields["lr_estimate"] == pytest.approx(3e-4, rel=1e-12)
    assert fields["weight_decay_estimate"] == pytest.approx(0.01, rel=1e-9)


def test_ten_steps_are_refused_for_what_they_leave_unexplained(read):
    trained = Trained(gap=10, width=32)

    envelope = rates(read(trained), left=trained.left, right=trained.right)

    assert envelope.fields["lr_estimate"] is None
    (why,) = [each.why for each in envelope.missing if each.field == "lr_estimate"]
    assert "one step explains R² = 0." in why


def test_ten_steps_are_refused_by_their_number_where_it_is_known(read):
    trained = Trained(gap=10, width=32)
    state = read(trained).right.optimizer
    evidence = Evidence(left=Side(step=40), right=Side(step=50, optimizer=state))

    envelope = rates(evidence, left=trained.left, right=trained.right)

    (why,) = [each.why for each in envelope.missing if each.field == "lr_estimate"]
    assert why.startswith("10 steps lie between")


def test_what_bfloat16_rounds_away_is_refused(read):
    trained = Trained(width=32)
    left, right = ({name: each.astype(ml_dtypes.bfloat16) for name, each in side.items()}
                   for side in (trained.left, trained.right))  # fmt: skip

    fields = rates(read(trained), left=left, right=right).fields

    assert fields["lr_estimate"] is None
    lenient = rates(read(trained), {"least_r2": 0.0}, left=left, right=right).fields
    assert lenient["lr_fits"][0]["r2"] < 0.95


def test_groups_are_fitted_one_by_one(read):
    trained = Trained(split=True, dtype=torch.float64, width=32)

    fits = rates(read(trained), left=trained.left, right=trained.right).fields["lr_fits"]

    assert [each["lr"] for each in fits] == pytest.approx([3e-4, 3e-4], rel=1e-9)
    assert [each["weight_decay"] for each in fits] == pytest.approx([0.01, 0.0], abs=1e-9)


def test_names_in_an_order_nobody_knows_are_told_by_how_they_moved(read):
    trained = Trained(dtype=torch.float64, width=32)
    swapped = [{_exchanged(name): each for name, each in side.items()}
               for side in (trained.left, trained.right)]  # fmt: skip

    envelope = rates(read(trained), left=swapped[0], right=swapped[1])

    assert envelope.fields["lr_estimate"] == pytest.approx(3e-4, rel=1e-9)
    assert any("the direction in which tensors moved" in line for line in envelope.assumptions)


def _exchanged(name):
    places = {"0": "2", "2": "0"}
    first, _, rest = name.partition(".")
    return f"{places.get(first, first)}.{rest}"


def test_effective_rates_are_those_of_the_moments(read):
    trained = Trained(width=32)

    told = rates(read(trained), left=trained.left, right=trained.right).fields["effective_lr"]

    parameters = dict(trained.net.named_parameters())
    for each in told:
        state = trained.optimizer.state[parameters[each["name"]]]
        below = (state["exp_avg_sq"] / (1 - 0.999 ** (BEFORE + 1))).sqrt().numpy().astype(
            float
        ) + 1e-8
        assert each["median"] == pytest.approx(3e-4 / np.median(below), rel=1e-5)
    assert [each["name"] for each in told] == list(parameters)


def test_shapes_that_do_not_agree_leave_effective_rates_unknown():
    state = adam_state([(np.ones((3, 5)), np.ones((3, 5)))])

    envelope = rates(Evidence(right=Side(optimizer=state)))

    assert envelope.fields["effective_lr"] is None
    assert "effective_lr" in {each.field for each in envelope.missing}


def test_rates_are_read_from_the_optimisers_and_flip_with_the_sides():
    sides = [Side(optimizer=adam_state([(np.ones(2), np.ones(2))], lr=rate)) for rate in (0.1, 0.4)]

    forward = rates(Evidence(left=sides[0], right=sides[1])).fields
    backward = rates(Evidence(left=sides[1], right=sides[0])).fields

    assert (forward["old"], forward["new"]) == (0.1, 0.4)
    assert forward["change"] == pytest.approx(0.3)
    assert backward["change"] == -forward["change"]


def test_rates_are_read_from_the_log_at_the_steps_of_the_checkpoints():
    log = Log({"learning_rate": tuple((10.0 * at, 1.0 - at / 100) for at in range(50))})

    fields = rates(Evidence(left=Side(step=100), right=Side(step=305), log=log)).fields

    assert (fields["old"], fields["new"]) == pytest.approx((0.9, 0.7))
    assert fields["schedule"]["kind"] == "linear"


def test_the_update_ratio_is_per_step_and_without_a_verdict():
    envelope = rates(Evidence(left=Side(step=100), right=Side(step=110)))

    flat = [np.concatenate([each.ravel() for each in side.values()]).astype(float)
            for side in (MODEL, TUNED)]  # fmt: skip
    expected = np.linalg.norm(flat[1] - flat[0]) / np.linalg.norm(flat[0]) / 10
    assert envelope.fields["update_ratio"] == pytest.approx(expected, rel=1e-9)
    assert any("folklore" in line for line in envelope.assumptions)
    assert rates().fields["update_ratio"] is None


def test_the_bound_needs_adam_to_be_asserted(read):
    trained = Trained(gap=10, width=32)
    sides = {"left": trained.left, "right": trained.right}

    silent = rates(read(trained), **sides)
    told = rates(None, {"assume_adam": True}, **sides)

    assert silent.fields["lr_lower_bound"] is None
    far = max(np.abs(trained.right[name] - trained.left[name]).max() for name in trained.left)
    assert told.fields["lr_lower_bound"] == pytest.approx(far / 3.16228, rel=1e-5)
    assert told.fields["lr_lower_bound"] <= 10 * 3e-4


def test_two_weight_files_tell_no_rate():
    envelope = rates()

    assert envelope.status == "not_enough_information"
    assert set(envelope.fields.values()) == {None}
