"""Configs, compared by meaning; what training writes into them for itself is left out."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

# Whatever is not listed here counts: a key nobody has seen before may change the function.
_NAMES = frozenset({
    # who wrote the file, for whom, and which classes of the library read it
    "transformers_version", "_name_or_path", "name_or_path", "_commit_hash", "architectures",
    "auto_map", "model_name", "tokenizer_class", "processor_class", "image_processor_type",
    "feature_extractor_type", "finetuning_task", "task_specific_params", "_from_model_config",
    "base_model_name_or_path", "revision", "peft_version", "auto_mapping", "inference_mode",
    "task_type", "tokenizer_file", "special_tokens_map_file", "backend", "is_local",
    "local_files_only", "_diffusers_version", "output_past", "n_ctx",
    # told by the tensors themselves
    "torch_dtype", "dtype", "quantization_config", "compression_config", "vocab_size",
    "num_labels", "label2id", "num_decoder_layers", "attention_bias", "mlp_bias", "qkv_bias",
    # made of other settings on loading
    "dense_act_fn", "is_gated_act",
    # how the call is made, not what it gives
    "use_cache", "return_dict", "output_attentions", "output_hidden_states", "torchscript",
    "attn_implementation", "_attn_implementation", "_attn_implementation_autoset",
    "_attn_implementation_internal", "_experts_implementation", "use_return_dict",
    "pretraining_tp", "use_bfloat16", "gradient_checkpointing", "tp_plan",
    # training alone
    "init_std", "logit_scale_init_value", "apply_spec_augment", "router_aux_loss_coef",
    "router_jitter_noise", "router_z_loss_coef", "output_router_logits", "init_lora_weights",
})  # fmt: skip
_TRAINING = re.compile(r"drop(out|path|_path)|pdrop|layerdrop|^initializer_|^mask_(time|feature)_")
# What a missing key means to every version of the library that reads the file.
_DEFAULTS: Mapping[str, Any] = {
    "rope_theta": 10000.0,
    "rope_type": "default",
    "partial_rotary_factor": 1.0,
    "tie_word_embeddings": True,
    "position_embedding_type": "absolute",
    "pooler_act": "tanh",
    "scale_decoder_outputs": True,
    "scale_attn_weights": True,
    "feed_forward_proj": "relu",
    "relative_attention_max_distance": 128,
}
_PATTERN = "sliding_window_pattern"  # every so many layers, one attends to everything
_LAYERS, _MOST_LAYERS = "num_hidden_layers", 10_000
_LABEL = re.compile(r"(?:^|\.)id2label\.([0-9]{1,9})$")
ABSENT = object()


def is_bookkeeping(path: str) -> bool:
    """Does a setting leave alone what the model computes? `path` joins nested names with dots.

    >>> is_bookkeeping("transformers_version"), is_bookkeeping("text_config.rope_theta")
    (True, False)
    """
    parts = path.split(".")
    return any(part in _NAMES or _TRAINING.search(part) is not None for part in parts)


def meaning_of_absence(settings: Mapping[str, Any], path: str) -> Any:
    """Say what the library takes where a key is not written; ABSENT where that is unknown."""
    home, _, name = path.rpartition(".")
    level = f"{home}." if home else ""
    heads = settings.get(f"{level}num_attention_heads")
    if name == "num_key_value_heads" and heads is not None:
        return heads
    width = settings.get(f"{level}hidden_size")
    if name in ("head_dim", "pooler_output_size") and type(width) is int:
        if name == "pooler_output_size":
            return width
        return width // heads if type(heads) is int and heads else ABSENT
    if name == "layer_types":
        return _by_pattern(settings.get(f"{level}{_PATTERN}"), settings.get(f"{level}{_LAYERS}"))
    label = _LABEL.search(path)
    if label:
        return f"LABEL_{label[1]}"
    return _DEFAULTS.get(name, ABSENT)


def _by_pattern(pattern: Any, layers: Any) -> Any:
    """Spell out a pattern of sliding windows, as later versions write it."""
    if type(pattern) is not int or type(layers) is not int or pattern < 1:
        return ABSENT
    rows = range(1, min(layers, _MOST_LAYERS) + 1)
    return ["sliding_attention" if row % pattern else "full_attention" for row in rows]


_ROPE = ("rope_theta", "partial_rotary_factor")  # told beside the scaling, as 4.x writes them
_SPELLINGS = {
    "rotary_emb_base": "rope_theta",
    "rotary_pct": "partial_rotary_factor",
    "torch_dtype": "dtype",
    "_sliding_window_pattern": "sliding_window_pattern",
}
_UNORDERED = frozenset({"target_modules", "modules_to_save", "exclude_modules"})
_WINDOW = ("sliding_window", "max_window_layers")
_FULL = "full_attention"


class Difference(NamedTuple):
    """One setting that is not the same: its values as JSON, None if a side has none."""

    name: str
    left: str | None
    right: str | None
    counts: bool


def differences(left: Mapping[str, Any], right: Mapping[str, Any]) -> Iterator[Difference]:
    """Compare two configs by meaning; `counts` says that the function changes."""
    before, after = canonical(left), canonical(right)
    for name in sorted(before.keys() | after.keys()):
        sides = [_value(each, name) for each in (before, after)]
        if is_same(*sides):
            continue
        before_text, after_text = (None if each is ABSENT else as_json(each) for each in sides)
        yield Difference(name, before_text, after_text, counts=not is_bookkeeping(name))


def canonical(settings: Mapping[str, Any], home: str = "") -> dict[str, Any]:
    """Spell settings one way, nested names joined with dots; null is the same as absent.

    >>> canonical({"rope_parameters": {"rope_theta": 10000.0, "rope_type": "default"}})
    {'rope_theta': 10000.0, 'rope_scaling.rope_type': 'default'}
    """
    level = {
        _SPELLINGS.get(key, key): value for key, value in settings.items() if value is not None
    }
    level = _without_window(_with_rope(level))
    found: dict[str, Any] = {}
    for key, value in level.items():
        path = f"{home}{key}"
        if type(value) is dict:
            found.update(canonical(value, f"{path}."))
        else:
            found[path] = _normalized(key, value)
    return found


def is_same(left: Any, right: Any) -> bool:
    """Do two values mean the same? A switch that is not mentioned is off."""
    if ABSENT in (left, right):
        other = right if left is ABSENT else left
        return other is ABSENT or other is False or other in ([], "")
    return bool(left == right) or as_json(left) == as_json(right)


def as_json(value: Any) -> str:
    """Write a value on one line."""
    return json.dumps(value, sort_keys=True, ensure_ascii=False)


def _value(settings: Mapping[str, Any], name: str) -> Any:
    return settings[name] if name in settings else meaning_of_absence(settings, name)


def _with_rope(level: dict[str, Any]) -> dict[str, Any]:
    """Write what 5.x keeps in `rope_parameters` as 4.x did: `rope_theta` beside `rope_scaling`."""
    parameters, scaling = level.get("rope_parameters"), level.get("rope_scaling")
    rest = {
        key: value for key, value in level.items() if key not in ("rope_parameters", "rope_scaling")
    }
    if type(parameters) is dict and type(parameters.get(_FULL)) is dict:  # by kind of layer
        local = parameters.get("sliding_attention")
        if type(local) is dict and "rope_theta" in local:
            rest["rope_local_base_freq"] = local["rope_theta"]
        parameters = parameters[_FULL]
    joined = {
        **(scaling if type(scaling) is dict else {}),
        **(parameters if type(parameters) is dict else {}),
    }
    rest |= {name: joined.pop(name) for name in _ROPE if joined.get(name) is not None}
    if "type" in joined:
        joined.setdefault("rope_type", joined["type"])
        del joined["type"]
    return {**rest, "rope_scaling": joined} if joined else rest


def _without_window(level: dict[str, Any]) -> dict[str, Any]:
    """Leave out a window that is switched off, and layers that all attend to everything."""
    off = set(_WINDOW) if level.get("use_sliding_window") is False else set()
    kinds = level.get("layer_types")
    if type(kinds) is list and all(kind == _FULL for kind in kinds):
        off.add("layer_types")
    return {key: value for key, value in level.items() if key not in off}


def _normalized(key: str, value: Any) -> Any:
    """Return one id for a list of one, and names in one order where the order means nothing."""
    if type(value) is list and len(value) == 1 and key.endswith("_token_id"):
        return value[0]
    if type(value) is list and key in _UNORDERED:
        return sorted(value, key=str)
    return value
