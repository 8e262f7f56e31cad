"""Whatever a history holds, it is judged: no rule breaks, and all that is said can be written."""

from math import isfinite, nan

import msgspec
import numpy as np
from hypothesis import given
from hypothesis import strategies as st
from lanes import examples

from difflens.testing.histories import faulty, healthy, network, recorded
from difflens.training.diagnoses import diagnose
from difflens.training.history.building import Builder
from difflens.training.history.frame import MISSING, MISSING_SCALAR, Frame
from difflens.training.records.runs import LAYER_FIELDS, OPTIONAL_FIELDS, Layer

MOST = 80
ODD = (nan, np.inf, -np.inf, 0.0, -1.0, 1e-30, 1e30)
FACTORS = (1.0, 1.0, 1.0, 0.0, -1.0, 1e-30, 1e30)
RUNS = faulty() | healthy()
# Of losses and rates, which have 64 bits.
FARTHER = (*FACTORS, 1e-300, 1e300, 1.7e308)

COURSES = {
    "falling": lambda at, noise: 0.1 + 2.2 * np.exp(-0.05 * at) * noise,
    "falling to nothing": lambda at, noise: 2.3 * np.exp(-0.7 * at) * noise,
    "level": lambda _, noise: 2.3 * noise**0.1,
    "constant": lambda at, _: np.ones_like(at),
    "growing": lambda at, noise: np.exp(0.1 * at) * noise,
    "exploding": lambda at, noise: 1e-2 * np.exp(np.minimum(at, 80)) * noise,
    "swinging": lambda at, noise: 1.2 + np.sin(at) * noise,
    "crossing zero": lambda at, noise: 1.0 - 0.05 * at * noise,
    "far below zero at first": lambda at, noise: np.where(at == 0, -2.0, noise),
    "zero at first": lambda at, noise: np.where(at == 0, 0.0, noise),
    "a leap": lambda at, noise: np.where(at < 40, 0.2, 60.0) * noise,
    "one spike": lambda at, noise: np.where(at == 30, 500.0, 1.0) * noise,
    "teeth": lambda at, noise: 2.5 * np.exp(-0.6 * (at % 10)) * noise**0.1,
    "stairs": lambda at, noise: 2.0 ** -(at // 15) * noise**0.1,
    "chance": lambda at, _: np.full_like(at, np.log(10)),
}  # fmt: skip


@st.composite
@np.errstate(all="ignore")
def courses(draw, points, factors=FARTHER):
    """Draw numbers over points: a course, how large, and what it is not at some of them."""
    noise = np.exp(draw(st.sampled_from((0.0, 0.1, 1.0))) * _normal(draw, points))
    course = COURSES[draw(st.sampled_from(sorted(COURSES)))](np.arange(points, dtype=float), noise)
    course = np.asarray(course * draw(st.sampled_from(factors)), float)
    for place in draw(st.lists(st.integers(0, MOST - 1), max_size=3)):
        many = draw(st.sampled_from((1, 1, 5, MOST)))
        course[place : place + many] = draw(st.sampled_from(ODD))
    return course


def _normal(draw, *shape):
    return np.random.default_rng(draw(st.integers(0, 2**16))).standard_normal(shape)


@st.composite
def looks(draw, points):
    """Draw what is measured now and then: every so many points, and then perhaps no more."""
    found = np.full(points, draw(st.sampled_from((nan, MISSING_SCALAR))))
    every, last = draw(st.integers(1, 30)), draw(st.sampled_from((MOST, MOST // 2, 1)))
    found[:last:every] = draw(courses(points))[:last:every]
    return found


@st.composite
@np.errstate(all="ignore")
def fields(draw, points, layers):
    """Draw a field of every layer: as it is in sound runs, or not at all so."""
    sizes = np.sqrt([layer.count or 1 for layer in layers])
    over = np.ones((points, len(layers))) * draw(st.sampled_from((1e-4, 1e-2, 1.0))) * sizes
    if draw(st.booleans()):
        over *= np.clip(draw(courses(points, FACTORS)), -1e30, 1e30)[:, None] / 32
    for column in draw(st.lists(st.integers(0, 11), max_size=3)) if layers else ():
        over[:, column % len(layers)] *= draw(st.sampled_from((*FACTORS, *ODD)))
    for place in draw(st.lists(st.integers(0, MOST - 1), max_size=2)):
        over[place:, : draw(st.sampled_from((1, 2, 12)))] = draw(st.sampled_from((*ODD, MISSING)))
    if draw(st.booleans()):
        over *= np.exp(0.3 * _normal(draw, *over.shape))
    return np.where(np.abs(over) < 3e38, over, np.where(np.isfinite(over), 0.0, over))


def layer(name, shape, kind, depth, activation=""):
    role = name.rpartition(".")[2]
    return Layer(name, shape, kind, role, depth, "F32", optimised=True, activation=activation)


NETWORKS = {
    "none": (),
    "one": network(1),
    "plain": network(),
    "sigmoids": network(activation="Sigmoid"),
    "without shapes": tuple(Layer(f"layer.{i}") for i in range(4)),
    "empty": (layer("a.weight", (0, 8), "Linear", 0), layer("b.weight", (8, 8), "Linear", 1)),
    "scalars": tuple(layer(f"{i}.weight", (1, 1), "Linear", i, "ReLU") for i in range(4)),
    "not trained": tuple(msgspec.structs.replace(each, optimised=False) for each in network(3)),
    "frozen": tuple(msgspec.structs.replace(each, trainable=False) for each in network(3)),
    "convolutions": tuple(
        each
        for i in range(4)
        for each in (
            layer(f"block.{i}.conv.weight", (8, 8, 3, 3), "Conv2d", 2 * i, "ReLU"),
            layer(f"block.{i}.norm.weight", (8,), "BatchNorm2d", 2 * i + 1, "ReLU"),
            layer(f"block.{i}.norm.bias", (8,), "BatchNorm2d", 2 * i + 1, "ReLU"),
        )
    ),
    "attention": (
        layer("tokens.weight", (100, 16), "Embedding", 0),
        layer("attn.q_proj.weight", (16, 16), "Linear", 1),
        layer("attn.k_proj.weight", (16, 16), "Linear", 2),
        layer("attn.v_proj.weight", (16, 16), "Linear", 3),
        layer("norm.weight", (16,), "LayerNorm", 4),
        layer("up.weight", (64, 16), "Linear", 5, "GELU"),
        layer("down.weight", (16, 64), "Linear", 6),
        layer("head.weight", (100, 16), "Linear", 7),
    ),
    **{
        kind: (
            layer("tokens.weight", (50, 8), "Embedding", 0),
            layer("rnn.weight_ih_l0", (8 * gates, 8), kind, 1),
            layer("rnn.weight_hh_l0", (8 * gates, 8), kind, 1),
            layer("rnn.bias_ih_l0", (8 * gates,), kind, 1),
            layer("rnn.bias_hh_l0", (8 * gates,), kind, 1),
            layer("head.weight", (10, 8), "Linear", 2),
            layer("head.bias", (10,), "Linear", 2),
        )
        for kind, gates in (("LSTM", 4), ("GRU", 3), ("RNN", 1))
    },
}

numbers = st.sampled_from((None, 0.0, 1.0, -1.0, 0.5, 1e-8, 100.0, 1e200, nan, np.inf, -np.inf))
shapes = st.sampled_from(
    (None, [], [0], [10], [0, 10], [1, 10], [64, 10], [64, 1], [1, 1], [64, 2], [64, 0],
     [None, 10], [16, None], [16, 5, 10], [16, 10, 8, 8], [64, 64])
)  # fmt: skip
inputs = st.fixed_dictionaries(
    {},
    optional={
        "dtype": st.sampled_from(("float32", "int64", "")),
        **dict.fromkeys(
            ("mean", "std", "min", "max", "features_std_min", "features_std_max"), numbers
        ),
    },
)
outputs = st.fixed_dictionaries(
    {"shape": shapes}, optional={"rows_sum_to_one": st.booleans(), "min": numbers, "max": numbers}
)
names = st.lists(st.sampled_from(("hidden.0.weight", "nowhere")), max_size=2)
facts = st.fixed_dictionaries(
    {},
    optional={
        "input": st.none() | inputs,
        "output": st.none() | outputs | outputs,
        "final_module": st.sampled_from(
            (None, "", "Softmax", "LogSoftmax", "Sigmoid", "Tanh", "ReLU", "Linear", "Cosine")
        ),
        "activations": st.none() | st.lists(st.sampled_from(("ReLU", "Sigmoid", "Tanh", "GELU"))),
        "norm_layers": st.sampled_from((None, 0, 1, 8)),
        "dropout": st.sampled_from((None, 0.0, 0.5, 1.0)),
        "eval_modules": st.none() | names | st.dictionaries(st.just("norm"), st.just("eval")),
        "alike_units": st.none() | names,
        "estimated_weights": st.sampled_from((None, 0, 1, 5)),
    },
)
optimizers = st.fixed_dictionaries(
    {},
    optional={
        "name": st.sampled_from((None, "", "SGD", "Adam", "AdamW", "RMSprop", "Lion")),
        "momentum": st.sampled_from((None, 0, 0.9, 0.99, 1, 1.5, -1, nan)),
        "nesterov": st.none() | st.booleans(),
        "weight_decay": st.sampled_from((None, 0, 1e-2, 1, 10, -1, nan, 1e300)),
        "decoupled_weight_decay": st.booleans(),
        "alpha": st.sampled_from((None, 0, 0.99, 1, 2, nan)),
        "several_rates": st.booleans(),
    },
)


@st.composite
def histories(draw):
    """Draw a history in which nothing needs to be as it is in training."""
    points = draw(st.integers(0, MOST) | st.integers(MOST // 2, MOST))
    layers = NETWORKS[draw(st.sampled_from(sorted(NETWORKS)))]
    scalars = {}
    if draw(st.booleans()):
        scalars["val_loss"] = draw(looks(points))
    for name in ("lr", "loss_scale", "clip_factor", "grad_kept", "optimizer_steps", "val_accuracy"):
        if draw(st.integers(0, 3)) == 0:
            scalars[name] = draw(courses(points) | st.just(np.full(points, MISSING_SCALAR)))
    chosen = {
        name: draw(fields(points, layers))
        for name in draw(st.sets(st.sampled_from((*LAYER_FIELDS, *OPTIONAL_FIELDS)), max_size=8))
    }
    return recorded(
        draw(courses(points)),
        layers=layers,
        scalars=scalars,
        facts=draw(facts),
        optimizer=draw(optimizers),
        **chosen,
    )


def told_numbers(value):
    """Yield every number in plain data; what is no plain data is not to be there."""
    if isinstance(value, dict):
        for each in value.values():
            yield from told_numbers(each)
    elif isinstance(value, (list, tuple)):
        for each in value:
            yield from told_numbers(each)
    elif not isinstance(value, str) and value is not None:
        assert type(value) in {bool, int, float}
        yield value


@st.composite
@np.errstate(all="ignore")
def damaged(draw):
    """Draw a run that one rule or another speaks of, cut short, with a few numbers made odd."""
    course = RUNS[draw(st.sampled_from(sorted(RUNS)))].recent
    points = draw(st.integers(0, len(course)) | st.just(len(course)))
    scalars, layers = course._scalars[0, :points].copy(), course._layers[0, :points].copy()
    for _ in range(draw(st.integers(1, 4))):
        place, many = draw(st.integers(0, len(course))), draw(st.sampled_from((1, 5, len(course))))
        odd = draw(st.sampled_from(ODD))
        if draw(st.booleans()):
            scalars[place : place + many, draw(st.integers(0, 1))] = odd
        else:
            field, column = draw(st.integers(0, 6)), draw(st.sampled_from((0, 1, 2, slice(None))))
            layers[place : place + many, field, column if layers.shape[2] else slice(None)] = odd
    info = msgspec.structs.replace(course.info, optimizer=draw(optimizers))
    builder = Builder(msgspec.structs.replace(info, facts=draw(facts)))
    for at in range(points):
        builder.add(Frame(at, at, float(at), float(at), scalars[at], layers[at]))
    return builder.history()


@examples(150)  # what breaks a rule is rare
@given(histories() | damaged())
def test_whatever_a_history_holds_it_is_judged_in_numbers_that_can_be_written(history):
    told = diagnose(history)

    assert all(isfinite(each) for each in told_numbers(msgspec.to_builtins(told)))
    assert msgspec.json.decode(told.to_json())["steps"] == history.frames
