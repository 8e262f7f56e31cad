"""A torch module, run for the child: outputs, attention, losses, scores of heads, layer errors.

torch is never imported here: the user's code brought it, and it is handed in.
"""

from __future__ import annotations

import inspect
from pathlib import Path
from typing import TYPE_CHECKING, Any

from .activations_heads import Heads, heads_of
from .activations_layers import Layers

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
        found = heads_of(torch, model)
        self._heads: Heads | None = None if isinstance(found, str) else found
        if isinstance(found, str):
            self.reasons["head_scores"] = found
        self._layers = Layers(torch, model)
        self._scored: list[Arrays] = []
        self._twin: Any = None

    def run(self, inputs: Arrays, labels: NDArray[Any] | None) -> Arrays:
        """Run one example; where there are labels, its loss and the scores of its heads too."""
        extra = {"output_attentions": True} if self._accepts("output_attentions") else {}
        with self._layers.watching(), self._torch.no_grad():
            said = self._call(self._model, inputs, **extra)
        found = {"outputs": _array(_part(said, "logits"))[0]}
        attentions = _attentions(said)
        if attentions is None:
            self.reasons["attentions"] = (
                "the model returned no attention"
                if extra
                else "the model takes no `output_attentions`, and returned none"
            )
        else:
            found["attentions"] = attentions
        if labels is None:
            for name in ("loss", "head_scores", "ablations"):
                self.reasons.setdefault(name, "the sample has no `labels`")
        else:
            found |= self._score(inputs, labels)
        return found

    def cast(self, inputs: Arrays) -> NDArray[Any] | None:
        """Give the attention of the same model in another dtype: the floor of any difference."""
        import copy

        torch = self._torch
        if self._twin is None:
            dtype = next((each.dtype for each in self._model.parameters()), torch.float32)
            other = torch.float32 if dtype == torch.bfloat16 else torch.bfloat16
            self._twin = copy.deepcopy(self._model).to(other)
        extra = {"output_attentions": True} if self._accepts("output_attentions") else {}
        try:
            with torch.no_grad():
                return _attentions(self._call(self._twin, inputs, **extra))
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

    def _call(self, model: Any, inputs: Arrays, **extra: Any) -> Any:
        """Hand the inputs over by name where the module knows them all, else in their order."""
        dtype = next((each.dtype for each in model.parameters() if each.is_floating_point()), None)
        tensors = {name: self._tensor(each, dtype) for name, each in inputs.items()}
        open_end = any(each.kind is each.VAR_KEYWORD for each in self._parameters.values())
        if open_end or set(tensors) <= set(self._parameters):
            return model(**tensors, **extra)
        return model(*tensors.values(), **extra)

    def _tensor(self, array: NDArray[Any], dtype: Any) -> Any:
        tensor = self._torch.as_tensor(array)
        if tensor.is_floating_point():
            return tensor.to(dtype) if dtype is not None else tensor
        return tensor if tensor.dtype == self._torch.bool else tensor.long()

    def _loss(self, inputs: Arrays, labels: NDArray[Any]) -> Any:
        """Give the model's own loss where it has one, else the usual one for such labels."""
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
                inputs = {name: value for name, value in each.items()
                          if name not in ("", "scores", "loss")}  # fmt: skip
                with self._heads.without(layer, head), self._torch.no_grad():
                    rises.append(float(self._loss(inputs, each[""])) - float(each["loss"]))
            found.append((layer, head, rises))
        return found


def _eager(model: Any) -> None:
    """Ask for eager attention: the fused implementations never hold the weights."""
    setter = getattr(model, "set_attn_implementation", None)
    config = getattr(model, "config", None)
    if callable(setter):
        setter("eager")
    elif config is not None and hasattr(config, "_attn_implementation"):
        config._attn_implementation = "eager"  # noqa: SLF001  the library's own way before 4.48


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
