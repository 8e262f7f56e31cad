"""Reads one attention of both sides: a part at a time, let go before the next is read."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal, NamedTuple

from difflens.core.errors import DifflensError
from difflens.core.records import Delta
from difflens.measure.heads import Products, head_rows, products, with_bias
from difflens.models.anatomy.network import Network

from ...diff import Diff
from .heads import Circuit, Site, circuit, raw_relative_l2

if TYPE_CHECKING:
    from numpy.typing import NDArray

# Read head by head (or group by group) in GPT-NeoX, BLOOM and Falcon; ChatGLM concatenates.
_INTERLEAVED = ".query_key_value."
_CONCATENATES = ("chatglm", "glm")


class Slices(NamedTuple):
    """Where the heads of one part lie in a tensor: first row of each, or column where turned."""

    tensor: str
    bias: str | None
    starts: tuple[int, ...]
    turned: bool


class Layout(NamedTuple):
    """The heads of one site on one side, and the slices of each part."""

    heads: int
    kv_heads: int
    size: int
    hidden: int
    slices: dict[str, Slices]
    gain: str | None = None
    shift: str | None = None

    @property
    def group(self) -> int:
        """How many query heads share a key and value head."""
        return self.heads // self.kv_heads


def layout(site: Site, heads: int, architecture: str = "") -> Layout | str:
    """Cut a site into its heads; a sentence where its shapes do not allow it.

    The width of a head is that of the output projection's input over the number of heads: it is
    never taken for 64.
    """
    output = site.tensors["o"]
    input_first = _input_first(site)
    width, hidden = output.shape if input_first else output.shape[::-1]
    if heads < 1 or width % heads:
        return f"{width} inputs of {output.name} do not divide among {heads} heads"
    size = width // heads
    starts = _starts(site, heads, size, architecture, input_first=input_first)
    if isinstance(starts, str):
        return starts
    whole = {**starts, "o": tuple(head * size for head in range(heads))}
    slices = {part: _slices(site, part, at, input_first) for part, at in whole.items()}
    tensors = {part: info.name for part, info in site.tensors.items()}
    kv_heads = len(starts["k"])
    norm = tensors.get("gain"), tensors.get("shift")
    return Layout(heads, kv_heads, size, hidden, slices, *norm)


def _input_first(site: Site) -> bool:
    """Is it GPT-2's Conv1D, stored input first? Only its fused matrix shows."""
    fused = site.tensors.get("qkv")
    return bool(fused and ".c_attn." in f".{fused.name}" and fused.shape[1] > fused.shape[0])


def _starts(
    site: Site, heads: int, size: int, architecture: str, *, input_first: bool
) -> dict[str, tuple[int, ...]] | str:
    if "qkv" not in site.tensors:
        return _split(site, heads, size)
    fused = site.tensors["qkv"]
    rows = fused.shape[1] if input_first else fused.shape[0]
    kv_heads, rest = divmod(rows - heads * size, 2 * size)
    if rest or kv_heads < 1 or heads % kv_heads:
        return f"{rows} rows of {fused.name} are not {heads} heads of {size} with keys and values"
    if _INTERLEAVED in f".{fused.name}" and not architecture.startswith(_CONCATENATES):
        return _interleaved(heads, kv_heads, size)
    return {
        "q": tuple(head * size for head in range(heads)),
        "k": tuple((heads + head) * size for head in range(kv_heads)),
        "v": tuple((heads + kv_heads + head) * size for head in range(kv_heads)),
    }


def _split(site: Site, heads: int, size: int) -> dict[str, tuple[int, ...]] | str:
    rows = {part: site.tensors[part].shape[0] for part in "qkv"}
    kv_heads, rest = divmod(rows["k"], size)
    if rows["q"] != heads * size or rest or rows["v"] != rows["k"] or not kv_heads:
        return f"{site.name} has {rows} rows, which are not {heads} heads of {size}"
    if heads % kv_heads:
        return f"{site.name} has {kv_heads} key heads, which do not divide its {heads} heads"
    counts = {"q": heads, "k": kv_heads, "v": kv_heads}
    return {part: tuple(head * size for head in range(counts[part])) for part in "qkv"}


def _interleaved(heads: int, kv_heads: int, size: int) -> dict[str, tuple[int, ...]]:
    """Place heads stored group by group: a group's queries, then its key, then its value."""
    group = heads // kv_heads
    firsts = [place * (group + 2) * size for place in range(kv_heads)]
    return {
        "q": tuple(first + place * size for first in firsts for place in range(group)),
        "k": tuple(first + group * size for first in firsts),
        "v": tuple(first + (group + 1) * size for first in firsts),
    }


def _slices(site: Site, part: str, starts: tuple[int, ...], input_first: bool) -> Slices:
    fused = part != "o" and "qkv" in site.tensors
    info = site.tensors["qkv" if fused else part]
    bias = site.tensors.get("qkv.bias" if fused else f"{part}.bias")
    # The output projection's heads are its columns; input first turns both kinds around.
    turned = (part == "o") != input_first
    return Slices(info.name, bias.name if bias and part != "o" else None, starts, turned)


