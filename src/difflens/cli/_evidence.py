"""Evidence beside two models, as options of `diff`."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, TypeVar

import click

from ._analyses import chosen
from ._options import FileLocation, direction_option, limits_of, read_policy, with_direction
from ._project import is_from_project

if TYPE_CHECKING:
    from difflens.core.policy import Policy
    from difflens.diffs.evidence.records import Evidence

Command = TypeVar("Command", bound=Callable[..., Any])

# By the name in `gather`: the option, and what to say of it.
_SIDES = {
    "config": ("config", "config.json of LEFT."),
    "metrics": ("metrics", "Metrics of LEFT: a JSON object of names and numbers."),
    "evals": ("eval", "Results per example, CSV or JSONL: id, score[, cluster][, metric]."),
    "latency": ("latency", "Latencies in milliseconds: one per line, or a CSV column ms."),
    "tokens": ("tokenizer", "tokenizer.json, vocab.json, vocab.txt, or their folder."),
    "optimizer": ("optimizer", "optimizer.pt, or a checkpoint that holds the optimiser state."),
}
_FILES = {
    "history": "Metrics of past versions, CSV: version, metric, value[, time].",
    "log": "Training log: trainer_state.json, or CSV or JSONL with a column step.",
    "gradients": "Gradient norms: a run folder, or CSV or JSONL with step, layer, norm.",
    "runs": "Table of runs: hyper-parameters and outcomes.",
    "base": "The model that both models come from.",
    "sample": "Sample inputs, npz, for analyses that run the models.",
}
_SETTINGS = ("policy", "alert_mode", "is_lower")  # how to judge, which is no evidence
_NAMES = (
    *(f"{kind}_{side}" for kind in _SIDES for side in ("left", "right")),
    *_FILES,
    "checkpoints",
    "model_code",
    "measure_hardware",
    *_SETTINGS,
)
_COMPARED = ("config_left", "config_right")  # what the comparison itself looks at
_ALERTS = "alert_on_degradation"


def evidence_options(command: Command) -> Command:
    """Add an option for every kind of evidence."""
    options = [
        click.option(
            "--checkpoint",
            "checkpoints",
            multiple=True,
            type=FileLocation(),
            metavar="FILE",
            help="Another checkpoint of the run, between LEFT and RIGHT; repeatable.",
        ),
        *_file_options(),
        click.option(
            "--policy",
            type=FileLocation(),
            metavar="FILE",
            help="Thresholds, margins and budgets, TOML; `difflens policy` prints all.",
        ),
        direction_option,
        click.option(
            "--model-code",
            metavar="MODULE:CALLABLE",
            help="Code that loads a model from a path, run in a process of its own.",
        ),
        click.option(
            "--alert-mode",
            type=click.Choice(["limit", "point"]),
            help="Alert if the confidence limit crosses the line, or if the value does.",
        ),
        click.option(
            "--measure-hardware",
            is_flag=True,
            help="Time this machine for a moment, to estimate speed.",
        ),
        click.option(
            "--no-discovery",
            is_flag=True,
            help="Use only the evidence that is named; search none beside the models.",
        ),
    ]
    for option in reversed(options):
        command = option(command)
    return command


def _file_options() -> list[Callable[[Command], Command]]:
    pairs = [
        (f"--{option}-{side}", f"{kind}_{side}", text if side == "left" else "The same of RIGHT.")
        for kind, (option, text) in _SIDES.items()
        for side in ("left", "right")
    ]
    lone = [(f"--{name}", name, text) for name, text in _FILES.items()]
    return [
        click.option(flag, name, type=FileLocation(), metavar="FILE", help=text)
        for flag, name, text in (*pairs, *lone)
    ]


def evidence_names() -> set[str]:
    """Name the options that bring evidence, and those that say where it comes from."""
    return {*_NAMES, "no_discovery"}.difference(_SETTINGS)


def named(options: dict[str, Any]) -> list[str]:
    """List the kinds of evidence that were named."""
    return [
        name
        for name in _NAMES
        if options.get(name) or (name == "is_lower" and options[name] is False)
    ]


def refuse_for_folders(options: dict[str, Any]) -> None:
    """Refuse evidence with -r: it is about one pair; thresholds hold for all of them."""
    about = [name for name in named(options) if name not in _SETTINGS]
    if about:
        raise click.UsageError(
            "evidence is about one pair of models: leave -r out, or the evidence"
        )


def refuse_unused(options: dict[str, Any]) -> None:
    """Refuse evidence that nothing would look at; a policy of the project may wait."""
    about = [name for name in named(options) if name not in _COMPARED and not is_from_project(name)]
    if about:
        flag = about[0].replace("_", "-").replace("evals", "eval")
        way = "lower-is-better" if options["is_lower"] else "higher-is-better"
        flag = flag.replace("is-lower", way)
        flag = flag.replace("tokens", "tokenizer").replace("checkpoints", "checkpoint")
        raise click.UsageError(f"--{flag} is for analyses: name one, or --all-analyses")


def gathered(left: str, right: str, options: dict[str, Any]) -> tuple[Evidence, Policy]:
    """Read what was named and what lies beside the models; the policy first, for it is short.

    A document that only wants the sentence about the change pays for no evidence.
    """
    from msgspec.structs import replace

    from difflens.core.policy import Policy
    from difflens.diffs.evidence.gather import gather
    from difflens.diffs.evidence.records import Evidence

    if not chosen(options) and not named(options):
        return Evidence(), Policy()
    policy = _policy(options)
    files = {name: options[name] for name in _NAMES if name not in (*_SETTINGS, "checkpoints")}
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

    policy, mode = (
        read_policy(options["policy"], limits_of(options["limits"])),
        options["alert_mode"],
    )
    if mode:
        alerts = policy.thresholds.get(_ALERTS, {}) | {"mode": mode}
        policy = replace(policy, thresholds=policy.thresholds | {_ALERTS: alerts})
    return with_direction(policy, options)
