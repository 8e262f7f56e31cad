import numpy as np
from simulation import replicates
from training.diagnoses.histories import asked, only

from difflens.testing.histories import falling, faulty, level, network, recorded
from difflens.training.records.runs import Layer


def test_a_schedule_that_ends_at_a_tenth_of_the_run_is_told():
    found = only("plateau", faulty()["plateau"])

    assert found.since_step == 30
    assert found.fix.code == "fix_schedule"


def test_a_cosine_that_ends_with_the_run_is_no_fault():
    rate = 0.5 + 0.5 * np.cos(np.linspace(0, np.pi, 300))

    assert asked("plateau", recorded(falling(300), scalars={"lr": rate})) == []


def test_a_rate_that_stood_for_one_step_is_not_the_height_of_a_schedule():
    rate = np.where(np.arange(200) == 90, 1.0, 1e-3)

    assert asked("plateau", recorded(falling(200), scalars={"lr": rate})) == []


def test_a_flat_loss_near_its_start_is_told_from_the_loss_alone():
    """DC-07, DC-08: the largest slope is no plateau, and a duration of 10 is no measurement."""
    found = only("plateau", recorded(level(200), layers=()))

    assert found.evidence["widest_slope_a_100_steps"] <= found.evidence["band"]


def test_noise_that_hides_a_slope_is_no_proof_of_flatness():
    noisy = 2.3 * np.exp(0.6 * np.random.default_rng(0).standard_normal(160))

    assert asked("plateau", recorded(noisy, layers=())) == []


@replicates
def test_healthy_decay_is_no_plateau(repeats):
    """methods 11.4, 11.6: silent in at least 94 % of healthy decays."""
    random = np.random.default_rng(4)
    told = 0
    for _ in range(repeats):
        losses = falling(160, pace=random.uniform(0.01, 0.05)) * np.exp(
            0.1 * random.standard_normal(160)
        )
        told += bool(asked("plateau", recorded(losses, layers=())))

    assert told / repeats <= 0.06


def test_a_long_way_off_a_saddle_is_no_plateau():
    gradients = 1e-2 * 1.005 ** np.arange(200)

    assert asked("plateau", recorded(level(200)))
    assert asked("plateau", recorded(level(200), grad_l2=gradients)) == []


def test_the_first_plateau_of_a_recurrent_network_is_waited_out():
    plain, gated = (
        tuple(Layer(each.name, each.shape, kind, each.role, each.depth) for each in network())
        for kind in ("Linear", "GRU")
    )

    assert asked("plateau", recorded(level(250), layers=plain))
    assert asked("plateau", recorded(level(250), layers=gated)) == []


def test_a_flat_loss_that_held_back_data_once_was_far_below_wants_a_look_at_the_labels():
    at = np.arange(240)
    better = np.where(at % 20 == 19, np.where((at > 50) & (at < 120), 1.5, 2.3), np.nan)
    never = np.where(at % 20 == 19, 2.3, np.nan) * (1 + 1e-3 * np.sin(at))

    codes = [only("plateau", recorded(level(240), scalars={"val_loss": each})).fix.code
             for each in (better, never)]  # fmt: skip

    assert codes == ["check_labels", "scale_lr"]


def test_a_flat_loss_asks_for_a_rate_as_much_higher_as_its_steps_are_small():
    for update, factor in ((2e-4, 70), (1e-2, 10)):
        found = only("plateau", recorded(level(400), update_l2=update, weight_l2=1.0))

        assert found.fix.parameters == {"factor": factor}
