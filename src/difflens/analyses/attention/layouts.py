"""How a site's tensors hold its heads: fused or split, grouped, interleaved, input first."""

from __future__ import annotations

from typing import NamedTuple

from .sites import Site

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
