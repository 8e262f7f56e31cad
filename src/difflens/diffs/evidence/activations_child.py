"""The child that runs the user's models: loads one after the other, runs it, writes plain arrays.

Started as `python -m difflens.diffs.evidence.activations_child CODE LEFT RIGHT SAMPLE FOLDER`.
Whatever it cannot get out of a model is left out with a reason; what the model raises ends it.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any

from .activations_torch import TorchModel

if TYPE_CHECKING:
    from numpy.typing import NDArray

_MOST = 64  # examples
_BUDGET = 1 << 30  # bytes a side writes

Arrays = dict[str, "NDArray[Any]"]


class PlainModel:
    """A model of no framework we know: called with arrays, asked for its outputs."""

    def __init__(self, model: Callable[..., Any]) -> None:
        """Keep it; say what it cannot give."""
        self._model = model
        self.reasons = dict.fromkeys(
            ("loss", "head_scores", "ablations", "layer_errors"), "the model is no torch module"
        )

    def run(self, inputs: Arrays, labels: NDArray[Any] | None) -> Arrays:
        """Call it on one example."""
        import numpy as np

        del labels
        said = self._model(**inputs)
        found = said if isinstance(said, dict) else {"outputs": said}
        outputs = found.get("outputs", found.get("logits"))
        given = {"outputs": np.asarray(outputs, np.float32)}
        if found.get("attentions") is not None:
            given["attentions"] = np.asarray(found["attentions"], np.float32)
        else:
            self.reasons["attentions"] = "the model returns a mapping with no `attentions`"
        return given

    def finish(self, folder: Path, other: Path | None) -> dict[str, Any]:
        """Add nothing."""
        del folder, other
        return {}

    def cast(self, inputs: Arrays) -> NDArray[Any] | None:
        """Return nothing: only a torch module has another dtype."""
        del inputs
        return None


def main(arguments: list[str]) -> None:
    """Run both models on the sample."""
    code, left, right, sample, folder = arguments
    load = named(code)
    inputs, labels = read_sample(Path(sample))
    for side, path in (("left", left), ("right", right)):
        place = Path(folder) / side
        place.mkdir()
        other = Path(folder) / "left" if side == "right" else None
        model = wrapped(load(path))
        record(model, inputs, labels, place, other)
        del model


def named(code: str) -> Callable[[str], Any]:
    """Import the user's callable: the one import of code that is not ours."""
    module, _, name = code.partition(":")
    found: Any = import_module(module)
    for part in name.split("."):
        found = getattr(found, part)
    if not callable(found):
        raise TypeError(f"{code} is no callable")
    loader: Callable[[str], Any] = found
    return loader


def wrapped(model: Any) -> TorchModel | PlainModel:
    """Choose how to run it; torch is there by now if the model is made of it."""
    torch = sys.modules.get("torch")
    if torch is not None and isinstance(model, torch.nn.Module):
        return TorchModel(torch, model)
    if not callable(model):
        raise TypeError(f"the model is a {type(model).__name__}, which cannot be called")
    return PlainModel(model)


def read_sample(path: Path) -> tuple[Arrays, NDArray[Any] | None]:
    """Read inputs and labels, all with one row an example."""
    import numpy as np

    with np.load(path, allow_pickle=False) as stored:
        inputs = {name: stored[name] for name in stored.files}
    labels = inputs.pop("labels", None)
    counts = {len(each) if each.ndim else 0 for each in (*inputs.values(), *_only(labels))}
    if len(counts) != 1 or not counts.pop():
        raise ValueError("every array of the sample needs one row an example, as many in each")
    return inputs, labels


def record(
    model: TorchModel | PlainModel,
    inputs: Arrays,
    labels: NDArray[Any] | None,
    folder: Path,
    other: Path | None,
) -> None:
    """Run every example and write down what came out, as long as there is room."""
    import numpy as np

    count = min(_MOST, len(next(iter(inputs.values()))))
    written = 0
    for place in range(count):
        one = {name: each[place : place + 1] for name, each in inputs.items()}
        truth = None if labels is None else labels[place : place + 1]
        found = model.run(one, truth)
        if "attention_mask" in one:
            found["mask"] = np.asarray(one["attention_mask"][0], np.int8)
        if truth is not None:
            found["labels"] = truth[0]
        if other is None and "attentions" in found and (cast := model.cast(one)) is not None:
            found["cast"] = cast
        path = folder / f"{place}.npz"
        np.savez(path, **found)  # type: ignore[arg-type]
        written += path.stat().st_size
        if written + path.stat().st_size > _BUDGET:
            count = place + 1
            model.reasons["examples"] = f"room for {count} examples"
            break
    about = {"examples": count, **model.finish(folder, other), "reasons": model.reasons}
    (folder / "about.json").write_text(json.dumps(about))


def _only(labels: NDArray[Any] | None) -> tuple[NDArray[Any], ...]:
    return () if labels is None else (labels,)


if __name__ == "__main__":
    main(sys.argv[1:])
