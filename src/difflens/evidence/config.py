"""A model's config.json: its settings, those of a nested language model seen through."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from .documents import Limits, broken, json_object

NESTED = ("text_config", "llm_config", "language_config")


def config(path: str | Path, limits: Limits = None) -> dict[str, Any]:
    """Read the settings; what only the nested model says is said of the whole.

    A model of images and text keeps its layers and heads in `text_config`.
    """
    found = json_object(path, limits)
    if not found:
        raise broken(path, "it has no setting")
    for name in NESTED:
        inner = found.get(name)
        if type(inner) is dict:
            return {**inner, **found}
    return found
