"""A history in bounded memory says of any run what all of its frames say."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from training.history.made import append, info_of, plans, random_frames

from difflens.training.history import history_of, open_run, read_history
from difflens.training.history.building import FEWEST_POINTS, MOST_NOTES, MOST_POINTS, Builder
from difflens.training.history.frame import (
    MISSING,
    MISSING_SCALAR,
    Frame,
    Spread,
    is_missing,
    union,
)
from difflens.training.history.writer import RunWriter
from difflens.training.records.runs import Layer, Note, RunInfo

INFO = info_of()
TIGHT = {"memory": 8 * 4 * 72, "recent": 4}  # eight points of INFO's frames of 72 bytes


@pytest.fixture(autouse=True)
def few_points(monkeypatch):
    monkeypatch.setattr("difflens.training.history.building.LEAST_POINTS", 4)


def built(frames, info=INFO, **how):
    builder = Builder(info, **how)
    for frame in frames:
        builder.add(frame)
    return builder.history()


def holed(count: int, seed: int) -> list[Frame]:
    """Return frames in which a third is missing, NaN or infinite."""
    draw = np.random.default_rng(seed)
    odd32 = np.array([MISSING, np.nan, np.inf, -np.inf], np.float32)
    odd64 = np.array([MISSING_SCALAR, np.nan, np.inf, -np.inf])
    frames = []
    for frame in random_frames(INFO, count, seed):
        layers, scalars = frame.layers.copy(), frame.scalars.copy()
        hit = draw.random(layers.shape) < 0.3
        layers[hit] = draw.choice(odd32, hit.sum())
        hit = draw.random(scalars.shape) < 0.3
        scalars[hit] = draw.choice(odd64, hit.sum())
        frames.append(frame._replace(layers=layers, scalars=scalars))
    return frames


def column(frames, kind, *at):
    return np.array([getattr(frame, kind)[at] for frame in frames])


@given(plans(most=20))
def test_a_short_run_is_every_frame_of_it_bit_for_bit(plan):
    history = built(plan.frames, plan.info)

    assert history.frames == len(history.course) == len(history.recent) == len(plan.frames)
    assert history.course.is_whole
    for course in (history.course, history.recent):
        assert course.steps.tolist() == [frame.step for frame in plan.frames]
        assert course.wall_times.tolist() == [frame.wall_time for frame in plan.frames]
        for array, kind in ((course._scalars, "scalars"), (course._layers, "layers")):
            wanted = b"".join(np.asarray(getattr(frame, kind)).tobytes() for frame in plan.frames)
            assert np.ascontiguousarray(array[0]).tobytes() == wanted


@given(st.integers(1, 400), st.integers(0, 1000), st.booleans())
@settings(deadline=None)
def test_a_long_run_keeps_means_lowest_and_highest_of_every_stretch(count, seed, whole):
    frames = random_frames(INFO, count, seed) if whole else holed(count, seed)
    history = built(frames, **TIGHT)
    course = history.course

    assert len(course) <= 8
    assert int(course.spans.sum()) == history.frames == count
    ends = np.cumsum(course.spans)
    for point, (start, stop) in enumerate(zip(ends - course.spans, ends, strict=True)):
        part = frames[start:stop]
        assert course.first_steps[point] == part[0].step
        assert course.steps[point] == part[-1].step
        assert course.wall_times[point] == part[-1].wall_time
        for i in range(2):
            found = [array[point, i] for array in planes(course._scalars)]
            check(found, column(part, "scalars", i), MISSING_SCALAR, 1e-12)
            for j in range(3):
                found = [array[point, i, j] for array in planes(course._layers)]
                check(found, column(part, "layers", i, j), MISSING, 1e-6)


def planes(values):
    return [values[which % len(values)] for which in range(3)]


def check(found, values, missing, precision) -> None:
    """Hold mean, lowest and highest against those of all values."""
    mean, low, high = found
    there = values[~is_missing(values)]
    finite = there[np.isfinite(there)]
    numbers = there[~np.isnan(there)]
    if not there.size:
        assert all(is_missing(np.array([each]))[0] for each in found)
        return
    assert not any(is_missing(np.array([each]))[0] for each in found)
    if len(values) == 1:
        assert np.array_equal(np.array(found), np.repeat(values, 3), equal_nan=True)
    elif finite.size:
        assert mean == pytest.approx(finite.mean(dtype=np.float64), rel=precision)
    else:
        assert np.isnan(mean)
    if numbers.size:
        assert (low, high) == (numbers.min(), numbers.max())
    else:
        assert np.isnan(low)
        assert np.isnan(high)
    assert missing.dtype == values.dtype


@given(st.integers(0, 300), st.integers(0, 1000))
def test_extremes_are_those_of_all_frames_whatever_was_thinned_out(count, seed):
    frames = holed(count, seed)
    history = built(frames, **TIGHT)
    seen = history.extremes
    steps = np.array([frame.step for frame in frames])
    for i in range(2):
        for j in range(3):
            values = column(frames, "layers", i, j).astype(np.float32)
            there = ~is_missing(values)
            odd = there & ~np.isfinite(values)
            numbers = np.where(np.isnan(values), -np.inf, values)
            assert seen.recorded[i, j] == there.sum()
            assert seen.nonfinite[i, j] == odd.sum()
            assert seen.first_nonfinite[i, j] == (steps[odd][0] if odd.any() else -1)
            if count and numbers.max() > -np.inf:
                assert seen.highest[i, j] == numbers.max()
                assert seen.highest_step[i, j] == steps[numbers.argmax()]
            else:
                assert (seen.highest[i, j], seen.highest_step[i, j]) == (-np.inf, -1)
        values = column(frames, "scalars", i)
        odd = ~np.isfinite(values) & ~is_missing(values) if count else np.zeros(0, bool)
        first = int(steps[odd][0]) if odd.any() else None
        assert history.first_nonfinite_scalar.get(INFO.scalars[i]) == first


@given(st.integers(0, 60), st.integers(1, 9))
def test_the_latest_frames_are_kept_in_full(count, recent):
    frames = random_frames(INFO, count)
    late = built(frames, recent=recent).recent

    assert late.steps.tolist() == [frame.step for frame in frames[-recent:]]
    assert late._layers[0].tolist() == [frame.layers.tolist() for frame in frames[-recent:]]


def same(left, right) -> bool:
    arrays = [
        (getattr(getattr(left, which), part), getattr(getattr(right, which), part))
        for which in ("course", "recent")
        for part in ("steps", "first_steps", "spans", "wall_times", "_scalars", "_layers")
    ]
    arrays += list(zip(left.extremes, right.extremes, strict=True))
    return (
        all(a.tobytes() == b.tobytes() and a.shape == b.shape for a, b in arrays)
        and left.info == right.info
        and (left.frames, left.dropped) == (right.frames, right.dropped)
        and left.first_nonfinite_scalar == right.first_nonfinite_scalar
    )


@given(st.integers(0, 100), st.integers(0, 100))
def test_a_live_history_is_that_of_the_file_read_back(tmp_path_factory, count, seed):
    folder = tmp_path_factory.mktemp("run") / "r"
    live = Builder(INFO)
    with RunWriter(folder, INFO) as writer:
        for frame in holed(count, seed):
            append(writer, frame)
            live.add(frame)

    assert same(live.history(), read_history(folder))


@given(st.integers(0, 150), st.sets(st.integers(0, 150)))
def test_asking_for_a_history_in_between_changes_nothing(count, asks):
    """Nor does it matter how frames came in batches: not one digit is another."""
    asked, silent = Builder(INFO, **TIGHT), Builder(INFO, **TIGHT)
    frames = holed(count, 1)
    for i, frame in enumerate(frames):
        asked.add(frame)
        silent.add(frame)
        if i in asks:
            assert asked.history().frames == i + 1

    assert same(asked.history(), silent.history())


WIDER = RunInfo(
    layers=(Layer("new"), *INFO.layers[1:]), fields=("field1", "later"), scalars=("scalar1", "val")
)


@given(st.integers(0, 40), st.integers(0, 40), st.booleans())
def test_layers_and_scalars_that_come_or_go_in_mid_run_keep_what_they_had(before, after, tight):
    how = {"memory": 8 * 4 * 150, "recent": 4} if tight else {}
    builder = Builder(INFO, **how)
    first, second = random_frames(INFO, before, 1), random_frames(WIDER, after, 2)
    for frame in first:
        builder.add(frame)
    builder.describe(WIDER)
    for frame in second:
        builder.add(frame)
    history = builder.history()
    united = union(INFO, WIDER)
    spread = [Spread(INFO, united).frame(each) for each in first]
    spread += [Spread(WIDER, united).frame(each) for each in second]

    assert history.info == united
    assert history.frames == before + after
    assert int(history.course.spans.sum()) == before + after
    if history.course.is_whole:
        assert history.course._layers[0].tobytes() == b"".join(f.layers.tobytes() for f in spread)
    for i, field in enumerate(united.fields):
        for j in range(len(united.layers)):
            values = np.array([frame.layers[i, j] for frame in spread], np.float32)
            there = values[~is_missing(values)]
            assert history.extremes.recorded[i, j] == there.size
            high = history.course.high(field)
            if there.size:
                assert high is not None
                assert np.nanmax(high[:, j]) == there.max() == history.extremes.highest[i, j]
    late = spread[-len(history.recent) :] if len(history.recent) else []
    assert history.recent._scalars[0].tobytes() == b"".join(f.scalars.tobytes() for f in late)


def test_a_scalar_logged_now_and_then_keeps_its_true_mean():
    """Points weigh by what they hold: a mean of means would count a rare value as often."""
    frames = [
        frame._replace(scalars=np.array([1.0, float(i) if i % 7 == 0 else MISSING_SCALAR]))
        for i, frame in enumerate(random_frames(INFO, 64))
    ]
    course = built(frames, memory=4 * 4 * 72).course

    values = course.scalar("scalar1")
    ends = np.cumsum(course.spans)
    wanted = [
        np.mean([j for j in range(stop - span, stop) if j % 7 == 0])
        for stop, span in zip(ends, course.spans, strict=True)
    ]
    assert values is not None
    assert values == pytest.approx(wanted)


def test_frames_missing_between_numbers_are_counted():
    frames = random_frames(INFO, 10)

    assert built([*frames[:3], *frames[5:6], *frames[9:]]).dropped == 5


def test_memory_is_bounded_for_any_layout():
    """DX-06: points, latest frames and notes have limits of their own."""
    for layers in (1, 1000, 100_000):
        info = RunInfo(layers=tuple(Layer(str(i)) for i in range(layers)))
        builder = Builder(info)
        taken = builder.points.layers.values.nbytes + builder.late.layers.nbytes
        assert taken < 2 << 30
        assert FEWEST_POINTS <= builder.points.most <= MOST_POINTS
    for _ in range(3 * MOST_NOTES):
        builder.note(Note("fact"))
    assert len(builder._notes) <= MOST_NOTES


def test_large_scalars_overflow_no_mean():
    frames = [f._replace(scalars=np.full(2, 1.7e308)) for f in random_frames(INFO, 64)]
    values = built(frames, **TIGHT).course.scalar("scalar0")

    assert values is not None
    assert values == pytest.approx(1.7e308)


def test_a_source_that_grows_is_gathered_as_far_as_it_is_there(tmp_path):
    with RunWriter(tmp_path, INFO) as writer:
        frames = random_frames(INFO, 6)
        for frame in frames[:4]:
            append(writer, frame)
        source = open_run(tmp_path)
        assert history_of(source).frames == 4
        for frame in frames[4:]:
            append(writer, frame)
        assert history_of(source).frames == 2
        source.close()
