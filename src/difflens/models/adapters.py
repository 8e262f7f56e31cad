"""PEFT adapters: the weights that LoRA matrices produce with the model they were trained on.

    base_model.model.model.layers.0.self_attn.q_proj.lora_A.weight   [rank, in]
    base_model.model.model.layers.0.self_attn.q_proj.lora_B.weight   [out, rank]
    -> model.layers.0.self_attn.q_proj.weight = base + (alpha / rank) * B A

With DoRA each row of the sum is then given the length that `lora_magnitude_vector` holds for it.

Alone, an adapter is compared as the tensors it holds. Beside its base it becomes the merged model,
in F32, computed row by row. Other tensors of an adapter (heads, biases) replace those of the base.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping
from math import prod
from typing import Any, NamedTuple

from difflens.core.once import Call, as_call
from difflens.core.protocols import TensorSource
from difflens.core.records import TensorInfo

from .computed import ComputedSource, ComputedTensor, sized_encodings
from .folders.listing import listed
from .quantised.parts import LONGEST_UNIT, SCALES, Parts, Unfit

_CONFIG = "adapter_config.json: "
_NOT_MERGED = "the adapter is compared as the tensors it holds: "
_MARKS = (".lora_A", ".lora_embedding_A")
_LARGEST_MATRIX = 1 << 24  # elements of the matrix that every row needs
_FLOATS = SCALES - {"F8_E8M0"}


def is_adapter(source: TensorSource) -> bool:
    """Does it hold LoRA matrices without the model they belong to?"""
    has_matrices = any(mark in name for name in source.tensors for mark in _MARKS)
    return has_matrices and not any(".base_layer." in name for name in source.tensors)


def adapter_config(metadata: Mapping[str, str]) -> dict[str, Any] | None:
    """Gather the settings beside an adapter; None if there are none."""
    config: dict[str, Any] = {}
    for key, text in metadata.items():
        if key.startswith(_CONFIG):
            try:
                config[key.removeprefix(_CONFIG)] = json.loads(text)
            except (ValueError, RecursionError):
                return None
    return config or None


def apply_adapter(
    base: TensorSource, adapter: TensorSource, config: Mapping[str, Any] | None
) -> TensorSource:
    """Merge an adapter into its base; return the adapter with a warning if that is impossible."""
    modules, others = sort_names(adapter.tensors)
    refusal = _refusal(config, adapter)
    if refusal or not config:
        adapter.warnings.append(_NOT_MERGED + refusal)
        return adapter
    base_names = BaseNames(base.tensors)
    tensors = dict(base.tensors)
    computed: dict[str, ComputedTensor] = {}
    refusals: dict[str, list[str]] = {}
    for module, matrices in modules.items():
        try:
            home = base_names.find(f"{module}.weight") or base_names.find(module)
            weight = _merged_weight(base, adapter, home, matrices, config)
            computed[weight.info.name] = weight
            tensors[weight.info.name] = weight.info
        except Unfit as fault:
            refusals.setdefault(str(fault), []).append(module)
    if not computed:  # an adapter of another model, which would otherwise look like no change
        reasons = [f"{reason} ({listed(names, 1)})" for reason, names in refusals.items()]
        adapter.warnings.append(f"{_NOT_MERGED}no part of it can be applied: {'; '.join(reasons)}")
        return adapter
    elsewhere: dict[str, tuple[TensorSource, str]] = {}
    for name, target in others.items():
        if not target:
            refusals.setdefault("it is not a part of LoRA that can be merged", []).append(name)
            continue
        home = base_names.find(target) or target
        elsewhere[home] = adapter, name
        info = adapter.tensors[name]
        tensors[home] = TensorInfo(home, info.dtype, info.shape, info.stored)
    warnings = [f"not applied: {listed(names)}: {reason}" for reason, names in refusals.items()]
    made_by = as_call(_apply_again, base, adapter, json.dumps(config))
    return MergedModel(
        base, adapter, tensors, computed, elsewhere=elsewhere, warnings=warnings, made_by=made_by
    )


def _apply_again(base: TensorSource, adapter: TensorSource, config: str) -> TensorSource:
    return apply_adapter(base, adapter, json.loads(config))


def adapter_delta(adapter: TensorSource, pair: Pairs, scale: float, first: int, last: int) -> Any:
    """Compute rows [first, last) of scale * B A, or of the transpose."""
    import numpy as np

    parts = Parts(adapter, {})
    down, up = adapter.tensors[pair.down], adapter.tensors[pair.up]
    rank, across = down.shape[0], prod(down.shape[1:])
    if not pair.is_turned:
        rows = parts.elements(up.name, first * rank, last * rank).reshape(-1, rank)
        return (rows * np.float32(scale)) @ parts.read_all(down.name).reshape(rank, across)
    columns = parts.columns(down.name, first, last, (0, rank), across)
    return (columns.T * np.float32(scale)) @ parts.read_all(up.name).reshape(-1, rank).T


class MergedModel(ComputedSource):
    """A base with an adapter merged into it; closing it leaves the base open."""

    def __init__(
        self,
        base: TensorSource,
        adapter: TensorSource,
        tensors: Mapping[str, TensorInfo],
        computed: Mapping[str, ComputedTensor],
        *,
        elsewhere: Mapping[str, tuple[TensorSource, str]],
        warnings: list[str],
        made_by: Call,
    ) -> None:
        """Wrap both; the warnings of the base are reported with the base."""
        super().__init__(base, tensors, computed, elsewhere, made_by=made_by)
        self._adapter = adapter
        self.format = adapter.format
        self.metadata = adapter.metadata
        self.warnings = [*adapter.warnings, *warnings]

    def confirm(self) -> None:
        """Raise `ChangedWhileReading` if a file of either is not the one that was opened."""
        super().confirm()
        self._adapter.confirm()

    def close(self) -> None:
        """Close the files of the adapter."""
        self._adapter.close()


def _refusal(config: Mapping[str, Any] | None, adapter: TensorSource) -> str:
    """Return why an adapter cannot be merged; the empty string if it can."""
    if config is None:
        return "there is no adapter_config.json, so its scale is unknown"
    kind = config.get("peft_type", "LORA")
    if kind != "LORA":
        return f"its peft_type is {json.dumps(kind)[:40]}, only LORA is known"
    if config.get("use_dora") and not any(_MAGNITUDE.fullmatch(name) for name in adapter.tensors):
        return "it is DoRA, and its magnitude vectors are missing"
    alpha = config.get("lora_alpha")
    if type(alpha) not in (int, float):
        return "its adapter_config.json has no lora_alpha"
    return ""


def _merged_weight(
    base: TensorSource,
    adapter: TensorSource,
    home: str | None,
    matrices: ModuleMatrices,
    config: Mapping[str, Any],
) -> ComputedTensor:
    """Describe how the merged weight of a module is computed; raise `Unfit` if it cannot be."""
    pair = matrices.pair(is_turned=bool(config.get("fan_in_fan_out")))
    if home is None:
        raise Unfit("the base has no such weight")
    stored = base.tensors[home]
    rank = _rank(stored, adapter.tensors[pair.down], adapter.tensors[pair.up], pair)
    if rank != config.get("r", rank) and not config.get("rank_pattern"):
        raise Unfit(f"its rank is {rank}, adapter_config.json has {config.get('r')!r:.40}")
    alpha = alpha_of(matrices.module, config)
    scale = alpha / (rank**0.5 if config.get("use_rslora") else rank)
    across = prod(stored.shape[1:])
    numbers = Parts(base, {})
    lengths = _lengths(adapter, matrices, stored, pair)
    kind = "LoRA" if lengths is None else "DoRA"

    def make(first: int, last: int) -> Any:
        rows = slice(first // across, last // across)
        delta = adapter_delta(adapter, pair, scale, rows.start, rows.stop)
        merged = numbers.elements(home, first, last).reshape(-1, across) + delta
        return merged if lengths is None else _with_lengths(merged, lengths[rows])

    info = TensorInfo(home, "F32", stored.shape, f"{stored.dtype} + {kind} rank {rank}")
    names = pair.down, pair.up, matrices.magnitude
    parts = [(base, home), *((adapter, name) for name in names if name)]
    return ComputedTensor(info, across, make, sized_encodings(parts))


def _lengths(
    adapter: TensorSource, matrices: ModuleMatrices, stored: TensorInfo, pair: Pairs
) -> Any:
    """Read the length that DoRA gives each row (Liu et al. 2024); None if it is plain LoRA."""
    if not matrices.magnitude:
        return None
    held = adapter.tensors[matrices.magnitude]
    if pair.is_turned:
        raise Unfit("it is DoRA on a weight that has its inputs first")
    if held.count != stored.shape[0] or held.dtype not in _FLOATS:
        raise Unfit(f"its magnitudes {list(held.shape)} do not fit {list(stored.shape)}")
    return Parts(adapter, {}).read_all(matrices.magnitude).reshape(-1)


def _with_lengths(rows: Any, lengths: Any) -> Any:
    """Scale each row to its length."""
    import numpy as np

    size = np.linalg.norm(rows, axis=1)
    factors = np.divide(lengths, size, out=np.zeros_like(size), where=size > 0)
    return rows * factors[:, None]


def _rank(stored: TensorInfo, down: TensorInfo, up: TensorInfo, pair: Pairs) -> int:
    """Check the three shapes against each other and return the rank."""
    kinds = {stored.dtype, down.dtype, up.dtype}
    if not kinds <= _FLOATS:
        raise Unfit(f"its elements are {', '.join(sorted(kinds))}, expected floats")
    rank = down.shape[0] if down.shape else 0
    sides = [prod(up.shape[:1]), prod(down.shape[1:])]
    wanted = [prod(stored.shape[:1]), prod(stored.shape[1:])]
    fits = wanted == (sides[::-1] if pair.is_turned else sides)
    if not fits or not rank or prod(up.shape[1:]) != rank or len(stored.shape) < 2 or 0 in wanted:
        shapes = f"{list(up.shape)} times {list(down.shape)}"
        raise Unfit(f"{shapes} does not fit {list(stored.shape)}")
    if wanted[1] > LONGEST_UNIT or (up if pair.is_turned else down).count > _LARGEST_MATRIX:
        raise Unfit("its matrices are too large to be multiplied in bounded memory")
    return rank


# module . lora_A [. adapter's name] [. weight]; A and B are the factors of one product
_MATRIX = re.compile(
    r"(.+)\.lora_(embedding_)?(A|B)(?:\.(?!weight$|bias$)[^.]+)?(?:\.weight)?", re.DOTALL
)
_MAGNITUDE = re.compile(
    r"(.+)\.lora_magnitude_vector(?:\.(?!weight$)[^.]+)?(?:\.weight)?", re.DOTALL
)
_SAVED = re.compile(r"\.modules_to_save(?:\.default)?(?=\.)")
_PREFIX = "base_model.model."
_FOREIGN = (".lora_", ".original_module.", "trainable_tokens", "prompt_embeddings")
_REGULAR = re.compile(r"[\^]?[\w.\\-]+[$]?")


class Pairs(NamedTuple):
    """The two matrices of a module; turned if the weight in the base has its inputs first."""

    down: str
    up: str
    is_turned: bool


class ModuleMatrices:
    """The matrices that an adapter holds for a module."""

    def __init__(self, module: str) -> None:
        """Start with no matrix."""
        self.module = module
        self.names: dict[str, str] = {}
        self.magnitude = ""  # the name of DoRA's lengths of rows
        self.is_embedding = False

    def pair(self, *, is_turned: bool) -> Pairs:
        """Return both matrices; the rows of an embedding are always its inputs."""
        if set(self.names) != {"A", "B"}:
            raise Unfit("one of its two matrices is missing")
        return Pairs(self.names["A"], self.names["B"], is_turned or self.is_embedding)


def sort_names(names: Iterable[str]) -> tuple[dict[str, ModuleMatrices], dict[str, str]]:
    """Sort the names of an adapter into matrices by module, and others by what they replace.

    A name that replaces nothing maps to '': a bias of LoRA itself, or tokens trained one by one.
    """
    modules: dict[str, ModuleMatrices] = {}
    others: dict[str, str] = {}
    for name in names:
        short = name.removeprefix(_PREFIX)
        match = _MATRIX.fullmatch(short)
        if match:
            module, embedding, which = match.groups()
            matrices = modules.setdefault(module, ModuleMatrices(module))
            matrices.names[which] = name
            matrices.is_embedding |= embedding is not None
        elif dora := _MAGNITUDE.fullmatch(short):
            modules.setdefault(dora[1], ModuleMatrices(dora[1])).magnitude = name
        elif any(each in short for each in _FOREIGN):
            others[name] = ""
        else:
            others[name] = _SAVED.sub("", short).replace(".base_layer.", ".")
    return modules, others


def alpha_of(module: str, config: Mapping[str, Any]) -> float:
    """Return the alpha of a module: that of the pattern it matches, or the common one.

    A pattern is a regular expression from an untrusted file, and is not run. Nearly all patterns
    are names; these are compared as names.
    """
    patterns = config.get("alpha_pattern") or {}
    if not isinstance(patterns, Mapping):
        raise Unfit("its alpha_pattern is not a mapping")
    alpha = config["lora_alpha"]
    for pattern, own in patterns.items():
        if not _REGULAR.fullmatch(pattern) or type(own) not in (int, float):
            raise Unfit("its alpha_pattern is a regular expression, which is not run")
        target = pattern.lstrip("^").rstrip("$").replace("\\.", ".")
        if module == target or (pattern[0] != "^" and module.endswith(f".{target}")):
            alpha = own
            break
    return float(alpha)


class BaseNames:
    """The names in the base; one matches a name in the adapter if either ends with the other."""

    def __init__(self, names: Iterable[str]) -> None:
        """Store the names."""
        self._names = dict.fromkeys(names)
        self._prefixes: dict[str, None] = {}

    def find(self, name: str) -> str | None:
        """Return the name in the base that matches; None if there is none, or more than one."""
        if name in self._names:
            return name
        for prefix in self._prefixes:
            if prefix + name in self._names:
                return prefix + name
        rest = name
        while rest.count(".") > 1:  # the longest ending; the last word or two are not enough
            rest = rest.partition(".")[2]
            if rest in self._names:
                return rest
        longer = [each for each in self._names if each.endswith(f".{name}")]
        if len(longer) != 1:
            return None
        self._prefixes[longer[0].removesuffix(name)] = None
        return longer[0]
