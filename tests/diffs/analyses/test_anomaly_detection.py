import ml_dtypes
import numpy as np
import pytest
from simulation import replicates

from difflens.core.policy import Policy
from difflens.diffs.analyses import ask
from difflens.diffs.evidence.records import Evidence, Gradients, Log, Optimizer, Side
from difflens.diffs.methods.anomalies.values import bits_of
from difflens.diffs.story import diff

NAME = "anomaly_detection"
WEIGHTS = ["nan_inf", "dtype_saturation", "isolated_extreme_value", "weight_explosion",
           "weight_collapse", "dead_units", "duplicated_rows", "distribution_shift",
           "spectral_spike", "moved_unlike_peers"]  # fmt: skip
TRAINING = ["gradient_explosion", "gradient_vanishing", "loss_spike"]


def healthy(seed=0, layers=10, width=32, dtype=np.float32):
    """A random initialisation: ten blocks, each with matrices, a bias and a norm."""
    random = np.random.default_rng(seed)
    model = {"embed_tokens.weight": random.normal(0, 0.02, (96, width))}
    for i in range(layers):
        block = f"layers.{i}"
        for part in ("q", "k", "v", "o"):
            model[f"{block}.self_attn.{part}_proj.weight"] = random.normal(0, 0.1, (width, width))
        for part in ("gate", "up"):
            model[f"{block}.mlp.{part}_proj.weight"] = random.normal(0, 0.1, (2 * width, width))
        model[f"{block}.mlp.up_proj.bias"] = random.normal(0, 0.1, 2 * width)
        model[f"{block}.norm.weight"] = 1 + random.normal(0, 0.05, width)
    return {name: value.astype(dtype) for name, value in model.items()}


def nudged(model, seed=1):
    random = np.random.default_rng(seed)
    return {name: (value.astype(np.float64) * (1 + random.normal(0, 0.01, value.shape)))
            .astype(value.dtype) for name, value in model.items()}  # fmt: skip


LEFT = healthy()
UP = "layers.3.mlp.up_proj.weight"


def found(right, left=None, evidence=None, **thresholds):
    policy = Policy(thresholds={NAME: thresholds})
    return ask(NAME, diff(left or LEFT, right), evidence or Evidence(), policy)


def planted(change, name=UP, left=None):
    right = nudged(left or LEFT)
    right[name] = change(right[name].copy()).astype(right[name].dtype)
    return right


def kinds(envelope, subject=UP):
    return {each.text.partition(":")[0] for each in envelope.findings if each.subject == subject}


def test_a_healthy_fine_tune_has_no_anomaly_and_says_what_was_looked_for():
    envelope = found(nudged(LEFT))

    assert envelope.fields["type"] == "none"
    assert envelope.fields["severity"] == "none"
    assert envelope.fields["affected"] == {"count": 0, "names": []}
    run = {each["name"] for each in envelope.fields["detectors"] if each["run"]}
    silent = {each["name"]: each for each in envelope.fields["detectors"] if not each["run"]}
    assert run == set(WEIGHTS)
    assert set(silent) == set(TRAINING)
    assert "--gradients" in silent["gradient_vanishing"]["needs"]


