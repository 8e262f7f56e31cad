"""Fresh pairs with other shapes or other tensors: vocabulary, layers, units, folds, heads."""

from __future__ import annotations

import re

import numpy as np

from .edits import (
    add,
    fold_norm,
    fold_weight_norm,
    prune_units,
    relayer,
    remove,
    replace_head,
    reshape,
    resize_vocabulary,
    split_weight_norm,
)
from .edits.order import Place
from .fresh_edits import append_head, fold_into, of
from .model import Model, like
from .pairs import Edit, Edited, Expected, Pair

NEOX = ["gpt_neox.embed_in.weight", "lm_head.weight"]
T5 = ["shared.weight", "lm_head.weight"]
_DEPTH = "num_hidden_layers"


def _gated(blocks: range) -> list[Place]:
    stems = [f"encoder.block.{at}.layer.1.DenseReluDense" for at in blocks]
    rows: list[Place] = [(f"{stem}.wi_{at}.weight", 0) for stem in stems for at in (0, 1)]
    return [*rows, *[(f"{stem}.wo.weight", 1) for stem in stems]]


def _heads(layers: range) -> list[Place]:
    places: list[Place] = []
    for stem in (f"encoder.layers.{at}.self_attn" for at in layers):
        places += [(f"{stem}.{part}_proj.weight", 0) for part in "qkv"]
        places += [(f"{stem}.q_proj.bias", 0), (f"{stem}.v_proj.bias", 0)]
        places.append((f"{stem}.out_proj.weight", 1))
    return places


def without_experts(keep: int) -> Edit:
    """Take the last experts out of every layer of `crowd`, and out of its router."""

    def edit(model: Model) -> Edited:
        names = [name for name in model.tensors if re.search(r"experts|mlp\.gate", name)]
        tensors = {**model.tensors, **{name: model.tensors[name][:keep] for name in names}}
        before = len(model.tensors[names[0]])
        config = {**(model.config or {}), "num_local_experts": keep}
        expected = Expected(
            "pruned_structurally", frozenset(names), {"from": before, "to": keep},
            vague=("reshaped",),
        )  # fmt: skip
        beside = Expected("config_changed", None, optional=True)
        return Edited(model._replace(tensors=tensors, config=config), (expected, beside))

    return edit


def layer_on_top(stack: str, source: int, target: int, seed: int) -> Edit:
    """Add a layer as it is before training: small matrices, gains of one, biases of zero."""

    def edit(model: Model) -> Edited:
        rng, tensors = np.random.default_rng(seed), dict(model.tensors)
        for name, array in model.tensors.items():
            if name.startswith(f"{stack}{source}."):
                values = rng.standard_normal(array.shape) * 0.02
                if array.ndim == 1:
                    values = np.full(array.shape, float(name.endswith("norm.weight")))
                tensors[name.replace(f"{stack}{source}.", f"{stack}{target}.")] = like(
                    values, array
                )
        expected = Expected("layers_added", None, vague=("tensors_added",))
        return Edited(model._replace(tensors=tensors), (expected,))

    return edit


def _page_norm(number: int, at: int) -> Edit:
    """Fold a batch norm of `page`: its parts are called w_0, b_0, w_1 and w_2."""
    parts = ("w_0", "b_0", "w_1", "w_2")
    norm = [f"batch_norm2d_{number}.{part}_deepcopy_{at + 1 + i}" for i, part in enumerate(parts)]
    return fold_into(f"conv2d_{number}.w_0_deepcopy_{at}", norm, f"conv2d_{number}.b_0", eps=1e-5)


def _emotion_norm(conv: int, norm: int) -> Edit:
    stem = f"batch_normalization_{norm}.batch_normalization_{norm}_1"
    parts = [f"{stem}.{part}:0" for part in ("gamma", "beta", "moving_mean", "moving_variance")]
    name = f"conv2d_{conv}.conv2d_{conv}_1"
    return fold_into(f"{name}.kernel:0", parts, f"{name}.bias:0", eps=1e-3, axis=-1)


def _with_weight_norm(model: Model) -> Edited:
    return Edited(split_weight_norm(model, r"prefilt_layers.*weight|conv1\.0\.weight", 83_700), ())


_GAINS = [f"model.layers.{at}.{norm}.weight" for at in range(3)
          for norm in ("input_layernorm", "post_attention_layernorm")]  # fmt: skip


def _crowd_readers(norm: str) -> list[str]:
    stem = norm.rsplit(".", 2)[0]
    if "input" in norm:
        return [f"{stem}.self_attn.{part}_proj.weight" for part in "qkv"]
    return [f"{stem}.mlp.gate.weight", f"{stem}.mlp.experts.gate_up_proj"]


VOCABULARY: list[Pair] = [
    of("vocabulary-100-to-104", "quill", "vocabulary_resized",
       resize_vocabulary(NEOX, 104, 83_701)),
    of("vocabulary-100-to-128-bf16", "crowd", "vocabulary_resized",
       resize_vocabulary(["model.embed_tokens.weight", "lm_head.weight"], 128, 83_702),
       dtype="BF16"),
    of("vocabulary-100-to-103", "courier", "vocabulary_resized",
       resize_vocabulary(T5, 103, 83_703)),
    of("vocabulary-100-to-80-f16", "drift", "vocabulary_resized",
       resize_vocabulary(["backbone.embeddings.weight", "lm_head.weight"], 80, 83_704),
       dtype="F16"),
    of("vocabulary-of-pulse", "pulse", "vocabulary_resized",
       resize_vocabulary(["char_embed.weight"], 141, 83_705)),
]  # fmt: skip

