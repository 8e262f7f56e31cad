"""What lies beside a model and belongs to it: config, tokenizer, licence, steps."""

from __future__ import annotations

import re
from os import PathLike
from typing import Any, TypeGuard

from difflens.core.addresses import Address, Location, locate
from difflens.core.errors import ModelError
from difflens.core.escape import for_terminal
from difflens.storage.places import is_folder, names

from .documents import Limits, text
from .tokens import NAMES as TOKENIZERS

LICENCES = ("README.md", "LICENSE", "LICENSE.txt", "LICENSE.md", "LICENCE")
_LONGEST = 80
_FRONT = re.compile(r"\A---\r?\n(.*?)^---\s*$", re.DOTALL | re.MULTILINE)
_LINE = re.compile(r"^licen[sc]e:[ \t]*['\"]?([^\s'\"#][^'\"#\r\n]*)", re.MULTILINE)


def licence(path: str | Location, limits: Limits = None) -> str | None:
    """Return the licence's name; a card must name it in its front matter, else None."""
    whole = text(path, limits)
    if locate(path).name == "README.md":
        front = _FRONT.match(whole)
        named = _LINE.search(front[1]) if front else None
        return for_terminal(named[1].strip(), _LONGEST) if named else None
    return for_terminal(whole.strip().splitlines()[0].strip(), _LONGEST)


# Kinds of evidence about one side, and the files that hold them, the better one first.
_FILES = {
    "config": ("config.json",),
    "log": ("trainer_state.json",),
    "optimizer": ("optimizer.pt", "optimizer.bin"),
    "tokens": TOKENIZERS,
    "licence": LICENCES,
}
_PART = re.compile(r"-[0-9]{1,6}-of-[0-9]{1,6}$")
_STATE = re.compile(r"(optimizer|scheduler|scaler|training_args|rng_state|random_states)")
_FRAMEWORK = re.compile(r"^(pytorch|tf|flax|diffusion_pytorch)_")
_STEP = re.compile(
    r"(?:checkpoint|ckpt|step|steps|global_step|iter|iteration)[-_=]?([0-9]{1,12})(?![0-9])"
)
_WITH_OPTIMIZER = (".ckpt", ".pt", ".pth", ".tar")


def beside(model: Any, other: Any = None) -> dict[str, Location]:
    """Return the files beside a model by kind; none if they could as well be another model's.

    A folder owns what lies in it. A file shares its folder: with `other`, or with further models,
    what lies there belongs to neither.
    """
    folder = _home(model)
    if folder is None or not is_owner(model, other):
        return {}
    from difflens.models.folders.listing import files_called

    files = files_called((name for names in _FILES.values() for name in names), folder)
    best = {
        kind: next((files[name] for name in names if name in files), None)
        for kind, names in _FILES.items()
    }
    return {kind: path for kind, path in best.items() if path}


def is_owner(model: Any, other: Any = None) -> bool:
    """Does what lies beside a model belong to it alone?"""
    folder = _home(model)
    return folder is not None and (_is_folder(model) or _is_alone(model, folder, other))


def inside(model: Any) -> dict[str, Location]:
    """Return the kinds of evidence a model file itself may hold: tokens in GGUF, an optimiser."""
    if is_path(model) and not _is_folder(model):
        path = locate(model)
        if path.suffix == ".gguf":
            return {"tokens": path}
        if path.suffix in _WITH_OPTIMIZER:
            return {"optimizer": path}
    return {}


def step_in_name(model: Any) -> int | None:
    """Read a step out of a name: of a folder, of a file or else of the folder it lies in.

    >>> step_in_name("run/checkpoint-500"), step_in_name("epoch=3-step=1200.ckpt")
    (500, 1200)
    >>> step_in_name("run/checkpoint-500/model.safetensors"), step_in_name("gpt-2.safetensors")
    (500, None)
    """
    if not is_path(model):
        return None
    path = locate(model)
    for name in (path.name, path.parent.name) if path.suffix else (path.name,):
        steps = _STEP.findall(name)
        if len(steps) == 1:
            return int(steps[0])
    return None


def is_path(model: Any) -> TypeGuard[str | Location]:
    """Was the model named by where it is?"""
    return isinstance(model, str | PathLike | Address)


def _is_folder(model: Any) -> bool:
    return is_path(model) and is_folder(locate(model))


def _home(model: Any) -> Location | None:
    """Return the folder a model's own files are in."""
    from difflens.models.folders.listing import model_folder

    if not is_path(model) or not str(model):
        return None
    path = locate(model)
    try:
        return model_folder(path) if is_folder(path) else path.parent
    except ModelError:  # whoever opens the model says what is wrong with it
        return None


def _is_alone(model: Any, folder: Location, other: Any) -> bool:
    """Is there one model in the folder: perhaps in parts, perhaps in several formats?"""
    from difflens.models.folders.listing import suffixes

    if is_path(other) and locate(other).parent == folder:
        return False
    endings = (*suffixes(strangers=False), ".index.json")
    try:
        files = [name for name in names(folder) if name.endswith(endings)]
    except ModelError:
        return False
    models = {_stem(name) for name in files if not _STATE.match(name)}
    return models <= {_stem(locate(model).name)}


def _stem(name: str) -> str:
    """Return a model's name without its part, its format and the framework it was saved by."""
    whole = name.removesuffix(".index.json").partition(".")[0]
    return _FRAMEWORK.sub("", _PART.sub("", whole))
