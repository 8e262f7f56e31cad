"""What `snapshot add` is handed, read into the arguments of a snapshot."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from ..errors import EvidenceError
from ._options import limits_of

if TYPE_CHECKING:
    from ..snapshots import ModelSnapshot


def handed(options: dict[str, Any]) -> dict[str, Any]:
    """Read every file that was named, the weights apart, and give them by argument."""
    from ..evidence.config import config
    from ..evidence.documents import json_object
    from ..evidence.evals import evals
    from ..evidence.latency import latency

    readers: dict[str, Callable[..., Any]] = {
        "metrics": json_object,
        "training": json_object,
        "config": config,
        "evals": evals,
        "latency": latency,
    }
    limits = limits_of(options["limits"])
    found = {name: read(options[name], limits) for name, read in readers.items() if options[name]}
    if options["replicates"]:
        found |= replicates(options["replicates"], limits)
    return found | {
        "evaluation": _evaluation(options, found.get("evals", ()), limits),
        "meta": dict(map(pair, options["meta"])),
        "commit": options["commit"],
    }


def replicates(path: str, limits: Any) -> dict[str, Any]:
    """Read a table of seed, metric, value; every metric must have every seed."""
    from ..evidence.tables import rows

    seeds: dict[str, None] = {}
    values: dict[str, dict[str, float]] = {}
    for row in rows(path, limits, required=("seed", "metric", "value"), optional=()):
        seed, metric = row.label("seed"), row.label("metric")
        if seed in values.setdefault(metric, {}):
            reason = f"{row.place}: seed '{seed}' of metric '{metric}' stands there already"
            raise EvidenceError(path, reason)
        seeds[seed] = None
        values[metric][seed] = row.number("value")
    for metric, found in values.items():
        lacking = [seed for seed in seeds if seed not in found]
        if lacking:
            reason = f"metric '{metric}' has no value for seed '{lacking[0]}'"
            raise EvidenceError(path, reason, hint="every metric needs the same seeds")
    return {
        "replicates": {metric: [found[seed] for seed in seeds] for metric, found in values.items()},
        "replicate_ids": tuple(seeds),
    }


def _evaluation(options: dict[str, Any], evals: Iterable[Any], limits: Any) -> dict[str, Any]:
    """Say what the metrics were measured on; a data set is known by its bytes."""
    found = {name: options[name] for name in ("dataset", "hardware", "precision") if options[name]}
    examples = {each.id for each in evals}
    if options["examples"] or examples:
        found["n"] = options["examples"] or len(examples)
    if options["data"]:
        found["fingerprint"] = _fingerprint(options["data"], limits)
    return found


def _fingerprint(path: str, limits: Any) -> str:
    from hashlib import sha256

    from ..evidence.documents import content

    return f"sha256:{sha256(content(path, limits)).hexdigest()}"


def pair(text: str) -> tuple[str, str]:
    """Read K=V."""
    key, separator, value = text.partition("=")
    if not separator or not key:
        raise click.UsageError(f"--meta takes K=V, not {text}")
    return key, value


def found_again(snapshot: ModelSnapshot, weights: str | None) -> ModelSnapshot:
    """Keep where the weights lie as a whole path: `version-diff` may run in another folder."""
    from msgspec.structs import replace

    if weights is None:
        return snapshot
    summary = replace(snapshot.weights_summary, source=str(Path(weights).absolute()))
    return replace(snapshot, weights_summary=summary)
