"""How differently two models attend on the same inputs."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from difflens.core.findings import Interval
from difflens.core.policy import Threshold
from difflens.stats.bootstrap import bootstrap

from ..answer import Answer
from ..diff import Diff
from ..evidence.records import Activations, Evidence, Patterns
from . import analysis

if TYPE_CHECKING:
    from numpy.typing import NDArray

SEED = 0
_RUN = "--sample FILE and --model-code module:callable"
_SHOWN = "models whose run shows their attention weights, of one shape on both sides"


@analysis(
    thresholds={
        "resamples": Threshold(1999, "bootstrap resamples of sequences behind an interval"),
        "listed": Threshold(5, "how many of the heads that differ most are told one by one"),
        "head_js": Threshold(0.1, "from this mean divergence on a head is told of"),
    },
    fields={
        "pattern_similarity": "1 - mean JS over heads, queries and sequences",
        "sink_mass": "mean attention on the first position, by side",
        "entropy": "mean entropy of attention in nats, by side",
        "baselines": "mean JS of left with itself in another dtype (floor), and on another sequence"
        " (ceiling)",
        "sequences": "sequences that both models ran on",
        "js_per_head": "Jensen-Shannon divergence over ln 2 of both sides' attention, by layer and"
        " head: mean over queries (no padding, not the first position), then sequences",
    },
)
def attention_pattern_diff(diff: Diff, evidence: Evidence, answer: Answer) -> None:
    """How differently the two models attend, head by head, on the same inputs."""
    answer.seeded(SEED)
    run = evidence.activations
    tokens = evidence.left.tokens, evidence.right.tokens
    if None not in tokens and tokens[0] != tokens[1]:
        why = "the tokenizers differ, so the same numbers are not the same text"
        needs = "models with the same tokenizer"
        answer.lack_rest(needs=needs, why=why, status="not_applicable")
    elif run is None:
        answer.lack_rest(needs=_RUN, why=_why_run(diff))
    elif run.patterns is None:
        answer.lack_rest(needs=_SHOWN, why=_why_no_patterns(run))
    else:
        _say(answer, run, run.patterns)


def _say(answer: Answer, run: Activations, patterns: Patterns) -> None:
    js = patterns.js
    mean, sure = _spread(js.mean(axis=(1, 2)), answer["resamples"])
    low, high = (None if each is None else 1 - each for each in (sure.high, sure.low))
    turned = Interval(low, high, sure.level, sure.method, sure.n)
    say = answer.say
    say("pattern_similarity", 1 - mean, uncertainty=turned)
    say("js_per_head", js.mean(axis=0).tolist())
    for field, left, right in (
        ("sink_mass", patterns.left_sink, patterns.right_sink),
        ("entropy", patterns.left_entropy, patterns.right_entropy),
    ):
        sides = {"left": _mean(left), "right": _mean(right)}
        change, spread = _spread((right - left).mean(axis=(1, 2)), answer["resamples"])
        say(field, sides | {"difference": change}, uncertainty=spread)
    say("sequences", len(js), uncertainty="exact")
    _baselines(answer, run, patterns)
    _findings(answer, js)
    answer.assume("queries exclude padding and the first position, which can look at itself only")
    answer.assume("the mass on the first position is in every average: read sink_mass beside them")


def _baselines(answer: Answer, run: Activations, patterns: Patterns) -> None:
    known = {
        name: _mean(each)
        for name, each in (("floor", patterns.floor), ("ceiling", patterns.ceiling))
        if each is not None
    }
    if "ceiling" not in known:
        answer.assume("no ceiling: it takes two sequences of one length in the sample")
    if "floor" not in known:
        why = run.left.reasons.get("floor", "the run gave none")
        answer.assume(f"no floor of another dtype: {why}")
    answer.either(
        "baselines",
        known or None,
        needs="a sample of two sequences of one length, or a model that runs in two dtypes",
        why="neither baseline was measured",
    )


def _findings(answer: Answer, js: NDArray[Any]) -> None:
    import numpy as np

    heads = js.mean(axis=0)
    for at in np.argsort(-heads, axis=None)[: answer["listed"]]:
        layer, head = (int(place) for place in np.unravel_index(at, heads.shape))
        value = float(heads[layer, head])
        if value >= answer["head_js"]:
            text = f"head {head} of layer {layer} attends differently: JS {value:.3f} of 1"
            answer.find("", text, {"js": value, "heads_compared": heads.size}, "info")


def _spread(values: NDArray[Any], resamples: int) -> tuple[float, Interval]:
    """Return the mean over sequences with its interval: sequences are what was drawn."""
    import numpy as np

    plain = [float(value) for value in values]
    found = bootstrap([plain], np.mean, resamples=resamples, seed=SEED, vectorised=True)
    method = f"{found.method} bootstrap over sequences"
    return found.value, Interval(found.low, found.high, found.level, method, len(plain))


def _mean(values: NDArray[Any]) -> float:
    return float(values.mean())


def _why_run(diff: Diff) -> str:
    moved = len(diff.changed)
    return (
        f"attention is a matter of inputs: that {moved} of {len(diff.deltas)} tensors differ"
        " does not say where a model looks"
    )


def _why_no_patterns(run: Activations) -> str:
    for side, behaviour in (("left", run.left), ("right", run.right)):
        if "attentions" in behaviour.reasons:
            return f"{side}: {behaviour.reasons['attentions']}"
    return "the two sides' attention has not the same shape, or holds values that are not finite"
