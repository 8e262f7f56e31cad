"""Fingerprints: hashes prove, sketches estimate, and nothing depends on how the bytes were read."""

import json
import os
import subprocess
import sys

import numpy as np
import pytest
from blake3 import blake3
from hypothesis import HealthCheck, given, settings
from models.small import arrays, model_pairs, models, tensor, write

import difflens
from difflens.core.errors import DifflensError, ModelError
from difflens.core.records import SAME, TensorInfo
from difflens.diffs.fingerprints.file import read_fingerprint, to_bytes, write_fingerprint
from difflens.diffs.fingerprints.identity import ONE_FILE_FORMATS, identity_of
from difflens.diffs.fingerprints.make import LEAF, fingerprint_tensors
from difflens.diffs.fingerprints.sides import open_side
from difflens.engines.threads import Threads
from difflens.measure.chunks import CHUNK


def draw(*shape):
    return np.random.default_rng(0).standard_normal(shape)


def made(model, threads=1):
    engine = Threads(threads)
    try:
        return open_side(model).read(engine)
    finally:
        engine.close()


def saved(path):
    """Make the fingerprint of a model beside it."""
    out = path.with_suffix(".fingerprint")
    write_fingerprint(made(path), out)
    return out


def steps(size=(300, 70), by=1e-3):
    """Two models that are a training step apart in two tensors of three."""
    before, moves = draw(2, 3, *size)
    left = dict(zip("abc", before, strict=True))
    right = {name: left[name] + by * move for name, move in zip("abc", moves, strict=True)}
    return arrays(**left), arrays(**{**right, "c": left["c"]})


@pytest.fixture
def pair(tmp_path):
    left, right = steps()
    return write(tmp_path / "left.safetensors", left), write(tmp_path / "right.safetensors", right)


def root(dtype, shape, data):
    """What docs/fingerprints.md says of a root, once more."""
    digests = [blake3(data[at : at + 2**20]).digest() for at in range(0, len(data), 2**20)]
    head = f"{dtype} {'x'.join(map(str, shape))}\n".encode()
    context = "difflens fingerprint 1: root of a tensor"
    return blake3(head + b"".join(digests), derive_key_context=context).hexdigest()


@given(models())
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_roots_are_what_the_page_says(tmp_path, model):
    path = write(tmp_path / "m.safetensors", model)

    found = {name: each.root for name, each in made(path).tensors.items()}

    assert found == {name: root(*encoded) for name, encoded in model.items()}


@pytest.mark.parametrize("size", [0, 1, LEAF - 1, LEAF, LEAF + 1, 3 * LEAF + 5, CHUNK + 3])
@pytest.mark.parametrize("dtype", ["U8", "F6_E2M3"])
def test_a_root_is_made_of_leaves_of_a_mebibyte(size, dtype):
    size = size // 3 * 3 if dtype == "F6_E2M3" else size
    count = size * 4 // 3 if dtype == "F6_E2M3" else size
    data = np.random.default_rng(size).integers(0, 256, size, np.uint8).tobytes()

    info = TensorInfo("w", dtype, (count,))

    class Source:
        def __init__(self):
            self.tensors = {"w": info}

        def read_into(self, _name, start, stop, buffer):
            buffer[:] = data[start:stop]
            return stop - start

    (found,) = fingerprint_tensors(Source(), [info], Threads(1))

    assert found.root == root(dtype, (count,), data)


def test_the_same_fingerprint_comes_of_any_number_of_threads_and_any_shards(tmp_path):
    large = draw(CHUNK + 5000).astype(np.float32)
    model = arrays(large=large, **{f"w{i}": draw(9, 9) + i for i in range(600)})
    whole = write(tmp_path / "m.safetensors", model)
    write(tmp_path / "shards" / "model-00001-of-00002.safetensors", {"large": model["large"]})
    rest = {name: each for name, each in model.items() if name != "large"}
    write(tmp_path / "shards" / "model-00002-of-00002.safetensors", rest)
    weight_map = {name: f"model-0000{1 + (name != 'large')}-of-00002.safetensors" for name in model}
    index = json.dumps({"metadata": {}, "weight_map": weight_map})
    (tmp_path / "shards" / "model.safetensors.index.json").write_text(index)

    every = [made(whole, threads).tensors for threads in (1, 2, 7)]
    every.append(made(tmp_path / "shards", 2).tensors)

    assert all({name: each[name] for name in model} == every[0] for each in every)


