import pickle
from collections import OrderedDict
from pathlib import Path

import numpy as np
import pytest
from hostile.files import read
from models.formats.test_pytorch import DTYPES, Net, matches, random, raw, tensors_of

from difflens.core.errors import CorruptFile
from difflens.models.formats import open_model

torch = pytest.importorskip("torch")

MAGIC = 0x1950A86A20F9469CFC6C


def write(value, path: Path, **how) -> Path:
    torch.save(value, path, _use_new_zipfile_serialization=False, **how)
    return path


def sample(path: Path, tensors) -> Path | None:
    """Write a file with torch itself."""
    made = tensors_of(tensors)
    return None if made is None else write(made, path)


@pytest.mark.parametrize("dtype", DTYPES)
def test_every_dtype_is_read_bit_for_bit(tmp_path, dtype):
    tensor = random(DTYPES[dtype], 3, 5) if dtype != "BOOL" else torch.rand(3, 5) > 0.5
    model = open_model(write({"w": tensor, "t": tensor.t(), "none": tensor[:0]}, tmp_path / "m.pt"))

    assert (dtype, (3, 5)) == (model.tensors["w"].dtype, model.tensors["w"].shape)
    assert raw(tensor) == read(model, "w")
    assert raw(tensor.t()) == read(model, "t")
    assert model.format == "pytorch-legacy"
    model.close()


@pytest.mark.parametrize("protocol", [2, 3, 4, 5])
def test_a_checkpoint_is_read_as_torch_reads_it(tmp_path, protocol):
    net = Net()
    optimizer = torch.optim.SGD(net.parameters(), lr=0.5, momentum=0.9)
    net(torch.randn(2, 3, 5, 5)).sum().backward()
    optimizer.step()
    value = {"model": net.state_dict(), "optimizer": optimizer.state_dict(), "epoch": 2}
    path = write(value, tmp_path / "m.pt", pickle_protocol=protocol)

    model = open_model(path)

    matches(model, net.state_dict())
    matches(model, optimizer.state_dict()["state"][0], "optimizer.state.0.")
    assert model.metadata["epoch"] == "2"
    assert model.aliases == {"blocks.1.weight": "blocks.0.weight"}
    model.close()


@pytest.mark.filterwarnings("ignore")
def test_a_whole_module_has_the_names_of_its_state_dict(tmp_path):
    net = torch.nn.Sequential(torch.nn.Linear(2, 3), torch.nn.BatchNorm1d(3))
    model = open_model(write(net, tmp_path / "m.pt"))

    assert list(model.tensors) == list(net.state_dict())
    matches(model, net.state_dict())
    assert model.refused == [
        "torch.nn.modules.batchnorm.BatchNorm1d",
        "torch.nn.modules.container.Sequential",
        "torch.nn.modules.linear.Linear",
    ]
    model.close()


class _Storage:
    """A storage as the pickler of a stream wants it."""

    def __init__(self, *identity):
        self.identity = identity


class _Pickler(pickle.Pickler):
    def persistent_id(self, value):
        return value.identity if isinstance(value, _Storage) else None


def stream(value, storages, *, magic=MAGIC, protocol=1001, little=True, keys=None) -> bytes:
    """Write a stream by hand; storages: key -> elements said, bytes."""
    import io

    out = io.BytesIO()
    for each in (magic, protocol, {"protocol_version": 1001, "little_endian": little}):
        pickle.dump(each, out, 2)
    _Pickler(out, 2).dump(value)
    pickle.dump(sorted(storages) if keys is None else keys, out, 2)
    for key in sorted(storages):
        count, data = storages[key]
        out.write(count.to_bytes(8, "little", signed=True) + data)
    return out.getvalue()


class _Made:
    """A tensor as a pickle makes it: `torch._utils._rebuild_tensor_v2` of these."""

    def __init__(self, *arguments):
        self.arguments = arguments

    def __reduce__(self):
        return torch._utils._rebuild_tensor_v2, self.arguments


def tensor(count=4, shape=(4,), stride=(1,), offset=0, view=None):
    storage = _Storage("storage", torch.FloatStorage, "7", "cpu", count, view)
    return _Made(storage, offset, shape, stride, False, OrderedDict())


def test_a_stream_of_a_big_endian_machine_is_little_endian_all_the_same(tmp_path):
    path = tmp_path / "m.pt"
    data = np.arange(4, dtype="<f4").tobytes()
    path.write_bytes(stream({"w": tensor()}, {"7": (4, data)}, little=False))

    model = open_model(path)

    assert read(model, "w") == data
    assert torch.equal(torch.load(path, weights_only=False)["w"], torch.arange(4.0))
    model.close()


def test_views_of_storages_are_cut_out(tmp_path):
    path = tmp_path / "m.pt"
    data = np.arange(6, dtype="<f4").tobytes()
    value = {"w": tensor(6, (2,), (1,), 1, view=("8", 2, 3))}
    path.write_bytes(stream(value, {"7": (6, data)}))

    model = open_model(path)

    assert np.frombuffer(read(model, "w"), "<f4").tolist() == [3.0, 4.0]
    model.close()


@pytest.mark.parametrize(
    ("how", "word"),
    [
        ({"keys": ["8"]}, "not those"),
        ({"keys": ["7", "7"]}, "not those"),
        ({"keys": [7]}, "not those"),
        ({"keys": {"7": 1}}, "not those"),
    ],
)
def test_keys_that_do_not_fit_are_told(tmp_path, how, word):
    path = tmp_path / "m.pt"
    path.write_bytes(stream({"w": tensor()}, {"7": (4, bytes(16))}, **how))

    with pytest.raises(CorruptFile, match=word):
        open_model(path)
