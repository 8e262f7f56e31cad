"""Known faults on parents they were not made for, and parents that are a little different.

What a rule was chosen on is one network; the same mutation in another tells whether the rule is
about the fault. The pairs were drawn by lot among those that can be trained at all. A cross that
reaches its new parent's target is no fault (the gate says that it heals); one that misses it may
show other signs than in the network it was made for, so what is said of its class is a hint only.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from .controls import Control
from .faults import ALL_PARENTS, Fault

SEEDS = (40, 41)

_PAIRS = """
V1@mixer V3@few-cnn V6@deep8-narrow E2@echo-rnn E6@narrow D3@gentle O1@gelu O3@deep14-tanh
S2@coder S5@mlp W1@rnn W3@vgg L2@irnn-waves X2@denoiser N2@small60 E1b@pair O1b@cnn-sgd
S5b@separable W3b@reviews-lstm X3@deep-coder G2@blobs V3c@few-diabetes V7c@gru E2c@rnn-clipped
E6c@counts D2c@cancer D5c@small O3c@adagrad S1c@curves S3c@tuned S6c@friedman S7c@deep16-circles
W2c@single W4c@deep20-relu L1c@residual-sgd L3c@deep-gated X2c@few-spirals N1c@encoder
N3c@tuned-vgg G1c@squeezed G4c@deep-plain UV1@climbing UV3@gpt UV6@bag UV10@few-gpt
UV7@tied-words UV11@tight UE4@gru-waves UG2@deep8 UG6@stopped UG8@regression-low UD1@spread
UD4@sgd16 UD6@post-norm UO1@raw-vae UO5@tags UO8@decaying UH2@stream US1@irnn US3@gated-filters
US6@lstm-rows UP1@raw-pixels UP3@wine UW1@entities UW4@cnn-norm UW7@sums UW9@dense
UR2@friedman-adamw UL6@variational UL8@deep12 UX3@cnn UX5@caster UX7@elu-rmsprop UN6@wide
UK2@cnn-low MV3@deep-tcn MV5@gpt-sgd ME1@moons ME3@deep10-gelu ME5@rnn-first MG2@deep34
MG4@accumulated MD2@few-shapes MD4@regression-adam MO2@gated MH2@wide-gelu MS1@deep10
MS3@tied-sgd MS6@tcn MY2@bn-cnn MP1@regression MP3@quantile MW5@autoencoder-sgd MR3@hard MR5@sgd
ML3@narrow-coder MX1@seldom MX5@lstm-first MN1@deep-vgg QV2@highway QV4@pre-norm QV6@hot
QE2@autoencoder QE4@pairs QG2@own-scale QG4@few-reviews QD1@tanh QD3@echo QO2@cnn4 QH1@robust
QH3@rnn-rows QS2@warm-sgd QS4@norm-tcn QY2@stepped QP1@echo QP3@blobs16 QP5@batch3 QT2@encoder
QT4@rnn-first QW4@bn-cnn QL1@regression-adam QL3@echo-rnn QL5@adagrad QX2@deep-tcn QX4@wide
QX6@tcn QN2@regression-low QN4@robust
"""


def crossed_faults(known: Iterable[Fault]) -> tuple[Fault, ...]:
    """Put the mutations of known faults on the parents that the lot gave them."""
    by_id = {fault.id: fault for fault in known}
    pairs = [pair.split("@") for pair in _PAIRS.split()]
    return tuple(_crossed(by_id[name], parent) for name, parent in pairs)


def _crossed(fault: Fault, parent_name: str) -> Fault:
    """Plant a fault elsewhere; which layers are at fault there is not known."""
    return replace(
        fault, id=f"{fault.id}-{parent_name}", parent_name=parent_name, layers=(), seeds=SEEDS
    )


def crossed_controls(known: Iterable[Fault]) -> tuple[Control, ...]:
    """Return the parents of known faults with a rate or a batch that is a little different."""
    names = sorted({fault.parent_name for fault in known})
    return tuple(_varied(name, place) for place, name in enumerate(names))


def _varied(parent_name: str, place: int) -> Control:
    parent = ALL_PARENTS[parent_name]
    config = parent.config
    changes = (
        {"lr": config.lr * 0.7}, {"lr": config.lr * 1.4},
        {"batch": max(2, round(config.batch * 0.6))}, {"batch": round(config.batch * 1.5)},
    )[place % 4]  # fmt: skip
    varied = replace(parent, config=replace(config, **changes))
    return Control(f"varied-{parent_name}", varied, SEEDS)
