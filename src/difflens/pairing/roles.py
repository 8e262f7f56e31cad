"""Which part of a network a tensor is, whatever its framework calls it."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from functools import cache
from itertools import islice

from .names import core_of
from .schemes import SCHEMES

_LAST = re.compile(r"^(.*?)[._](weight|bias)$")
_MANY = 3000  # names that show what the scheme is; a model may have a million
_ENOUGH = 3  # names a scheme must explain before it is believed


def scheme_of(names: Iterable[str]) -> str | None:
    """Name the scheme that explains most of the names; None where none explains enough.

    >>> scheme_of(["blk.0.attn_q.weight", "blk.0.attn_k.weight", "token_embd.weight"])
    'gguf'
    """
    cores = [core_of(name) for name in islice(names, _MANY)]
    scores = {scheme: sum(bool(_role(core, scheme)) for core in cores) for scheme in SCHEMES}
    if any("pre_feedforward_layernorm" in core for core in cores):
        scores.pop("llama")  # explains as many names as gemma2 does, and two of them wrongly
    best = max(scores, key=lambda scheme: (scores[scheme], scheme == "llama"))
    return best if scores[best] >= _ENOUGH else None


def roles(names: Iterable[str], scheme: str) -> Mapping[str, str]:
    """Give the tensor of each role; a role that two tensors claim is nobody's."""
    found: dict[str, str] = {}
    doubtful = set()
    for name in names:
        role = _role(core_of(name), scheme)
        if role in found:
            doubtful.add(role)
        elif role:
            found[role] = name
    return {role: name for role, name in found.items() if role not in doubtful}


def _role(core: str, scheme: str) -> str:
    last = _LAST.match(core)
    stem, kind = last.groups() if last else (core, "weight")
    exact, patterns = _compiled(scheme)
    role = exact.get(stem)
    if role is None:
        for pattern, template in patterns:
            found = pattern.fullmatch(stem)
            if found:
                role = template.replace("N", found["n"])
                if "e" in pattern.groupindex:
                    role = role.replace("E", found["e"])
                break
    return f"{role}.{kind}" if role else ""


@cache
def _compiled(scheme: str) -> tuple[dict[str, str], list[tuple[re.Pattern[str], str]]]:
    exact, patterns = {}, []
    for name, role in SCHEMES[scheme].items():
        words = re.escape(name)
        if re.search(r"(?:^|[._])[NE](?=[._]|$)", name):
            words = re.sub(r"(?<![A-Za-z])N(?![A-Za-z])", r"(?P<n>[0-9]{1,6})", words)
            words = re.sub(r"(?<![A-Za-z])E(?![A-Za-z])", r"(?P<e>[0-9]{1,6})", words)
            patterns.append((re.compile(words), role))
        else:
            exact[name] = role
    return exact, patterns
