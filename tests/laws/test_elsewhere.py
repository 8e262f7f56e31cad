"""Work done in another process, from records alone, gives the same results to the last bit."""

import json
import pickle
from functools import cache
from pathlib import Path

import numpy as np
import pytest
from laws.elsewhere import Elsewhere
from laws.test_formats import FORMATS, FURTHER, model, of_its_test
from models import small
from safetensors.numpy import save_file

from difflens.core.errors import ChangedWhileReading, ModelError
from difflens.core.once import forget
from difflens.diffs import story
from difflens.engines import engine
from difflens.measure.chunks import Chunk, Side, scan_chunk
from difflens.models.formats import open_model
from difflens.storage.local import File


@pytest.fixture
def elsewhere(monkeypatch):
    """Have every diff of the test do its work in another process."""
    child = Elsewhere()
    monkeypatch.setattr(story, "start_engine", lambda *_: child)
    yield child
    child.close()


@pytest.fixture(autouse=True)
def forgetful():
    yield
    forget()


def measured(*models, **options):
    diff = story.diff(*models, **options)
    return story.report(diff)


def test_a_file_that_arrives_in_a_process_leaves_the_one_it_came_from_open(tmp_path):
    path = tmp_path / "some.bin"
    path.write_bytes(b"12345678")
    file = File(path)

    sent = pickle.loads(pickle.dumps(file))  # noqa: S301
    assert (sent.read(0, 8), sent.path, sent.size) == (b"12345678", path, 8)
    del sent
    forget()

    assert file.read(0, 8) == b"12345678"
    file.close()


def test_a_file_that_was_replaced_on_its_way_is_refused(tmp_path):
    path = tmp_path / "some.bin"
    path.write_bytes(b"12345678")
    file = File(path)
    sent = pickle.dumps(file)
    path.write_bytes(b"something else")

    with pytest.raises(ChangedWhileReading):
        pickle.loads(sent)  # noqa: S301
    file.close()


def test_on_another_machine_a_file_has_other_numbers_and_is_the_same(tmp_path):
    path = tmp_path / "some.bin"
    path.write_bytes(b"12345678")
    file = File(path)
    device, inode, *rest = file._identity
    file._identity = (device + 1, inode + 1, *rest)

    assert pickle.loads(pickle.dumps(file)).read(0, 4) == b"1234"  # noqa: S301
    file._identity = (device + 1, inode, 9, rest[1])
    with pytest.raises(ChangedWhileReading):
        pickle.loads(pickle.dumps(file))  # noqa: S301


@pytest.fixture(scope="module")
def written(tmp_path_factory):
    @cache
    def write(form: str, side: str) -> Path:
        name, sample = FURTHER.get(form) or of_its_test(form)
        folder = tmp_path_factory.mktemp("elsewhere")
        held = {
            each: tensor
            for each, tensor in model(side).items()
            if sample(tmp_path_factory.mktemp("probe") / name, {each: tensor})
        }
        path = sample(folder / name, held) or sample(folder / name, {"data": held["data"]})
        assert path
        return path

    return write


@pytest.mark.parametrize("form", FORMATS)
def test_every_format_is_read_elsewhere(written, elsewhere, form):
    paths = written(form, "left"), written(form, "right")
    there = measured(*paths, always=True)
    elsewhere.close()

    here = [
        scanned(Chunk(*sides, 0, sides[0].info.count, 0.0, True))
        for sides in tensors(*map(open_model, paths))
    ]
    assert elsewhere.largest > 0
    assert len(there.tensors) == len(here)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(story, "start_engine", lambda *_: engine["threads"].plugin(2))
        assert measured(*paths, always=True) == there


def tensors(left, right):
    for name, info in left.tensors.items():
        yield Side.of(left, info), Side.of(right, right.tensors[name])


def scanned(chunk):
    sent = pickle.loads(pickle.dumps(chunk))  # noqa: S301
    assert scan_chunk(sent) == scan_chunk(chunk)
    assert scan_chunk(chunk._replace(once=True)) == scan_chunk(chunk)
    return sent


def test_a_source_arrives_once_however_often_it_is_sent(tmp_path):
    path = small.write(tmp_path / "m.safetensors", small.arrays(a=[1.0, 2], b=[3.0]))
    source = open_model(path)

    first, second = (pickle.loads(pickle.dumps(source)) for _ in range(2))  # noqa: S301

    assert first is second
    assert list(first.tensors) == ["a", "b"]


def test_a_large_array_in_memory_is_refused_in_one_line(elsewhere):
    del elsewhere
    arrays = {"w": np.zeros(1 << 20)}

    with pytest.raises(ModelError, match="an array of 8388608 bytes is in memory") as caught:
        measured(arrays, arrays)
    assert "pass its path or address" in caught.value.hint


def test_small_arrays_in_memory_are_sent(elsewhere):
    report = measured({"w": np.arange(4.0)}, {"w": np.arange(4.0) * 2})

    assert elsewhere.largest
    assert report.tensors[0].figures.max_abs == 3


def gptq_against_its_weights(folder):
    from models.quantised.test_weights import gptq

    parts, weight = gptq(np.random.default_rng(1), 4, 64, 96, 4)
    for side in ("left", "right"):
        (folder / side).mkdir()
    save_file(parts, folder / "left" / "model.safetensors")
    save_file({"a.up.weight": weight + np.float32(0.5)}, folder / "right" / "model.safetensors")
    settings = {"quantization_config": {"quant_method": "gptq", "bits": 4}}
    (folder / "left" / "config.json").write_text(json.dumps(settings))
    return folder / "left", folder / "right"