def test_the_numpy_twins_make_the_same_roots_and_sketches(pair):
    code = (
        "import sys; from difflens.diffs.fingerprints.sides import open_side;"
        "from difflens.engines.threads import Threads;"
        "[print(e.root, e.sketch.exponent, bytes(e.sketch.numbers).hex())"
        " for e in open_side(sys.argv[1]).read(Threads(1)).tensors.values()]"
    )
    answers = [
        subprocess.run([sys.executable, "-c", code, pair[0]], check=True, capture_output=True,
                       env=os.environ | {"DIFFLENS_KERNEL": kernel}).stdout
        for kernel in ("", "numpy")
    ]  # fmt: skip

    assert answers[0] == answers[1]
    assert len(answers[0].splitlines()) == 3


def test_statistics_are_those_of_the_scan(pair):
    fingerprint = made(pair[0])
    shown = difflens.diff(pair[0], pair[1])

    for name in "ab":
        assert fingerprint.tensors[name].stats == shown[name].stats("left")


@given(model_pairs())
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_hashes_find_the_differences_that_bytes_have(tmp_path, pair):
    left = write(tmp_path / "a.safetensors", pair[0])
    right = write(tmp_path / "b.safetensors", pair[1])
    exact = difflens.diff(left, right, match="exact")

    for sides in ((saved(left), saved(right)), (saved(left), right), (left, saved(right))):
        found = difflens.diff(*sides, match="exact")
        assert [(e.name, e.kind) for e in found] == [(e.name, e.kind) for e in exact]


def test_distances_are_estimated_within_their_error(tmp_path):
    left, right = steps((700, 300))
    paths = write(tmp_path / "l.safetensors", left), write(tmp_path / "r.safetensors", right)
    exact = difflens.diff(*paths)

    found = difflens.diff(saved(paths[0]), saved(paths[1]))

    for name in "ab":
        near = pytest.approx(exact[name].relative_l2, rel=5 * found[name].estimated_error)
        assert found[name].relative_l2 == near
        assert 1 - found[name].cosine == pytest.approx(1 - exact[name].cosine, rel=0.25)
        assert found[name].max_abs is None
        assert found[name].changed_count is None
    assert found["c"].kind == "identical"
    assert found["c"].relative_l2 == 0.0


def test_a_cast_has_a_distance_and_is_no_other_model(tmp_path):
    values = draw(300, 70)
    left = write(tmp_path / "l.safetensors", arrays(w=values))
    right = write(tmp_path / "r.safetensors", {"w": tensor(values, "BF16")})

    exact, found = difflens.diff(left, right)["w"], difflens.diff(saved(left), right)["w"]

    assert found.kind == exact.kind == "recast"
    assert found.relative_l2 == pytest.approx(exact.relative_l2, rel=0.12)


def test_a_change_too_small_to_be_told_is_said_to_be_one(tmp_path):
    values = draw(200_000)
    nudged = values.copy()
    nudged[7] *= 1 + 1e-7
    left = write(tmp_path / "l.safetensors", arrays(w=values))
    right = write(tmp_path / "r.safetensors", arrays(w=nudged))

    found = difflens.diff(saved(left), saved(right))

    assert found["w"].kind == "changed"
    assert found["w"].relative_l2 is None
    assert "too near to be estimated" in found["w"].skipped
    assert "relative_l2 is below" in found.render()


def test_values_that_are_not_finite_have_no_distance(tmp_path):
    values = draw(5000)
    left = write(tmp_path / "l.safetensors", arrays(w=values))
    values[3] = np.nan
    right = write(tmp_path / "r.safetensors", arrays(w=values))

    found = difflens.diff(saved(left), saved(right))

    assert found["w"].relative_l2 is None
    assert found["w"].right_nonfinite == 1
    assert "NON-FINITE: 0 -> 1" in found.render()


def test_renamed_and_tied_tensors_are_found_by_their_hashes(tmp_path):
    table, other = draw(2, 50, 8)
    left = {"embed_tokens.weight": table, "old": other}
    right = {"embed_tokens.weight": table, "lm_head.weight": table, "new": other}
    left = write(tmp_path / "l.safetensors", arrays(**left))
    right = write(tmp_path / "r.safetensors", arrays(**right))

    found = difflens.diff(saved(left), saved(right))

    assert {each.name: each.kind for each in found} == {
        "embed_tokens.weight": "identical", "lm_head.weight": "tied", "new": "identical"
    }  # fmt: skip
    assert {each.kind for each in difflens.diff(saved(left), saved(right), match="exact")} == {
        "identical", "added", "removed"
    }  # fmt: skip


