"""Runs the user's model on sample inputs in a child process, and reads what it left there.

The child is the only place where the user's code runs, and only because it was named. It gets its
own session and a clock; what it hands back are plain arrays, read without pickle, and bounded.
"""

from __future__ import annotations

import json
import os
import signal
import sys
from collections.abc import Iterator
from contextlib import suppress
from math import fsum, isfinite
from pathlib import Path
from typing import TYPE_CHECKING, Any

from difflens.core.addresses import Address, locate
from difflens.core.escape import for_terminal

from .activations_patterns import gathered
from .documents import broken
from .records import Activations, Behaviour

if TYPE_CHECKING:
    from numpy.typing import NDArray

SECONDS = 600
_LARGEST = 1 << 30  # bytes of one file that the child hands back
_MOST_EXAMPLES = 4096
_TAIL = 2000

Example = dict[str, "NDArray[Any]"]


def activations(
    left: Any, right: Any, sample: str | Path, model_code: str, *, seconds: float = SECONDS
) -> Activations:
    """Run `callable(path) -> model` for both sides on the sample; raise where it fails."""
    from tempfile import TemporaryDirectory

    for side in (left, right):
        if not isinstance(side, str | Path) or isinstance(locate(side), Address):
            raise broken(
                "--model-code", "both models must be files: the code is handed their paths"
            )
    with TemporaryDirectory(prefix="difflens-") as folder:
        _run(model_code, [str(left), str(right), str(sample), folder], seconds, Path(folder))
        return _read(Path(folder), f"{model_code} on {sample}")


def _run(model_code: str, arguments: list[str], seconds: float, folder: Path) -> None:
    import subprocess

    where = f"--model-code {model_code}"
    command = [
        sys.executable,
        "-m",
        "difflens.diffs.evidence.activations_child",
        model_code,
        *arguments,
    ]
    said = folder / "stderr"
    with said.open("wb") as stderr:
        process = subprocess.Popen(  # noqa: S603  our own interpreter; the code is the user's wish
            command, stdin=subprocess.DEVNULL, stdout=stderr, stderr=stderr, start_new_session=True
        )
    try:
        code = process.wait(seconds)
    except subprocess.TimeoutExpired:
        reason = f"it did not end within {seconds:g} seconds and was stopped"
        raise broken(where, reason, "a smaller sample takes less time") from None
    finally:
        _end(process)
    if code:
        how = signal.Signals(-code).name if code < 0 else f"exit code {code}"
        raise broken(where, f"it failed ({how}): {_tail(said)}")


def _end(process: Any) -> None:
    """End the child and whatever it started: they are a session of their own."""
    with suppress(ProcessLookupError, PermissionError):
        os.killpg(process.pid, signal.SIGKILL)
    process.wait()


def _tail(path: Path) -> str:
    """Return the last line of what the child said, which is where Python names the error."""
    with path.open("rb") as stream:
        stream.seek(max(0, path.stat().st_size - _TAIL))
        text = stream.read(_TAIL).decode("utf-8", "replace")
    lines = [line for line in text.splitlines() if line.strip()]
    return for_terminal(lines[-1], 300) if lines else "it said nothing"


def _read(folder: Path, source: str) -> Activations:
    about = {side: _about(folder / side) for side in ("left", "right")}
    count = min(int(each["examples"]) for each in about.values())
    if not 0 < count <= _MOST_EXAMPLES:
        raise broken("--sample", f"the run gave {count} examples")
    figures, left, right = Compared(), _Side(), _Side()
    for before, after in _examples(folder, count):
        left.add(before)
        right.add(after)
        figures.add(compared(before, after))
    return Activations(
        left.behaviour(about["left"]),
        right.behaviour(about["right"]),
        count,
        output_error=figures.output_error,
        layer_output_error=_numbers(about["right"].get("layer_errors")),
        kl=figures.per_example("kl"),
        agreement=figures.per_example("agreement"),
        correct=figures.correct(),
        patterns=gathered(lambda: _examples(folder, count)),
        source=source,
    )


def _examples(folder: Path, count: int) -> Iterator[tuple[Example, Example]]:
    for place in range(count):
        yield _arrays(folder / "left" / f"{place}.npz"), _arrays(folder / "right" / f"{place}.npz")


def _arrays(path: Path) -> Example:
    """Read arrays the child wrote; never an object, never more than the limit."""
    import zipfile

    import numpy as np

    try:
        with zipfile.ZipFile(path) as packed:
            if sum(member.file_size for member in packed.infolist()) > _LARGEST:
                raise broken("--model-code", f"the run handed back more than {_LARGEST} bytes")
        with np.load(path, allow_pickle=False) as stored:
            return {
                name: stored[name] for name in stored.files if stored[name].dtype.kind in "fiub"
            }
    except (OSError, ValueError, zipfile.BadZipFile) as error:
        raise broken("--model-code", "what the run handed back cannot be read") from error


def _about(folder: Path) -> dict[str, Any]:
    try:
        text = (folder / "about.json").read_bytes()[: 1 << 24]
        about = json.loads(text)
        int(about["examples"])
    except (OSError, ValueError, KeyError, TypeError, RecursionError) as error:
        raise broken("--model-code", "what the run handed back cannot be read") from error
    return dict(about)