def adapter_against_its_base(folder):
    from models.adapters.test_merged import CONFIG, WEIGHT, lora

    (folder / "lora").mkdir()
    parts = {name: part.numpy() for name, part in lora().items()}
    save_file(parts, folder / "lora" / "adapter_model.safetensors")
    (folder / "lora" / "adapter_config.json").write_text(json.dumps(CONFIG))
    base = np.random.default_rng(1).standard_normal((24, 40)).astype(np.float16)
    save_file({WEIGHT: base, "norm": np.ones(7)}, folder / "base.safetensors")
    return folder / "base.safetensors", folder / "lora"


def other_layouts(folder):
    random = np.random.default_rng(1)
    first, second, third = (random.standard_normal((24, 40)) for _ in range(3))
    left = {"a.w": first, "b.w": second, "c.w": third, "same": np.arange(9.0)}
    order = random.permutation(24)
    right = {"x": first.T.copy(), "y": second[order], "z": third + 0.01, "same": np.arange(9.0)}
    save_file(left, folder / "left.safetensors")
    save_file(right, folder / "right.safetensors")
    return folder / "left.safetensors", folder / "right.safetensors"


def shards_against_one_file(folder):
    arrays = {f"layers.{at}.w": np.arange(10.0) + at for at in range(4)}
    for at in (0, 1):
        name = f"model-{at + 1:05}-of-00002.safetensors"
        some = {key: value for key, value in arrays.items() if int(key[7]) % 2 == at}
        (folder / "shards").mkdir(exist_ok=True)
        save_file(some, folder / "shards" / name)
    save_file(arrays | {"layers.1.w": np.ones(10)}, folder / "one.safetensors")
    return folder / "shards", folder / "one.safetensors"


def tied_heads(folder):
    embedding = np.random.default_rng(1).standard_normal((40, 8))
    both = {"model.embed_tokens.weight": embedding, "lm_head.weight": embedding, "n": np.ones(3)}
    save_file(both, folder / "left.safetensors")
    save_file({key: both[key] for key in list(both)[::2]}, folder / "right.safetensors")
    return folder / "left.safetensors", folder / "right.safetensors"


def training_state(folder):
    import torch

    for at, side in enumerate(("left", "right")):
        torch.manual_seed(at)
        net = torch.nn.Linear(8, 6)
        optimizer = torch.optim.Adam(net.parameters(), lr=0.1 / (1 + at))
        net(torch.ones(2, 8)).sum().backward()
        optimizer.step()
        state = {"model": net.state_dict(), "optimizer": optimizer.state_dict()}
        torch.save(state, folder / f"{side}.pt")
    return folder / "left.pt", folder / "right.pt"


def a_transposed_view(folder):
    import torch

    torch.save({"w": torch.arange(12.0).reshape(3, 4).t()}, folder / "left.pt")
    torch.save({"w": torch.arange(12.0).reshape(4, 3)}, folder / "right.pt")
    return folder / "left.pt", folder / "right.pt"


def blocks_of_gguf(folder):
    import gguf

    random = np.random.default_rng(1)
    for at, side in enumerate(("left", "right")):
        writer = gguf.GGUFWriter(folder / f"{side}.gguf", "llama")
        numbers = random.standard_normal((4, 256)).astype(np.float32)
        for kind in (gguf.GGMLQuantizationType.Q8_0, gguf.GGMLQuantizationType.Q4_0):
            packed = gguf.quants.quantize(numbers, kind)
            writer.add_tensor(f"{kind.name}.weight", packed, raw_dtype=kind)
        writer.add_tensor("plain.weight", numbers * (1 + at))
        writer.write_header_to_file()
        writer.write_kv_data_to_file()
        writer.write_tensors_to_file()
        writer.close()
    return folder / "left.gguf", folder / "right.gguf"


KINDS = [
    gptq_against_its_weights,
    adapter_against_its_base,
    other_layouts,
    shards_against_one_file,
    tied_heads,
    training_state,
    a_transposed_view,
    blocks_of_gguf,
]


@pytest.mark.parametrize("make", KINDS, ids=lambda make: make.__name__)
def test_what_is_derived_or_computed_is_so_elsewhere(tmp_path, monkeypatch, make):
    paths = make(tmp_path)
    here = measured(*paths)
    child = Elsewhere()
    monkeypatch.setattr(story, "start_engine", lambda *_: child)

    try:
        assert measured(*paths) == here
    finally:
        child.close()
    assert child.largest
    assert {row.kind for row in here.tensors} - {"added", "removed"}


def test_whole_measures_are_taken_elsewhere(tmp_path, monkeypatch):
    random = np.random.default_rng(1)
    arrays = {f"layers.{at}.w": random.standard_normal((16, 24)) for at in range(3)}
    for side, more in (("left", 0), ("right", 0.1)):
        moved = {name: array + more * random.random(array.shape) for name, array in arrays.items()}
        save_file(moved, tmp_path / f"{side}.safetensors")
    paths = tmp_path / "left.safetensors", tmp_path / "right.safetensors"
    names = ["spectral-analysis", "anomaly-detection", "quantization-analysis"]
    here = story.report(story.diff(*paths), names)
    child = Elsewhere()
    monkeypatch.setattr(story, "start_engine", lambda *_: child)

    try:
        assert story.report(story.diff(*paths), names) == here
    finally:
        child.close()