def test_constant_tensors_under_other_names_are_not_taken_for_each_other(tmp_path):
    left = write(tmp_path / "l.safetensors", arrays(a=np.ones(100)))
    right = write(tmp_path / "r.safetensors", arrays(b=np.ones(100)))

    assert {each.kind for each in difflens.diff(saved(left), saved(right))} == {"added", "removed"}


def test_nothing_of_a_recorded_model_is_read(pair):
    sides = saved(pair[0]), saved(pair[1])
    for path in pair:
        path.unlink()

    found = difflens.diff(*sides)

    assert [each.name for each in found.changed] == ["a", "b"]


def test_exact_figures_read_only_what_hashes_leave_open(pair, monkeypatch):
    sides = saved(pair[0]), saved(pair[1])
    wanted = [each.to_row() for each in difflens.diff(*pair) if each.kind not in SAME]
    read = []
    from difflens.measure import pairs as measured

    scan = measured.scan_chunk
    monkeypatch.setattr(
        measured, "scan_chunk", lambda chunk: read.append(chunk.left.info.name) or scan(chunk)
    )

    found = difflens.diff(*sides, exact=True)

    assert [each.to_row() for each in found.changed] == wanted
    assert [(each.name, each.kind) for each in found] == [
        ("a", "changed"), ("b", "changed"), ("c", "identical")
    ]  # fmt: skip
    assert set(read) == {"a", "b"}


def sharded(folder, left):
    """Write a model as two shards with an index; return the index."""
    half = dict(list(left.items())[:1]), dict(list(left.items())[1:])
    shards = {f"model-0000{n}-of-00002.safetensors": part for n, part in enumerate(half, 1)}
    for name, part in shards.items():
        write(folder / name, part)
    index = folder / "model.safetensors.index.json"
    homes = {tensor: name for name, part in shards.items() for tensor in part}
    index.write_text(json.dumps({"metadata": {}, "weight_map": homes}))
    return index


def test_exact_figures_of_an_index_whose_shard_has_changed_since_are_refused(tmp_path):
    left, right = steps()
    index = sharded(tmp_path / "left", left)
    side = tmp_path / "left.fingerprint"
    write_fingerprint(made(index), side)
    other = sharded(tmp_path / "right", left)
    assert not difflens.diff(side, other, exact=True).changed

    sharded(tmp_path / "left", right)
    with pytest.raises(ModelError, match="has changed since"):
        difflens.diff(side, other, exact=True)


@pytest.mark.parametrize(
    ("named", "form", "part"),
    [
        ("model.onnx", "onnx", "model.onnx.data"),
        ("saved_model.pb", "saved-model", "variables/variables.data-00000-of-00001"),
        ("", "saved-model", "variables/variables.data-00000-of-00001"),
        (".metadata", "dcp", "__0_0.distcp"),
        ("model.index", "tensorflow", "model.data-00000-of-00001"),
        ("model.new", "a format of somebody else", "part"),
    ],
)
def test_the_identity_of_a_model_in_several_files_is_that_of_all(tmp_path, named, form, part):
    for name in (named or "saved_model.pb", part):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_bytes(b"1")
    before = identity_of(tmp_path / named, form)

    (tmp_path / part).write_bytes(b"22")

    assert "" != before != identity_of(tmp_path / named, form)


def test_the_identity_of_a_model_in_one_file_is_its_own(tmp_path):
    (tmp_path / "a.safetensors").write_bytes(b"1")
    before = [identity_of(tmp_path / "a.safetensors", each) for each in ONE_FILE_FORMATS]

    (tmp_path / "a.fingerprint").write_bytes(b"1")

    assert before == [identity_of(tmp_path / "a.safetensors", each) for each in ONE_FILE_FORMATS]
    assert identity_of(tmp_path / "a.safetensors", "safetensors in gzip") == before[0]


