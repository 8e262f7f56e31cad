"""A torch module, run for the child: outputs, attention, losses, scores of heads, layer errors.

torch is never imported here: the user's code brought it, and it is handed in.
"""

from __future__ import annotations

import inspect
import json
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from .activations_heads import Heads, heads_of

if TYPE_CHECKING:
    from numpy.typing import NDArray

_ABLATED, _ABLATED_EXAMPLES = 4, 16  # heads at each end of the ranking, and examples they cost
Arrays = dict[str, "NDArray[Any]"]


class TorchModel:
    """Runs a module on one example at a time; `reasons` says what it does not give."""

    def __init__(self, torch: Any, model: Any) -> None:
        """Switch training off and attention to the implementation that shows its weights."""
        self._torch, self._model = torch, model
        self.reasons: dict[str, str] = {}
        model.train(False)
        _eager(model)
        self._parameters = inspect.signature(model.forward).parameters
        self._extra = {"output_attentions": True} if self._shows_attention() else {}
        found = heads_of(torch, model)
        self._heads: Heads | None = None if isinstance(found, str) else found
        if isinstance(found, str):
            self.reasons["head_scores"] = found
        self._layers = Layers(torch, model)
        self._scored: list[Arrays] = []
        self._twin: Any = None

    def run(self, inputs: Arrays, labels: NDArray[Any] | None) -> Arrays:
        """Run one example; where there are labels, its loss and the scores of its heads too."""
        extra = self._extra
        with self._layers.watching(), self._torch.no_grad():
            said = self._call(self._model, inputs, **extra)
        found = {"outputs": _array(_part(said, "logits"))[0]}
        attentions = _attentions(said)
        if attentions is None:
            self.reasons["attentions"] = _no_attention(said, asked=bool(extra))
        else:
            found["attentions"] = attentions
        if labels is None:
            for name in ("loss", "head_scores", "ablations"):
                self.reasons.setdefault(name, "the sample has no `labels`")
        else:
            found |= self._score(inputs, labels)
        return found

    def cast(self, inputs: Arrays) -> NDArray[Any] | None:
        """Return the attention of the same model in another dtype: the floor of any difference."""
        import copy

        torch = self._torch
        if self._twin is None:
            dtype = next((each.dtype for each in self._model.parameters()), torch.float32)
            other = torch.float32 if dtype == torch.bfloat16 else torch.bfloat16
            self._twin = copy.deepcopy(self._model).to(other)
        try:
            with torch.no_grad():
                return _attentions(self._call(self._twin, inputs, **self._extra))
        except (RuntimeError, TypeError, ValueError) as error:
            self.reasons["floor"] = f"the model does not run in another dtype: {error}"[:300]
            return None

    def finish(self, folder: Path, other: Path | None) -> dict[str, Any]:
        """Say what took all examples: the layers' errors, and heads taken out."""
        about: dict[str, Any] = {}
        if other is None:
            self._layers.save(folder)
        else:
            about["layer_errors"] = self._layers.errors(other)
        if self._heads is not None and self._scored:
            about["ablations"] = self._ablations()
        return about

    def _accepts(self, name: str) -> bool:
        return name in self._parameters

    def _shows_attention(self) -> bool:
        """Can attention be asked for? Transformers 5 passes the word on through `**kwargs`."""
        config = getattr(self._model, "config", None)
        passed_on = self._is_open and hasattr(config, "output_attentions")
        return passed_on or self._accepts("output_attentions")

    @property
    def _is_open(self) -> bool:
        return any(each.kind is each.VAR_KEYWORD for each in self._parameters.values())

    def _call(self, model: Any, inputs: Arrays, **extra: Any) -> Any:
        """Hand the inputs over by name where the module knows them all, else in their order."""
        dtype = next((each.dtype for each in model.parameters() if each.is_floating_point()), None)
        tensors = {name: self._tensor(each, dtype) for name, each in inputs.items()}
        if self._is_open or set(tensors) <= set(self._parameters):
            return model(**tensors, **extra)
        return model(*tensors.values(), **extra)

    def _tensor(self, array: NDArray[Any], dtype: Any) -> Any:
        tensor = self._torch.as_tensor(array)
        if tensor.is_floating_point():
            return tensor.to(dtype) if dtype is not None else tensor
        return tensor if tensor.dtype == self._torch.bool else tensor.long()

    def _loss(self, inputs: Arrays, labels: NDArray[Any]) -> Any:
        """Return the model's own loss where it has one, else the usual one for such labels."""
        functional = self._torch.nn.functional
        if self._accepts("labels"):
            said = self._call(self._model, inputs, labels=self._tensor(labels, None))
            loss = _part(said, "loss")
            if loss.ndim == 0:
                return loss
        outputs = _part(self._call(self._model, inputs), "logits")
        truth = self._tensor(labels, outputs.dtype)
        if truth.is_floating_point():
            return functional.mse_loss(outputs.reshape(truth.shape), truth)
        return functional.cross_entropy(
            outputs.reshape(-1, outputs.shape[-1]), truth.reshape(-1), ignore_index=-100
        )

    def _score(self, inputs: Arrays, labels: NDArray[Any]) -> Arrays:
        import numpy as np

        if self._heads is None:
            with self._torch.no_grad():
                return {"loss": np.asarray(float(self._loss(inputs, labels)))}
        mask = inputs.get("attention_mask")
        loss, scores = self._heads.scores(
            lambda: self._loss(inputs, labels), None if mask is None else mask.reshape(-1)
        )
        found = {"loss": np.asarray(loss)}
        if isinstance(scores, str):
            self.reasons["head_scores"] = scores
            return found
        self._scored.append({**inputs, "": labels, "scores": scores, "loss": found["loss"]})
        return {**found, "head_scores": scores}

    def _ablations(self) -> list[tuple[int, int, list[float]]]:
        """Take out the heads at both ends of the ranking, one at a time: how the loss rises."""
        import numpy as np

        assert self._heads is not None  # noqa: S101  for the type checker: asked by the caller
        mean = np.mean([each["scores"] for each in self._scored], axis=0)
        order = [tuple(map(int, np.unravel_index(at, mean.shape))) for at in np.argsort(mean, None)]
        chosen = order if len(order) <= 2 * _ABLATED else order[:_ABLATED] + order[-_ABLATED:]
        found = []
        for layer, head in chosen:
            rises = []
            for each in self._scored[:_ABLATED_EXAMPLES]:
                inputs = {
                    name: value
                    for name, value in each.items()
                    if name not in ("", "scores", "loss")
                }
                with self._heads.without(layer, head), self._torch.no_grad():
                    rises.append(float(self._loss(inputs, each[""])) - float(each["loss"]))
            found.append((layer, head, rises))
        return found


