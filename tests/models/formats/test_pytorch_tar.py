"""torch cannot write these any more: the writer here follows what its reader reads."""

import io
import pickle
import struct
import tarfile
from collections import OrderedDict
from pathlib import Path

import numpy as np
import pytest
from hostile.files import read
from models.formats.test_pytorch import raw, tensors_of

from difflens.core.errors import CorruptFile
from difflens.models.formats import open_model

torch = pytest.importorskip("torch")

STORAGES = {
    torch.float32: "FloatStorage", torch.float64: "DoubleStorage", torch.float16: "HalfStorage",
    torch.int64: "LongStorage", torch.int32: "IntStorage", torch.int16: "ShortStorage",
    torch.int8: "CharStorage", torch.uint8: "ByteStorage",
}  # fmt: skip


class _Pickler(pickle.Pickler):
    def __init__(self, out, known):
        super().__init__(out, 2)
        self._known = known

    def persistent_id(self, value):
        return self._known.get(id(value))


def members(value, tensors, views=()):
    """Return the members' bytes by name; tensors are the real ones that `value` holds."""
    storages, entries = io.BytesIO(), io.BytesIO()
    pickle.dump(len(tensors), storages, 2)
    pickle.dump(len(tensors), entries, 2)
    known = {}
    for number, each in enumerate(tensors, 1):
        kind = getattr(torch, STORAGES[each.dtype])
        pickle.dump((number, "cpu", kind), storages, 2)
        flat = raw(torch.empty(0, dtype=each.dtype).set_(each.untyped_storage()))
        storages.write(struct.pack("<q", len(flat) // each.element_size()) + flat)
        pickle.dump((100 + number, number, kind), entries, 2)
        rank = each.dim()
        numbers = (*each.shape, *each.stride(), each.storage_offset())
        entries.write(struct.pack(f"<i4x{2 * rank + 1}q", rank, *numbers))
        known[id(each)] = str(100 + number)
    pickle.dump(list(views), storages, 2)
    main = io.BytesIO()
    _Pickler(main, known).dump(value)
    about = pickle.dumps({"little_endian": True}, 2)
    return {
        "sys_info": about, "pickle": main.getvalue(), "tensors": entries.getvalue(),
        "storages": storages.getvalue(),
    }  # fmt: skip


def archive(path: Path, content, form=tarfile.PAX_FORMAT, mtime=1.5) -> Path:
    with tarfile.open(path, "w:", format=form) as tar:
        for name, data in content.items():
            info = tarfile.TarInfo(name)
            info.size, info.mtime = len(data), mtime
            tar.addfile(info, io.BytesIO(data))
    return path


def sample(path: Path, tensors) -> Path | None:
    """Write a file by hand; dtypes of 2016 only."""
    made = tensors_of(tensors)
    if made is None or any(each.dtype not in STORAGES for each in made.values()):
        return None
    return archive(path, members(made, list(made.values())))


@pytest.mark.parametrize("dtype", STORAGES, ids=str)
@pytest.mark.parametrize("form", [tarfile.PAX_FORMAT, tarfile.GNU_FORMAT, tarfile.USTAR_FORMAT])
def test_every_dtype_of_the_time_is_read(tmp_path, dtype, form):
    tensor = torch.arange(24).to(dtype).reshape(4, 6)
    turned = torch.arange(6).to(dtype).reshape(2, 3).t()
    value = OrderedDict([("w", tensor), ("deep", {"t": turned}), ("epoch", 4)])
    mtime = 1.5 if form == tarfile.PAX_FORMAT else 1
    path = archive(tmp_path / "m.pt", members(value, [tensor, turned]), form, mtime)

    model = open_model(path)

    assert raw(tensor) == read(model, "w")
    assert raw(turned) == read(model, "deep.t")
    assert model.metadata == {"epoch": "4"}
    assert model.format == "pytorch-tar"
    loaded = torch.load(path, weights_only=False)
    assert torch.equal(loaded["w"], tensor)
    assert torch.equal(loaded["deep"]["t"], turned)
    model.close()


def test_views_of_storages_are_cut_out(tmp_path):
    tensor = torch.arange(6, dtype=torch.float32)
    content = members({"w": tensor}, [tensor], views=[(50, 1, 2, 3)])
    content["pickle"] = b"\x80\x02}X\x01\x00\x00\x00vX\x02\x00\x00\x0050Qs."
    model = open_model(archive(tmp_path / "m.pt", content))

    assert np.frombuffer(read(model, "v"), "<f4").tolist() == [2.0, 3.0, 4.0]
    model.close()


def test_a_key_that_is_not_there_is_told(tmp_path):
    tensor = torch.ones(2)
    content = members({"w": tensor}, [tensor])
    content["pickle"] = b"\x80\x02}X\x01\x00\x00\x00vX\x02\x00\x00\x0051Qs."

    with pytest.raises(CorruptFile, match="not in the tar"):
        open_model(archive(tmp_path / "m.pt", content))


class Parameter:
    """Stands for the parameters of the time, whose state is a tuple."""

    def __init__(self, data):
        self.data = data

    def __reduce__(self):
        return torch.nn.Parameter, (), (self.data, True, OrderedDict())


def test_parameters_of_the_time_are_tensors(tmp_path):
    tensor = torch.arange(3, dtype=torch.float32)
    content = members({"w": Parameter(tensor)}, [tensor])
    model = open_model(archive(tmp_path / "m.pt", content))

    assert raw(tensor) == read(model, "w")
    assert model.refused == []
    model.close()
