"""A snapshot made from what is there: weights are read, not typed in."""

from __future__ import annotations

import subprocess
from collections.abc import Iterable, Mapping, Sequence
from itertools import pairwise
from os import PathLike, fspath
from typing import Any

import msgspec

from difflens.core.errors import DifflensError
from difflens.core.findings import Missing
from difflens.core.kept import made, now
from difflens.core.records import TensorInfo
from difflens.diffs.evidence.records import Example, Latency
from difflens.diffs.methods.weights import weights
from difflens.models.anatomy.family import family
from difflens.models.anatomy.network import Network, network_of, shapes
from difflens.models.anatomy.roles import is_parameter, layer
from difflens.models.anatomy.settings import settings
from difflens.models.opening import Model

from .records.snapshots import (
    ArchitectureInfo,
    Evaluation,
    ModelMetrics,
    ModelSnapshot,
    TrainingConfig,
    WeightsSummary,
)
from .weights import SummarisedModel, summarise_weights

AUTO = "auto"
_MEGA = 1e6


def snapshot_of(
    name: str,
    version: str,
    *,
    weights: Model | None = None,
    metrics: ModelMetrics | Mapping[str, Any] | None = None,
    training: TrainingConfig | Mapping[str, Any] | None = None,
    config: Mapping[str, Any] | None = None,
    evals: Iterable[Example] = (),
    latency: Iterable[Latency] = (),
    replicates: Mapping[str, Iterable[float]] | None = None,
    replicate_ids: Iterable[str] = (),
    evaluation: Evaluation | Mapping[str, Any] | None = None,
    commit: str | None = None,
    meta: Mapping[str, str] | None = None,
    timestamp: str | None = None,
    threads: int | None = None,
    limits: Mapping[str, int] | None = None,
) -> ModelSnapshot:
    """Record one version of a model; what is not given and cannot be read is null.

    `weights` is any model that can be opened, or a mapping of names to arrays; `metrics` and
    `training` are records or flat maps, of which names that have no field are kept beside those
    that have. `commit="auto"` asks git.
    """
    summarised = (
        summarise_weights(weights, threads=threads, limits=limits) if weights is not None else None
    )
    about = dict(meta or {})
    if commit == AUTO:
        commit, is_dirty = commit_of()
        about |= {"commit_state": "uncommitted changes"} if is_dirty else {}
    return ModelSnapshot(
        name=name,
        version=version,
        commit_hash=commit,
        metrics=_metrics(metrics, summarised),
        architecture=_architecture(summarised, config),
        training_config=_training(training),
        weights_summary=summarised.summary if summarised else WeightsSummary(),
        metadata=about,
        evaluation=made(Evaluation, evaluation or {}),
        replicates={metric: tuple(each) for metric, each in (replicates or {}).items()},
        replicate_ids=tuple(replicate_ids),
        evals=tuple(evals),
        latency_samples=tuple(latency),
        timestamp=timestamp or now(),
    )


def _architecture(
    summarised: SummarisedModel | None, config: Mapping[str, Any] | None
) -> ArchitectureInfo:
    if summarised is None:
        return read_config(config) if config else ArchitectureInfo()
    found = summarised.model
    infos = [each.info for each in found.tensors]
    return read_architecture(infos, found.metadata, config, list(found.aliases))


def _metrics(
    given: ModelMetrics | Mapping[str, Any] | None, summarised: SummarisedModel | None
) -> ModelMetrics:
    """Sort a flat map into the fields and the user's own; the size is that of the tensors read."""
    if isinstance(given, ModelMetrics):
        found = given
    else:
        found = made(ModelMetrics, _sorted(given or {}, ModelMetrics, "custom_metrics"))
    if summarised is None or found.model_size_mb is not None:
        return found
    size = (summarised.summary.size_bytes or 0) / _MEGA
    missing = tuple(each for each in found.missing if each.field != "model_size_mb")
    return msgspec.structs.replace(found, model_size_mb=size, missing=missing)


def _training(given: TrainingConfig | Mapping[str, Any] | None) -> TrainingConfig:
    if isinstance(given, TrainingConfig):
        return given
    return made(TrainingConfig, _sorted(given or {}, TrainingConfig, "settings"))