def test_exact_figures_of_a_model_that_has_changed_since_are_refused(pair):
    side = saved(pair[0])
    os.utime(pair[0], ns=(1, 1))

    with pytest.raises(ModelError, match="has changed since"):
        difflens.diff(side, pair[1], exact=True)
    pair[0].unlink()
    with pytest.raises(ModelError, match="it is not there"):
        difflens.diff(side, pair[1], exact=True)


def test_models_in_memory_have_fingerprints_too(pair):
    side = saved(pair[0])
    values = {name: np.zeros((300, 70), np.float32) for name in "abc"}

    assert len(difflens.diff(side, values).changed) == 3
    with pytest.raises(DifflensError, match="does not say where its model is"):
        open_in_memory(values, side.parent / "m.fingerprint").model()


def open_in_memory(values, path):
    write_fingerprint(made(values), path)
    return open_side(path)


def test_an_epsilon_needs_the_models(pair):
    with pytest.raises(DifflensError, match="--epsilon looks at every element"):
        difflens.diff(saved(pair[0]), pair[1], epsilon=0.1)


def test_analyses_that_need_values_say_what_they_need(pair):
    found = difflens.diff(saved(pair[0]), saved(pair[1]))

    answer = found.analyse("spectral_analysis")

    assert answer.status == "not_enough_information"
    assert {each.needs for each in answer.missing} == {"the model's bytes (--exact)"}
    assert found.analyse("memory_analysis").status != "error"


def test_totals_are_marked_as_estimates(pair):
    report = difflens.diff(saved(pair[0]), saved(pair[1])).report()
    exact = difflens.diff(*pair).report()

    assert report.totals.estimated_error == pytest.approx(0.0221, abs=1e-4)
    assert report.totals.relative_l2 == pytest.approx(exact.totals.relative_l2, rel=0.1)
    assert report.totals.changed_elements is None
    assert exact.totals.estimated_error is None
    assert [row.estimated_error is None for row in report.tensors] == [False, False, True]


def test_a_fingerprint_comes_back_as_it_was_written(pair, tmp_path):
    fingerprint = made(pair[0])
    out = tmp_path / "m.fingerprint"

    write_fingerprint(fingerprint, out)
    read = read_fingerprint(out)

    assert read.tensors == fingerprint.tensors
    assert (read.model, read.metadata, read.identity) == (
        fingerprint.model, fingerprint.metadata, fingerprint.identity
    )  # fmt: skip
    assert to_bytes(read) == out.read_bytes()


def test_the_file_is_one_that_other_readers_open(pair):
    from safetensors.numpy import load_file

    parts = load_file(saved(pair[0]))

    assert parts["sketches"].shape == (3 * 1024,)
    assert json.loads(parts["index"].tobytes())["tensors"][0]["name"] == "a"


def test_configs_of_folders_are_compared_by_meaning(tmp_path):
    for side, theta in (("l", 1e4), ("r", 1e6)):
        path = write(tmp_path / side / "model.safetensors", arrays(w=[1.0, 2.0]))
        config = {"rope_theta": theta, "transformers_version": side}
        (path.parent / "config.json").write_text(json.dumps(config))
        write_fingerprint(made(path.parent), tmp_path / f"{side}.fingerprint")

    report = difflens.diff(tmp_path / "l.fingerprint", tmp_path / "r.fingerprint").report()

    assert {change.key: change.kind for change in report.metadata} == {
        "config.json: rope_theta": "config", "config.json: transformers_version": "metadata"
    }  # fmt: skip
    assert report.verdict.word == "config"


def test_state_of_training_is_said_to_be_left_out(tmp_path):
    model = arrays(**{"model.w": np.ones(4), "optimizer.state.0.exp_avg": np.ones(4),
                      "optimizer.state.0.exp_avg_sq": np.ones(4)})  # fmt: skip
    path = write(tmp_path / "m.safetensors", model)
    fingerprint = made(path)
    if not fingerprint.model.state_tensors:
        pytest.skip("these names show no state")

    assert "state of its training" in " ".join(difflens.diff(saved(path), saved(path)).warnings)


def test_progress_counts_the_bytes_that_are_read_and_no_others(pair):
    class Bar:
        total = done = 0

        def __call__(self, size):
            self.done += size

        def stage(self, _name, total):
            self.total = total
            return self

    found = difflens.diff(saved(pair[0]), pair[1])
    found.session.progress = bar = Bar()
    found.measure()

    assert bar.total == bar.done == 3 * 300 * 70 * 4
