"""How alike every layer of one model is to every layer of the other, by their weights."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ..answers import Answer
from ..diffs import Diff
from ..evidences import Evidence
from ..measure.blas import one_thread_each
from ..records import Envelope, Policy, Threshold
from ..stats.clustering import average_linkage, silhouette_of_distances
from . import analysis
from .representations.kernels import cosines, gram, permuted, u_centred
from .representations.stacks import Stack, stacks

if TYPE_CHECKING:
    from numpy.typing import NDArray

NAME = "similarity_matrix"
SEED = 0
THRESHOLDS = {
    "module": Threshold("auto", "the module of a block whose matrix stands for the layer"),
    "layers": Threshold(32, "the most layers a side; from more, evenly spaced ones are taken"),
    "dimensions": Threshold(512, "the most residual dimensions; from more, a sample is drawn"),
}
_BASIS = {
    "dimensions": "layers of the left (rows) and of the right (columns)",
    "measure": "what the entries are",
    "layer_names": "the tensors that stand for the layers",
    "matrix": "entry i, j: left layer i against right layer j",
    "left_matrix": "left layers against each other",
    "right_matrix": "right layers against each other",
    "mean_similarity": "mean over the matrix",
    "diagonal_mean": "mean over layers of the same place",
    "null_mean": "mean over the matrix after the right's dimensions were shuffled: chance",
    "clustering": "silhouette of average linkage on 1 - similarity of all layers of both sides;"
    " the number of groups with the largest one",
}
_ACROSS = ("matrix", "mean_similarity", "diagonal_mean", "null_mean", "clustering")
_MOST_GROUPS = 8


@analysis(needs=[], thresholds=THRESHOLDS)
def similarity_matrix(diff: Diff, evidence: Evidence, policy: Policy) -> Envelope:  # noqa: ARG001
    """How alike each layer is to each layer of the other model, by unbiased weight CKA."""
    answer = Answer(NAME, policy, THRESHOLDS)
    answer.seeded(SEED)
    if not diff.has_values:
        return _silent(answer, "tensor values", "only headers were read", known=True)
    module = None if answer["module"] == "auto" else str(answer["module"])
    found = stacks(diff, module)
    left, right = (_fewer(found[side], answer["layers"]) for side in ("left", "right"))
    if left is None or right is None:
        why = f"none of the {len(diff.deltas)} tensors is a matrix that several blocks share"
        return _silent(answer, "blocks with matrices on both sides", why, known=False)
    chosen = _dimensions(right.width, answer["dimensions"])
    with one_thread_each():  # the same bits on any machine, and no fight for its cores
        kernels = {side: _kernels(diff, side, stack, chosen)
                   for side, stack in (("left", left), ("right", right))}  # fmt: skip
        _shape(answer, left, right, kernels, len(chosen))
        _compare(answer, kernels, len(chosen))
    return answer.envelope()


def _fewer(stack: Stack | None, most: int) -> Stack | None:
    """Take evenly spaced layers where there are more than the policy allows."""
    if stack is None or len(stack.tensors) <= most:
        return stack
    import numpy as np

    kept = np.unique(np.linspace(0, len(stack.tensors) - 1, most).round().astype(int))
    return stack._replace(
        tensors=tuple(stack.tensors[place] for place in kept),
        blocks=tuple(stack.blocks[place] for place in kept),
    )


def _dimensions(width: int, most: int) -> NDArray[Any]:
    import numpy as np

    if width <= most:
        return np.arange(width)
    return np.sort(np.random.default_rng(SEED).choice(width, most, replace=False))


def _kernels(diff: Diff, side: Any, stack: Stack, chosen: NDArray[Any]) -> dict[str, NDArray[Any]]:
    """Give each layer's kernel by its tensor's name; layers without one are left out."""
    found = {}
    for info in stack.tensors:
        kernel = u_centred(gram(diff.values(side, info.name), stack.axis, chosen))
        if kernel is not None:
            found[info.name] = kernel
    return found


def _shape(
    answer: Answer,
    left: Stack,
    right: Stack,
    kernels: dict[str, dict[str, NDArray[Any]]],
    used: int,
) -> None:
    names = {side: list(kernels[side]) for side in ("left", "right")}
    sizes = [len(names["left"]), len(names["right"])]
    measure = "unbiased linear CKA of weights, residual dimensions as samples"
    answer.say("dimensions", sizes, basis=_BASIS["dimensions"], uncertainty="exact")
    answer.say("measure", measure, basis=_BASIS["measure"])
    answer.say("layer_names", names, basis=_BASIS["layer_names"])
    answer.assume(f"{right.module} stands for a layer, {used} of its residual dimensions are used")
    answer.assume(f"{right.width} residual dimensions: the length that all layers share")
    dropped = len(left.tensors) + len(right.tensors) - sum(sizes)
    if dropped:
        answer.assume(f"{dropped} layers that do not vary or are not finite are left out")


def _compare(answer: Answer, kernels: dict[str, dict[str, NDArray[Any]]], n: int) -> None:
    import numpy as np

    sides = {side: np.array(list(each.values())) for side, each in kernels.items()}
    for side, each in sides.items():
        if len(each):
            own = cosines(each, each)
            answer.say(f"{side}_matrix", own.tolist(), basis=_BASIS[f"{side}_matrix"])
        else:
            answer.lack(f"{side}_matrix", needs="layers that vary", why="no layer has a kernel")
    left, right = sides["left"], sides["right"]
    if not (len(left) and len(right)):
        for field in _ACROSS:
            answer.lack(field, needs="layers that vary on both sides", why="a side has no kernel")
        return
    matrix = cosines(left, right)
    order = np.random.default_rng(SEED).permutation(n)
    shared = min(matrix.shape)
    answer.say("matrix", matrix.tolist(), basis=_BASIS["matrix"])
    answer.say("mean_similarity", float(matrix.mean()), basis=_BASIS["mean_similarity"])
    diagonal = float(matrix.diagonal()[:shared].mean())
    answer.say("diagonal_mean", diagonal, basis=_BASIS["diagonal_mean"])
    chance = float(cosines(left, permuted(right, order)).mean())
    answer.say("null_mean", chance, basis=_BASIS["null_mean"])
    answer.either(
        "clustering",
        _clustering(np.concatenate([left, right])),
        basis=_BASIS["clustering"],
        needs="at least three layers that are not all alike",
        why="there is nothing to group",
    )


def _clustering(kernels: NDArray[Any]) -> dict[str, Any] | None:
    import numpy as np

    distances = 1 - cosines(kernels, kernels)
    np.fill_diagonal(distances, 0)
    best: dict[str, Any] | None = None
    for groups in range(2, min(_MOST_GROUPS, len(kernels) - 1) + 1):
        labels = average_linkage(distances, groups)
        score = silhouette_of_distances(distances, labels)
        if score is not None and (best is None or score > best["silhouette"]):
            best = {"silhouette": score, "groups": len(set(labels.tolist()))}
    return best


def _silent(answer: Answer, needs: str, why: str, *, known: bool) -> Envelope:
    for field in _BASIS:
        answer.lack(field, needs=needs, why=why)
    return answer.envelope("not_enough_information" if known else "not_applicable")
