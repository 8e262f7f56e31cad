import io
import os
import pickle
from pathlib import Path

import numpy as np
import pytest
from hostile.files import read
from hostile.fuzz import mutants
from models.formats.test_pytorch import DTYPES, Net, random, raw, tensors_of

from difflens.core.errors import CorruptFile, DifflensError, UnknownName, UnreadableFile
from difflens.core.escape import visible
from difflens.models.formats import open_model

torch = pytest.importorskip("torch")
checkpoint = pytest.importorskip("torch.distributed.checkpoint")
from torch.distributed.checkpoint import filesystem, metadata  # noqa: E402

pytestmark = pytest.mark.filterwarnings("ignore")


def pieces(folder: Path, tensors, cuts, name: str = ".metadata", values=None) -> Path:
    """Write a checkpoint as several processes would: each tensor cut into boxes."""
    entries, places, out = {}, {}, [io.BytesIO(), io.BytesIO()]
    for fqn, tensor in tensors.items():
        chunks = []
        for number, (offsets, sizes) in enumerate(cuts(tensor)):
            box = tuple(slice(a, a + n) for a, n in zip(offsets, sizes, strict=True))
            stream = out[number % 2]
            begin = stream.tell()
            part = tensor[box]
            torch.save(part.clone() if part.numel() < tensor.numel() else tensor, stream)
            index = metadata.MetadataIndex(fqn, torch.Size(offsets))
            length = stream.tell() - begin
            places[index] = filesystem._StorageInfo(f"__{number % 2}_0.distcp", begin, length)
            chunks.append(metadata.ChunkStorageMetadata(torch.Size(offsets), torch.Size(sizes)))
        properties = metadata.TensorProperties(dtype=tensor.dtype)
        entries[fqn] = metadata.TensorStorageMetadata(properties, tensor.shape, chunks)
    for fqn, value in (values or {}).items():
        begin = out[0].tell()
        torch.save(value, out[0])
        info = filesystem._StorageInfo("__0_0.distcp", begin, out[0].tell() - begin)
        places[metadata.MetadataIndex(fqn)] = info
        entries[fqn] = metadata.BytesStorageMetadata()
    for number, stream in enumerate(out):
        (folder / f"__{number}_0.distcp").write_bytes(stream.getvalue())
    about = metadata.Metadata(entries, storage_data=places)
    (folder / name).write_bytes(pickle.dumps(about))
    return folder / name


def whole(tensor):
    return [((0,) * tensor.dim(), tuple(tensor.shape))]


def rows(tensor):
    half = tensor.shape[0] // 2
    rest = tuple(tensor.shape[1:])
    zeros = (0,) * len(rest)
    return [((0, *zeros), (half, *rest)), ((half, *zeros), (tensor.shape[0] - half, *rest))]


