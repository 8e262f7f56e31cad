"""Where evidence is laid out: files are read by their kind, and what came from where is noted."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, TypedDict

from ..errors import EvidenceError
from ..escape import for_terminal
from ..evidences import Log, Side
from .config import config
from .discovery import beside, inside, step_in_name
from .documents import Limits
from .evals import evals
from .gradients import gradients
from .history import history
from .latency import latency
from .licence import licence
from .log import log
from .metrics import metrics
from .optimizer import optimizer
from .runs import runs
from .tokens import tokens

File = str | Path | None


class Named(TypedDict, total=False):
    """The files a user may name, by what they hold."""

    config_left: File
    config_right: File
    metrics_left: File
    metrics_right: File
    evals_left: File
    evals_right: File
    latency_left: File
    latency_right: File
    tokens_left: File
    tokens_right: File
    optimizer_left: File
    optimizer_right: File
    licence_left: File
    licence_right: File
    history: File
    log: File
    gradients: File
    runs: File


_READERS: dict[str, Callable[..., Any]] = {
    "config": config, "metrics": metrics, "evals": evals, "latency": latency, "tokens": tokens,
    "optimizer": optimizer, "licence": licence, "log": log, "history": history,
    "gradients": gradients, "runs": runs,
}  # fmt: skip
_OF_A_SIDE = ("config", "metrics", "evals", "latency", "tokens", "optimizer", "licence")


class Desk:
    """Reads what was named and what was found; `given` lists all of it."""

    def __init__(self, named: Mapping[str, Any], limits: Limits, *, discovery: bool) -> None:
        """Take what the user named; read nothing yet."""
        strange = [name for name in named if name not in Named.__annotations__]
        if strange:
            raise TypeError(f"gather() takes no {strange[0]!r}: {', '.join(Named.__annotations__)}")
        self._named = {name: path for name, path in named.items() if path is not None}
        self._limits = limits
        self._discovery = discovery
        self.given: dict[str, str] = {}

    def named(self, name: str) -> Any:
        """Read a file the user named; None where there is none."""
        if name not in self._named:
            return None
        kind = name.removesuffix("_left").removesuffix("_right")
        found = _READERS[kind](self._named[name], self._limits)
        self.note(name, self._named[name])
        return found

    def note(self, name: str, what: object, how: str = "named") -> None:
        """List something as used."""
        self.given[name] = f"{what} ({how})"

    def side(self, name: str, model: Any, other: Any) -> Side:
        """Read what there is about one model: named before discovered."""
        found = {kind: self.named(f"{kind}_{name}") for kind in _OF_A_SIDE} | {"log": None}
        if self._discovery:
            for kind, path in (inside(model) | beside(model, other)).items():
                if found[kind] is None:
                    own = path == Path(str(model))
                    found[kind] = self._discovered(f"{kind}_{name}", kind, path, quiet=own)
        vocabulary, state = found.pop("tokens"), found.pop("log")
        step = state.step if state else None
        if step is None and self._discovery and step_in_name(model) is not None:
            step = step_in_name(model)
            self.note(f"step_{name}", step, "in the name")
        return Side(
            **{kind: value for kind, value in found.items() if value is not None},
            tokens=vocabulary.tokens if vocabulary else None,
            special_tokens=vocabulary.special if vocabulary else None,
            log=state.log if state else None,
            step=step,
        )

    def step(self, name: str, model: Any) -> int | None:
        """Say at which step a checkpoint was saved: by its name, or by the log beside it."""
        step = step_in_name(model)
        path = beside(model).get("log") if self._discovery and step is None else None
        state = self._discovered(name, "log", path, quiet=False) if path else None
        return state.step if state else step

    def _discovered(self, name: str, kind: str, path: Path, *, quiet: bool) -> Any:
        """Read a file that was found; one that cannot be used is noted, unless `quiet`."""
        try:
            found = _READERS[kind](path, self._limits)
        except EvidenceError as error:
            if not quiet:  # a checkpoint need not hold an optimiser
                self.note(name, path, f"discovered, not used: {for_terminal(error.reason)}")
            return None
        if found is not None:
            self.note(name, path, "discovered")
        return found


def shared_log(left: Log | None, right: Log | None) -> Log | None:
    """Give the log of the run two checkpoints belong to; None where they belong to different ones.

    The log of the later checkpoint begins with the other's.
    """
    if not (left and right):
        return right or left
    later, earlier = ({(name, point) for name, points in each.columns.items() for point in points}
                      for each in (right, left))  # fmt: skip
    return right if earlier <= later else left if later <= earlier else None
