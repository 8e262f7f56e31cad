"""Fresh pairs to which two things or more were done, most of them a change and then its storage."""

from __future__ import annotations

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
from .fresh_edits import adapter, append_head, by_rows, filters, of, only
from .fresh_structures import NEOX, T5
from .heldback_composites import unsure
from .heldback_edits import grid, lora_trained, mask, relabel, tune
from .heldback_training import Recipe
from .pairs import Edit, Pair

_TURN = r"layers\.\d\.(self_attn\..*|fc\d)\.weight$"
_ALL = r"(query_key_value|dense|h_to_4h|4h_to_h)\.weight$"
_FC = "gpt_neox.layers.3.mlp.dense"


def _tuned(task: str, rate: float, steps: int, seed: int, where: str = ".") -> Edit:
    return tune(task, Recipe(rate=rate, steps=steps, only=only(where), seed=seed))


LOW_RANKS: list[Pair] = [
    of("r8-then-bf16", "turn", "low_rank + cast",
       lora(r"(q|v)_proj\.weight", 8, 84_001, relative=0.08), cast("BF16")),
    of("r16-then-f16", "quill", "low_rank + cast",
       adapter(r"query_key_value\.weight", 16, 84_002, relative=0.05), cast("F16")),
    of("r4-then-through-bf16", "mpnn-0", "low_rank + cast",
       lora(r"W_[hi]", 4, 84_003, relative=0.1), through("BF16")),
    of("r32-then-bf16", "timer", "low_rank + cast",
       adapter(r"model\.1\.weight", 32, 84_004, relative=0.25), cast("BF16")),
    of("trained-r8-then-bf16", "courier", "low_rank + cast",
       lora_trained("courier", r"SelfAttention\.(q|v)\.weight", 8, 16.0,
                    Recipe(rate=8e-3, steps=25, seed=84_005)), cast("BF16")),
    of("trained-r4-then-f16", "quill", "low_rank + cast",
       lora_trained("quill", r"query_key_value\.weight", 4, 16.0,
                    Recipe(rate=4e-3, steps=25, seed=84_006)), cast("F16")),
    of("bf16-r6-up-to-f32", "crowd", "low_rank + cast",
       adapter(r"(q|v|o)_proj", 6, 84_007, relative=0.08), cast("F32"), dtype="BF16"),
    of("r12-and-head", "glide", "low_rank + head_replaced",
       lora(r"pwconv1\.weight", 12, 84_008, relative=0.05),
       replace_head("classifier.weight", "classifier.bias", 4, 84_009)),
    of("r8-and-vocabulary", "quill", "low_rank + vocabulary_resized",
       lora(_ALL, 8, 84_010, relative=0.04), resize_vocabulary(NEOX, 108, 84_011)),
    of("r8-and-reward-head", "quill", "low_rank + tensors_added",
       adapter(r"query_key_value\.weight", 8, 84_012, relative=0.03),
       append_head("score.weight", 1, 120, 84_013)),
    of("r5-and-biases", "pulse", "low_rank + trained",
       lora(r"gru\.weight_hh", 5, 84_014, relative=0.05),
       _tuned("pulse", 3e-3, 12, 84_015, r"gru\.bias")),
    of("r6-and-head-tuned", "quill", "low_rank + trained",
       adapter(r"query_key_value\.weight", 6, 84_016, relative=0.04),
       _tuned("quill", 1e-3, 20, 84_017, r"^lm_head")),
    of("r10-on-nf4-bf16", "turn", "low_rank", lora(r"(q|v)_proj\.weight", 10, 84_018, relative=0.1),
       start=[quantise(_TURN, "nf4")], dtype="BF16"),
    of("r8-vocabulary-bf16", "courier", "low_rank + vocabulary_resized + cast",
       lora(r"Attention\.(q|v)\.weight", 8, 84_019, relative=0.12),
       resize_vocabulary(T5, 112, 84_020), cast("BF16")),
    of("r4-and-theta", "crowd", "low_rank + config_changed",
       lora(r"(q|k)_proj", 4, 84_021, relative=0.05), configure(rope_theta=2_000_000.0)),
]  # fmt: skip

