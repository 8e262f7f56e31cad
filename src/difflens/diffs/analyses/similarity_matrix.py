"""How alike every layer of one model is to every layer of the other, by their weights."""

from __future__ import annotations

from collections import Counter, defaultdict
from typing import TYPE_CHECKING, Any, NamedTuple

from difflens.core.dtypes import FLOATS, OPAQUE
from difflens.core.policy import Threshold
from difflens.core.protocols import Values
from difflens.core.records import TensorInfo
from difflens.measure.resources import one_thread_each
from difflens.models.anatomy.roles import block, is_parameter
from difflens.stats.clustering import average_linkage, silhouette_of_distances

from ..answer import Answer
from ..diff import Diff
from ..evidence.records import Evidence
from ..methods.networks import infos
from . import analysis

if TYPE_CHECKING:
    from numpy.typing import NDArray

SEED = 0
_ACROSS = ("matrix", "mean_similarity", "diagonal_mean", "null_mean", "clustering")
_MOST_GROUPS = 8


@analysis(
    needs="values",
    thresholds={
        "module": Threshold("auto", "the module of a block whose matrix stands for the layer"),
        "layers": Threshold(32, "the most layers a side; from more, evenly spaced ones are taken"),
        "dimensions": Threshold(512, "the most residual dimensions; from more, a sample is drawn"),
    },
    fields={
        "mean_similarity": "mean over the matrix",
        "diagonal_mean": "mean over layers of the same place",
        "null_mean": "mean over the matrix after the right's dimensions were shuffled: chance",
        "clustering": "silhouette of average linkage on 1 - similarity of all layers of both sides;"
        " the number of groups with the largest one",
        "dimensions": "layers of the left (rows) and of the right (columns)",
        "measure": "what the entries are",
        "layer_names": "the tensors that stand for the layers",
        "matrix": "entry i, j: left layer i against right layer j",
        "left_matrix": "left layers against each other",
        "right_matrix": "right layers against each other",
    },
)
def similarity_matrix(diff: Diff, evidence: Evidence, answer: Answer) -> None:  # noqa: ARG001
    """How alike each layer is to each layer of the other model, by unbiased weight CKA."""
    answer.seeded(SEED)
    module = None if answer["module"] == "auto" else str(answer["module"])
    found = stacks(diff, module)
    left, right = (_fewer(found[side], answer["layers"]) for side in ("left", "right"))
    if left is None or right is None:
        why = f"none of the {len(diff.deltas)} tensors is a matrix that several blocks share"
        needs = "blocks with matrices on both sides"
        answer.lack_rest(needs=needs, why=why, status="not_applicable")
        return
    chosen = _dimensions(right.width, answer["dimensions"])
    with one_thread_each():  # the same bits on any machine, and no fight for its cores
        kernels = {
            side: _kernels(diff, side, stack, chosen)
            for side, stack in (("left", left), ("right", right))
        }
        _shape(answer, left, right, kernels, len(chosen))
        _compare(answer, kernels, len(chosen))


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
    """Return each layer's kernel by its tensor's name; layers without one are left out."""
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
    answer.say("dimensions", sizes, uncertainty="exact")
    answer.say("measure", measure)
    answer.say("layer_names", names)
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
            answer.say(f"{side}_matrix", own.tolist())
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
    answer.say("matrix", matrix.tolist())
    answer.say("mean_similarity", float(matrix.mean()))
    diagonal = float(matrix.diagonal()[:shared].mean())
    answer.say("diagonal_mean", diagonal)
    chance = float(cosines(left, permuted(right, order)).mean())
    answer.say("null_mean", chance)
    answer.either(
        "clustering",
        _clustering(np.concatenate([left, right])),
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


# A matrix W that reads from or writes to the residual stream gives each residual dimension a vector
# of its weights; the Gram matrix of these is the same whatever order the layer's own units are in.
# Unbiased CKA (Song et al. 2012; Kornblith et al. 2019) is then the cosine of U-centred Gram
# matrices (Szekely and Rizzo 2014): all layers against all is one matrix product.


def gram(values: Values, axis: int, dimensions: NDArray[Any]) -> NDArray[Any]:
    """Multiply the chosen residual dimensions' vectors with each other, block by block.

    `axis` is where the residual dimensions lie in the matrix.
    """
    import numpy as np

    total = np.zeros((len(dimensions), len(dimensions)))
    with np.errstate(invalid="ignore", over="ignore"):
        if axis == 0:
            rows = values.some_rows([int(each) for each in dimensions])
            total += rows @ rows.T
            return total
        for block in values.rows():
            part = block[:, dimensions]
            total += part.T @ part
    return total


def u_centred(kernel: NDArray[Any]) -> NDArray[Any] | None:
    """Centre a Gram matrix so that products with others are unbiased, and scale it to length one.

    k_ij - Σ_l k_il/(n - 2) - Σ_l k_lj/(n - 2) + Σ k/((n - 1)(n - 2)) off the diagonal, 0 on it.
    None if nothing varies, a value is not finite, or below four dimensions.
    """
    import numpy as np

    n = len(kernel)
    if n < 4 or not np.isfinite(kernel).all():
        return None
    scale = np.abs(kernel).max()
    if not scale:
        return None
    bare = kernel / scale
    np.fill_diagonal(bare, 0)
    sums = bare.sum(axis=0)
    centred = bare - (sums[:, None] + sums[None, :]) / (n - 2) + sums.sum() / ((n - 1) * (n - 2))
    np.fill_diagonal(centred, 0)
    length = float(np.linalg.norm(centred))
    if length <= 1e-12 * n:
        return None
    return np.asarray(centred / length, np.float32).ravel()


def cosines(rows: NDArray[Any], columns: NDArray[Any]) -> NDArray[Any]:
    """Return the unbiased CKA of every row kernel with every column kernel."""
    import numpy as np

    return np.clip(np.asarray(rows @ columns.T, np.float64), -1.0, 1.0)


def permuted(kernels: NDArray[Any], order: NDArray[Any]) -> NDArray[Any]:
    """Re-order the dimensions of every kernel: what is left alike then is chance."""
    import numpy as np

    n = len(order)
    square = kernels.reshape(-1, n, n)
    return np.ascontiguousarray(square[:, order][:, :, order]).reshape(len(kernels), -1)


# Which modules stand best for a layer, best first: those that read the residual stream.
_PREFERRED = ("up", "fc1", "c_fc", "w1", "w3", "gate", "intermediate", "h_to_4h", "lin1", "down")


class Stack(NamedTuple):
    """One module's matrix in every block of one side, and where its residual dimensions lie."""

    module: str
    tensors: tuple[TensorInfo, ...]
    blocks: tuple[int, ...]
    axis: int
    width: int


def stacks(diff: Diff, module: str | None) -> dict[str, Stack | None]:
    """Choose the module on the right, or take the user's word, and find it on both sides."""
    after = _modules(diff, "right")
    chosen = _chosen(after, module)
    if chosen is None:
        return {"left": None, "right": None}
    pairs = {pair.right.name: pair.left for pair in diff.pairs if pair.left and pair.right}
    renamed = [pairs[info.name] for _, info in after[chosen] if info.name in pairs]
    before = _modules(diff, "left")
    twin = next((_module(info.name) for info in renamed if info), None) or chosen
    found = after[chosen], before.get(twin) or before.get(chosen) or []
    width = _width([info for each in found for _, info in each])
    return {"right": _stack(chosen, found[0], width), "left": _stack(twin, found[1], width)}


def _modules(diff: Diff, side: str) -> dict[str, list[tuple[int, TensorInfo]]]:
    """Group the matrices in blocks by what they are called within their block."""
    found: dict[str, list[tuple[int, TensorInfo]]] = defaultdict(list)
    for info in infos(diff, side):
        place = block(info.name)
        numbers = info.dtype in FLOATS and info.dtype not in OPAQUE and info.dtype != "C64"
        if place and numbers and len(info.shape) == 2 and is_parameter(info.name, info.dtype):
            found[_module(info.name)].append((place[1], info))
    return found


def _module(name: str) -> str:
    place = block(name)
    if place is None:
        return name
    stack, number = place
    return name.removeprefix(f"{stack}." if stack else "").removeprefix(f"{number}").lstrip(".")


def _chosen(modules: dict[str, list[tuple[int, TensorInfo]]], said: str | None) -> str | None:
    if said:
        return next((module for module in sorted(modules) if said in module), None)

    def rank(module: str) -> tuple[int, bool, int, str]:
        shape = modules[module][0][1].shape
        words = [place for place, word in enumerate(_PREFERRED) if word in module]
        return -len(modules[module]), shape[0] == shape[1], min(words, default=99), module

    many = [module for module in modules if len(modules[module]) > 1]
    return min(many, key=rank, default=None)


def _width(tensors: list[TensorInfo]) -> int | None:
    """Find the residual dimension: the side that all have in common, the smaller where both do."""
    sides = Counter(length for info in tensors for length in set(info.shape))
    common = [length for length, times in sides.items() if times == len(tensors)]
    return min(common, default=None)


def _stack(module: str, found: list[tuple[int, TensorInfo]], width: int | None) -> Stack | None:
    if width is None or not found:
        return None
    ordered = sorted(found, key=lambda each: (each[0], each[1].name))
    shape = ordered[0][1].shape
    axis = 1 if shape[1] == width else 0
    tensors = tuple(info for _, info in ordered)
    return Stack(module, tensors, tuple(at for at, _ in ordered), axis, width)
