"""How fast the two models can answer, by a roofline over operations and bytes."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from fnmatch import fnmatchcase
from typing import Any, Literal, NamedTuple

from msgspec.structs import replace

from difflens.core.findings import Interval
from difflens.core.policy import Threshold
from difflens.core.records import TensorInfo
from difflens.models.anatomy.network import Network, is_lookup
from difflens.models.anatomy.stacks import is_of_encoder, reads_encoder

from ..answer import Answer
from ..diff import Diff
from ..evidence.records import Evidence
from ..methods.networks import infos, network
from ..methods.roofline import Machine, Work, bound, decode, encode, prefill, seconds
from ..methods.weights import Weights, is_weight, shared, weights
from . import analysis

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
    encoder: Weights | None = None  # that of an encoder beside the decoder

    @property
    def reads_only(self) -> bool:
        """Is one pass over all there is to do, with no next token?"""
        return self.is_image or self.network.kind == "encoder"


@analysis(
    needs="tensors",
    thresholds={
        "context": Threshold(
            2048, "tokens that are there already when the next one is made, or that are read"
        ),
        "batch": Threshold(1, "sequences at once"),
        "cache_bits": Threshold(16, "bits of one number in the cache"),
        "bandwidth_bytes": Threshold(None, "bytes a second the machine reads, from its datasheet"),
        "peak_flops": Threshold(None, "operations a second the machine does, from its datasheet"),
        "input_size": Threshold(None, "height and width of the image: [224, 224]"),
        "output_sizes": Threshold(None, 'output size by name: {"layer1.*" = [56, 56], "fc.*" = 1}'),
    },
    fields={
        "speedup": "",
        "bound": "the longer of flops / peak and bytes / bandwidth",
        "time_per_token_ms": "",
        "time_per_pass_ms": "of encoders and networks for images, which make no next token",
        "flops": "",
        "bytes": "",
        "ai": "",
        "speedup_if_compute_bound": "left time / right time where computing bounds both: ratio of"
        " operations",
        "prefill": "",
    },
)
def inference_speed_estimate(diff: Diff, evidence: Evidence, answer: Answer) -> None:
    """How long a token takes at least, what bounds it, and how the two models compare."""
    sides = {side: _side(answer, diff, evidence, side) for side in _SIDES}
    _work(answer, sides)
    _ratio(answer, sides, evidence)
    _times(answer, sides, evidence)
    _prefill(answer, sides)
    _assumptions(answer, sides)


def _side(answer: Answer, diff: Diff, evidence: Evidence, side: Side) -> _Side:
    every = infos(diff, side)
    known, summed = network(diff, evidence, side), weights(every, shared(diff, side))
    if not summed.kernels and not answer["output_sizes"]:
        return _language(answer, every, known, summed, shared(diff, side))
    adds = _image_adds(answer, every, known)
    batch = answer["batch"]
    work = None if adds is None else Work(2.0 * adds * batch, summed.bytes)
    return _Side(known, summed, work, is_image=True)


def _language(
    answer: Answer, every: list[TensorInfo], known: Network, summed: Weights, twice: Iterable[str]
) -> _Side:
    """Count the work of the next token; of an encoder that of its pass over the context."""
    context, batch = answer["context"], answer["batch"]
    if known.kind == "encoder":
        return _Side(known, summed, encode(known, summed, context, batch), is_image=False)
    reading = None
    if known.kind == "encoder-decoder":
        once = {info.name for info in every if is_of_encoder(info.name)}
        once |= {info.name for info in every if reads_encoder(info.name)}
        reading = weights([info for info in every if info.name in once], twice)
        summed = weights([info for info in every if info.name not in once], twice)
    work = decode(known, summed, context, batch, answer["cache_bits"])
    return _Side(known, summed, work, is_image=False, encoder=reading)


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
        "flops": "next token: 2 N_active b + 4 L n_h d_head s b; encoder, one pass: b (2 N T + 4 L"
        " n_h d_head T²); image: 2 x multiply-adds",
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
    no_token = any(each.reads_only for each in sides.values())
    all_read = all(each.reads_only for each in sides.values())
    apart = "a model that writes", "an encoder makes no next token: it reads all at once"
    for field, is_meant, lacking in (
        ("time_per_token_ms", not no_token, apart),
        ("time_per_pass_ms", all_read, ("encoders", "the models write token by token")),
    ):
        answer.either(
            field,
            spans if len(spans) == 2 and is_meant else None,
            basis=f"roofline max(flops / peak, bytes / bandwidth), {source}",
            uncertainty="none_available: a lower bound, no measurement",
            needs=needs if is_meant else lacking[0],
            why=why if is_meant else lacking[1],
        )
    answer.either(
        "bound", bounds if all(bounds.values()) and bounds else None, needs=needs, why=why
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
    found = {side: _read_first(each, tokens) for side, each in sides.items()}
    image = any(each.is_image for each in sides.values())
    answer.either(
        "prefill",
        None if image or None in found.values() else found,
        basis=f"operations to read {tokens} tokens, or as many as there are positions: 2 N T + 4 L"
        " n_h d_head T² / 2; of an encoder, where each token sees all others, not halved",
        uncertainty="none_available: arithmetic on shapes",
        needs="a language model" if image else "--config-left/--config-right",
        why="kernels slide over an image" if image else "the number of heads is in no weight",
    )


def _read_first(side: _Side, tokens: int) -> float | None:
    """Count the operations before the first token that is written, or of the only pass."""
    known = side.network
    if known.kind == "decoder" or known.kind is None:
        return prefill(known, side.weights, tokens)
    if side.encoder is not None:  # the decoder's own work begins with its first token
        known = replace(known, context=known.source_context or known.context, tied=False)
    work = encode(known, side.encoder or side.weights, tokens, 1)
    return work.flops if work and work.attention is not None else None


def _assumptions(answer: Answer, sides: dict[Side, _Side]) -> None:
    for side, each in sides.items():
        context = each.network.tokens(answer["context"])
        if context < answer["context"] and not each.is_image:
            answer.assume(f"{side}: {context} tokens, its positions hold no more")
        if each.work and not each.is_image and each.work.attention is None:
            answer.assume(f"{side}: attention over the context is not counted, heads are unknown")
        if each.weights.expert_parameters and each.work:
            answer.assume(f"{side}: tokens reach the experts uniformly")
    answer.assume("assumes fused kernels: quantised weights are read as stored, decoded for free")
    answer.assume("every matrix is used once a token; the speedup is surer than either time")


# Where a kernel is applied is in no weight: strides and pooling leave no trace in a file. Somebody
# has to say the output sizes; a patch embedding (stride = kernel) follows from the image alone.

Size = int | Sequence[int]


def multiply_adds(infos: Iterable[TensorInfo], sizes: Mapping[str, Size]) -> int | None:
    """Add up count x positions over all matrices and kernels; None if one has no size.

    `sizes` maps patterns of names to output sizes, such as {"layer1.*": [56, 56], "fc.*": 1}; the
    first that fits a name counts.

    >>> multiply_adds([TensorInfo("conv.weight", "F32", (64, 3, 7, 7))], {"conv.*": [112, 112]})
    118013952
    """
    total = 0
    for info in infos:
        if len(info.shape) < 2 or not is_weight(info) or is_lookup(info):
            continue
        size = next((sizes[each] for each in sizes if fnmatchcase(info.name, each)), None)
        if size is None:
            return None
        total += info.count * _positions(size)
    return total


def patch_multiply_adds(
    infos: Iterable[TensorInfo], network: Network, height: int, width: int
) -> int | None:
    """Count those of a vision transformer: patches and a class token through every matrix.

    The one kernel is the patch embedding, whose stride is its own size; the head sees one token;
    attention adds 2 L T² n_h d_head. None if the model is not of this kind.
    """
    every = [info for info in infos if len(info.shape) > 1 and is_weight(info)]
    kernels = [info for info in every if len(info.shape) == 4]
    if len(kernels) != 1 or kernels[0].shape[1] > 4:
        return None
    if not (network.layers and network.heads and network.head_dim):
        return None
    (_, _, high, wide) = kernels[0].shape
    patches = (height // high) * (width // wide)
    has_class = any(info.name.endswith(("cls_token", "class_token")) for info in every)
    tokens = patches + has_class
    matrices = [info for info in every if len(info.shape) == 2 and not is_lookup(info)]
    heads = sum(info.count for info in matrices if _is_last(info))
    rest = sum(info.count for info in matrices) - heads
    attention = 2 * network.layers * tokens * tokens * network.heads * network.head_dim
    return kernels[0].count * patches + rest * tokens + heads + attention


def _is_last(info: TensorInfo) -> bool:
    from difflens.models.anatomy.roles import role

    return role(info.name) == "head"


def _positions(size: Size) -> int:
    if isinstance(size, int):
        return size
    count = 1
    for length in size:
        count *= int(length)
    return count