TUNED: list[Pair] = [
    of("tuned-then-bf16", "quill", "trained + cast",
       _tuned("quill", 1e-3, 25, 84_101), cast("BF16")),
    of("tuned-then-f16", "courier", "trained + cast",
       _tuned("courier", 3e-4, 20, 84_102), cast("F16")),
    of("head-tuned-then-bf16", "glide", "trained + cast",
       _tuned("glide", 2e-4, 25, 84_103, r"^classifier"), cast("BF16")),
    of("last-layer-then-f16", "quill", "trained + cast",
       _tuned("quill", 1e-3, 20, 84_104, r"layers\.4\."), cast("F16")),
    of("experts-then-through-bf16", "crowd", "trained + cast",
       _tuned("crowd", 2e-3, 25, 84_105, r"experts"), through("BF16")),
    of("tuned-up-to-f32", "pulse", "trained + cast",
       _tuned("pulse", 1e-3, 12, 84_106), cast("F32"), dtype="BF16"),
    of("tuned-and-vocabulary", "courier", "trained + vocabulary_resized",
       _tuned("courier", 5e-4, 20, 84_107, r"block"), resize_vocabulary(T5, 106, 84_108)),
    of("tuned-and-head", "glide", "trained + head_replaced",
       _tuned("glide", 5e-4, 20, 84_109, r"^convnext"),
       replace_head("classifier.weight", "classifier.bias", 3, 84_110)),
    of("tuned-and-eps", "quill", "trained + config_changed",
       _tuned("quill", 3e-4, 20, 84_111), configure(layer_norm_eps=1e-6)),
    of("cut-and-healed", "quill", "layers_removed + trained",
       unsure(r"layers\.[234]\.", _tuned("quill", 4e-4, 20, 84_112)),
       relayer("gpt_neox.layers.", [0, 1, 4], "layers_removed", depth="num_hidden_layers")),
]  # fmt: skip

MASKS: list[Pair] = [
    of("pruned-60-then-bf16", "turn", "pruned + cast", prune(_TURN, 0.6), cast("BF16")),
    of("pruned-80-then-f16", "page", "pruned + cast", prune(r"conv2d_.*w_0", 0.8), cast("F16")),
    of("2-of-4-then-f16", "quill", "pruned + cast", prune(_ALL, 0.5, "2:4"), cast("F16")),
    of("rows-alike-then-bf16", "courier", "pruned + cast",
       mask(r"DenseReluDense", by_rows(0.5), "unstructured", 84_201), cast("BF16")),
    of("filters-then-through-bf16", "speech", "pruned + cast",
       filters(r"_1[2-8]/Conv2D_weights", 0.25), through("BF16")),
    of("pruned-then-int8", "weather", "pruned + quantised",
       # the grid takes more small weights to zero than the pruning did
       relabel(prune(r"^[13]\.weight", 0.5),
               numbers={"sparsity": (0.48, 0.57), "pattern": "unstructured"}),
       grid(r"^[13]\.weight", 8, 0)),
    of("r6-and-pruned", "turn", "low_rank + pruned",
       lora(r"(q|v)_proj\.weight", 6, 84_202, relative=0.05), prune(r"fc\d\.weight", 0.4)),
]  # fmt: skip

PLACES: list[Pair] = [
    of("elements-then-bf16", "timer", "sparse_edit + cast",
       edit_elements(r"model\.1\.weight", 13, 10.0, 84_301), cast("BF16")),
    of("rows-then-f16", "quill", "row_edit + cast",
       edit_rows(r"embed_in", 4, 0.8, 84_302), cast("F16")),
    of("scaled-then-bf16", "mpnn-1", "scaled + cast",
       scale(r"ffn\.0\.0\.weight", 0.7), cast("BF16")),
    of("zeroed-then-f16", "atoms-0", "zeroed + cast", zero(r"^O\.2\.weight"), cast("F16")),
    of("direction-then-bf16", "quill", "abliterated + cast",
       abliterate(r"(attention\.dense|4h_to_h)\.weight", 84_303), cast("BF16")),
    of("noise-then-bf16", "face", "noise + cast", add_noise(r"^\d+$", 0.08, 84_304), cast("BF16")),
    of("drawn-anew-then-bf16", "turn", "reinitialised + cast",
       reinitialise(r"1\.fc1\.weight", 84_305), cast("BF16")),
    of("permuted-then-bf16", "quill", "permuted + cast",
       permute([(f"{_FC}_h_to_4h.weight", 0), (f"{_FC}_h_to_4h.bias", 0),
                (f"{_FC}_4h_to_h.weight", 1)], seed=84_306), cast("BF16")),
    of("exchanged-then-f16", "crowd", "exchanged + cast",
       exchange(("model.layers.0.self_attn.k_proj.weight",
                 "model.layers.0.self_attn.v_proj.weight")),
       cast("F16")),
    of("head-then-f16", "mpnn-0", "head_replaced + cast",
       replace_head("predictor.ffn.1.2.weight", None, 31, 84_307), cast("F16")),
    of("vocabulary-then-bf16", "drift", "vocabulary_resized + cast",
       resize_vocabulary(["backbone.embeddings.weight", "lm_head.weight"], 120, 84_308),
       cast("BF16")),
    of("layers-out-then-f16", "courier", "layers_removed + cast",
       relayer("encoder.block.", [0, 1], "layers_removed", depth="num_layers"), cast("F16")),
    of("scaled-and-rows", "pulse", "scaled + row_edit",
       scale(r"^tagger\.weight", 1.15), edit_rows(r"char_embed", 3, 0.7, 84_309)),
    of("elements-and-zeroed", "page", "sparse_edit + zeroed",
       edit_elements(r"conv2d_30\.w_0", 11, 6.0, 84_310), zero(r"conv2d_29\.w_0")),
]  # fmt: skip

PAIRS: list[Pair] = [*LOW_RANKS, *TUNED, *MASKS, *PLACES]