@replicates
def test_two_random_initialisations_raise_no_alarm(repeats):
    """200 tensors or more a pair: fewer than 0.05 findings are to be expected."""
    pairs = max(2, repeats // 75)
    total = tensors = 0
    for seed in range(pairs):
        left, right = (healthy(2 * seed + side + 10, layers=25, width=16) for side in (0, 1))
        envelope = found(right, left)
        total += len(envelope.findings)
        tensors += len(left)

    assert tensors / pairs >= 200
    assert total / pairs < 0.05


def nan(value):
    value[3, 4] = np.nan
    return value


def flipped(value):
    """Flip the highest bit of an exponent."""
    codes = value.view(np.uint32)
    codes[5, 6] ^= 1 << 30
    return value


def grown(value):
    return value * 20


def shrunk(value):
    return value / 20


def zeroed(value):
    return np.zeros_like(value)


def constant(value):
    return np.full_like(value, 0.5)


def dead(value):
    value[:20] = 0
    return value


def copied(value):
    value[7] = value[2]
    return value


def shifted(value):
    return value + 0.2 * value.std()


def spiked(value):
    random = np.random.default_rng(9)
    one, other = random.normal(size=len(value)), random.normal(size=value.shape[1])
    product = np.outer(one / np.linalg.norm(one), other / np.linalg.norm(other))
    return value + 5 * np.linalg.norm(value, 2) * product


@pytest.mark.parametrize(
    ("change", "kind", "severity"),
    [
        (nan, "nan_inf", "critical"),
        (flipped, "isolated_extreme_value", "high"),
        (grown, "weight_explosion", "high"),
        (shrunk, "weight_collapse", "high"),
        (zeroed, "weight_collapse", "critical"),
        (constant, "weight_collapse", "high"),
        (copied, "duplicated_rows", "low"),
        (shifted, "distribution_shift", "low"),
        (spiked, "spectral_spike", "medium"),
    ],
)
def test_a_planted_fault_is_found_where_it_was_planted(change, kind, severity):
    envelope = found(planted(change))

    assert kind in kinds(envelope)
    assert {each.subject for each in envelope.findings} == {UP}
    (told,) = [each for each in envelope.findings if each.text.startswith(kind)]
    assert told.severity == severity


@pytest.mark.parametrize(
    ("ratio", "severity"),
    [(1.5, None), (2.5, "low"), (6, "medium"), (12, "high"), (150, "critical")],
)
@pytest.mark.parametrize("kind", ["weight_explosion", "weight_collapse"])
def test_the_severity_of_a_growth_follows_its_ratio(ratio, severity, kind):
    by = ratio if kind == "weight_explosion" else 1 / ratio
    envelope = found(planted(lambda value: value * by))

    told = [each.severity for each in envelope.findings if each.text.startswith(kind)]
    assert told == [severity] * (severity is not None)


def test_what_all_tensors_of_a_role_do_is_no_anomaly_of_one():
    right = {name: value * np.float32(4) if "q_proj" in name else value
             for name, value in nudged(LEFT).items()}  # fmt: skip

    assert "weight_explosion" not in {each.text.partition(":")[0] for each in found(right).findings}


def test_in_a_small_group_the_ratio_alone_decides():
    right = planted(grown, "embed_tokens.weight")

    assert "weight_explosion" in kinds(found(right), "embed_tokens.weight")


def test_a_flipped_bit_is_printed():
    (text,) = [each.text for each in found(planted(flipped)).findings
               if each.text.startswith("isolated")]  # fmt: skip

    assert "[5, 6]" in text
    before, _, after = text.partition("bits ")[2].partition(" (")[0].partition(" -> ")
    assert len(before) == len(after) == 32


@pytest.mark.parametrize(
    ("dtype", "numpy_type"),
    [("F32", np.float32), ("F16", np.float16), ("F64", np.float64), ("BF16", ml_dtypes.bfloat16)],
)
def test_bits_are_those_of_the_format(dtype, numpy_type):
    value = numpy_type(-1.5)
    code = int.from_bytes(np.asarray(value).tobytes(), "little")

    assert bits_of(-1.5, dtype) == code


@pytest.mark.parametrize("dtype", [np.float16, ml_dtypes.float8_e4m3fn, ml_dtypes.float8_e5m2])
def test_clipped_values_are_saturated(dtype):
    largest = float(ml_dtypes.finfo(dtype).max)
    left = healthy(layers=1)
    right = {name: value.astype(dtype) for name, value in left.items()}
    name = "layers.0.mlp.up_proj.weight"
    right[name][0, :3] = largest
    envelope = found(right, left)

    assert "dtype_saturation" in kinds(envelope, name)
    assert envelope.fields["severity"] == "critical"


def test_what_fills_its_dtype_by_a_scale_beside_it_is_not_saturated():
    name = "layers.0.mlp.up_proj.weight"
    left = healthy(layers=1, dtype=ml_dtypes.float8_e4m3fn)
    left[f"{name}_scale"] = np.ones(1, np.float32)
    right = dict(left)
    right[name] = left[name].copy()
    right[name][0, 0] = 448

    assert "dtype_saturation" not in kinds(found(right, left), name)


@pytest.mark.parametrize(
    ("rows", "severity"), [(0, None), (1, "low"), (10, "medium"), (40, "high")]
)
def test_dead_rows_count_where_their_bias_is_zero_too(rows, severity):
    right = nudged(LEFT)
    right[UP][:rows] = 0
    silent = right | {UP.replace("weight", "bias"): right[UP.replace("weight", "bias")].copy()}
    silent[UP.replace("weight", "bias")][:rows] = 0

    told = [each.severity for each in found(silent).findings if each.text.startswith("dead")]
    assert told == [severity] * (severity is not None)
    assert "dead_units" not in kinds(found(right))


def test_dead_columns_count_whatever_the_bias():
    right = nudged(LEFT)
    right[UP][:, :4] = 0

    assert "dead_units" in kinds(found(right))


def test_what_was_there_before_is_no_news():
    left = dict(LEFT)
    left[UP] = dead(copied(LEFT[UP].copy()))
    right = {name: value * np.float32(1.001) for name, value in left.items()}

    assert found(right, left).findings == ()


def test_a_model_full_of_faults_has_none_against_itself():
    broken = planted(nan)

    assert found(broken, broken).findings == ()


def test_the_worst_is_told_first():
    right = planted(copied)
    right["layers.1.norm.weight"] = right["layers.1.norm.weight"].copy()
    right["layers.1.norm.weight"][0] = np.inf
    envelope = found(right)

    assert (envelope.fields["type"], envelope.fields["severity"]) == ("nan_inf", "critical")
    assert envelope.fields["affected"]["count"] == 2
    assert [each.severity for each in envelope.findings] == ["critical", "low"]


def test_headers_alone_and_nothing_at_all_are_not_enough():
    headers = ask(NAME, diff(LEFT, nudged(LEFT), shape_only=True))

    assert headers.status == "not_enough_information"
    assert ask(NAME, diff({}, {})).status == "not_applicable"
    assert set(headers.fields.values()) == {None}


def steady(length=200, level=1.0, seed=0):
    random = np.random.default_rng(seed)
    return level * np.exp(random.normal(0, 0.1, length))


def points(values):
    return tuple((float(10 * step), float(value)) for step, value in enumerate(values))


def training(envelope):
    return {each.text.partition(":")[0] for each in envelope.findings}


def test_gradient_words_come_from_gradients_alone():
    envelope = found(planted(grown))

    assert not any("gradient" in each.text for each in envelope.findings)


def test_an_exploded_gradient_is_found_in_what_was_recorded():
    norms = steady()
    norms[120:] *= 300
    evidence = Evidence(gradients=Gradients({"layers.3": points(norms)}))
    envelope = found(LEFT, evidence=evidence)

    assert training(envelope) == {"gradient_explosion"}
    assert envelope.fields["severity"] == "high"
    assert envelope.fields["affected"]["names"] == ["layers.3"]


def test_an_exploded_gradient_is_found_in_the_log_too():
    norms = steady()
    norms[120:] *= 30
    envelope = found(LEFT, evidence=Evidence(log=Log({"grad_norm": points(norms)})))

    assert training(envelope) == {"gradient_explosion"}
    assert envelope.fields["severity"] == "medium"


def test_a_norm_that_is_no_number_exploded():
    gradients = Gradients({"layers.3": points(steady())}, nonfinite={"layers.3": (70.0, 80.0)})
    envelope = found(LEFT, evidence=Evidence(gradients=gradients))

    assert envelope.fields["severity"] == "critical"
    assert envelope.findings[0].evidence == {"steps": 2.0, "first": 70.0}


def test_a_layer_without_gradient_vanished_beside_its_like():
    names = [f"layers.{i}.self_attn.q_proj.weight" for i in range(5)]
    norms = {name: points(steady(seed=i, level=1e-6 if i == 2 else 1.0))
             for i, name in enumerate(names)}  # fmt: skip
    envelope = found(LEFT, evidence=Evidence(gradients=Gradients(norms)))

    assert training(envelope) == {"gradient_vanishing"}
    assert envelope.findings[0].subject == names[2]


def test_moments_that_are_zero_or_no_number_tell_of_gradients():
    def optimizer(values):
        return Optimizer(moments={0: {"exp_avg_sq": diff({"v": values}, {}).values("left", "v")}})

    zero, broken = np.zeros(500, np.float32), np.full(500, np.nan, np.float32)
    fine = np.ones(500, np.float32)

    def told(values):
        return training(found(LEFT, evidence=Evidence(right=Side(optimizer=optimizer(values)))))

    assert told(fine) == set()
    assert told(zero) == {"gradient_vanishing"}
    assert told(broken) == {"gradient_explosion"}


def test_a_spike_of_the_loss_and_a_loss_that_is_no_number_are_found():
    values = 2 + 0.01 * np.random.default_rng(0).normal(size=100)
    values[50] = 5
    spiky = found(LEFT, evidence=Evidence(log=Log({"loss": points(values)})))
    lost = found(LEFT, evidence=Evidence(log=Log({"loss": points(values[:40])},
                                                 nonfinite={"loss": (400.0,)})))  # fmt: skip

    assert training(spiky) == training(lost) == {"loss_spike"}
    assert spiky.fields["severity"] == "high"
    assert "at step 500" in spiky.findings[0].text


def test_the_log_speaks_without_values_of_tensors():
    headers = diff(LEFT, LEFT, shape_only=True)
    envelope = ask(NAME, headers, Evidence(log=Log({"loss": points(steady())})))

    assert envelope.fields["type"] == "none"
    assert {each["name"] for each in envelope.fields["detectors"] if each["run"]} == {"loss_spike"}


def test_biases_that_all_grew_from_almost_zero_are_no_explosion():
    random = np.random.default_rng(0)
    left = {f"layers.{i}.proj.bias": random.normal(0, 1e-4, 64).astype("f4") for i in range(4)}
    right = {name: value * np.float32(5 + random.random()) for name, value in left.items()}
    for i in range(12):  # and biases that began elsewhere
        left[f"layers.{i}.fc.bias"] = random.normal(0, 0.1, 64).astype("f4")
        right[f"layers.{i}.fc.bias"] = left[f"layers.{i}.fc.bias"] * np.float32(1.001)

    assert not found(right, left).findings


def test_a_distribution_that_all_layers_changed_alike_is_no_anomaly_of_one():
    right = {
        name: np.where(np.abs(v) < np.quantile(np.abs(v), 0.7), 0, v) for name, v in LEFT.items()
    }

    assert "distribution_shift" not in {
        each.text.partition(":")[0] for each in found(right).findings
    }


Q, K = "layers.3.self_attn.q_proj.weight", "layers.3.self_attn.k_proj.weight"


def redrawn(value):
    return np.random.default_rng(5).normal(value.mean(), value.std(), value.shape)


def scattered(value):
    return np.random.default_rng(6).permutation(value.ravel()).reshape(value.shape)


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (redrawn, "as if drawn anew"),
        (scattered, "the same values, shuffled"),
        (lambda value: value.T, "it is transposed"),
        (lambda value: -value, "its sign is flipped"),
        (lambda value: value[::-1], "its rows are in another order"),
    ],
    ids=["redrawn", "shuffled", "transposed", "sign", "rows"],
)
@pytest.mark.parametrize("noise", [0.001, 0.01, 0.1])
def test_a_matrix_that_was_destroyed_but_kept_its_distribution_is_found(change, words, noise):
    random = np.random.default_rng(0)
    right = {
        name: (value + noise * value.std() * random.normal(size=value.shape)).astype("f4")
        for name, value in LEFT.items()
    }
    right[Q] = change(LEFT[Q]).astype("f4")

    (finding,) = found(right).findings

    assert finding.subject == Q
    assert finding.severity == "high"
    assert words in finding.text
    assert finding.evidence["peers_median"] == pytest.approx(noise, rel=0.1)
    assert finding.evidence["relative_l2"] > 1


