"""The story of the evidence: what was named, what lies beside, what further checkpoints show."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from itertools import combinations
from pathlib import Path
from typing import Any

from .errors import EvidenceError
from .escape import for_terminal
from .evidence.config import config
from .evidence.discovery import beside, inside, step_in_name
from .evidence.documents import broken
from .evidence.evals import evals
from .evidence.gradients import gradients
from .evidence.history import history
from .evidence.latency import latency
from .evidence.licence import licence
from .evidence.log import State, log
from .evidence.metrics import metrics
from .evidence.optimizer import optimizer
from .evidence.runs import runs
from .evidence.tokens import tokens
from .evidences import Evidence, Log, Side, Trajectory
from .sources.handed import Model

_READERS: dict[str, Callable[..., Any]] = {
    "config": config, "metrics": metrics, "evals": evals, "latency": latency, "tokens": tokens,
    "optimizer": optimizer, "licence": licence, "log": log, "history": history,
    "gradients": gradients, "runs": runs,
}  # fmt: skip
_OF_BOTH = ("history", "log", "gradients", "runs")


def gather(
    left: Model,
    right: Model,
    *,
    checkpoints: Sequence[str | Path] = (),
    base: str | Path | None = None,
    discovery: bool = True,
    sample: str | Path | None = None,
    model_code: str | None = None,
    threads: int | None = None,
    limits: Mapping[str, int] | None = None,
    **named: str | Path | None,
) -> Evidence:
    """Read what is handed in beside two models, and what lies beside them where that is clear.

    `named` are files: `config_left`, `metrics_left`, `evals_left`, `latency_left`, `tokens_left`,
    `optimizer_left`, `licence_left`, the same for `right`, and `history`, `log`, `gradients`,
    `runs`. `Evidence.given` lists everything that was used.
    """
    desk = _Desk(limits, {name: path for name, path in named.items() if path is not None})
    sides = {name: desk.side(name, model, other, discovery=discovery)
             for name, model, other in (("left", left, right), ("right", right, left))}  # fmt: skip
    both = {kind: desk.named(kind) for kind in _OF_BOTH}
    state: State | None = both.pop("log")
    run = state.log if state else desk.shared_log(sides["left"].log, sides["right"].log)
    series = (left, *checkpoints, right)
    return Evidence(
        left=sides["left"],
        right=sides["right"],
        log=run,
        **{kind: value for kind, value in both.items() if value is not None},
        trajectory=desk.trajectory(series, sides, threads) if checkpoints else None,
        base=desk.base(base, left, right, threads) if base is not None else None,
        activations=desk.activations(left, right, sample, model_code),
        given=desk.given,
    )


class _Desk:
    """Where evidence is laid out: reads it, and notes in `given` what came from where."""

    def __init__(self, limits: Mapping[str, int] | None, named: dict[str, str | Path]) -> None:
        known = {*_OF_BOTH, *(f"{kind}_{side}" for kind in _READERS for side in ("left", "right"))}
        for name in named:
            if name not in known:
                raise TypeError(f"gather() got an unexpected keyword argument {name!r}")
        self._limits = limits
        self._named = named
        self.given: dict[str, str] = {}

    def named(self, name: str) -> Any:
        """Read a file the user named; None where there is none."""
        if name not in self._named:
            return None
        path = self._named[name]
        found = _READERS[name.removesuffix("_left").removesuffix("_right")](path, self._limits)
        self.given[name] = f"{path} (named)"
        return found

    def side(self, name: str, model: Model, other: Model, *, discovery: bool) -> Side:
        """Read what there is about one model: named before discovered."""
        kinds = [kind for kind in _READERS if kind not in _OF_BOTH]
        found = {kind: self.named(f"{kind}_{name}") for kind in (*kinds, "log")}
        if discovery:
            for kind, path in (inside(model) | beside(model, other)).items():
                if found[kind] is None:
                    found[kind] = self._discovered(f"{kind}_{name}", kind, path, model)
        vocabulary, state = found.pop("tokens"), found.pop("log")
        step = state.step if state and state.step is not None else None
        if step is None and discovery and step_in_name(model) is not None:
            step = step_in_name(model)
            self.given[f"step_{name}"] = f"{step} (in the name)"
        return Side(
            **{kind: value for kind, value in found.items() if value is not None},
            tokens=vocabulary.tokens if vocabulary else None,
            special_tokens=vocabulary.special if vocabulary else None,
            log=state.log if state else None,
            step=step,
        )

    def _discovered(self, name: str, kind: str, path: Path, model: Model) -> Any:
        """Read a file that was found; one that cannot be used is noted, and is nobody's fault."""
        own = path == Path(str(model))
        try:
            found = _READERS[kind](path, self._limits)
        except EvidenceError as error:
            if not own:  # a checkpoint need not hold an optimiser
                self.given[name] = f"{path} (discovered, not used: {for_terminal(error.reason)})"
            return None
        if found is not None:
            self.given[name] = f"{path} (discovered)"
        return found

    def shared_log(self, left: Log | None, right: Log | None) -> Log | None:
        """Give the log of the run both belong to: that of RIGHT, where LEFT's is its beginning."""
        if not (left and right):
            return right or left
        later = {(name, point) for name, points in right.columns.items() for point in points}
        earlier = {(name, point) for name, points in left.columns.items() for point in points}
        return right if earlier <= later else left if later <= earlier else None

    def trajectory(
        self, series: Sequence[Any], sides: Mapping[str, Side], threads: int | None
    ) -> Trajectory:
        """Compare every two checkpoints of the series."""
        from .evidence.trajectory import trajectory
        from .pipeline import diff

        for at, path in enumerate(series[1:-1], 1):
            self.given[f"checkpoint_{at}"] = f"{path} (named)"
        pairs = {
            (i, j): diff(series[i], series[j], always=True, threads=threads, limits=self._limits)
            for i, j in combinations(range(len(series)), 2)
        }
        steps = [sides["left"].step, *map(self._step, series[1:-1]), sides["right"].step]
        points = [pairs[0, 1].left.path, *(pairs[0, j].right.path for j in range(1, len(series)))]
        return trajectory(points, steps, pairs)

    def _step(self, model: Any) -> int | None:
        """Say at which step a further checkpoint was saved: by its name, or what lies beside it."""
        found = beside(model).get("log")
        if step_in_name(model) is None and found:
            state = self._discovered(f"log of {model}", "log", found, model)
            return state.step if state else None
        return step_in_name(model)

    def base(self, base: Any, left: Model, right: Model, threads: int | None) -> tuple[Any, Any]:
        """Compare the common ancestor with both."""
        from .pipeline import diff

        self.given["base"] = f"{base} (named)"
        how: dict[str, Any] = {"threads": threads, "limits": self._limits}
        return diff(base, left, **how), diff(base, right, **how)

    def activations(
        self, left: Model, right: Model, sample: str | Path | None, model_code: str | None
    ) -> Any:
        """Run both models on the sample, in a process of their own, where both were named."""
        if sample is None and model_code is None:
            return None
        if sample is None or model_code is None:
            missing = "--sample" if sample is None else "--model-code"
            raise broken(missing, "sample inputs and a runnable model are needed together")
        from .evidence.activations import activations
        from .evidence.sample import check_sample

        check_sample(sample, model_code, self._limits)
        self.given["sample"] = f"{sample} (named)"
        self.given["model_code"] = f"{model_code} (named)"
        return activations(left, right, sample, model_code)
