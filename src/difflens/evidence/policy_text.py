"""A policy written as TOML: every threshold with its default and the reason for it."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from textwrap import wrap
from typing import Any

from ..records import Threshold
from .policy import Known

_BARE = re.compile(r"[A-Za-z0-9_-]+")
_EXAMPLES = """\
# Rules of metrics, one section each: which way is better, how much worse is still fine, and a
# limit in the metric's own units.
#
# [metrics.accuracy]
# direction = "higher"
# margin = 0.01
# threshold = 0.9

# The gates that must pass for --deployment-readiness; without this, the default list.{gates}
#
# [gates]
# required = {required}
"""


def policy_text(known: Known) -> str:
    """Write all thresholds by analysis; a threshold without a default stands as a comment."""
    parts = [
        "# A policy of difflens: what is set here replaces the default. All defaults are below.\n"
    ]
    parts += [
        "\n".join([f"[{name}]", *_settings(body)]) + "\n"
        for name, body in sorted(known.thresholds.items())
        if body
    ]
    listed = list(known.gates)
    named = f"Known: {', '.join(listed)}." if listed else ""
    parts.append(_EXAMPLES.format(gates=_commented(named), required=_value(listed[:2])))
    return "\n".join(parts)


def _commented(text: str) -> str:
    return "".join(f"\n# {line}" for line in wrap(text, 96))


def _settings(body: Mapping[str, Threshold]) -> Iterator[str]:
    for name, threshold in body.items():
        yield from (f"# {line}" for line in wrap(threshold.why, 96))
        if threshold.value is None:
            yield f"# {_key(name)} ="
        else:
            yield f"{_key(name)} = {_value(threshold.value)}"


def _key(name: str) -> str:
    return name if _BARE.fullmatch(name) else _text(name)


def _value(value: Any) -> str:
    """Write a value as TOML."""
    if isinstance(value, Mapping):
        return "{" + ", ".join(f"{_key(key)} = {_value(each)}" for key, each in value.items()) + "}"
    if isinstance(value, list | tuple):
        return f"[{', '.join(map(_value, value))}]"
    if isinstance(value, bool):
        return str(value).lower()
    return _text(value) if isinstance(value, str) else repr(value)


def _text(value: str) -> str:
    """Write a string as JSON does; TOML shares its escapes, but not its pairs of surrogates."""
    return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")
