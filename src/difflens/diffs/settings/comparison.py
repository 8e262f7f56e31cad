"""The story of the settings: what two models say beside their tensors, and what of it counts.

Names of files decide what is compared with what. Equal bytes are equal without being read.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import closing
from typing import Any, NamedTuple

from difflens.core.addresses import Location
from difflens.core.errors import EvidenceError, ModelError
from difflens.core.escape import for_terminal
from difflens.core.protocols import TensorSource
from difflens.core.records import MetadataChange
from difflens.storage.places import open_small

Limits = Mapping[str, int] | None

_GGUF = "gguf"
_STORED = ("quantize_config.json", "quant_config.json")  # how tensors are stored: they tell
_LARGEST_SETTINGS = 1_000_000  # bytes
_STEP = 1 << 20
_DERIVED = ("rope.dimension_count", "attention.key_length", "attention.value_length", "vocab_size")
# What GGUF calls settings that no tensor tells, by their names in config.json.
_IN_GGUF = {
    "attention.head_count": ("num_attention_heads", "n_head", "num_heads"),
    "attention.head_count_kv": ("num_key_value_heads", "n_head_kv"),
    "attention.layer_norm_rms_epsilon": ("rms_norm_eps",),
    "attention.layer_norm_epsilon": ("layer_norm_eps", "layer_norm_epsilon"),
    "attention.sliding_window": ("sliding_window",),
    "attn_logit_softcapping": ("attn_logit_softcapping",),
    "final_logit_softcapping": ("final_logit_softcapping",),
    "rope.freq_base": ("rope_theta",),
    "expert_used_count": ("num_experts_per_tok", "moe_topk"),
}


class Beside(NamedTuple):
    """One model: what its own file says, its format, and the files that are its own by name."""

    place: Location | None
    format: str
    metadata: Mapping[str, str]
    files: Mapping[str, Location]

    @classmethod
    def of(
        cls, place: Location | None, source: TensorSource, files: Mapping[str, Location]
    ) -> Beside:
        """Describe an open model."""
        return cls(place, source.format, source.metadata, files)


def settings_changes(
    left: Beside, right: Beside, limits: Limits = None
) -> tuple[MetadataChange, ...]:
    """Compare everything beside the tensors; each change says whether the function changes."""
    found = [
        *_stored(left, right),
        *_files(left, right, limits),
        *_across(left, right, limits),
        *_tokenizers(left, right, limits),
    ]
    return tuple(sorted(found, key=_order))


def _order(change: MetadataChange) -> tuple[bool, str]:
    """Put tokenizers last, as they are told: tokens first."""
    is_last = change.kind == "tokenizer"
    return is_last, "" if is_last else change.key


def _stored(left: Beside, right: Beside) -> Iterator[MetadataChange]:
    """Compare the metadata inside the two files; GGUF keeps its config there."""
    both_gguf = left.format == right.format == _GGUF
    for key in left.metadata.keys() | right.metadata.keys():
        sides = [side.metadata.get(key) for side in (left, right)]
        if sides[0] == sides[1] or (both_gguf and key.startswith("tokenizer.")):
            continue
        if both_gguf and _counts_in_gguf(key, sides):
            yield _config(key, sides[0], sides[1])
        else:
            yield MetadataChange(key, sides[0], sides[1])


def _counts_in_gguf(key: str, sides: list[str | None]) -> bool:
    home, _, name = key.partition(".")
    if home in ("general", "quantize", "split"):
        return key == "general.architecture"
    lone = None in sides
    return not (lone and (name in _DERIVED or "false" in sides))


def _files(left: Beside, right: Beside, limits: Limits) -> Iterator[MetadataChange]:
    """Compare the settings files both have key by key; what one side alone has is metadata."""
    if not (left.files or right.files):
        return
    from difflens.models.describe import describe_file

    from .tokenizer import FILES, READERS

    told = not READERS.keys().isdisjoint(left.files.keys() & right.files.keys())
    for name in left.files.keys() | right.files.keys():
        pair = left.files.get(name), right.files.get(name)
        if told and name in FILES - READERS.keys():
            continue  # read with the tokenizer it belongs to
        if None not in pair and name not in FILES and name.endswith("config.json"):
            yield from _configs(name, *pair, limits)  # type: ignore[arg-type]
        elif None in pair or name not in FILES:
            before, after = ({} if path is None else describe_file(name, path) for path in pair)
            for key in before.keys() | after.keys():
                if before.get(key) != after.get(key):
                    yield MetadataChange(key, before.get(key), after.get(key))


def _configs(
    name: str, left: Location, right: Location, limits: Limits
) -> Iterator[MetadataChange]:
    from .config import differences

    if _is_equal(left, right):
        return
    try:
        before, after = (_settings(path, limits) for path in (left, right))
    except EvidenceError as error:
        yield _unreadable(name, error, "config")
        return
    for each in differences(before, after):
        key = f"{name}: {each.name}"
        if each.counts and name not in _STORED:
            yield _config(key, each.left, each.right)
        else:
            yield MetadataChange(key, each.left, each.right)


def _across(left: Beside, right: Beside, limits: Limits) -> Iterator[MetadataChange]:
    """Compare the config inside a GGUF file with a config.json, where both say a thing."""
    if (left.format == _GGUF) == (right.format == _GGUF):
        return
    inside, beside = (left, right) if left.format == _GGUF else (right, left)
    if "config.json" not in beside.files:
        return
    from .config import canonical

    try:
        config = canonical(_settings(beside.files["config.json"], limits))
    except EvidenceError:
        return  # another model's loss: nothing is claimed of it
    family = inside.metadata.get("general.architecture", "")
    for key, names in _IN_GGUF.items():
        stored = inside.metadata.get(f"{family}.{key}")
        value = next((config[name] for name in names if name in config), None)
        if stored is None or not isinstance(value, int | float) or _is_near(stored, value):
            continue
        sides = (stored, str(value)) if inside is left else (str(value), stored)
        yield _config(f"{family}.{key}", *sides)


def _tokenizers(left: Beside, right: Beside, limits: Limits) -> Iterator[MetadataChange]:
    """Compare the tokenizers both have, kind by kind; the first kind that differs tells."""
    if not ((left.files or left.format == _GGUF) and (right.files or right.format == _GGUF)):
        return
    from .tokenizer import FILES, READERS
    from .tokenizer_changes import tokenizer_changes

    own = [
        {name: path for name, path in side.files.items() if name in FILES} for side in (left, right)
    ]
    names = own[0].keys() & own[1].keys()
    same = own[0].keys() == own[1].keys() and all(_is_equal(own[0][n], own[1][n]) for n in names)
    if same and _GGUF not in (left.format, right.format):
        return
    for first, second, ruled in _kinds(left, right, own):
        try:
            before, after = (_read(kind, path, READERS, limits) for kind, path in (first, second))
        except EvidenceError as error:
            yield _unreadable("tokenizer", error, "tokenizer")
            return
        if not ruled:
            before, after = before._replace(rules=None), after._replace(rules=None)
        changes = list(tokenizer_changes(before, after))
        yield from changes
        if changes:
            return


Kind = tuple[str, Location]


def _kinds(
    left: Beside, right: Beside, own: list[dict[str, Location]]
) -> Iterator[tuple[Kind, Kind, bool]]:
    """Yield which tokenizers are of one kind, and whether their rules can be compared too."""
    from .tokenizer import READERS

    gguf = [
        (_GGUF, side.place) if side.place and side.format == _GGUF and _has_tokens(side) else None
        for side in (left, right)
    ]
    if gguf[0] and gguf[1]:
        yield gguf[0], gguf[1], True
        return
    plain = ("tokenizer.json", "vocab.json", "vocab.txt")
    best = [next(((name, files[name]) for name in plain if name in files), None) for files in own]
    sides = [inside or beside for inside, beside in zip(gguf, best, strict=True)]
    common = [name for name in READERS if name in own[0] and name in own[1]]
    for name in common:
        yield (name, own[0][name]), (name, own[1][name]), True
    if not common and sides[0] and sides[1]:
        yield sides[0], sides[1], False


def _has_tokens(side: Beside) -> bool:
    return "tokenizer.ggml.tokens" in side.metadata


def _read(kind: str, path: Location, readers: Mapping[str, Any], limits: Limits) -> Any:
    if kind == _GGUF:
        from .tokenizer import gguf_tokenizer

        return gguf_tokenizer(path, limits)
    return readers[kind](path, limits)


def _settings(path: Location, limits: Limits) -> dict[str, Any]:
    from ..evidence.documents import json_object

    bounds = {**(limits or {})}
    bounds.setdefault("evidence_bytes", _LARGEST_SETTINGS)
    return json_object(path, bounds, lenient=True)


def _is_equal(left: Location, right: Location) -> bool:
    """Hold the same bytes? Read in steps, so that a large file takes no memory."""
    try:
        with closing(open_small(left)) as first, closing(open_small(right)) as second:
            if first.size != second.size:
                return False
            ranges = ((at, min(at + _STEP, first.size)) for at in range(0, first.size, _STEP))
            return all(first.read(*each) == second.read(*each) for each in ranges)
    except ModelError:
        return False


def _is_near(stored: str, value: float) -> bool:
    """Is it the same number, once rounded to the float32 that GGUF writes?"""
    try:
        return abs(float(stored) - value) <= 1e-6 * abs(value)
    except ValueError:  # a list: one number for each layer
        return True


def _config(key: str, left: str | None, right: str | None) -> MetadataChange:
    sides = ("absent" if side is None else for_terminal(side, 60) for side in (left, right))
    text = f"{for_terminal(key).replace(': ', ' ', 1)} {' -> '.join(sides)}"
    return MetadataChange(key, left, right, "config", text)


def _unreadable(name: str, error: EvidenceError, kind: Any) -> MetadataChange:
    where = error.where.rpartition("/")[2]
    reason = f"{where}: {error.reason}"
    text = f"{name} cannot be compared: {for_terminal(reason, 200)}"
    return MetadataChange(name, None, reason, kind, text)
