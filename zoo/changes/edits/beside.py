"""Edits of names, of which tensors there are, and of what lies beside the weights."""

from __future__ import annotations

import re
from typing import Any

from ..model import Array, Model
from ..pairs import Edit, Edited, Expected
from .values import chosen


def rename(pattern: str, replacement: str) -> Edit:
    """Rename tensors: nothing that has to be named."""

    def edit(model: Model) -> Edited:
        tensors = {re.sub(pattern, replacement, n): array for n, array in model.tensors.items()}
        return Edited(model._replace(tensors=tensors), ())

    return edit


def remove(where: str) -> Edit:
    """Remove tensors."""

    def edit(model: Model) -> Edited:
        names = frozenset(name for name in model.tensors if re.search(where, name))
        tensors = {name: array for name, array in model.tensors.items() if name not in names}
        return Edited(model._replace(tensors=tensors), (Expected("tensors_removed", names),))

    return edit


def add(more: dict[str, Array]) -> Edit:
    """Add tensors."""

    def edit(model: Model) -> Edited:
        tensors = {**model.tensors, **more}
        expected = Expected("tensors_added", frozenset(more))
        return Edited(model._replace(tensors=tensors), (expected,))

    return edit


def reshape(where: str, shape: tuple[int, ...]) -> Edit:
    """Change the shape of tensors; no value moves."""

    def edit(model: Model) -> Edited:
        names, tensors = chosen(model, where), dict(model.tensors)
        for name in names:
            tensors[name] = tensors[name].reshape(shape)
        expected = Expected("reshaped", frozenset(names))
        return Edited(model._replace(tensors=tensors), (expected,))

    return edit


def configure(**keys: Any) -> Edit:
    """Change keys of the config; None takes one out."""

    def edit(model: Model) -> Edited:
        config = {**(model.config or {}), **keys}
        config = {key: value for key, value in config.items() if value is not None}
        numbers = {"keys": ",".join(sorted(keys))}
        expected = Expected("config_changed", None, numbers)
        return Edited(model._replace(config=config), (expected,))

    return edit


def retoken(tokens: dict[str, int]) -> Edit:
    """Change the tokens beside the model; the weights stay."""

    def edit(model: Model) -> Edited:
        expected = Expected("tokens_changed", None)
        return Edited(model._replace(tokens=tokens), (expected,))

    return edit


def advance_state(state: dict[str, Any]) -> Edit:
    """Change the optimizer's state, and no weight."""

    def edit(model: Model) -> Edited:
        return Edited(model._replace(state=state), (Expected("state_changed", None),))

    return edit