def test_queries_and_keys_that_changed_places_are_both_named():
    right = nudged(LEFT)
    right[Q], right[K] = right[K], right[Q]

    texts = {each.subject: each.text for each in found(right).findings}

    assert f"it holds what {K} held" in texts[Q]
    assert f"it holds what {Q} held" in texts[K]
    assert len(texts) == 2


@pytest.mark.parametrize("change", [scattered, np.transpose, np.negative])
def test_what_no_training_does_is_found_where_nothing_else_moved(change):
    right = LEFT | {Q: np.ascontiguousarray(change(LEFT[Q]))}

    assert kinds(found(right), Q) == {"moved_unlike_peers"}


@pytest.mark.parametrize(
    "right",
    [
        LEFT | {"layers.3.mlp.up_proj.weight": redrawn(LEFT[UP]).astype("f4")},
        nudged(LEFT) | {"lm_head.weight": np.ones((9, 32), "f4")},
        {name: redrawn(value).astype("f4") for name, value in LEFT.items()},
        {name: np.ascontiguousarray(v.T) if v.shape == (32, 32) else v for name, v in LEFT.items()},
    ],
    ids=["one edited matrix", "a new head", "another model", "converted"],
)
def test_replacements_that_people_make_are_no_anomaly(right):
    assert "moved_unlike_peers" not in {
        each.text.partition(":")[0] for each in found(right).findings
    }
