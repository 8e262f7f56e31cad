"""The heads of a torch module: their outputs before the output projection, and gradients of these.

I_h = |⟨A_h, dL/dA_h⟩| a token, mean over tokens (Michel, Levy and Neubig 2019).
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from numpy.typing import NDArray

_OUTPUT = re.compile(
    r"(?:^|\.)[^.]*att[^.]*\.(?:.*\.)?"
    r"(?:o_proj|out_proj|out_lin|c_proj|proj|wo|dense|o|to_out\.0)$"
)
_COUNTS = ("num_attention_heads", "n_head", "num_heads", "n_heads", "heads")


class Heads:
    """The output projections of every attention, in order of depth, and how many heads each."""

    def __init__(self, torch: Any, projections: list[Any], counts: list[int]) -> None:
        """Keep them; nothing is hooked yet."""
        self._torch, self._projections, self._counts = torch, projections, counts

    def scores(
        self, loss: Callable[[], Any], mask: NDArray[Any] | None
    ) -> tuple[float, NDArray[Any] | str]:
        """Take the loss and the gradient of every head's output: layers x heads, or why not."""
        import numpy as np

        seen: dict[int, Any] = {}

        def see(place: int) -> Callable[[Any, Any], None]:
            return lambda _, inputs: seen.__setitem__(place, inputs[0])

        hooks = [
            each.register_forward_pre_hook(see(place))
            for place, each in enumerate(self._projections)
        ]
        try:
            value = loss()
        finally:
            for hook in hooks:
                hook.remove()
        if len(seen) < len(self._projections):
            return float(value.detach()), "an output projection is not called as a module"
        outputs = [seen[place] for place in range(len(seen))]
        if not value.requires_grad or not all(each.requires_grad for each in outputs):
            return float(value.detach()), "the model's outputs carry no gradient"
        grads = self._torch.autograd.grad(value, outputs, allow_unused=True)
        rows = [
            _score(output, grad, count, mask)
            for output, grad, count in zip(outputs, grads, self._counts, strict=True)
        ]
        return float(value.detach()), np.stack(rows)

    @contextmanager
    def without(self, layer: int, head: int) -> Iterator[None]:
        """Take one head out: its output is zero."""
        count = self._counts[layer]

        def silence(_: Any, inputs: tuple[Any, ...]) -> tuple[Any, ...]:
            kept = inputs[0].clone()
            size = kept.shape[-1] // count
            kept[..., head * size : (head + 1) * size] = 0
            return (kept, *inputs[1:])

        hook = self._projections[layer].register_forward_pre_hook(silence)
        try:
            yield
        finally:
            hook.remove()


def heads_of(torch: Any, model: Any) -> Heads | str:
    """Find the output projections by name, and their heads by what the model says; else why not."""
    modules = dict(model.named_modules())
    names = [name for name in modules if _OUTPUT.search(name.lower())]
    if not names:
        return "no output projection of attention is known by its name"
    counts = [_count(model, modules, name) for name in names]
    if any(count is None for count in counts):
        return "neither the model's config nor its attention says how many heads there are"
    if len(set(counts)) > 1:
        return "layers have different numbers of heads"
    for each in model.parameters():
        each.requires_grad_(each.is_floating_point())
    return Heads(torch, [modules[name] for name in names], [count or 0 for count in counts])


def _count(model: Any, modules: dict[str, Any], name: str) -> int | None:
    """Ask the attention around the projection, then the model's config."""
    around = []
    while name:
        name = name.rpartition(".")[0]
        around.append(modules.get(name))
    for place in (*around, getattr(model, "config", None)):
        for word in _COUNTS:
            value = getattr(place, word, None)
            if isinstance(value, int) and value > 0:
                return value
    return None


def _score(output: Any, grad: Any, count: int, mask: NDArray[Any] | None) -> NDArray[Any]:
    """Return the mean over tokens of |⟨A_h, dL/dA_h⟩|; a head the loss does not see has 0."""
    import numpy as np

    if grad is None:
        return np.zeros(count)
    both = (output.detach() * grad).double()
    tokens = both.reshape(-1, count, both.shape[-1] // count).sum(-1).abs()
    found: NDArray[Any] = tokens.cpu().numpy()
    if mask is not None and mask.size == len(found) and mask.any():
        found = found[mask.astype(bool)]
    return np.asarray(found.mean(axis=0))
