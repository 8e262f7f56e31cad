import io
import threading
import zipfile
from collections import OrderedDict
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hostile.files import read

from difflens.core.errors import CorruptFile, DifflensError, UnknownName
from difflens.models.formats import open_model, source

torch: Any = pytest.importorskip("torch")

DTYPES = {
    "BOOL": torch.bool, "U8": torch.uint8, "I8": torch.int8, "U16": torch.uint16,
    "I16": torch.int16, "U32": torch.uint32, "I32": torch.int32, "U64": torch.uint64,
    "I64": torch.int64, "F16": torch.float16, "BF16": torch.bfloat16, "F32": torch.float32,
    "F64": torch.float64, "C64": torch.complex64, "F8_E4M3": torch.float8_e4m3fn,
    "F8_E5M2": torch.float8_e5m2, "F8_E4M3FNUZ": torch.float8_e4m3fnuz,
    "F8_E5M2FNUZ": torch.float8_e5m2fnuz, "F8_E8M0": torch.float8_e8m0fnu,
}  # fmt: skip


def tensors_of(tensors):
    """Make real tensors of encoded bytes; None if torch has no such dtype."""
    made = {}
    for name, (dtype, shape, data) in tensors.items():
        if dtype not in DTYPES:
            return None
        flat = torch.frombuffer(bytearray(data), dtype=torch.uint8) if data else torch.empty(0)
        flat = flat.to(torch.uint8).view(DTYPES[dtype])
        made[name] = flat.reshape(shape)
    return made


def sample(path: Path, tensors) -> Path | None:
    """Write a file with torch itself."""
    made = tensors_of(tensors)
    if made is None:
        return None
    torch.save(made, path)
    return path


def raw(tensor) -> bytes:
    """Return a real tensor's bytes in C order."""
    tensor = tensor.detach().resolve_conj().resolve_neg().contiguous()
    if not tensor.numel():
        return b""
    return tensor.reshape(-1).view(torch.uint8).numpy().tobytes()


@pytest.fixture
def saved(tmp_path):
    """Save with torch, open with us; closed at the end."""
    opened = []

    def save(value, **how):
        path = tmp_path / f"model{len(opened)}.pt"
        torch.save(value, path, **how)
        opened.append(open_model(path))
        return opened[-1]

    yield save
    for model in opened:
        model.close()


def random(dtype, *shape):
    data = torch.randint(0, 256, (int(np.prod(shape)) * 16,), dtype=torch.uint8)
    return data.view(dtype)[: int(np.prod(shape))].reshape(shape).clone()


@pytest.mark.parametrize("dtype", DTYPES)
def test_every_dtype_is_read_bit_for_bit(saved, dtype):
    tensor = random(DTYPES[dtype], 3, 5) if dtype != "BOOL" else torch.rand(3, 5) > 0.5
    model = saved({"w": tensor, "scalar": tensor[0, 0].clone(), "none": tensor[:0].clone()})

    assert (dtype, (3, 5)) == (model.tensors["w"].dtype, model.tensors["w"].shape)
    assert raw(tensor) == read(model, "w")
    assert (model.tensors["scalar"].shape, model.tensors["none"].shape) == ((), (0, 5))
    assert raw(tensor[0, 0]) == read(model, "scalar")
    assert model.format == "pytorch"
    assert model.warnings == []


VIEWS = {
    "transposed": lambda t: t.t(),
    "sliced": lambda t: t[3:7, 2:9],
    "stepped": lambda t: t[::2, ::3],
    "a column": lambda t: t[:, 4],
    "a row": lambda t: t[4],
    "expanded": lambda t: t[0].expand(5, 16),
    "expanded scalar": lambda t: t[0, 0].expand(3, 2),
    "unsqueezed": lambda t: t[None, :, None],
    "permuted": lambda t: t.reshape(2, 6, 4, 4).permute(3, 1, 0, 2),
    "diagonal": lambda t: t.diagonal(),
    "overlapping": lambda t: t.reshape(-1).as_strided((5, 4), (2, 1), 3),
    "channels last": lambda t: t.reshape(2, 3, 4, 8).to(memory_format=torch.channels_last),
    "empty": lambda t: t[5:5],
    "one": lambda t: t[1:2, 3:4],
}


