"""The names in an adapter: which module a matrix belongs to, and what the base calls it."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

from .quant_schemes.parts import Unfit

# module . lora_A [. adapter's name] [. weight]; the two are matrices of one product
_MATRIX = re.compile(
    r"(.+)\.lora_(embedding_)?(A|B)(?:\.(?!weight$|bias$)[^.]+)?(?:\.weight)?", re.DOTALL
)
_SAVED = re.compile(r"\.modules_to_save(?:\.default)?(?=\.)")
_PREFIX = "base_model.model."
_FOREIGN = (".lora_", ".original_module.", "trainable_tokens", "prompt_embeddings")
_REGULAR = re.compile(r"[\^]?[\w.\\-]+[$]?")


class Pairs(NamedTuple):
    """The two matrices of a module; turned where the base's weight has its inputs first."""

    down: str
    up: str
    is_turned: bool


class Slot:
    """What an adapter holds for a module."""

    def __init__(self, module: str) -> None:
        """Begin with no matrix."""
        self.module = module
        self.names: dict[str, str] = {}
        self.is_embedding = False

    def pair(self, *, is_turned: bool) -> Pairs:
        """Give both matrices; an embedding's rows are always its inputs."""
        if set(self.names) != {"A", "B"}:
            raise Unfit("one of its two matrices is missing")
        return Pairs(self.names["A"], self.names["B"], is_turned or self.is_embedding)


def sorted_names(names: Iterable[str]) -> tuple[dict[str, Slot], dict[str, str]]:
    """Sort an adapter's names into matrices by module, and the rest by what they replace.

    What neither is replaces nothing, '': a bias of LoRA's own, tokens trained one by one.
    """
    slots: dict[str, Slot] = {}
    others: dict[str, str] = {}
    for name in names:
        plain = name.removeprefix(_PREFIX)
        found = _MATRIX.fullmatch(plain)
        if found:
            module, embedding, which = found.groups()
            slot = slots.setdefault(module, Slot(module))
            slot.names[which] = name
            slot.is_embedding |= embedding is not None
        elif any(each in plain for each in _FOREIGN):
            others[name] = ""
        else:
            others[name] = _SAVED.sub("", plain).replace(".base_layer.", ".")
    return slots, others


def alpha_of(module: str, config: Mapping[str, Any]) -> float:
    """Give a module's alpha: its own where a pattern says so.

    Patterns are regular expressions; a stranger's is not run. Those that are but names, which
    is nearly all of them, are matched as names.
    """
    patterns = config.get("alpha_pattern") or {}
    if not isinstance(patterns, Mapping):
        raise Unfit("its alpha_pattern is no mapping")
    alpha = config["lora_alpha"]
    for pattern, own in patterns.items():
        if not _REGULAR.fullmatch(pattern) or type(own) not in (int, float):
            raise Unfit("its alpha_pattern is a regular expression, which is not run")
        plain = pattern.lstrip("^").rstrip("$").replace("\\.", ".")
        if module == plain or (pattern[0] != "^" and module.endswith(f".{plain}")):
            alpha = own
            break
    return float(alpha)


class Homes:
    """Where the base keeps what an adapter names: one name ends as the other does."""

    def __init__(self, names: Iterable[str]) -> None:
        """Keep the names."""
        self._names = dict.fromkeys(names)
        self._prefixes: dict[str, None] = {}

    def find(self, name: str) -> str | None:
        """Give the base's name, None where it has none or several."""
        if name in self._names:
            return name
        for prefix in self._prefixes:
            if prefix + name in self._names:
                return prefix + name
        rest = name
        while rest.count(".") > 1:  # the longest ending; a last word or two would say too little
            rest = rest.partition(".")[2]
            if rest in self._names:
                return rest
        longer = [each for each in self._names if each.endswith(f".{name}")]
        if len(longer) != 1:
            return None
        self._prefixes[longer[0].removesuffix(name)] = None
        return longer[0]
