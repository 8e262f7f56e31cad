"""What of a checkpoint is a weight, and what is the state of a training run beside the weights.

    net.weight                     a weight
    net.bn.running_mean            a buffer: `roles.is_buffer`
    optimizer.state.0.exp_avg      state: the moment of an optimizer
    ema.net.weight                 state: an average of `net.weight`
    callbacks.Stop.best_score      state: what a trainer remembers

A name alone proves nothing, since a network may have a module called `optimizer` or `ema`. A
tensor is state only if something beside it shows that: the parameter groups of its optimizer,
moments with the shapes of weights, or the weight that it is an average of. A file in which
nothing but state would be left is compared as it is.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import NamedTuple

from difflens.core.records import TensorInfo

from .averages import Weights, averages
from .state_hints import LIGHTNING, may_be_state

Tensors = Mapping[str, TensorInfo]

# What the part of a name is called that may hold state.
_HOLDERS = {
    "optimizer": r"(?:\w+_)?(?:optim\w*|opts?(?:_\w+)?)",
    "ema": r"(?:\w+_)?(?:ema|swa|averaged|shadow|polyak|teacher)(?:_\w+)?",
    "scheduler": r"(?:\w+_)?(?:lr_?)?sched(?:uler)?s?(?:_\w+)?",
    "scaler": r"(?:\w+_)?scaler(?:_\w+)?|(?:native_)?amp(?:_\w+)?",
    "random": r"(?:\w+_)?(?:rng|random)_states?(?:_\w+)?",
    "callbacks": r"callbacks",
    "loops": r"loops",
}
_HOLDER = re.compile(
    r"(?P<before>(?:callbacks[./])?(?:[^./]+[./]){0,2}?)(?:"
    + "|".join(f"(?P<{kind}>{words})" for kind, words in _HOLDERS.items())
    + r")(?=[./]|$)",
    re.IGNORECASE | re.ASCII,
)
_TOP_ONLY = frozenset({"scheduler", "scaler", "random", "callbacks", "loops"})

# The words of optimizers for what they keep of a parameter. One of the first group shows by itself
# that a tensor is state; one of the second must come with the shape of a weight.
_PLAIN_SLOTS = frozenset(
    """
    exp_avg exp_avg_sq max_exp_avg_sq exp_avg_sq_row exp_avg_sq_col exp_inf exp_avg_diff
    momentum_buffer square_avg acc_delta grad_avg step_size state1 state2 absmax1 absmax2 qmap1
    row_var col_var variance qmap2 unorm_vec fp32_flat_groups single_partition_of_fp32_groups
    prev_flat_grad
    mean_square mean_grad accumulated_delta_var neg_pre_grad pre_grad master_param
""".split()
)
_SHORT_SLOTS = frozenset(
    """
    m v vhat mu nu trace sum prev momentum velocity accumulator accum rms linear hessian z s p0
    velocity_hat norm
""".split()
)
_NUMBER_SLOTS = frozenset(
    """
    step count iter iteration iterations t num_updates lr learning_rate decay beta_1 beta_2
    beta1_power beta2_power
""".split()
)
_SLOTS = _PLAIN_SLOTS | _SHORT_SLOTS | _NUMBER_SLOTS
_SLOT_END = re.compile(
    r"_(momentum|velocity|velocity_hat|accumulator|accumulated_grad|accumulated_delta_var|m|v|vhat"
    r"|rms|average_gradient)$"
)
# A variable called after its weight: `dense/kernel/Adam_1`, `dense/kernel/.OPTIMIZER_SLOT/adam/m`.
_BESIDE = re.compile(
    r"(?P<weight>.+?)[./](?:(?P<slot>(?:Adam|Momentum|RMSProp|Adagrad|Adadelta|Ftrl|AdamW|Lamb)"
    r"(?:_[0-9])?)|\.?OPTIMIZER_SLOT[./](?:[^./]+[./])*(?P<key>[^./]+)"
    r"|(?P<ema>ExponentialMovingAverage))(?::0)?",
    re.DOTALL,
)
_POWERS = re.compile(r"(?:.*[./])?beta[12]_power(?:_[0-9])?(?::0)?", re.DOTALL)
_COUNTERS = frozenset(
    """
    step steps global_step epoch iter iteration iterations num_updates save_counter
    current_epoch samples_seen