Sided = Literal["left", "right"]
PARTS = ("q", "k", "v", "o")
# Whose norms multiply by one more than what is stored (HF; converters add it for GGUF).
_ONE_MORE = frozenset({"gemma", "gemma2", "gemma3", "gemma3_text"})


class Layer(NamedTuple):
    """One attention that both sides have: its heads' circuits; `why` where there are none."""

    depth: int
    site: str
    subject: str
    left: Layout | None = None
    right: Layout | None = None
    qk: Circuit | None = None
    ov: Circuit | None = None
    raw: NDArray[Any] | None = None
    why: str = ""


class Reader:
    """Reads heads of a diff; `by_right` are its deltas by their right tensor's name."""

    def __init__(
        self, diff: Diff, networks: dict[str, Network], by_right: dict[str, Delta]
    ) -> None:
        """Keep what to read from; nothing is read."""
        self._diff, self._networks, self._by_right = diff, networks, by_right

    def layer(self, depth: int, left: Site, right: Site, counts: dict[str, int | None]) -> Layer:
        """Read one attention of both sides."""
        subject = self._by_right[right.tensors["o"].name].name
        before = self._cut(left, "left", counts["left"])
        after = self._cut(right, "right", counts["right"])
        if isinstance(before, str) or isinstance(after, str):
            why = before if isinstance(before, str) else str(after)
            return Layer(depth, right.name, subject, why=why)
        layer = Layer(depth, right.name, subject, before, after)
        try:
            return self._circuits(layer, before, after)
        except DifflensError as error:  # too large for memory, or no number an element
            return layer._replace(why=str(error))

    def rows(self, side: Sided, cut: Layout, part: str) -> NDArray[Any]:
        """Return the heads' rows of one part, with norm and bias folded in."""
        slices = cut.slices[part]
        values = self._diff.values(side, slices.tensor)
        heads = head_rows(values, slices.starts, cut.size, turned=slices.turned)
        if part == "o":
            return heads
        bias = self._vector(side, slices.bias)
        if bias is not None:
            bias = bias[_places(slices.starts, cut.size)]
        gain = self._vector(side, cut.gain)
        if gain is not None and self._adds_one(side, cut.gain):
            gain = gain + 1
        return with_bias(heads, bias, gain, self._vector(side, cut.shift))

    def _cut(self, site: Site, side: str, heads: int | None) -> Layout | str:
        if heads is None:
            return "the number of heads is not known"
        return layout(site, heads, self._networks[side].family or "")

    def _circuits(self, layer: Layer, before: Layout, after: Layout) -> Layer:
        found: dict[str, Products] = {}
        for part in PARTS:
            left = self.rows("left", before, part)
            alike = self._is_same(before, after, part)
            found[part] = products(left, left if alike else self.rows("right", after, part))
        if before.group != after.group:  # heads that share keys otherwise have no partner
            found = {part: each._replace(across=None, moved=None) for part, each in found.items()}
        return layer._replace(
            qk=_joined(found["q"], found["k"], before, after),
            ov=_joined(found["o"], found["v"], before, after),
            raw=raw_relative_l2(found, before.group),
        )

    def _is_same(self, left: Layout, right: Layout, part: str) -> bool:
        """Are these the same bytes on both sides: the tensor, what is added, the norm before?"""
        before, after = left.slices[part], right.slices[part]
        if (before.starts, before.turned, left.size) != (after.starts, after.turned, right.size):
            return False
        read = [(before.tensor, after.tensor), (before.bias, after.bias)]
        if part != "o":
            read += [(left.gain, right.gain), (left.shift, right.shift)]
        return all(self._is_pair(*names) for names in read)

    def _is_pair(self, left: str | None, right: str | None) -> bool:
        if left is None or right is None:
            return left is right
        delta = self._by_right[right]
        paired = delta.pair.left
        return delta.kind == "identical" and paired is not None and paired.name == left

    def _vector(self, side: Sided, name: str | None) -> NDArray[Any] | None:
        return None if name is None else self._diff.values(side, name).array()

    def _adds_one(self, side: Sided, name: str | None) -> bool:
        model = self._diff.left if side == "left" else self._diff.right
        recipes = (
            pair.left_recipe if side == "left" else pair.right_recipe
            for pair in self._diff.pairs
            if (info := pair.left if side == "left" else pair.right) and info.name == name
        )
        added = any(recipe and recipe.add for recipe in recipes)
        return self._networks[side].family in _ONE_MORE and model.format != "gguf" and not added


def _places(starts: tuple[int, ...], size: int) -> Any:
    import numpy as np

    return np.asarray(starts)[:, None] + np.arange(size)


def _joined(first: Products, second: Products, before: Layout, after: Layout) -> Circuit:
    """Make the circuits of both sides, which may share keys differently."""
    if before.group == after.group:
        return circuit(first, second, before.group)
    left = circuit(first._replace(right=None), second._replace(right=None), before.group)
    right = circuit(first._replace(left=None), second._replace(left=None), after.group)
    return left._replace(
        right_norm=right.right_norm,
        right_stable_rank=right.right_stable_rank,
        right_effective_rank=right.right_effective_rank,
    )
