"""Applies the remedy of a finding to the knobs of a faulty run, and trains it again.

A remedy changes what it names and nothing else: none of them may put the parent back.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from .configs.config import Config
from .configs.faults import Fault
from .generate import Job, train_all
from .labels import Label
from .parts import ALL_FAULTS
from .scores import Rate, rate
from .verdicts import Verdict

Given = Mapping[str, Any]
_SCHEMES = {
    "kaiming": "he",
    "he": "he",
    "xavier": "xavier",
    "orthogonal": "orthogonal",
    "identity": "he",
}
_ACTIVATIONS = {
    "relu": "relu", "leakyrelu": "leaky_relu", "gelu": "gelu", "tanh": "tanh", "silu": "silu",
    "elu": "elu", "sigmoid": "sigmoid", "mish": "mish", "softsign": "softsign",
}  # fmt: skip

_PICTURES = ("cnn", "vgg", "bottleneck", "separable", "squeezed")
# The same loss, computed so that it cannot overflow or leave its domain.
_STABLE = {
    "naive-log": "auto",
    "naive-softmax": "auto",
    "naive-bce": "bce",
    "poisson-rate": "poisson",
    "gaussian-raw": "gaussian",
}


def _reinitialise(config: Config, given: Given) -> Config:
    """Start from weights of a known scheme; every knob of the start is one of it."""
    scheme = _SCHEMES[str(given.get("scheme", "kaiming"))]
    # The identity is a start for the matrix that goes from step to step (Le et al. 2015).
    memory = "identity" if given.get("scheme") == "identity" else "orthogonal"
    return replace(
        config, init=scheme, init_scale=1.0, hidden_bias=0.0, output_bias=0.0, odd_layer=None,
        odd_scale=1.0, odd_bias=0.0, recurrent=memory, recurrent_scale=1.0,
        memory_bias=float(given.get("forget_bias") or 0.0),
        gate_bias=float(given.get("gate_bias") or 0.0), norm_scale=1.0,
        entry_scale=min(config.entry_scale, 1.0), alike="", copied=False,
    )  # fmt: skip


def _activation(config: Config, given: Given) -> Config:
    name = str(given.get("to", "relu")).lower().replace("_", "")
    chosen = _ACTIVATIONS[name]
    if config.model == "rnn" and chosen not in {"relu", "tanh"}:
        chosen = "relu"
    return replace(config, activation=chosen)


def _norm(config: Config, given: Given) -> Config:
    kind = str(given.get("kind", "layer"))
    if config.model in _PICTURES:
        return replace(config, norm="group" if "group" in kind else "batch")
    return replace(config, norm="batch" if "batch" in kind else "layer")


def _batch(config: Config, given: Given) -> Config:
    """Take larger batches, with a lower rate where the remedy names one."""
    batch = max(1, round(config.batch * float(given["factor"])))
    return replace(config, batch=batch, lr=config.lr * float(given.get("lr_factor", 1.0)))


def _momentum(config: Config, given: Given) -> Config:
    """Take less momentum, with another rate where the remedy names one."""
    rate = config.lr * float(given.get("lr_factor", 1.0))
    return replace(config, momentum=float(given["value"]), lr=rate)


def _regularise(config: Config, given: Given) -> Config:
    return replace(
        config,
        dropout=float(given.get("dropout") or config.dropout),
        weight_decay=float(given.get("weight_decay") or config.weight_decay),
        optimiser="adamw" if config.optimiser == "adam" else config.optimiser,
    )


def _stable(config: Config, _given: Given) -> Config:
    """Take the same loss, computed so that it cannot overflow; another loss is another matter."""
    safe = config if config.own_eps is None else replace(config, own_eps=1e-5)
    if config.model == "variational" and config.spread_limit is None:
        safe = replace(safe, spread_limit=6.0)
    if config.loss == "poisson-rate" and config.output_bias > 0:
        # Who takes outputs as logarithms of rates lets them start at the logarithm of that rate.
        safe = replace(safe, output_bias=math.log(config.output_bias))
    return replace(safe, loss=_STABLE.get(config.loss, config.loss))


def _rewind(config: Config, _given: Given) -> Config:
    """Go back before the step and leave it out: nothing that befell it happens again."""
    return replace(
        config, kick_step=None, kick_factor=1.0, bad_step=None, flip_step=None, burst_step=None
    )


def _scale(config: Config, given: Given) -> Config:
    """Standardise the inputs, and the targets where the remedy names them too."""
    scaled = replace(config, input_scale=1.0, input_shift=0.0, odd_column=1.0, held_scale=1.0)
    return replace(scaled, target_scale=1.0) if given.get("targets") else scaled


def _hold(config: Config, given: Given) -> Config:
    """Let the rate stay as it is, at the height that the remedy names where it names one."""
    return replace(config, schedule="constant", lr=float(given.get("hold", config.lr)))


FIXES: dict[str, Callable[[Config, Given], Config]] = {
    "scale_lr": lambda config, given: replace(config, lr=config.lr * float(given["factor"])),
    "set_lr": lambda config, given: replace(config, lr=float(given["value"])),
    "warmup": lambda config, given: replace(config, warmup=int(given["steps"])),
    "clip_gradients": lambda config, given: replace(config, clip=float(given["max_norm"])),
    "reinitialise": _reinitialise,
    "change_activation": _activation,
    "add_normalisation": _norm,
    "add_residual": lambda config, _: replace(config, residual=True),
    "add_to_optimizer": lambda config, _: replace(config, optimised="all", left_out="", rates=()),
    # Who adds a shortcut as it is multiplies it by nothing.
    "unscale_shortcuts": lambda config, _: replace(config, skip_gain=1.0),
    "call_step": lambda config, _: replace(config, calls_step=True),
    "call_zero_grad": lambda config, _: replace(config, zero_grad="start"),
    "train_mode": lambda config, _: replace(config, train_mode=True, norms_eval=False),
    "remove_detach": lambda config, _: replace(config, detach_after=None, cut_branches=False),
    "remove_softmax": lambda config, _: replace(config, softmax=False, ending="none"),
    # Who is told that scores want a softmax takes the loss that has one.
    "normalise_scores": lambda config, _: replace(
        config, loss="auto" if config.loss == "nll-of-scores" else config.loss
    ),
    # Who is told that the loss is made large takes its minus out, wherever that is put in.
    "negate_loss": lambda config, _: replace(config, loss_sign=1),
    # Who trains on what is measured writes the loss of the validation into the loop.
    "match_loss": lambda config, _: replace(config, loss=config.held_loss or config.loss),
    "balance_classes": lambda config, _: replace(config, class_weights="balanced"),
    "shuffle": lambda config, _: replace(config, order="shuffled"),
    # Who looks at the pairs that are trained on sees what augmentation made of them, too.
    "check_labels": lambda config, _: replace(
        config, labels="true", label_noise=0.0, augment="none"
    ),
    # Who follows an example with its label sees whether that is its own, and what augmentation,
    # padding (which is masked, or packed away) and each reshape make of the example.
    "follow_example": lambda config, _: replace(
        config,
        labels="true",
        label_noise=0.0,
        augment="none",
        mixed_up=False,
        batch_first=True,
        pads="masked",
        tail=0,
    ),
    "match_shapes": lambda config, _: replace(
        config, loss="auto" if config.loss == "broadcast" else config.loss
    ),
    "scale_inputs": _scale,
    "scale_targets": lambda config, _: replace(config, target_scale=1.0),
    "skip_nonfinite": lambda config, _: replace(config, skip_nonfinite=True),
    "stable_loss": _stable,
    "lower_momentum": _momentum,
    "larger_batch": _batch,
    "regularise": _regularise,
    "lower_dropout": lambda config, given: replace(
        config, dropout=min(config.dropout, float(given["value"]))
    ),
    "stop_early": lambda config, given: replace(config, stop_step=max(1, int(given["step"]))),
    # All there is (0) stays all there is, and so does more than that.
    "more_data": lambda config, given: replace(
        config, samples=math.ceil(config.samples * float(given["factor"]))
    ),
    "fix_schedule": _hold,
    "rewind_and_skip": _rewind,
    # Who leaves weights to the optimiser takes out all that writes to them behind its step.
    "leave_weights": lambda config, _: replace(config, averaged=0.0, restored=0, growth=0.0),
    "step_once": lambda config, _: replace(config, doubled=1),
    # A scale that is one number stays it: who sets it takes out what makes it grow.
    "scale_loss": lambda config, given: replace(
        config, loss_scale=float(given["factor"]), scale_period=0, unscaled=True
    ),
    "unscale_gradients": lambda config, _: replace(config, unscaled=True),
    # Who is told how strong a penalty in the loss may be finds it there, whichever it is.
    "scale_penalty": lambda config, given: replace(
        config,
        penalty=config.penalty * float(given["factor"]),
        l1=config.l1 * float(given["factor"]),
        prior=config.prior * float(given["factor"]),
        kl=config.kl * float(given["factor"]),
    ),
    # Who goes through a loss term by term sees which of them is made large, not small.
    "check_signs": lambda config, _: replace(
        config,
        penalty=abs(config.penalty),
        l1=abs(config.l1),
        prior=abs(config.prior),
        kl=abs(config.kl),
    ),
    "scale_embeddings": lambda config, given: replace(
        config, entry_scale=config.entry_scale * float(given["factor"])
    ),
    # Who divides the scores of attention by the root of their width multiplies by nothing else.
    "scale_attention": lambda config, _: replace(config, attention_scale=1.0),
    "norm_momentum": lambda config, given: replace(config, norm_momentum=float(given["value"])),
}


def mend(config: Config, fix: Given) -> Config | None:
    """Apply a remedy; None if its code or what it needs is not known.

    Whoever changes a line changes it for the whole run: what a fault switches later is mended too.
    """
    given = fix.get("parameters") or {}
    try:
        remedy = FIXES[str(fix["code"])]
        first = remedy(config, given)
        later = remedy(replace(config, **dict(config.switched)), given)
    except (KeyError, TypeError, ValueError):
        return None
    still = tuple((name, getattr(later, name)) for name, _ in config.switched)
    still = tuple((name, value) for name, value in still if value != getattr(first, name))
    return replace(first, switched=still, switch_step=config.switch_step if still else None)


def mended(
    judged: list[tuple[Label, Verdict]], folder: Path, *, processes: int = 2
) -> tuple[Rate, list[dict[str, Any]]]:
    """Train every faulty run again with the first remedy it was given.

    A run without a remedy that can be applied counts as not mended.
    """
    faults = {each.id: each for each in ALL_FAULTS}
    rows: list[dict[str, Any]] = []
    jobs: dict[str, Job] = {}
    for label, verdict in judged:
        if label.healthy or label.heals or label.dropped:
            continue
        fix = verdict.fixes[0] if verdict.fixes else None
        config = mend(faults[label.config].config, fix) if fix else None
        rows.append({"id": label.id, "config": label.config, "fix": fix, "mended": False})
        if config is not None:
            jobs[label.id] = Job(f"mended-{label.config}", config, label.seed, record=False)
    outcomes = train_all(jobs.values(), folder, processes=processes)
    for row in rows:
        job = jobs.get(row["id"])
        if job is not None:
            row["mended"] = _reached(faults[row["config"]], outcomes[job.folder], row)
    return rate(row["mended"] for row in rows), rows


def _reached(fault: Fault, outcome: dict[str, Any], row: dict[str, Any]) -> bool:
    row["measured"] = outcome[fault.parent.metric]
    return fault.parent.reached(float(row["measured"]))