@pytest.mark.parametrize("dtype", ["U8", "BF16", "F32", "I64", "C64"])
@pytest.mark.parametrize("view", VIEWS.values(), ids=VIEWS)
def test_views_are_gathered_in_c_order(saved, view, dtype):
    tensor = view(random(DTYPES[dtype], 12, 16))
    model = saved({"w": tensor})

    assert model.tensors["w"].shape == tuple(tensor.shape)
    assert raw(tensor) == read(model, "w")
    whole = raw(tensor)
    for start in range(0, len(whole), 7):
        stop = min(start + 13, len(whole))
        buffer = bytearray(stop - start)
        model.read_into("w", start, stop, memoryview(buffer))
        assert whole[start:stop] == bytes(buffer)


@pytest.mark.parametrize(
    "view",
    [
        lambda t: t.t(),
        lambda t: t[:, 5],
        lambda t: t[::7, ::3],
        lambda t: t.reshape(1000, 15, 200).permute(2, 0, 1),
    ],
)
def test_views_of_large_tensors_are_gathered_block_by_block(saved, view):
    tensor = view(torch.arange(3_000_000, dtype=torch.int32).reshape(3000, 1000))
    model = saved(tensor)

    assert raw(tensor) == read(model, "tensor")


def test_several_threads_read_one_view(saved):
    tensor = torch.randn(900, 1100).t()
    model = saved(tensor)
    whole, wrong = raw(tensor), []

    def work(first):
        for start in range(first, len(whole), 400_000):
            stop = min(start + 100_000, len(whole))
            buffer = bytearray(stop - start)
            model.read_into("tensor", start, stop, memoryview(buffer))
            if bytes(buffer) != whole[start:stop]:
                wrong.append(start)

    threads = [threading.Thread(target=work, args=(n * 100_000,)) for n in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    assert wrong == []


def test_names_on_one_storage_are_aliases_only_where_they_are_the_same_view(saved):
    weight = torch.randn(4, 4)
    model = saved({"embed": weight, "head": weight, "first": weight[0], "turned": weight.t()})

    assert model.aliases == {"head": "embed"}
    assert raw(weight.t()) == read(model, "turned")


@pytest.mark.filterwarnings("ignore:ComplexHalf")
def test_complex_numbers_of_other_widths_are_decoded_exactly(saved):
    wide, narrow = random(torch.complex128, 2, 3), torch.randn(4).to(torch.complex32)
    model = saved({"wide": wide, "narrow": narrow, "turned": wide.t()})

    assert tuple(getattr(model.tensors["wide"], key) for key in ("dtype", "shape", "stored")) == (
        "F64",
        (2, 3, 2),
        "complex128",
    )
    assert raw(wide) == read(model, "wide")
    assert raw(wide.t()) == read(model, "turned")
    assert raw(narrow.to(torch.complex64)) == read(model, "narrow")


@pytest.mark.parametrize("dtype", [torch.complex64, torch.complex128])
def test_conjugate_and_negative_bits_are_applied(saved, dtype):
    tensor, other = torch.randn(3, 2, dtype=dtype), torch.randn(3, 2, dtype=dtype)
    marked = {"conj": tensor.conj(), "neg": other.conj().imag, "both": tensor.mH}
    model = saved(marked)

    for name, wanted in marked.items():
        assert raw(wanted) == read(model, name)


@pytest.mark.filterwarnings("ignore:torch.quantize_per")
@pytest.mark.parametrize("dtype", [torch.qint8, torch.quint8, torch.qint32])
def test_quantised_tensors_are_dequantised(saved, dtype):
    values = torch.randn(4, 6)
    by_tensor = torch.quantize_per_tensor(values, 0.03, 7, dtype)
    scales, zeros = torch.tensor([0.1, 0.2, 0.01, 0.5]), torch.tensor([0, 3, -2, 1])
    zeros = zeros.abs() if dtype == torch.quint8 else zeros
    by_row = torch.quantize_per_channel(values, scales, zeros, 0, dtype)
    model = saved({"by_tensor": by_tensor, "by_row": by_row})

    for name, tensor in (("by_tensor", by_tensor), ("by_row", by_row)):
        found = np.frombuffer(read(model, name), np.float32).reshape(4, 6)
        np.testing.assert_allclose(tensor.dequantize().numpy(), found, rtol=3e-7, atol=1e-7)
        assert model.tensors[name].stored == str(dtype).removeprefix("torch.")


class Net(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.conv = torch.nn.Conv2d(3, 4, 3)
        self.norm = torch.nn.BatchNorm2d(4)
        self.blocks = torch.nn.ModuleList([torch.nn.Linear(4, 4), torch.nn.Linear(4, 4)])
        self.blocks[1].weight = self.blocks[0].weight

    def forward(self, x):
        x = self.norm(self.conv(x)).mean((2, 3))
        return self.blocks[1](self.blocks[0](x))


def matches(model, wanted: dict[str, Any], prefix: str = "") -> None:
    """Hold that the model's tensors are these, bit for bit."""
    for name, tensor in wanted.items():
        assert raw(tensor) == read(model, prefix + name), name
        assert tuple(tensor.shape) == model.tensors[prefix + name].shape


def test_a_state_dict_is_read_as_torch_reads_it(saved):
    net = Net()
    model = saved(net.state_dict())

    assert list(model.tensors) == list(net.state_dict())
    matches(model, net.state_dict())
    assert model.refused == []
    assert model.aliases == {"blocks.1.weight": "blocks.0.weight"}


def test_a_whole_module_has_the_names_of_its_state_dict(saved):
    net = Net()
    model = saved(net)

    assert list(model.tensors) == list(net.state_dict())
    matches(model, net.state_dict())
    assert "torch.nn.modules.conv.Conv2d" in model.refused
    assert any(name.endswith(".Net") for name in model.refused)
    assert len(model.warnings) == 1


@pytest.fixture
def trained():
    """A network after two steps, with its optimizer and scheduler."""
    net = Net()
    optimizer = torch.optim.AdamW(net.parameters(), lr=0.25)
    scheduler = torch.optim.lr_scheduler.StepLR(optimizer, 5)
    for _ in range(2):
        optimizer.zero_grad()
        net(torch.randn(2, 3, 5, 5)).sum().backward()
        optimizer.step()
        scheduler.step()
    return net, optimizer, scheduler


@pytest.mark.parametrize("key", ["state_dict", "model_state_dict", "model", "net"])
def test_a_training_checkpoint_has_weights_optimizer_and_metadata(saved, trained, key):
    net, optimizer, scheduler = trained
    model = saved({
        "epoch": 3, key: net.state_dict(), "optimizer": optimizer.state_dict(),
        "scheduler": scheduler.state_dict(), "best": 0.5, "note": "a\nb", "losses": [1.0, 0.5],
        "rng": torch.get_rng_state(),
    })  # fmt: skip

    matches(model, net.state_dict())
    state = optimizer.state_dict()["state"]
    for number, slots in state.items():
        matches(model, slots, f"optimizer.state.{number}.")
    assert model.metadata["state dict"] == key
    assert model.metadata["epoch"] == "3"
    assert model.metadata["best"] == "0.5"
    assert model.metadata["losses"] == "[1.0, 0.5]"
    assert model.metadata["optimizer.param_groups.0.lr"] == "0.25"
    assert model.metadata["scheduler.last_epoch"] == "2"
    assert raw(torch.get_rng_state()) == read(model, "rng")
    assert model.refused == []


def test_a_lightning_checkpoint_is_read(saved, trained):
    net, optimizer, _ = trained
    model = saved({
        "epoch": 1, "global_step": 20, "pytorch-lightning_version": "2.2.0",
        "state_dict": {f"model.{name}": each for name, each in net.state_dict().items()},
        "optimizer_states": [optimizer.state_dict()], "lr_schedulers": [], "loops": None,
        "callbacks": {"ModelCheckpoint{'monitor': None}": {"best": torch.tensor(1.5)}},
        "hyper_parameters": {"lr": 1e-3, "layers": [1, 2]}, "hparams_name": "kwargs",
    })  # fmt: skip

    matches(model, net.state_dict(), "model.")
    assert "optimizer_states.0.state.0.exp_avg" in model.tensors
    assert model.metadata["hyper_parameters.lr"] == "0.001"
    assert model.metadata["global_step"] == "20"


def test_two_copies_of_the_weights_keep_their_keys_apart(saved):
    net = Net()
    model = saved({"state_dict": net.state_dict(), "ema": Net().state_dict()})

    matches(model, net.state_dict())
    assert "ema.conv.weight" in model.tensors
    both = saved({"model": net.state_dict(), "net": net.state_dict()})
    assert "model.conv.weight" in both.tensors
    assert "state dict" not in both.metadata


def test_keys_that_are_no_text_are_shown_with_their_type(saved):
    one = torch.ones(1)
    keys = (3, b"w", (1, "a"), None, 2.5, True, "plain")
    model = saved(dict.fromkeys(keys, one))

    wanted = ["3", "b'w'", "(1, 'a')", "None", "2.5 (float)", "True (bool)", "plain"]
    assert list(model.tensors) == wanted


def test_two_keys_that_look_alike_are_numbered_and_told(saved):
    model = saved(
        {1: torch.zeros(1), "1": torch.ones(1), "a": {"b": torch.ones(1)}, "a.b": torch.zeros(1)}
    )

    assert list(model.tensors) == ["1", "1 (2)", "a.b", "a.b (2)"]
    assert read(model, "1 (2)") == raw(torch.ones(1))
    assert any("two tensors have one name" in each for each in model.warnings)


def test_dictionaries_lists_and_plain_things_of_all_kinds_are_read(saved):
    model = saved(OrderedDict(
        tensors=[torch.zeros(2), (torch.ones(1), {"deep": torch.ones(3)})], kind=torch.bfloat16,
        device=torch.device("cuda", 1), size=torch.Size([2, 3]), seen={1, 2}, frozen=frozenset([7]),
        nothing=None, complex=1 + 2j, raw=b"xyz", long=list(range(100)), huge=2**9000,
        array=bytearray(b"12"),
    ))  # fmt: skip

    assert list(model.tensors) == ["tensors.0", "tensors.1.0", "tensors.1.1.deep"]
    assert model.metadata["kind"] == "torch.bfloat16"
    assert model.metadata["device"] == "cuda:1"
    assert model.metadata["size"] == "(2, 3)"
    assert model.metadata["frozen"] == "{7}"
    assert model.metadata["complex"] == "(1+2j)"
    assert model.metadata["raw"] == "b'xyz'"
    assert model.metadata["long"] == "[100 values]"
    assert model.metadata["huge"] == "a whole number of 9001 bits"
    assert model.metadata["array"] == "b'12'"
    assert model.refused == []


@pytest.mark.parametrize("protocol", [2, 3, 4, 5])
def test_numpy_arrays_and_scalars_are_read(saved, protocol):
    arrays = {
        "f8": np.random.default_rng(0).normal(size=(3, 4)), "i4": np.arange(5, dtype="<i4"),
        "big": np.arange(6, dtype=">f4").reshape(2, 3), "zero": np.array(2.5, np.float16),
        "fortran": np.asfortranarray(np.arange(6, dtype=np.int16).reshape(2, 3)),
        "flags": np.array([True, False]),
    }  # fmt: skip
    model = saved(
        {**arrays, "scalar": np.float32(2.5), "count": np.int64(7)}, pickle_protocol=protocol
    )

    for name, array in arrays.items():
        wanted = np.ascontiguousarray(array).astype(array.dtype.newbyteorder("<"))
        assert wanted.tobytes() == read(model, name), name
    assert model.metadata == {"scalar": "2.5", "count": "7"}


def test_a_large_numpy_array_is_read_where_it_lies(saved):
    array = np.arange(400_000, dtype=np.float64)
    model = saved({"a": array}, pickle_protocol=4)

    assert array.tobytes() == read(model, "a")


@pytest.mark.parametrize("protocol", [2, 3, 4, 5])
def test_every_protocol_of_pickle_is_read(saved, protocol):
    net = Net()
    model = saved({"net": net.state_dict(), "step": 5}, pickle_protocol=protocol)

    matches(model, net.state_dict())
    assert model.metadata["step"] == "5"


class Odd(torch.Tensor):
    """A subclass of tensors."""


def test_parameters_buffers_and_subclasses_are_tensors(saved):
    parameter = torch.nn.Parameter(torch.randn(2))
    noted = torch.nn.Parameter(torch.randn(2))
    noted.note = "kept"
    tensor = torch.randn(3)
    tensor.note = "kept"
    model = saved({
        "parameter": parameter, "noted": noted, "tensor": tensor,
        "odd": torch.randn(2).as_subclass(Odd), "buffer": torch.nn.Buffer(torch.ones(2)),
    })  # fmt: skip

    assert list(model.tensors) == ["parameter", "noted", "tensor", "odd", "buffer"]
    assert raw(parameter) == read(model, "parameter")
    assert raw(tensor) == read(model, "tensor")
    assert [name.rpartition(".")[2] for name in model.refused] == ["Odd"]


@pytest.mark.filterwarnings("ignore")
def test_kinds_that_are_not_decoded_get_one_warning_each(saved):
    model = saved({
        "good": torch.ones(2), "coo": torch.eye(3).to_sparse(), "csr": torch.eye(3).to_sparse_csr(),
        "nested": torch.nested.nested_tensor([torch.ones(2), torch.ones(3)]),
        "meta": torch.empty(2, device="meta"),
        "packed": torch.quantize_per_channel(
            torch.randn(2, 4), torch.ones(2), torch.zeros(2), 0, torch.quint4x2
        ),
    })  # fmt: skip

    assert list(model.tensors) == ["good"]
    assert [each.partition(":")[0] for each in model.warnings] == [
        "coo", "csr", "nested", "meta", "packed",
    ]  # fmt: skip


def test_a_storage_alone_is_a_vector(saved):
    model = saved({"s": torch.arange(3, dtype=torch.float32).untyped_storage()})

    assert (model.tensors["s"].dtype, model.tensors["s"].shape) == ("U8", (12,))


class Script(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.layer = torch.nn.Linear(3, 3)
        self.register_buffer("scale", torch.ones(3))

    def forward(self, x):
        return self.layer(x) * self.scale + self.constant()

    def constant(self):
        return torch.ones(3)


@pytest.mark.filterwarnings("ignore")
def test_torchscript_gives_its_weights_and_no_code(tmp_path):
    net = Script()
    path = tmp_path / "script.pt"
    traced = torch.jit.trace(net, torch.randn(1, 3))
    frozen = torch.jit.freeze(torch.jit.script(net.eval()))
    for script in (torch.jit.script(net), traced):
        torch.jit.save(script, path)
        model = open_model(path)
        assert set(net.state_dict()) == set(model.tensors) - {"constants.0"}
        matches(model, net.state_dict())
        assert model.metadata["archive"] == "TorchScript"
        assert model.refused == []
        model.close()
    torch.jit.save(frozen, path)
    model = open_model(path)
    assert all(name.startswith("constants.") for name in model.tensors)
    assert raw(net.layer.weight) in [read(model, name) for name in model.tensors]
    model.close()


def rewritten(path: Path, change) -> Path:
    """Write a torch archive again with other members."""
    with zipfile.ZipFile(path) as old:
        content = {name: old.read(name) for name in old.namelist()}
    with zipfile.ZipFile(path, "w") as new:
        for name, data, method in change(content):
            new.writestr(name, data, method)
    return path


def test_deflated_storages_are_read(tmp_path):
    net = Net()
    path = tmp_path / "m.pt"
    torch.save(net.state_dict(), path)
    rewritten(path, lambda old: [(name, data, 8) for name, data in old.items()])

    model = open_model(path)

    matches(model, net.state_dict())
    model.close()


@pytest.mark.parametrize("dtype", ["I16", "F32", "BF16", "C64", "F64", "U8"])
def test_big_endian_storages_are_swapped(tmp_path, dtype):
    tensor = random(DTYPES[dtype], 4, 6)
    path = tmp_path / "m.pt"
    torch.save({"w": tensor, "t": tensor.t()}, path)
    width = 4 if dtype == "C64" else tensor.element_size()

    def swap(old):
        for name, data in old.items():
            if "/data/" in name:
                yield name, np.frombuffer(data, f"<u{width}").byteswap().tobytes(), 0
            else:
                yield name, b"big" if name.endswith("byteorder") else data, 0

    model = open_model(rewritten(path, swap))

    assert raw(tensor) == read(model, "w")
    assert raw(tensor.t()) == read(model, "t")
    model.close()


def test_files_without_checksums_are_read(tmp_path):
    path = tmp_path / "m.pt"
    torch.serialization.set_crc32_options(False)
    try:
        torch.save({"w": torch.ones(3)}, path)
    finally:
        torch.serialization.set_crc32_options(True)

    model = open_model(path)

    assert raw(torch.ones(3)) == read(model, "w")
    model.close()


def test_part_of_a_tensor_and_wrong_ranges(saved):
    model = saved({"weight": torch.arange(4, dtype=torch.uint8)})
    buffer = bytearray(4)

    assert model.read_into("weight", 1, 3, memoryview(buffer)) == 2
    assert bytes(buffer) == b"\1\2\0\0"
    with pytest.raises(ValueError, match="cannot read"):
        model.read_into("weight", 0, 5, memoryview(bytearray(9)))
    with pytest.raises(UnknownName):
        model.read_into("wieght", 0, 1, memoryview(bytearray(1)))


def test_it_is_recognised_by_content_whatever_its_name(tmp_path):
    path = tmp_path / "weights.xyz"
    torch.save({"a": torch.ones(2)}, path)

    model = open_model(path)

    assert model.format == "pytorch"
    model.close()


def test_other_zip_archives_are_not_taken():
    recognise = source["pytorch"].options["recognise"]
    for name in ("a.npy", "config.json", "model.weights.h5", "word/document.xml", "META-INF/"):
        content = io.BytesIO()
        with zipfile.ZipFile(content, "w") as archive:
            archive.writestr(name, b"x" if not name.endswith("/") else b"")
        assert not recognise(content.getvalue()[:4096], Path("m.pt")), name


def test_shards_of_hugging_face_are_one_model(tmp_path):
    net = Net()
    state = list(net.state_dict().items())
    weight_map = {}
    for number, part in enumerate((dict(state[:4]), dict(state[4:])), 1):
        name = f"pytorch_model-{number:05}-of-00002.bin"
        torch.save(part, tmp_path / name)
        weight_map |= dict.fromkeys(part, name)
    import json

    (tmp_path / "pytorch_model.bin.index.json").write_text(json.dumps({"weight_map": weight_map}))

    model = open_model(tmp_path)

    matches(model, net.state_dict())
    model.close()


def test_a_wrong_checksum_of_a_small_storage_is_told_when_it_is_read(tmp_path):
    path = tmp_path / "m.pt"
    torch.save({"w": torch.arange(64, dtype=torch.uint8)}, path)
    content = path.read_bytes()
    at = content.index(bytes(range(64)))
    path.write_bytes(content[:at] + b"\xff" + content[at + 1 :])
    model = open_model(path)

    with pytest.raises(CorruptFile, match="checksum"):
        read(model, "w")
    model.close()


def test_a_folder_of_errors_is_never_a_crash(tmp_path):
    path = tmp_path / "m.pt"
    torch.save([1, 2], path)
    model = open_model(path)

    assert model.tensors == {}
    assert model.metadata == {"value": "[1, 2]"}
    model.close()
    path.write_bytes(path.read_bytes()[:-1])
    with pytest.raises(DifflensError):
        open_model(path)
