"""How fast the two models can answer, by a roofline over operations and bytes."""

from __future__ import annotations

from typing import Any, Literal, NamedTuple

from ..answers import Answer
from ..diffs import Diff
from ..evidences import Evidence
from ..records import Envelope, Interval, Policy, TensorInfo, Threshold
from . import analysis
from .anatomy.network import Network, infos, network
from .cost.positions import multiply_adds, patch_multiply_adds
from .cost.roofline import Machine, Work, bound, decode, prefill, seconds
from .cost.shared import shared
from .cost.weights import Weights, weights

NAME = "inference_speed_estimate"
THRESHOLDS = {
    "context": Threshold(2048, "tokens that are there already when the next one is made"),
    "batch": Threshold(1, "sequences at once"),
    "cache_bits": Threshold(16, "bits of one number in the cache"),
    "bandwidth_bytes": Threshold(None, "bytes a second the machine reads, from its datasheet"),
    "peak_flops": Threshold(None, "operations a second the machine does, from its datasheet"),
    "input_size": Threshold(None, "height and width of the image: [224, 224]"),
    "output_sizes": Threshold(None, 'output size by name: {"layer1.*" = [56, 56], "fc.*" = 1}'),
}
_FIELDS = (
    "flops", "bytes", "ai", "speedup", "speedup_if_compute_bound", "time_per_token_ms", "bound",
    "prefill",
)  # fmt: skip
Side = Literal["left", "right"]
_SIDES: tuple[Side, Side] = ("left", "right")
_HARDWARE = "--measure-hardware, or bandwidth_bytes and peak_flops in --policy"
_NO_HARDWARE = "no machine is described"
_IMAGES = "output_sizes (or input_size for a vision transformer) in --policy"


class _Side(NamedTuple):
    network: Network
    weights: Weights
    work: Work | None
    is_image: bool


@analysis(needs=[], thresholds=THRESHOLDS)
def inference_speed_estimate(diff: Diff, evidence: Evidence, policy: Policy) -> Envelope:
    """How long a token takes at least, what bounds it, and how the two models compare."""
    answer = Answer(NAME, policy, THRESHOLDS)
    if not diff.pairs:
        for field in _FIELDS:
            answer.lack(field, needs="tensors", why="neither model holds any")
        return answer.envelope("not_applicable")
    sides = {side: _side(answer, diff, evidence, side) for side in _SIDES}
    _work(answer, sides)
    _ratio(answer, sides, evidence)
    _times(answer, sides, evidence)
    _prefill(answer, sides)
    _assumptions(answer, sides)
    return answer.envelope()


def _side(answer: Answer, diff: Diff, evidence: Evidence, side: Side) -> _Side:
    every = infos(diff, side)
    known, summed = network(diff, evidence, side), weights(every, shared(diff, side))
    if not summed.kernels and not answer["output_sizes"]:
        work = decode(known, summed, answer["context"], answer["batch"], answer["cache_bits"])
        return _Side(known, summed, work, is_image=False)
    adds = _image_adds(answer, every, known)
    batch = answer["batch"]
    work = None if adds is None else Work(2.0 * adds * batch, summed.bytes)
    return _Side(known, summed, work, is_image=True)


def _image_adds(answer: Answer, every: list[TensorInfo], known: Network) -> int | None:
    if answer["output_sizes"]:
        return multiply_adds(every, answer["output_sizes"])
    size = answer["input_size"]
    if size is None:
        return None
    height, width = (size, size) if isinstance(size, int) else size
    return patch_multiply_adds(every, known, height, width)


def _works(sides: dict[Side, _Side]) -> dict[Side, Work] | None:
    left, right = (sides[side].work for side in _SIDES)
    return {"left": left, "right": right} if left and right else None


def _lacks(sides: dict[Side, _Side]) -> tuple[str, str]:
    """Say what would make the operations known."""
    if any(each.is_image and each.work is None for each in sides.values()):
        return _IMAGES, "kernels slide over an image: strides and sizes are in no weight"
    return "--config-left/--config-right", "how many experts a token reaches is in no weight"


