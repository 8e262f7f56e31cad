"""What a change of weights does to each linear layer, on inputs that layer really got.

‖ΔW X‖² / ‖W X‖², with X the inputs of the left model's layer (methods 7.4): left keeps some rows
of X with their outputs, right multiplies the same rows by its own weights.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from numpy.typing import NDArray

_ROWS = 256  # of inputs, a layer
_BUDGET = 1 << 28  # bytes of inputs kept
_TRANSPOSED = "Conv1D"  # GPT-2's, stored input first


class Layers:
    """The linear layers of a module, watched while it runs."""

    def __init__(self, torch: Any, model: Any) -> None:
        """Find them by their class; nothing is hooked yet."""
        self._linear = {
            name: each
            for name, each in model.named_modules()
            if isinstance(each, torch.nn.Linear) or type(each).__name__ == _TRANSPOSED
        }
        self._kept: dict[str, list[Any]] = {}
        self._rows: dict[str, int] = {}
        self._bytes = 0

    @contextmanager
    def watching(self) -> Iterator[None]:
        """Keep rows of what each layer is handed."""
        hooks = [
            each.register_forward_pre_hook(lambda _, inputs, name=name: self._keep(name, inputs[0]))
            for name, each in self._linear.items()
            if self._rows.get(name, 0) < _ROWS and self._bytes < _BUDGET
        ]
        try:
            yield
        finally:
            for hook in hooks:
                hook.remove()

    def save(self, folder: Path) -> None:
        """Write the rows that were kept, and what left's weights make of them."""
        import numpy as np

        names = list(self._kept)
        arrays = {}
        for place, name in enumerate(names):
            rows = np.concatenate(self._kept[name])[:_ROWS]
            arrays[f"x{place}"], arrays[f"y{place}"] = rows, _times(rows, self._linear[name])
        np.savez(folder / "layers.npz", **arrays)  # type: ignore[arg-type]
        (folder / "layers.json").write_text(json.dumps(names))

    def errors(self, left: Path) -> dict[str, float]:
        """Compare with what left wrote: ‖ΔW X‖² / ‖W X‖² by layer."""
        import numpy as np

        names = json.loads((left / "layers.json").read_text())
        found = {}
        with np.load(left / "layers.npz", allow_pickle=False) as stored:
            for place, name in enumerate(names):
                layer = self._linear.get(name)
                rows, before = stored[f"x{place}"], stored[f"y{place}"]
                if layer is None or _inputs(layer) != rows.shape[1]:
                    continue
                after = _times(rows, layer)
                size = float((before**2).sum())
                error = float(((after - before) ** 2).sum()) if after.shape == before.shape else -1
                if size > 0 and error >= 0 and np.isfinite(error / size):
                    found[name] = error / size
        return found

    def _keep(self, name: str, inputs: Any) -> None:
        rows = inputs.detach().float().reshape(-1, inputs.shape[-1])[:_ROWS].cpu().numpy()
        self._kept.setdefault(name, []).append(rows.copy())
        self._rows[name] = self._rows.get(name, 0) + len(rows)
        self._bytes += rows.nbytes


def _times(rows: NDArray[Any], layer: Any) -> NDArray[Any]:
    import numpy as np

    weight = layer.weight.detach().double().cpu().numpy()
    turned = weight if type(layer).__name__ == _TRANSPOSED else weight.T
    return np.asarray(rows.astype(np.float64) @ turned)


def _inputs(layer: Any) -> int:
    return int(layer.weight.shape[0 if type(layer).__name__ == _TRANSPOSED else 1])