LAYERS: list[Pair] = [
    of("layers-5-to-4", "quill", "layers_removed",
       relayer("gpt_neox.layers.", range(4), "layers_removed", depth=_DEPTH)),
    of("every-other-out-bf16", "quill", "layers_removed",
       relayer("gpt_neox.layers.", [0, 2, 4], "layers_removed", depth=_DEPTH), dtype="BF16"),
    of("decoder-block-out", "courier", "layers_removed",
       relayer("decoder.block.", [0, 1], "layers_removed", depth="num_decoder_layers")),
    of("layers-repeated", "quill", "layers_duplicated",
       relayer("gpt_neox.layers.", [0, 1, 2, 1, 2, 3, 4], "layers_duplicated", depth=_DEPTH)),
    of("last-repeated-crowd", "crowd", "layers_duplicated",
       relayer("model.layers.", [0, 1, 2, 2], "layers_duplicated", depth=_DEPTH)),
    of("layers-swapped-drift", "drift", "layers_swapped",
       relayer("backbone.layers.", [0, 3, 2, 1], "layers_swapped")),
    of("blocks-swapped-f16", "courier", "layers_swapped",
       relayer("encoder.block.", [0, 2, 1], "layers_swapped"), dtype="F16"),
    of("layers-rotated-quill", "quill", "layers_reordered",
       relayer("gpt_neox.layers.", [0, 2, 3, 1, 4], "layers_reordered")),
    of("layer-on-top-crowd", "crowd", "layers_added", layer_on_top("model.layers.", 2, 3, 83_711)),
    of("layer-on-top-quill-bf16", "quill", "layers_added",
       layer_on_top("gpt_neox.layers.", 4, 5, 83_712), dtype="BF16"),
]  # fmt: skip

UNITS: list[Pair] = [
    of("units-288-to-216", "courier", "pruned_structurally",
       prune_units(*_gated(range(1)), keep=0.75, what="units")),
    of("units-timer-bf16", "timer", "pruned_structurally",
       prune_units(("model.1.weight", 0), ("model.1.bias", 0), ("model.3.weight", 1),
                   keep=0.6, what="units"), dtype="BF16"),
    of("heads-6-to-4", "turn", "pruned_structurally",
       prune_units(*_heads(range(2)), keep=0.67, what="heads", unit=64)),
    of("units-atoms", "atoms-0", "pruned_structurally",
       prune_units(("O.2.weight", 0), ("O.2.bias", 0), ("O.4.weight", 1), keep=0.5, what="units")),
    of("experts-6-to-4", "crowd", "pruned_structurally", without_experts(4)),
    of("channels-speech", "speech", "pruned_structurally",
       prune_units(("model/conv2d_15/Conv2D_weights_fused_bn", 0),
                   ("model/conv2d_15/Conv2D_bias_fused_bn", 0),
                   ("model/conv2d_16/Conv2D_weights_fused_bn", 1), keep=0.8, what="channels")),
]  # fmt: skip

FOLDS: list[Pair] = [
    of("norms-folded-page", "page", "norms_folded",
       *[_page_norm(number, 5 * number) for number in range(8)]),
    of("norm-folded-emotion", "emotion", "norms_folded",
       _emotion_norm(1, 1), _emotion_norm(2, 2)),
    of("gains-folded-crowd", "crowd", "norms_folded",
       *[fold_norm(norm, _crowd_readers(norm)) for norm in _GAINS]),
    of("gain-folded-courier", "courier", "norms_folded",
       fold_norm("decoder.final_layer_norm.weight", ["lm_head.weight"])),
    of("weight-norm-folded", "pesto", "weight_norm_folded",
       fold_weight_norm(r"prefilt_layers|conv1"), start=[_with_weight_norm]),
]  # fmt: skip

HEADS: list[Pair] = [
    of("classes-8-to-5", "glide", "head_replaced",
       replace_head("classifier.weight", "classifier.bias", 5, 83_721)),
    of("tags-6-to-17-bf16", "pulse", "head_replaced",
       replace_head("tagger.weight", "tagger.bias", 17, 83_722), dtype="BF16"),
    of("tasks-31-to-12", "mpnn-0", "head_replaced",
       replace_head("predictor.ffn.1.2.weight", "predictor.ffn.1.2.bias", 12, 83_723)),
    of("verifier-out", "jarvis", "tensors_removed", remove(r"^verifier_model")),
    of("words-out", "turn", "tensors_removed", remove(r"embed_positions")),
    of("reward-head", "quill", "tensors_added", append_head("score.weight", 1, 120, 83_724)),
    of("buffer-added", "speech", "tensors_added",
       add({"window": np.hanning(400).astype(np.float32),
            "filterbank": np.eye(32, 80, dtype=np.float32)})),
    of("flat-convolution", "speech", "reshaped", reshape(r"_1[3-8]/Conv2D_weights", (96, 288))),
    of("one-axis-more", "timer", "reshaped", reshape(r"model\.5\.weight", (7, 128, 1, 1))),
]  # fmt: skip

PAIRS: list[Pair] = [*VOCABULARY, *LAYERS, *UNITS, *FOLDS, *HEADS]
