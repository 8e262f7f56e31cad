"""What may be handed in beside two models, as options of `diff`."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, TypeVar

import click

from ._analyses import chosen
from ._options import FilePath, limits_of

if TYPE_CHECKING:
    from ..evidences import Evidence
    from ..records import Policy

Command = TypeVar("Command", bound=Callable[..., Any])

# By the name in `gather`: the option, and what to say of it.
_SIDES = {
    "config": ("config", "config.json of the left (right) model."),
    "metrics": ("metrics", "JSON object of metric to number."),
    "evals": ("eval", "Per-example results, CSV or JSONL: id, score[, cluster][, metric]."),
    "latency": ("latency", "Latencies: one number a line, or a CSV column ms."),
    "tokens": ("tokenizer", "tokenizer.json, vocab.json, vocab.txt, or their folder."),
    "optimizer": ("optimizer", "optimizer.pt, or a checkpoint that holds the optimiser."),
}
_FILES = {
    "history": "Past versions of metrics, CSV: version, metric, value[, time].",
    "log": "Training log: trainer_state.json, or CSV or JSONL with step and columns.",
    "gradients": "Gradient norms: a run folder, or CSV or JSONL with step, layer, norm.",
    "runs": "Table of runs: hyper-parameters and outcomes.",
    "base": "The common ancestor of both models.",
    "policy": "TOML: thresholds, margins, budgets; `difflens policy` prints all.",
    "sample": "Sample inputs, npz, for what needs activations.",
}
_NAMES = (*(f"{kind}_{side}" for kind in _SIDES for side in ("left", "right")), *_FILES,
          "checkpoints", "model_code", "measure_hardware", "alert_mode")  # fmt: skip
_ALERTS = "alert_on_degradation"


def evidence_options(command: Command) -> Command:
    """Add an option for every kind of evidence."""
    options = [
        click.option("--checkpoint", "checkpoints", multiple=True, type=FilePath(), metavar="FILE",
                     help="A further checkpoint of the run, between LEFT and RIGHT; repeatable."),
        *_file_options(),
        click.option("--model-code", metavar="MODULE:CALLABLE",
                     help="Code that gives a runnable model of a path; runs in its own process."),
        click.option("--alert-mode", type=click.Choice(["limit", "point"]),
                     help="Alert when the confidence limit crosses, or the value itself."),
        click.option("--measure-hardware", is_flag=True,
                     help="Time this machine for a moment, for estimates of speed."),
        click.option("--no-discovery", is_flag=True, help="Use nothing but what is named here."),
    ]  # fmt: skip
    for option in reversed(options):
        command = option(command)
    return command


def _file_options() -> list[Callable[[Command], Command]]:
    pairs = [(f"--{option}-{side}", f"{kind}_{side}", text if side == "left" else "The same.")
             for kind, (option, text) in _SIDES.items() for side in ("left", "right")]  # fmt: skip
    lone = [(f"--{name}", name, text) for name, text in _FILES.items()]
    return [click.option(flag, name, type=FilePath(), metavar="FILE", help=text)
            for flag, name, text in (*pairs, *lone)]  # fmt: skip


def named(options: dict[str, Any]) -> list[str]:
    """List the kinds of evidence that were named."""
    return [name for name in _NAMES if options.get(name)]


def refuse_for_folders(options: dict[str, Any]) -> None:
    """Refuse evidence with -r: it is about one pair; thresholds hold for all of them."""
    about = [name for name in named(options) if name not in ("policy", "alert_mode")]
    if about:
        raise click.UsageError(
            "evidence is about one pair of models: leave -r out, or the evidence"
        )


def refuse_unused(options: dict[str, Any]) -> None:
    """Refuse evidence that nothing would look at."""
    if named(options):
        flag = named(options)[0].replace("_", "-").replace("evals", "eval")
        flag = flag.replace("tokens", "tokenizer").replace("checkpoints", "checkpoint")
        raise click.UsageError(f"--{flag} is for analyses: name one, or --all-analyses")


def gathered(left: str, right: str, options: dict[str, Any]) -> tuple[Evidence, Policy]:
    """Read what was named and what lies beside the models; the policy first, for it is short.

    A document that only wants the sentence about the change pays for no evidence.
    """
    from msgspec.structs import replace

    from ..evidences import Evidence
    from ..gathering import gather
    from ..records import Policy

    if not chosen(options) and not named(options):
        return Evidence(), Policy()
    policy = _policy(options)
    files = {name: options[name] for name in _NAMES
             if name not in ("policy", "alert_mode", "checkpoints")}  # fmt: skip
    evidence = gather(
        left,
        right,
        checkpoints=options["checkpoints"],
        discovery=not options["no_discovery"],
        threads=options["threads"],
        limits=limits_of(options["limits"]),
        **files,
    )
    if options["policy"]:
        given = evidence.given | {"policy": f"{options['policy']} (named)"}
        evidence = replace(evidence, given=given)
    return evidence, policy


def _policy(options: dict[str, Any]) -> Policy:
    from msgspec.structs import replace

    from ..evidence.policy import policy
    from ..records import Policy
    from ._policy import known

    path, mode = options["policy"], options["alert_mode"]
    limits = limits_of(options["limits"])
    found = policy(path, known(), limits) if path else Policy()
    if mode:
        alerts = found.thresholds.get(_ALERTS, {}) | {"mode": mode}
        found = replace(found, thresholds=found.thresholds | {_ALERTS: alerts})
    return found
