"""Fresh pairs whose values were put in another order, turned, or replaced."""

from __future__ import annotations

from .edits import (
    corrupt,
    exchange,
    fold_norm,
    permute,
    permute_inconsistently,
    reinitialise,
    rescale_channels,
    rotate,
    transpose,
)
from .edits.order import Place
from .fresh_edits import of
from .heldback_edits import relabel, relayout
from .heldback_shapes import shuffle, turn_heads
from .pairs import Edit, Pair


def _neox(layer: int, part: str) -> str:
    return f"gpt_neox.layers.{layer}.{part}"


def _t5(side: str, block: int, layer: int, part: str) -> str:
    return f"{side}.block.{block}.layer.{layer}.{part}.weight"


def _hidden(layer: int) -> list[Place]:
    """List where the hidden units of one layer of `quill` lie."""
    up, down = _neox(layer, "mlp.dense_h_to_4h"), _neox(layer, "mlp.dense_4h_to_h")
    return [(f"{up}.weight", 0), (f"{up}.bias", 0), (f"{down}.weight", 1)]


def _heads(layer: int) -> list[Place]:
    stem = f"encoder.layers.{layer}.self_attn"
    rows: list[Place] = [(f"{stem}.{p}_proj.weight", 0) for p in "qkv"]
    return [
        *rows,
        (f"{stem}.q_proj.bias", 0),
        (f"{stem}.v_proj.bias", 0),
        (f"{stem}.out_proj.weight", 1),
    ]


_SIDES = (("encoder", 1), ("decoder", 2))


def _readers(side: str, block: int, layer: int, last: int) -> list[str]:
    """List the matrices of `courier` that read the norm of a layer."""
    if layer == last:
        return [_t5(side, block, layer, f"DenseReluDense.wi_{at}") for at in (0, 1)]
    if layer == 0:
        return [_t5(side, block, 0, f"SelfAttention.{part}") for part in "qkv"]
    return [_t5(side, block, layer, "EncDecAttention.q")]


def _cross() -> list[str]:
    return [_t5("decoder", at, 1, f"EncDecAttention.{part}") for at in range(3) for part in "kv"]


def _folds() -> list[Edit]:
    """Fold every gain of `courier` into what reads it, so that its stream can be turned."""
    folds = [
        fold_norm("encoder.final_layer_norm.weight", _cross()),
        fold_norm("decoder.final_layer_norm.weight", ["lm_head.weight"]),
    ]
    for side, last in _SIDES:
        for block in range(3):
            for layer in range(last + 1):
                norm = _t5(side, block, layer, "layer_norm")
                folds.append(fold_norm(norm, _readers(side, block, layer, last)))
    return folds


def _stream() -> list[Place]:
    places: list[Place] = [("shared.weight", 1), ("lm_head.weight", 1)]
    places += [(name, 1) for name in _cross()]
    for side, last in _SIDES:
        for block in range(3):
            for layer in range(last + 1):
                places += [(name, 1) for name in _readers(side, block, layer, last)]
                part = (
                    ("SelfAttention.o", "EncDecAttention.o")[layer]
                    if layer < last
                    else "DenseReluDense.wo"
                )
                places.append((_t5(side, block, layer, part), 0))
    return places


def _experts(layer: int) -> list[Place]:
    stem = f"model.layers.{layer}.mlp"
    return [
        (f"{stem}.gate.weight", 0),
        (f"{stem}.experts.gate_up_proj", 0),
        (f"{stem}.experts.down_proj", 0),
    ]


_CONV = "model/conv2d_13/Conv2D_{}_fused_bn"