def _numbers(said: Any) -> dict[str, float] | None:
    if not isinstance(said, dict):
        return None
    found = {
        str(name): float(value) for name, value in said.items() if isinstance(value, int | float)
    }
    return found or None


class _Side:
    """What is gathered of one side, example after example."""

    def __init__(self) -> None:
        self._shape: tuple[int, ...] | None = None
        self._finite: bool | None = None
        self._losses: list[float | None] = []
        self._scores: list[Any] = []

    def add(self, example: Example) -> None:
        """Add one example."""
        import numpy as np

        outputs = example.get("outputs")
        if outputs is not None:
            self._shape = tuple(outputs.shape)
            self._finite = bool(np.isfinite(outputs).all()) and self._finite is not False
        loss = example.get("loss")
        self._losses.append(float(loss) if loss is not None and np.isfinite(loss) else None)
        self._scores.append(example.get("head_scores"))

    def behaviour(self, about: dict[str, Any]) -> Behaviour:
        """Sum up what the model did."""
        import numpy as np

        losses = tuple(loss for loss in self._losses if loss is not None)
        scores = None
        if all(each is not None and each.ndim == 2 for each in self._scores):
            shapes = {each.shape for each in self._scores}
            scores = np.stack(self._scores) if len(shapes) == 1 else None
        reasons = about.get("reasons")
        return Behaviour(
            self._shape,
            self._finite,
            losses if len(losses) == len(self._losses) else None,
            scores if scores is not None and np.isfinite(scores).all() else None,
            _ablations(about.get("ablations")),
            {str(key): str(value) for key, value in reasons.items()} if reasons else {},
        )


def _ablations(said: Any) -> dict[tuple[int, int], tuple[float, ...]] | None:
    if not isinstance(said, list) or not said:
        return None
    return {(int(layer), int(head)): tuple(map(float, rises)) for layer, head, rises in said}


_IGNORED = -100  # the label of what is not to be predicted, by habit of the field


class Compared:
    """Figures of outputs, gathered example by example."""

    def __init__(self) -> None:
        """Begin with nothing."""
        self._figures: list[dict[str, float]] = []

    def add(self, figures: dict[str, float]) -> None:
        """Add one example's."""
        self._figures.append(figures)

    @property
    def output_error(self) -> float | None:
        """‖R - L‖ / ‖L‖ over all examples; None if nothing finite can be compared."""
        if not all("moved" in each for each in self._figures):
            return None
        size = fsum(each["size"] for each in self._figures)
        error = fsum(each["moved"] for each in self._figures)
        return float((error / size) ** 0.5) if size > 0 and isfinite(error / size) else None

    def per_example(self, name: str) -> tuple[float, ...] | None:
        """Return a figure of every example; None if one has none."""
        known = tuple(each[name] for each in self._figures if name in each)
        return known if known and len(known) == len(self._figures) else None

    def correct(self) -> tuple[tuple[float, ...], tuple[float, ...]] | None:
        """Return the share of right predictions by example, left and right."""
        left, right = self.per_example("left_correct"), self.per_example("right_correct")
        return (left, right) if left is not None and right is not None else None


def compared(left: dict[str, NDArray[Any]], right: dict[str, NDArray[Any]]) -> dict[str, float]:
    """Compare one example's outputs, as numbers and as predictions over their last axis."""
    import numpy as np

    before, after = left.get("outputs"), right.get("outputs")
    if before is None or after is None or before.shape != after.shape or not before.size:
        return {}
    one, other = before.astype(np.float64), after.astype(np.float64)
    if not (np.isfinite(one).all() and np.isfinite(other).all()):
        return {}
    found = {"size": float((one**2).sum()), "moved": float(((other - one) ** 2).sum())}
    if one.ndim < 2 or one.shape[-1] < 2:
        return found
    kept = _mask_of(left.get("mask"), one.shape[:-1])
    if not kept.any():
        return found
    guesses = one.argmax(-1), other.argmax(-1)
    found["kl"] = float(kl(one, other)[kept].mean())
    found["agreement"] = float((guesses[0] == guesses[1])[kept].mean())
    labels = left.get("labels")
    if labels is not None and labels.shape == guesses[0].shape and labels.dtype.kind in "iu":
        asked = labels != _IGNORED
        if asked.any():
            for name, guess in zip(("left_correct", "right_correct"), guesses, strict=True):
                found[name] = float((guess == labels)[asked].mean())
    return found


def kl(left: NDArray[Any], right: NDArray[Any]) -> NDArray[Any]:
    """Return KL(p ‖ q) = Σ p ln(p/q) in nats of the distributions two rows of logits stand for."""
    import numpy as np

    p, q = _log_softmax(left), _log_softmax(right)
    return np.asarray(np.maximum((np.exp(p) * (p - q)).sum(-1), 0))


def _log_softmax(logits: NDArray[Any]) -> NDArray[Any]:
    import numpy as np

    shifted = logits - logits.max(-1, keepdims=True)
    return np.asarray(shifted - np.log(np.exp(shifted).sum(-1, keepdims=True)))


def _mask_of(mask: NDArray[Any] | None, shape: tuple[int, ...]) -> NDArray[Any]:
    import numpy as np

    if mask is None or mask.shape != shape:
        return np.ones(shape, bool)
    return np.asarray(mask.astype(bool))