def _sorted(given: Mapping[str, Any], kind: type[msgspec.Struct], rest: str) -> dict[str, Any]:
    """Put what has no field of its own into the map that is there for it."""
    fields = set(kind.__struct_fields__)
    own = {key: value for key, value in given.items() if key not in fields}
    named = {key: value for key, value in given.items() if key in fields}
    return {**named, rest: {**own, **(named.get(rest) or {})}}


_PATIENCE = 30  # seconds


def commit_of(folder: str | PathLike[str] = ".") -> tuple[str, bool]:
    """Return the commit's hash, and whether files differ from it."""
    found = _git(folder, "rev-parse", "--verify", "HEAD").strip()
    return found, bool(_git(folder, "status", "--porcelain", "--untracked-files=no").strip())


def _git(folder: str | PathLike[str], *words: str) -> str:
    hint = "name the commit instead of `auto`"
    command = ["git", "-C", fspath(folder), *words]
    try:
        done = subprocess.run(  # noqa: S603  fixed words; the folder is one argument
            command, capture_output=True, timeout=_PATIENCE, check=False, text=True
        )
    except FileNotFoundError:
        raise DifflensError("git is not installed", where="commit", hint=hint) from None
    except subprocess.TimeoutExpired:
        reason = f"git did not answer within {_PATIENCE} s"
        raise DifflensError(reason, where="commit", hint=hint) from None
    if done.returncode:
        said = done.stderr.strip().splitlines()
        reason = said[-1].removeprefix("fatal: ") if said else f"git ended with {done.returncode}"
        raise DifflensError(f"git says: {reason}", where="commit", hint=hint)
    return done.stdout


_FACTS = {
    "depth": ("layers", "no numbered stack of blocks is among the names"),
    "hidden_size": ("hidden", "neither an embedding nor layers of one width show it"),
    "num_heads": ("heads", "shapes alone do not tell how a projection is cut into heads"),
    "ff_dim": ("ffn", "no feed-forward matrix is among the names"),
    "vocab_size": ("vocab", "no table of words is among the names"),
    "max_seq_length": ("context", "weights do not bound the length of a sequence"),
}


def read_architecture(
    infos: Sequence[TensorInfo],
    described: Mapping[str, str],
    config: Mapping[str, Any] | None,
    shared: Sequence[str] = (),
) -> ArchitectureInfo:
    """Describe the architecture; what neither settings nor shapes show is null, with the reason."""
    network = network_of(settings(config, described), shapes(infos))
    facts: dict[str, Any] = {name: getattr(network, own) for name, (own, _) in _FACTS.items()}
    if facts["hidden_size"] is None:
        facts["hidden_size"] = _width(infos)
    kind = family(network, infos).name
    missing = [
        Missing(name, "--config", why) for name, (_, why) in _FACTS.items() if facts[name] is None
    ]
    if kind == "unknown":
        missing.append(Missing("kind", "--config", "no rule on names and shapes fits"))
    return ArchitectureInfo(
        **facts,
        parameter_count=weights(infos, shared).parameters or sum(each.count for each in infos),
        layer_count=_layers(infos),
        kind=None if kind == "unknown" else kind,
        missing=tuple(missing),
    )


def read_config(config: Mapping[str, Any]) -> ArchitectureInfo:
    """Read what a config.json alone says."""
    network: Network = network_of(settings(config, {}), shapes(()))
    facts = {name: getattr(network, own) for name, (own, _) in _FACTS.items()}
    return ArchitectureInfo(**facts, kind=network.family)


def _layers(infos: Sequence[TensorInfo]) -> int:
    """Count the layers: names, but for their last part, that hold a weight of two dimensions."""
    return len(
        {
            layer(info.name)
            for info in infos
            if len(info.shape) > 1 and is_parameter(info.name, info.dtype)
        }
    )


def _width(infos: Sequence[TensorInfo]) -> int | None:
    """Return the width of a plain stack of matrices, each taking what the one before gives."""
    trained = [info for info in infos if is_parameter(info.name, info.dtype)]
    shapes_of = [info.shape for info in trained if len(info.shape) > 1]
    if any(len(shape) > 2 for shape in shapes_of):
        return None
    for into, out in ((0, 1), (1, 0)):  # weights stand as rows by columns, or transposed
        widths = {(before[into], after[out]) for before, after in pairwise(shapes_of)}
        if len(widths) == 1 and len(set(*widths)) == 1:
            return widths.pop()[0]
    return None