def _eager(model: Any) -> None:
    """Ask for eager attention: the fused implementations never hold the weights."""
    for part in model.modules():  # the user's own module may wrap the library's
        setter = getattr(part, "set_attn_implementation", None)
        config = getattr(part, "config", None)
        if callable(setter):
            setter("eager")
        elif config is not None and hasattr(config, "_attn_implementation"):
            config._attn_implementation = "eager"  # noqa: SLF001  the library's own way before 4.48


def _no_attention(said: Any, *, asked: bool) -> str:
    """Say why no attention came back, and what to do."""
    for_both = [name for name in ("encoder_attentions", "decoder_attentions") if _has(said, name)]
    if for_both:
        held = " and ".join(f"`{name}`" for name in for_both)
        return f"the model returned {held}: return one of them as `attentions`"
    if asked:
        return 'the model returned no attention: load it with attn_implementation="eager"'
    return "the model takes no `output_attentions`, and returned none: return them as `attentions`"


def _has(said: Any, name: str) -> bool:
    if isinstance(said, dict):
        return said.get(name) is not None
    return getattr(said, name, None) is not None


def _part(said: Any, name: str) -> Any:
    """Find the outputs (or the loss) in whatever the model returns."""
    if isinstance(said, dict):
        return said.get(name, next(iter(said.values())))
    if getattr(said, name, None) is not None:
        return getattr(said, name)
    return said[0] if isinstance(said, tuple | list) else said


def _attentions(said: Any) -> NDArray[Any] | None:
    """Find one example's attention, layers x heads x queries x keys."""
    import numpy as np

    found = said.get("attentions") if isinstance(said, dict) else getattr(said, "attentions", None)
    if found is None and isinstance(said, tuple) and len(said) > 1:
        last = said[-1]
        found = last if isinstance(last, tuple | list) else None
    layers = [each for each in found or () if each is not None]
    if not layers or any(each.ndim != 4 or each.shape != layers[0].shape for each in layers):
        return None
    return np.stack([_array(each)[0] for each in layers])


def _array(tensor: Any) -> NDArray[Any]:
    array: NDArray[Any] = tensor.detach().float().cpu().numpy()
    return array


# ‖ΔW X‖² / ‖W X‖², with X the inputs of the left model's layer: left keeps some rows
# of X with their outputs, right multiplies the same rows by its own weights.

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