def _work(answer: Answer, sides: dict[Side, _Side]) -> None:
    works = _works(sides)
    needs, why = _lacks(sides)
    say: dict[str, Any] = {
        "flops": works and {side: work.flops for side, work in works.items()},
        "bytes": works and {side: work.bytes for side, work in works.items()},
        "ai": works
        and all(work.bytes for work in works.values())
        and {side: work.intensity for side, work in works.items()},
    }
    basis = {
        "flops": "next token: 2 N_active b + 4 L n_h d_head s b; image: 2 x multiply-adds",
        "bytes": "weights read once (an embedding is a look-up unless tied) + cache read",
        "ai": "flops / bytes",
    }
    for field, value in say.items():
        answer.either(
            field,
            value or None,
            basis=basis[field],
            uncertainty="none_available: arithmetic on shapes",
            needs=needs,
            why=why,
        )


def _ratio(answer: Answer, sides: dict[Side, _Side], evidence: Evidence) -> None:
    works = _works(sides)
    needs, why = _lacks(sides)
    machine, _ = _machine(answer, evidence)
    times = [seconds(work, machine) for work in (works or {}).values()]
    left, right = (works["left"], works["right"]) if works else (None, None)
    reading = left.bytes / right.bytes if left and right and right.bytes else None
    computing = left.flops / right.flops if left and right and right.flops else None
    span = [each for each in (reading, computing) if each is not None]
    limits = Interval(min(span), max(span), 1.0, "memory-bound to compute-bound") if span else None
    both = len(times) == 2 and times[0] and times[1]
    timed = "left time / right time by the roofline"
    supposed = "left time / right time where memory bounds both: ratio of bytes read"
    answer.either(
        "speedup",
        times[0] / times[1] if both and times[0] and times[1] else reading,
        basis=timed if both else supposed,
        uncertainty=limits,
        needs=needs,
        why=why,
    )
    answer.either(
        "speedup_if_compute_bound",
        computing,
        basis="left time / right time where computing bounds both: ratio of operations",
        uncertainty="none_available: arithmetic on shapes",
        needs=needs,
        why=why,
    )


def _times(answer: Answer, sides: dict[Side, _Side], evidence: Evidence) -> None:
    works, machine, source = _works(sides), *_machine(answer, evidence)
    needs, why = _lacks(sides) if works is None else (_HARDWARE, _NO_HARDWARE)
    times = {side: seconds(work, machine) for side, work in (works or {}).items()}
    bounds = {side: bound(work, machine) for side, work in (works or {}).items()}
    spans = {side: 1000 * value for side, value in times.items() if value is not None}
    answer.either(
        "time_per_token_ms",
        spans if len(spans) == 2 else None,
        basis=f"roofline max(flops / peak, bytes / bandwidth), {source}",
        uncertainty="none_available: a lower bound, no measurement",
        needs=needs,
        why=why,
    )
    answer.either(
        "bound",
        bounds if all(bounds.values()) and bounds else None,
        basis="the longer of flops / peak and bytes / bandwidth",
        needs=needs,
        why=why,
    )


def _machine(answer: Answer, evidence: Evidence) -> tuple[Machine, str]:
    """Take what the policy says, else what was measured here."""
    said = Machine(answer["bandwidth_bytes"], answer["peak_flops"])
    if any(said):
        return said, "datasheet figures: upper_bound of the speed"
    measured = evidence.hardware or {}
    found = Machine(measured.get("bandwidth_bytes"), measured.get("peak_flops"))
    return found, "read bandwidth and peak measured on this machine"


def _prefill(answer: Answer, sides: dict[Side, _Side]) -> None:
    tokens = answer["context"]
    found = {side: prefill(each.network, each.weights, tokens) for side, each in sides.items()}
    image = any(each.is_image for each in sides.values())
    answer.either(
        "prefill",
        None if image or None in found.values() else found,
        basis=f"operations to read {tokens} tokens: 2 N T + 4 L n_h d_head T² / 2",
        uncertainty="none_available: arithmetic on shapes",
        needs="a language model" if image else "--config-left/--config-right",
        why="kernels slide over an image" if image else "the number of heads is in no weight",
    )


def _assumptions(answer: Answer, sides: dict[Side, _Side]) -> None:
    for side, each in sides.items():
        if each.work and not each.is_image and each.work.attention is None:
            answer.assume(f"{side}: attention over the context is not counted, heads are unknown")
        if each.weights.expert_parameters and each.work:
            answer.assume(f"{side}: tokens reach the experts uniformly")
    answer.assume("assumes fused kernels: quantised weights are read as stored, decoded for free")
    answer.assume("every matrix is used once a token; the speedup is surer than either time")
