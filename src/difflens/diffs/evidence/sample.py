"""Sample inputs and the code that runs a model: checked before anything is started."""

from __future__ import annotations

import re
from pathlib import Path

from .documents import Limits, broken, content

_CALLABLE = re.compile(r"[A-Za-z_][\w.]*:[A-Za-z_][\w.]*")


def check_sample(sample: str | Path, model_code: str, limits: Limits = None) -> None:
    """Refuse a sample that is no .npz, and code that is not `module:callable`; runs nothing."""
    head = content(sample, limits)[:4]
    if head[:2] != b"PK":
        raise broken(sample, "it is no .npz: name -> array is wanted", "numpy.savez writes one")
    if not _CALLABLE.fullmatch(model_code):
        reason = "module:callable is wanted, such as mymodels:load"
        raise broken(f"--model-code {model_code}", reason)