""".split()
)
_LISTED = frozenset({"vars", "variables", "_variables"})
_GROUPS = re.compile(r"(?P<holder>.+?)\.param_groups\.[0-9]+\.\w+", re.DOTALL)
_SCHEDULED = re.compile(r"(?P<holder>.+?)\.(?:last_epoch|_step_count|base_lrs)", re.DOTALL)
_LONGEST = 1000  # characters of a name that is looked at
_MOST_HOLDERS = 100  # a checkpoint has a few


class State(NamedTuple):
    """What a tensor of state is: its kind, what holds it, its slot, and the weight it averages."""

    kind: str
    holder: str
    slot: str = ""
    weight: str | None = None


class Holder(NamedTuple):
    """A part of a name that may hold state, and the tensors below it."""

    kind: str
    name: str
    members: list[str]

    def rest(self, name: str) -> list[str]:
        """Return the parts of a name below the holder."""
        return [each for each in re.split(r"[./]", name[len(self.name) :]) if each]


def weights_of(tensors: Tensors, state: Mapping[str, State]) -> dict[str, TensorInfo]:
    """Return the tensors that are no state."""
    return {name: info for name, info in tensors.items() if name not in state}


def find_state(tensors: Tensors, metadata: Mapping[str, str]) -> dict[str, State]:
    """Find the tensors that are state; `metadata` are the plain values beside them.

    >>> names = "w", "optimizer.state.0.exp_avg"
    >>> tensors = {name: TensorInfo(name, "F32", (3, 2)) for name in names}
    >>> find_state(tensors, {})["optimizer.state.0.exp_avg"].slot
    'exp_avg'
    """
    hinted = [name for name in tensors if len(name) <= _LONGEST and may_be_state(name)]
    if not hinted:
        return {}
    state = _beside_weights(hinted, tensors)
    holders = _holders(name for name in hinted if name not in state)
    candidates = {name for each in holders for name in each.members}
    others = {name: info for name, info in tensors.items() if name not in candidates | state.keys()}
    proofs = {match["holder"] for match in map(_GROUPS.fullmatch, metadata) if match}
    shapes, weights = {info.shape for info in others.values()}, Weights(others)
    for holder in holders:
        if holder.kind == "optimizer":
            state |= _optimizer_state(holder, tensors, shapes, proofs)
        elif holder.kind == "ema":
            found = averages(holder, tensors, weights)
            for name, weight in found.items():
                slot = "" if weight else "".join(holder.rest(name)[-1:])
                state[name] = State("ema", holder.name, slot, weight)
    state = _run_state(holders, tensors, metadata, is_run=bool(state or proofs)) | state
    if state:
        counters = (name for name in others if name.lower() in _COUNTERS)
        state |= {n: State("counters", n, n) for n in counters if tensors[n].count == 1}
    are_weights = any(tensors[name].count > 1 for name in tensors if name not in state)
    return state if are_weights else {}


def _beside_weights(names: Iterable[str], tensors: Tensors) -> dict[str, State]:
    """Find what is called after a weight of the same shape and the slot of an optimizer."""
    state, powers = {}, []
    for name in names:
        if _POWERS.fullmatch(name) and tensors[name].count == 1:
            powers.append(name)
            continue
        match = _BESIDE.fullmatch(name)
        weight = match["weight"] if match else ""
        weight = weight if weight in tensors else f"{weight}:0"
        if match is None or weight not in tensors:
            continue
        if tensors[name].count > 1 and tensors[name].shape != tensors[weight].shape:
            continue
        if match["ema"]:
            state[name] = State("ema", match["ema"], "", weight)
        else:
            state[name] = State("optimizer", "optimizer", match["key"] or match["slot"])
    if state:
        state |= {name: State("optimizer", "optimizer", "power") for name in powers}
    return state


def _holders(names: Iterable[str]) -> list[Holder]:
    """Group names by the part that may hold state, outermost first."""
    holders: dict[tuple[str, str], Holder] = {}
    for name in names:
        match = _HOLDER.match(name)
        kind = match.lastgroup if match else None
        if match is None or kind is None or (kind in _TOP_ONLY and match["before"]):
            continue
        if any(part.isdigit() for part in re.split(r"[./]", match["before"])):
            continue  # inside a numbered block: a module of the network
        key = kind, match.group()
        holders.setdefault(key, Holder(*key, [])).members.append(name)
    return list(holders.values()) if len(holders) <= _MOST_HOLDERS else []


def _slot(holder: Holder, name: str, tensors: Tensors) -> str:
    """Name what an optimizer keeps in a tensor; empty if the name does not say."""
    rest = [each.removesuffix(":0") for each in holder.rest(name)]
    # PyTorch writes the slot last, JAX before the names of layers, which may be words of its own.
    for part in (*rest[-1:], *rest):
        if part in _SLOTS:
            return part
    ends = _SLOT_END.search(rest[-1]) if rest else None
    if ends:
        return ends[1]
    if rest and tensors[name].count == 1:  # the order in which Keras saves
        return {"0": "step", "1": "lr"}.get(rest[-1], "")
    return ""


def _optimizer_state(
    holder: Holder, tensors: Tensors, shapes: set[tuple[int, ...]], proofs: Iterable[str]
) -> dict[str, State]:
    """Find what belongs to an optimizer, by its parameter groups or by slots and shapes."""
    slots = {name: _slot(holder, name, tensors) for name in holder.members}
    shown = {
        name: tensors[name].count <= 1
        or slot in _PLAIN_SLOTS
        or (tensors[name].shape in shapes and (bool(slot) or _is_listed(holder.rest(name))))
        for name, slot in slots.items()
    }
    groups = tuple(
        f"{each}.{part}."
        for each in proofs
        if each == holder.name or each.startswith(f"{holder.name}.")
        for part in ("state", "param_groups")
    )
    large = [shown[name] for name in slots if tensors[name].count > 1]
    # A few weights may look like moments by chance; the moments of an optimizer are most of it.
    is_shown = 2 * sum(large) > len(large) if large else any(slots.values())
    return {
        name: State("optimizer", holder.name, slot)
        for name, slot in slots.items()
        if (groups and name.startswith(groups)) or (shown[name] and (groups or is_shown))
    }


def _is_listed(rest: list[str]) -> bool:
    """Is it one of a list without names, as Keras writes the variables of an optimizer?"""
    return len(rest) > 1 and all(each.isdigit() or each in _LISTED for each in rest)


def _run_state(
    holders: Iterable[Holder], tensors: Tensors, metadata: Mapping[str, str], *, is_run: bool
) -> dict[str, State]:
    """Find what no network has: schedulers, scalers, random numbers, callbacks, loops."""
    scheduled = {match["holder"] for match in map(_SCHEDULED.fullmatch, metadata) if match}
    is_run = is_run or bool(scheduled) or LIGHTNING in metadata
    state = {}
    for holder in holders:
        kind = "callbacks" if holder.name.startswith("callbacks") else holder.kind
        is_state = is_run
        if kind == "random":
            is_state = all(tensors[name].dtype[0] in "IU" for name in holder.members)
        if kind in _TOP_ONLY and is_state:
            for name in holder.members:
                state[name] = State(kind, holder.name, "".join(holder.rest(name)[-1:]))
    return state
