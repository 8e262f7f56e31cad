import numpy as np
import pytest
from diffs.analyses.optimizers import adam_state
from diffs.analyses.small import changed, decoder, nudged
from simulation import replicates

from difflens.core.policy import Policy
from difflens.diffs.analyses import ask
from difflens.diffs.evidence.records import Evidence, Gradients, Log, Side
from difflens.diffs.methods.training.gradients import bursts
from difflens.diffs.story import diff

MODEL = decoder()
TUNED = changed(MODEL, nudged, "mlp")
PAIR = diff(MODEL, TUNED)
STEPS = range(0, 300, 2)


def gradients(evidence=None, policy=None, pair=PAIR):
    return ask("gradient_analysis", pair, evidence or Evidence(),
               Policy({"gradient_analysis": policy or {}}))  # fmt: skip


def logged(norms, **more):
    return Evidence(
        log=Log({"grad_norm": tuple(zip(map(float, STEPS), norms, strict=True))}, **more)
    )


def recorded(scales, jump=None):
    random = np.random.default_rng(0)
    norms = {}
    for at, scale in enumerate(scales):
        sizes = scale * np.exp(random.normal(0, 0.1, len(STEPS)))
        if jump:
            sizes[120:] *= jump
        norms[f"model.layers.{at}.mlp.up_proj.weight"] = tuple(
            zip(map(float, STEPS), map(float, sizes), strict=True)
        )
    return Evidence(gradients=Gradients(norms, "a recording"))


def noisy(scale=1.0, seed=0):
    return list(map(float, scale * np.exp(np.random.default_rng(seed).normal(0, 0.1, len(STEPS)))))


def adam_of_noise(scale, batch=32, size=20000, steps=2000, seed=0):
    """Run Adam's averages over gradients of a known noise scale B tr S / |G|²."""
    random = np.random.default_rng(seed)
    mean = random.normal(size=size)
    mean /= np.linalg.norm(mean)
    spread = (scale / batch / size) ** 0.5  # tr S = size · spread²
    first, second = np.zeros(size), np.zeros(size)
    for _ in range(steps):
        gradient = mean + spread * random.normal(size=size)
        first = 0.9 * first + 0.1 * gradient
        second = 0.999 * second + 0.001 * gradient**2
    return adam_state([(first.astype("f4"), second.astype("f4"))], step=float(steps))


def noise_scale(scale, **how):
    evidence = Evidence(right=Side(optimizer=adam_of_noise(scale, **how)))
    return gradients(evidence, {"batch_size": 32}).fields["noise_scale"]


def test_two_weight_files_offer_an_update_and_no_gradient():
    envelope = gradients()

    assert envelope.status == "not_enough_information"
    flat = [np.concatenate([each.ravel() for each in side.values()]).astype(float)
            for side in (MODEL, TUNED)]  # fmt: skip
    expected = np.linalg.norm(flat[1] - flat[0])
    assert envelope.fields["update_norm"] == pytest.approx(expected, rel=1e-9)
    assert {name for name, value in envelope.fields.items() if value is not None} == {"update_norm"}


def test_plain_sgd_must_be_asserted_for_a_mean_gradient():
    envelope = gradients(policy={"sgd_lr": 0.1, "sgd_steps": 50})

    fields = envelope.fields
    assert fields["mean_gradient_norm"] == pytest.approx(fields["update_norm"] / 5)
    assert any("asserted: 50 steps of plain SGD" in line for line in envelope.assumptions)


@pytest.mark.parametrize(("scale", "tolerance"), [(32, 0.03), (320, 0.03), (3200, 0.06)])
def test_the_noise_scale_of_adams_moments_is_the_one_put_in(scale, tolerance):
    assert noise_scale(scale) == pytest.approx(scale, rel=tolerance)


def test_noise_that_hides_the_gradient_is_said_to_be_not_resolvable():
    random = np.random.default_rng(0)
    noise = random.normal(size=4000)
    state = adam_state([((0.01 * noise).astype("f4"), (noise**2).astype("f4"))], step=1e6)

    envelope = gradients(Evidence(right=Side(optimizer=state)), {"batch_size": 32})

    (missing,) = [each for each in envelope.missing if each.field == "noise_scale"]
    assert missing.why == "noise dominates; not resolvable"


def test_without_a_batch_size_noise_is_told_in_batches():
    state = adam_of_noise(32, size=2000, steps=500)

    fields = gradients(Evidence(right=Side(optimizer=state))).fields

    assert fields["noise_scale"] is None
    assert fields["noise_to_signal"] == pytest.approx(1, rel=0.2)


