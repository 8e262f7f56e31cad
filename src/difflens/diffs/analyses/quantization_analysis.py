"""What quantisation saved and what it cost, layer by layer, beside what it should cost."""

from __future__ import annotations

from collections import Counter
from typing import Any, Literal

from difflens.core.policy import Threshold

from ..answer import Answer
from ..diff import Diff
from ..evidence.records import Evidence
from ..methods.networks import infos
from ..methods.quantisation import Layer, decibels, gridded, is_calibrated, layers, scheme_of
from ..methods.weights import Weights, is_weight, shared, weights
from . import analysis

Side = Literal["left", "right"]
_SIDES: tuple[Side, Side] = ("left", "right")
_NONE = "a pair of which one side is stored in fewer bits"


# Whatever the values, F32 has 32 bits.
@analysis(
    needs="tensors",
    thresholds={
        "below_expected_db": Threshold(3.0, "so far below the table it is worse than rounding"),
        "sensitive_count": Threshold(5, "how many layers are named as the most sensitive"),
        "grid_share": Threshold(
            0.99, "part of the groups on a grid that makes floats fake-quantised"
        ),
    },
    fields={
        "compression": "1 - bytes right / bytes left, as stored (0.75: a quarter is left)",
        "speedup": "",
        "sqnr_db": "",
        "expected_sqnr_db": "table of rounding to nearest by scheme and kurtosis, weighted by"
        " energy",
        "bits_per_weight": "8 x bytes of the parameters as stored / parameters, over the whole"
        " model",
        "precision_loss": "",
        "scheme": "tensors by encoding",
        "worse_than_round_to_nearest": "",
        "sensitive_layers": "lowest measured SQNR less the expected one",
        "not_comparable_in_weight_space": "GPTQ and AWQ minimise the error of outputs, not of"
        " weights",
        "fake_quantised": "floats of which nearly all groups hold at most 2^b values on an"
        " arithmetic grid",
        "layers": "each tensor one side stores in fewer bits: measured, expected, difference",
    },
    constants=("bits_per_weight",),
)
def quantization_analysis(diff: Diff, evidence: Evidence, answer: Answer) -> None:  # noqa: ARG001
    """How much smaller the model got, and what each layer lost against what it should lose."""
    _sizes(answer, diff)
    _speedup(answer)
    if not diff.has_values:
        answer.lack_rest(needs="tensor values", why="only headers were read")
        return
    found = list(layers(diff))
    _losses(answer, found)
    _layers(answer, found)
    _fake(answer, diff)


def _sizes(answer: Answer, diff: Diff) -> None:
    summed = {side: weights(infos(diff, side), shared(diff, side)) for side in _SIDES}
    left, right = summed["left"], summed["right"]
    sure = "exact" if left.exact and right.exact else "none_available: sizes of scales are supposed"
    answer.either(
        "compression",
        1 - right.bytes / left.bytes if left.bytes else None,
        uncertainty=sure,
        needs="tensors on the left",
        why="the left model holds no byte",
    )
    each = {side: _bits(summed[side]) for side in _SIDES}
    answer.either(
        "bits_per_weight",
        each if None not in each.values() else None,
        uncertainty=sure,
        needs="float parameters on both sides",
        why="one side holds none",
    )
    schemes = {
        side: dict(Counter(scheme_of(info) for info in infos(diff, side) if is_weight(info)))
        for side in _SIDES
    }
    answer.say("scheme", schemes, uncertainty="exact")


def _bits(summed: Weights) -> float | None:
    return 8 * summed.weight_bytes / summed.parameters if summed.parameters else None


def _speedup(answer: Answer) -> None:
    estimate = answer.ask("inference_speed_estimate")
    value = estimate.fields.get("speedup")
    lacking = {each.field: each for each in estimate.missing}.get("speedup")
    answer.either(
        "speedup",
        value,
        basis=f"inference_speed_estimate: {estimate.basis.get('speedup', '')}",
        uncertainty=estimate.uncertainty.get("speedup"),
        needs=lacking.needs if lacking else "--config-left/--config-right",
        why=lacking.why if lacking else "the operations are unknown",
    )


def _losses(answer: Answer, found: list[Layer]) -> None:
    """Answer with the error of storing the tensors in fewer bits."""
    noise = sum(each.noise for each in found)
    signal = sum(each.signal or 0.0 for each in found)
    measured = decibels(signal, noise)
    why = "no finite value moved" if found else "both sides store every tensor alike"
    needs = "values that moved" if found else _NONE
    loss: dict[str, Any] | None = None
    if found and not noise:
        loss = {"relative_error": 0.0, "layers": len(found)}
    elif measured is not None:
        loss = {
            "relative_error": (noise / signal) ** 0.5,
            "sqnr_db": measured,
            "layers": len(found),
        }
    over = "over the tensors one side stores in fewer bits"
    answer.either(
        "precision_loss",
        loss,
        basis=f"‖d‖ / ‖finer side‖ and 10 log10 of its square's inverse, {over};"
        " an error of weights, no loss of accuracy",
        uncertainty="exact",
        needs=needs,
        why=why,
    )
    answer.either(
        "sqnr_db",
        measured,
        basis=f"10 log10(signal / noise) {over}",
        uncertainty="exact",
        needs=needs,
        why=why,
    )
    answer.either(
        "expected_sqnr_db",
        _expected(found),
        uncertainty="none_available: simulated on 1024² weights, ±0.05 dB",
        needs="a scheme of the table: BF16, F16, Q8_0, Q5, Q4, MXFP4, int8, int4, NF4",
        why="no layer that moved has a row there" if found else why,
    )


def _expected(found: list[Layer]) -> float | None:
    """Return the decibels of the whole if every layer lost what the table says."""
    known = [each for each in found if each.difference_db is not None]
    signal = sum(each.signal or 0.0 for each in known)
    noise = sum((each.signal or 0.0) * 10 ** (-(each.expected_db or 0.0) / 10) for each in known)
    return decibels(signal, noise)


def _layers(answer: Answer, found: list[Layer]) -> None:
    limit = -answer["below_expected_db"]
    known = [each for each in found if each.difference_db is not None]
    ranked = sorted(known, key=lambda each: (each.difference_db or 0.0, each.name))
    worse = [each for each in ranked if (each.difference_db or 0.0) < limit]
    answer.say("layers", [each.to_dict() for each in found], uncertainty="exact")
    answer.either(
        "sensitive_layers",
        [each.name for each in ranked[: answer["sensitive_count"]]] if known or not found else None,
        needs="a scheme of the table: BF16, F16, Q8_0, Q5, Q4, MXFP4, int8, int4, NF4",
        why="nothing is known to expect of these schemes, or nothing moved",
    )
    answer.say(
        "worse_than_round_to_nearest",
        [each.name for each in worse],
        basis=f"measured more than {-limit} dB below the table",
    )
    answer.say(
        "not_comparable_in_weight_space",
        [each.name for each in found if is_calibrated(each.scheme)],
    )
    for each in worse:
        answer.find(
            each.name,
            f"{each.scheme} loses more than rounding to nearest would",
            {"sqnr_db": each.measured_db, "expected_sqnr_db": each.expected_db},
            "medium",
        )


def _fake(answer: Answer, diff: Diff) -> None:
    found = {side: gridded(diff, side, answer["grid_share"]) for side in _SIDES}
    answer.say(
        "fake_quantised",
        {side: [each._asdict() for each in grids] for side, grids in found.items()},
        uncertainty="none_available: some rows of each matrix were looked at",
    )