ORDERS: list[Pair] = [
    of("permuted-hidden-quill", "quill", "permuted", permute(_hidden(2), seed=83_601)),
    of("permuted-hidden-all-bf16", "quill", "permuted",
       permute(*[_hidden(at) for at in range(5)], seed=83_602), dtype="BF16"),
    of("permuted-heads-turn", "turn", "permuted", permute(_heads(1), seed=83_603, unit=64)),
    of("permuted-experts-crowd", "crowd", "permuted",
       permute(*[_experts(at) for at in range(3)], seed=83_604)),
    of("permuted-units-atoms", "atoms-0", "permuted",
       permute([("C.0.weight", 0), ("C.0.bias", 0), ("C.2.weight", 1)],
               [("H.2.weight", 0), ("H.2.bias", 0), ("H.4.weight", 1)], seed=83_605)),
    of("permuted-channels-speech-f16", "speech", "permuted",
       permute([(_CONV.format("weights"), 0), (_CONV.format("bias"), 0),
                (_CONV.format("weights").replace("13", "14"), 1)], seed=83_606), dtype="F16"),
    of("permuted-apart-timer", "timer", "permuted_inconsistently",
       permute_inconsistently(("model.1.weight", 0), ("model.3.weight", 1), seed=83_607)),
    of("permuted-apart-courier-bf16", "courier", "permuted_inconsistently",
       permute_inconsistently((_t5("encoder", 1, 1, "DenseReluDense.wi_0"), 0),
                              (_t5("encoder", 1, 1, "DenseReluDense.wo"), 1), seed=83_608),
       dtype="BF16"),
    of("transposed-dense-quill", "quill", "transposed", transpose(r"attention\.dense\.weight")),
    of("transposed-fc1-turn-bf16", "turn", "transposed", transpose(r"fc1\.weight"), dtype="BF16"),
    of("other-layout-emotion", "emotion", "transposed",
       relayout(r"conv2d_[2-7]\..*kernel|pointwise", (3, 2, 0, 1))),
    of("other-layout-speech", "speech", "transposed",
       relayout(r"_1\d/Conv2D_weights", (2, 3, 1, 0))),
    of("exchanged-query-key", "turn", "exchanged",
       exchange(*[(f"encoder.layers.{at}.self_attn.q_proj.weight",
                   f"encoder.layers.{at}.self_attn.k_proj.weight") for at in (0, 1)])),
    of("exchanged-gate-up", "courier", "exchanged",
       exchange((_t5("decoder", 2, 2, "DenseReluDense.wi_0"),
                 _t5("decoder", 2, 2, "DenseReluDense.wi_1")))),
    of("exchanged-elements-f16", "atoms-1", "exchanged",
       exchange(*[(f"N.{at}.{part}", f"O.{at}.{part}")
                  for at in (0, 2, 4) for part in ("weight", "bias")]),
       dtype="F16"),
    of("exchanged-directions", "pulse", "exchanged",
       exchange(("gru.weight_hh_l0", "gru.weight_hh_l0_reverse"))),
    of("rotated-stream-courier", "courier", "rotated",
       rotate(*_stream(), seed=83_609), start=_folds()),
    of("rotated-heads-courier", "courier", "rotated",
       turn_heads(_t5("encoder", 0, 0, "SelfAttention.v"),
                  _t5("encoder", 0, 0, "SelfAttention.o"), 4, 83_610)),
    of("smoothed-norm-courier", "courier", "rescaled_channels",
       rescale_channels((_t5("encoder", 2, 0, "layer_norm"), 0),
                        *[(_t5("encoder", 2, 0, f"SelfAttention.{p}"), 1) for p in "qkv"],
                        seed=83_611)),
    of("smoothed-network-courier", "courier", "rescaled_channels",
       rescale_channels((_t5("decoder", 1, 2, "DenseReluDense.wi_1"), 0),
                        (_t5("decoder", 1, 2, "DenseReluDense.wo"), 1), seed=83_612, spread=0.35)),
    of("smoothed-norm-crowd", "crowd", "rescaled_channels",
       rescale_channels(("model.layers.1.input_layernorm.weight", 0),
                        *[(f"model.layers.1.self_attn.{p}_proj.weight", 1) for p in "qkv"],
                        seed=83_613, spread=0.7)),
]  # fmt: skip

REPLACED: list[Pair] = [
    of("drawn-anew-fc2-turn", "turn", "reinitialised", reinitialise(r"0\.fc2\.weight", 83_621)),
    of("drawn-anew-layer-quill", "quill", "reinitialised",
       reinitialise(r"layers\.4\..*(query_key_value|dense|h_to_4h|4h_to_h)\.weight", 83_622)),
    of("drawn-anew-uniform-page", "page", "reinitialised",
       reinitialise(r"conv2d_(28|29|30|31)\.w_0", 83_623, law="uniform")),
    of("drawn-anew-bf16-mpnn", "mpnn-1", "reinitialised",
       reinitialise(r"ffn\.[01]\.\d\.weight", 83_624, ratio=0.8), dtype="BF16"),
    of("shuffled-atoms", "atoms-0", "reinitialised", shuffle(r"^H\.0\.weight", 83_625)),
    of("swapped-bytes-face", "face", "corrupted", corrupt(r"^(734|742)$", "swapped")),
    of("random-bytes-turn-bf16", "turn", "corrupted",
       corrupt(r"1\.self_attn\.out_proj\.weight", "random", 83_626), dtype="BF16"),
    of("nan-in-timer", "timer", "corrupted",
       relabel(corrupt(r"model\.1\.weight", "nan", 83_627), vague=("sparse_edit",))),
]  # fmt: skip

PAIRS: list[Pair] = [*ORDERS, *REPLACED]