def test_the_norm_of_the_moments_is_bias_corrected():
    mean = np.random.default_rng(0).normal(size=50)
    step = 7
    state = adam_state([((mean * (1 - 0.9**step)), (mean**2 * (1 - 0.999**step)))], step=step)

    fields = gradients(Evidence(right=Side(optimizer=state))).fields

    assert fields["norm"] == pytest.approx(np.linalg.norm(mean), rel=1e-9)
    assert fields["noise_to_signal"] == pytest.approx(0, abs=1e-9)
    assert fields["ratio"] is None


def test_both_optimisers_give_a_ratio():
    ones = np.ones(5)
    sides = [Side(optimizer=adam_state([(size * ones, ones)])) for size in (1.0, 3.0)]

    assert gradients(Evidence(left=sides[0], right=sides[1])).fields["ratio"] == pytest.approx(3)


def test_a_steady_log_has_no_fault():
    envelope = gradients(logged(noisy()))

    assert envelope.fields["flow_health"] == "no_fault_found"
    assert envelope.fields["norm"] == pytest.approx(1, rel=0.1)
    assert envelope.findings == ()
    assert envelope.basis["flow_health"] == "looked for: non-finite norms, explosion"


def test_a_burst_that_stays_is_an_explosion_whatever_the_units():
    for scale in (1e-6, 1.0, 1e6):
        norms = noisy(scale)
        norms[120:] = [50 * norm for norm in norms[120:]]

        envelope = gradients(logged(norms))

        assert envelope.fields["flow_health"] == "exploding"
        (finding,) = envelope.findings
        assert finding.evidence["step"] == 240
        assert finding.evidence["ratio"] == pytest.approx(50, rel=0.2)


def test_one_spike_is_no_explosion():
    norms = noisy()
    norms[120] *= 1000

    assert gradients(logged(norms)).fields["flow_health"] == "no_fault_found"


def test_a_norm_that_is_no_number_is_a_fault():
    envelope = gradients(logged(noisy(), nonfinite={"grad_norm": (298.0,)}))

    assert envelope.fields["flow_health"] == "non_finite"
    assert envelope.findings[0].severity == "critical"


@replicates
def test_white_noise_is_not_called_an_explosion(repeats):
    random = np.random.default_rng(5)
    limits = {"z": 6.0, "ratio": 10.0, "window": 100, "hold": 5}
    series = np.exp(random.normal(0, 0.5, (repeats, 200)))

    called = sum(bool(bursts(tuple(enumerate(each.tolist())), limits)) for each in series)

    assert called / repeats <= 0.01


def test_layers_are_held_against_others_of_their_role():
    envelope = gradients(recorded([1.0, 1.2, 1e-5]))

    assert envelope.fields["flow_health"] == "vanishing"
    (finding,) = envelope.findings
    assert finding.subject == "model.layers.2.mlp.up_proj.weight"
    assert finding.evidence["part"] < 1e-3
    assert any("Adam rescales" in line for line in envelope.assumptions)


def test_gradients_and_weights_that_shrink_together_do_not_vanish():
    small = {name: value * np.float32(1e-5) if "layers.2.mlp" in name else value
             for name, value in TUNED.items()}  # fmt: skip

    assert (
        gradients(recorded([1.0, 1.2, 1e-5]), pair=diff(MODEL, small)).fields["flow_health"]
        != "vanishing"
    )


def test_the_norm_falls_with_depth_as_it_was_made_to():
    fields = gradients(recorded([1.0, 0.5, 0.25])).fields

    assert fields["depth_slope"] == pytest.approx(np.log(0.5), abs=0.1)
    assert [each["norm"] for each in fields["per_layer"]] == pytest.approx([1, 0.5, 0.25], rel=0.1)


def test_the_slope_of_the_norm_is_per_hundred_steps():
    decay = [float(np.exp(-0.002 * step)) * norm for step, norm in zip(STEPS, noisy(), strict=True)]

    envelope = gradients(logged(decay))

    assert envelope.fields["log_norm_slope"] == pytest.approx(-0.2, abs=0.02)
    assert envelope.uncertainty["log_norm_slope"].high < 0
    assert envelope.fields["ratio"] < 1


def test_moments_are_given_to_layers_by_name_where_shapes_agree():
    state = adam_state([(np.ones((4, 3)), np.ones((4, 3))), (np.ones(4), np.full(4, 4.0))])
    left = {"a.bias": np.ones(4, "f4"), "a.weight": np.ones((4, 3), "f4")}
    right = {name: value * 2 for name, value in left.items()}

    fields = gradients(Evidence(right=Side(optimizer=state)), pair=diff(left, right)).fields

    assert [each["layer"] for each in fields["per_layer"]] == ["a.weight", "a.bias"]
    corrected = 1 - 0.999**100
    assert fields["per_layer"][1]["norm"] == pytest.approx((16 / corrected) ** 0.5)
    assert fields["per_layer"][1]["ratio_to_weights"] == pytest.approx(1 / corrected**0.5)