def grid(tensor):
    """Cut the first two axes into unequal parts."""
    a, b, *rest = tensor.shape
    zeros = (0,) * len(rest)
    for begin, height in ((0, a // 3), (a // 3, a - a // 3)):
        for left, width in ((0, b // 4), (b // 4, 1), (b // 4 + 1, b - b // 4 - 1)):
            yield (begin, left, *zeros), (height, width, *rest)


def sample(path: Path, tensors) -> Path | None:
    """Write the metadata at the path, and the pieces beside it."""
    made = tensors_of(tensors)
    return None if made is None else pieces(path.parent, made, whole, path.name)


def test_what_torch_saved_is_read_bit_for_bit(tmp_path):
    net = Net()
    optimizer = torch.optim.Adam(net.parameters())
    net(torch.randn(2, 3, 5, 5)).sum().backward()
    optimizer.step()
    state = {"model": net.state_dict(), "optim": optimizer.state_dict(), "epoch": 7, "note": "hi"}
    checkpoint.save(state, checkpoint_id=tmp_path / "ckpt")

    model = open_model(tmp_path / "ckpt")

    for name, tensor in net.state_dict().items():
        assert raw(tensor) == read(model, f"model.{name}")
        assert model.tensors[f"model.{name}"].shape == tuple(tensor.shape)
    exp_avg = optimizer.state_dict()["state"][0]["exp_avg"]
    assert raw(exp_avg) == read(model, "optim.state.0.exp_avg")
    assert model.metadata["epoch"] == "7"
    assert model.metadata["note"] == "hi"
    assert model.format == "dcp"
    assert model.refused == []
    model.confirm()
    model.close()


@pytest.mark.parametrize("dtype", DTYPES)
def test_every_dtype_is_read_bit_for_bit(tmp_path, dtype):
    tensor = random(DTYPES[dtype], 6, 5) if dtype != "BOOL" else torch.rand(6, 5) > 0.5
    scalar = tensor[0, 0].clone()
    open_at = pieces(tmp_path, {"w": tensor}, rows)
    model = open_model(open_at)

    assert (dtype, (6, 5)) == (model.tensors["w"].dtype, model.tensors["w"].shape)
    assert raw(tensor) == read(model, "w")
    model.close()
    model = open_model(pieces(tmp_path, {"s": scalar}, whole))
    assert raw(scalar) == read(model, "s")
    model.close()


@pytest.mark.parametrize("cuts", [whole, rows, grid])
@pytest.mark.parametrize("shape", [(9, 8), (6, 9, 5), (4, 5, 2, 3)])
def test_pieces_are_put_together_wherever_they_were_cut(tmp_path, cuts, shape):
    tensor = torch.arange(np.prod(shape), dtype=torch.int32).reshape(shape)
    model = open_model(pieces(tmp_path, {"w": tensor}, cuts))

    expected = raw(tensor)
    assert expected == read(model, "w")
    for start in range(0, len(expected), 37):
        stop = min(start + 61, len(expected))
        buffer = bytearray(stop - start)
        assert model.read_into("w", start, stop, memoryview(buffer)) == stop - start
        assert expected[start:stop] == bytes(buffer)
    model.close()


def test_complex128_keeps_its_halves_together(tmp_path):
    tensor = torch.randn(6, 8, dtype=torch.complex128)
    model = open_model(pieces(tmp_path, {"w": tensor}, grid))

    assert model.tensors["w"].shape == (6, 8, 2)
    assert raw(tensor) == read(model, "w")
    model.close()


def test_values_are_metadata_and_large_ones_are_counted(tmp_path):
    values = {"epoch": 3, "config": {"lr": 0.5}, "long": "x" * 100_000}
    model = open_model(pieces(tmp_path, {}, whole, values=values))

    assert model.metadata["epoch"] == "3"
    assert model.metadata["config.lr"] == "0.5"
    assert model.metadata["long"].endswith(" bytes")
    model.close()


def test_wrong_ranges_and_names_are_refused(tmp_path):
    model = open_model(pieces(tmp_path, {"w": torch.ones(4)}, whole))

    with pytest.raises(ValueError, match="cannot read"):
        model.read_into("w", 0, 20, memoryview(bytearray(20)))
    with pytest.raises(UnknownName):
        model.read_into("v", 0, 1, memoryview(bytearray(1)))
    model.close()


def edited(folder, change):
    """Change the metadata of a good checkpoint."""
    path = pieces(folder, {"w": torch.arange(24.0).reshape(4, 6)}, rows, values={"epoch": 1})
    about = pickle.loads(path.read_bytes())  # noqa: S301  our own
    change(about)
    path.write_bytes(pickle.dumps(about))
    return path


def moved(**changes):
    def change(about):
        for info in about.storage_data.values():
            for key, value in changes.items():
                setattr(info, key, value)

    return change


def chunk(offsets=None, sizes=None):
    def change(about):
        first = about.state_dict_metadata["w"].chunks[0]
        first.offsets, first.sizes = offsets or first.offsets, sizes or first.sizes

    return change


def resized(size):
    def change(about):
        about.state_dict_metadata["w"].size = size

    return change


BAD = {
    "outside": (moved(relative_path="../x"), "a file of the folder"),
    "absolute": (moved(relative_path="/etc/hostname"), "a file of the folder"),
    "empty name": (moved(relative_path=""), "a file of the folder"),
    "no text": (moved(relative_path=5), "none that torch writes"),
    "missing file": (moved(relative_path="gone.distcp"), "no such file"),
    "past the end": (moved(offset=10**9), "the file has"),
    "negative": (moved(offset=-1), "none that torch writes"),
    "huge length": (moved(length=2**62), "the file has"),
    "a piece outside": (chunk(offsets=torch.Size([3, 0])), "ends outside"),
    "too few elements": (chunk(sizes=torch.Size([1, 6])), "the tensor has 24"),
    "another place": (chunk(offsets=torch.Size([1, 0])), "kept nowhere"),
    "another rank": (chunk(offsets=torch.Size([0]), sizes=torch.Size([12])), "no place"),
    "overflow": (resized(torch.Size([2**40, 2**40])), "overflows"),
    "no shape": (resized("x"), "shape"),
    "no pieces": (lambda about: about.storage_data.clear(), "kept nowhere"),
}


@pytest.mark.parametrize(("change", "word"), BAD.values(), ids=BAD)
def test_metadata_that_lies_is_told(tmp_path, change, word):
    with pytest.raises(DifflensError, match=word):
        open_model(edited(tmp_path, change).parent)


def test_pieces_that_are_not_what_the_metadata_says_are_told(tmp_path):
    def change(about):
        about.state_dict_metadata["w"].properties.dtype = torch.int32

    model = open_model(edited(tmp_path, change))

    with pytest.raises(CorruptFile, match="is wanted"):
        read(model, "w")
    model.close()


def test_pieces_that_overlap_leave_a_hole_that_is_told(tmp_path):
    def change(about):
        first, second = about.state_dict_metadata["w"].chunks
        second.offsets = first.offsets

    model = open_model(edited(tmp_path, change))

    with pytest.raises(CorruptFile, match="no piece"):
        read(model, "w")
    model.close()


def test_a_folder_without_metadata_is_told(tmp_path):
    with pytest.raises(UnreadableFile):
        open_model(tmp_path / ".metadata")


def test_metadata_cut_at_any_byte_is_refused(tmp_path):
    path = pieces(tmp_path, {"w": torch.ones(2)}, whole, values={"epoch": 1})
    good = path.read_bytes()
    for end in range(len(good)):
        path.write_bytes(good[:end])
        with pytest.raises(DifflensError):
            open_model(tmp_path)


def survive(path: Path, contents) -> int:
    """Open every mutant of the metadata and read it; only clean errors may come."""
    opened = 0
    for content in contents:
        path.write_bytes(content)
        try:
            model = open_model(path.parent)
        except DifflensError as error:
            assert str(error) == visible(str(error))  # noqa: PT017  either way is right
            continue
        opened += 1
        for name in model.tensors:
            try:
                read(model, name)
            except DifflensError as error:
                assert str(error) == visible(str(error))  # noqa: PT017  either way is right
        model.close()
    return opened


def test_a_thousand_mutants_give_clean_errors_or_values(tmp_path):
    path = pieces(tmp_path, {"w": torch.arange(24.0).reshape(4, 6)}, rows, values={"epoch": 1})
    opened = survive(path, mutants(path.read_bytes(), 8, 1000))

    assert 0 < opened < 1000


@pytest.mark.slow
def test_five_thousand_mutants(tmp_path):
    count = int(os.environ.get("DIFFLENS_FUZZ", "5000"))
    seed = int(os.environ.get("DIFFLENS_SEED", "9"))
    path = pieces(tmp_path, {"w": torch.arange(24.0).reshape(4, 6)}, grid, values={"epoch": 1})

    assert survive(path, mutants(path.read_bytes(), seed, count)) < count
