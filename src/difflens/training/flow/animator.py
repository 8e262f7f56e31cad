"""Records how gradients flow through the layers, step by step, and shows it."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

import msgspec
import numpy as np

from difflens.core.errors import RunError
from difflens.core.kept import text

from ..records.flow import (
    FlowPicture,
    FlowScale,
    GradientFlowConfig,
    GradientFlowSummary,
    GradientFrame,
    LayerFlow,
    LayerGradientInfo,
)
from ..records.runs import Layer
from .aggregates import Aggregates, Moment, root_mean_square
from .files import Envelope, decoded, empty_block, encoded, known, layer_entry
from .states import ABSENT, reading, states_of

if TYPE_CHECKING:
    from .picture import Cells


class GradientFlowAnimator:
    """Gradients of every layer over the steps: a window of frames, and sums over all of them.

    Layers keep the order of the first step, which is the network's. Steps must ascend: a step
    that was recorded already, or lies before the last one, is a `RunError`; begin a new animator
    for a new run.

    >>> animator = GradientFlowAnimator(max_frames=100)
    >>> for step in range(5):
    ...     animator.record_step(step, {"first": [0.1, -0.2], "last": [0.3]})
    >>> animator.summary_report().overall_health
    'Healthy'
    """

    def __init__(
        self,
        max_frames: int = 0,
        vanishing_threshold: float | None = 1e-7,
        exploding_threshold: float | None = 1e3,
        *,
        config: GradientFlowConfig | None = None,
    ) -> None:
        """Keep the latest `max_frames`, all where it is 0; `config` sets what is not named here."""
        self.config = config or GradientFlowConfig(
            max_frames=max_frames,
            vanishing_threshold=vanishing_threshold,
            exploding_threshold=exploding_threshold,
        )
        self._places: dict[str, int] = {}
        self._told: dict[str, Layer] = {}
        self._moments: deque[Moment] = deque(maxlen=self.config.max_frames or None)
        self._known = Aggregates()

    def with_vanishing_threshold(self, threshold: float | None) -> Self:
        """Judge later steps by this mean |g|; None is off."""
        self.config = msgspec.structs.replace(self.config, vanishing_threshold=threshold)
        return self

    def with_exploding_threshold(self, threshold: float | None) -> Self:
        """Judge later steps by this max |g|; None is off."""
        self.config = msgspec.structs.replace(self.config, exploding_threshold=threshold)
        return self

    def with_layers(self, layers: Iterable[Layer]) -> Self:
        """Tell the layers in the network's order: what is not trainable is frozen, not ill."""
        for layer in layers:
            self._told[layer.name] = layer
            self._places.setdefault(layer.name, len(self._places))
        return self

    @property
    def layers(self) -> tuple[str, ...]:
        """The layers, in the order of the network."""
        return tuple(self._places)

    def __len__(self) -> int:
        """How many frames are retained."""
        return len(self._moments)

    def record_step(
        self, step: int, gradients: Mapping[str, Any], weights: Mapping[str, Any] | None = None
    ) -> None:
        """Take one step: layer -> gradient, as numpy or any framework has it; None is none.

        With `weights`, gradients are also judged by |g|/|w|. A step that cannot be taken changes
        nothing.
        """
        step = self._next_step(step)
        readings = {}
        for name, gradient in gradients.items():
            if not isinstance(name, str):
                raise RunError(f"step {step}", f"a layer is called {name!r}; names are text")
            text(f"layer of step {step}", name)
            readings[name] = reading(name, gradient, (weights or {}).get(name))
        for name in readings:
            self._places.setdefault(name, len(self._places))
        block = empty_block(len(self._places))
        present = np.zeros(len(self._places), bool)
        for name, numbers in readings.items():
            block[:, self._places[name]] = numbers
            present[self._places[name]] = True
        described = [self._told.get(name) for name in self._places]
        frozen = np.array([each is not None and not each.trainable for each in described], bool)
        roles = [each.role if each else "" for each in described]
        states = states_of(block, present, frozen, roles, self.config)
        self.add(Moment(step, step, 1, block, states))

    def _next_step(self, step: int) -> int:
        number = step if isinstance(step, int) else getattr(step, "item", lambda: None)()
        if isinstance(step, bool) or not isinstance(number, int) or number < 0:
            raise RunError("gradient flow", f"step is {step!r}; steps are integers of at least 0")
        last = self._known.last_step
        if last is not None and number <= last:
            reason = "was recorded already" if number == last else f"comes after step {last}"
            hint = "steps must ascend; begin a new animator for a new run"
            raise RunError("gradient flow", f"step {number} {reason}", hint=hint)
        return number

    def add(self, moment: Moment) -> None:
        """Take a frame that is measured and judged already."""
        self._known.add(moment, self.config)
        self._moments.append(moment)

    take = add  # its former name

    def recall(self, layers: Sequence[LayerFlow], frames: int, first: int, last: int) -> None:
        """Know of all frames what another one knew, also of those that it had dropped."""
        self._known = Aggregates()
        self._known.restore(layers, frames, first, last)

    @property
    def frames(self) -> list[GradientFrame]:
        """The retained frames, oldest first."""
        return [
            GradientFrame(
                step=frame["step"],
                first_step=frame["first_step"],
                frames=frame["frames"],
                layers=tuple(
                    LayerGradientInfo(**each, gradient_to_weight=_ratio(each))
                    for each in frame["layers"]
                ),
            )
            for frame in self._entries()
        ]

    def _entries(self) -> Iterator[dict[str, Any]]:
        from .picture import intensities

        names, bounds = self.layers, self._known.bounds()
        for moment in self._moments:
            rms = root_mean_square(moment.block)
            places = intensities(rms, bounds)
            columns = moment.block.T.tolist()
            yield {
                "step": moment.step,
                "first_step": moment.first_step,
                "frames": moment.frames,
                "layers": [
                    layer_entry(names[i], columns[i], int(state), known(places[i]))
                    for i, state in enumerate(moment.states)
                    if state != ABSENT
                ],
            }

    def summary_report(self) -> GradientFlowSummary:
        """Sum up every frame ever recorded, also those that left the window."""
        from .summary import summary_of

        self._known.widen(len(self._places))
        return summary_of(self._known, self.layers, len(self), self.config)

    def export_json(self, path: str | Path) -> None:
        """Write all that is known to a file, which appears whole or not at all."""
        from .files import write

        write(path, self.json_pieces())

    def json_pieces(self, **further: Any) -> Iterator[bytes]:
        """Return the file piece by piece; `further` is added at its end."""
        self._known.widen(len(self._places))
        head = {
            "config": self.config,
            "frames_recorded": self._known.frames,
            "first_step": self._known.first_step,
            "last_step": self._known.last_step,
            "layers": self._known.layers(self.layers),
        }
        return encoded(head, self._entries(), further)

    @classmethod
    def from_json(cls, path: str | Path) -> Self:
        """Read what `export_json` wrote, or a bare list of frames."""
        from .files import read

        return cls._of(decoded(path, read(path)), path)

    @classmethod
    def _of(cls, found: Envelope, path: str | Path) -> Self:
        made = cls(config=found.config)
        for layer in found.layers or ():
            made._places.setdefault(layer.name, len(made._places))
        for frame in found.frames:
            last = made._known.last_step
            if last is not None and frame.step <= last:
                raise RunError(path, f"step {frame.step} comes after step {last}")
            made.add(made._moment(frame))
        if found.layers is not None and found.frames_recorded and found.last_step is not None:
            if len(made._places) != len(found.layers):
                raise RunError(path, "its frames hold layers that its list of layers does not")
            made.recall(found.layers, found.frames_recorded, found.first_step or 0, found.last_step)
        return made

    def _moment(self, frame: Any) -> Moment:
        for entry in frame.layers:
            self._places.setdefault(entry.name, len(self._places))
        block = empty_block(len(self._places))
        states = np.full(len(self._places), ABSENT, np.uint8)
        for entry in frame.layers:
            place = self._places[entry.name]
            block[:, place], states[place] = entry.numbers(), entry.told_state()
        first = frame.step if frame.first_step is None else frame.first_step
        return Moment(frame.step, first, frame.frames, block, states)

    def only(self, pattern: str) -> Self:
        """Return another one with the layers whose name matches, or contains, the pattern."""
        from .picture import matching

        names, known = self.layers, self._known
        kept = matching(names, pattern)
        made = type(self)(config=self.config)
        made.with_layers(self._told.get(names[place]) or Layer(names[place]) for place in kept)
        for moment in self._moments:
            within = [place for place in kept if place < len(moment.states)]
            made.add(moment._replace(block=moment.block[:, within], states=moment.states[within]))
        if known.first_step is not None and known.last_step is not None:
            layers = known.layers(names)
            made.recall(
                [layers[place] for place in kept], known.frames, known.first_step, known.last_step
            )
        return made

    def export_csv(self, path: str | Path) -> None:
        """Write one line per frame and layer to a file, which appears complete or not at all."""
        from .files import write

        write(path, self.csv_pieces())

    def csv_pieces(self) -> Iterator[bytes]:
        """Return the table piece by piece."""
        from .files import table

        return table(self._entries())

    def cells(self, field: str = "auto") -> Cells:
        """Return a field of the retained frames as arrays over steps and layers."""
        from .picture import cells_of

        return cells_of(list(self._moments), self.layers, field, self._known.bounds())

    def picture(
        self,
        *,
        columns: int = 1000,
        rows: int = 0,
        field: str = "auto",
        scale: FlowScale = "global",
        order: str = "network",
        title: str = "",
    ) -> FlowPicture:
        """Return the heat map's numbers: at most so many columns and rows (0 is all)."""
        from .picture import picture

        return picture(
            self.cells(field),
            columns=columns,
            rows=rows,
            scale=scale,
            order=order,
            title=title,
            config=self.config,
        )

    def to_ascii_animation(self, width: int = 100, rows: int = 0, **how: Any) -> str:
        """Draw the heat map as text: layers down, steps to the right, no wider than `width`."""
        from .text import heat_map, room_for

        columns = room_for(self.layers, width)
        return heat_map(self.picture(columns=columns, rows=rows, **how))

    def ascii_frames(self, width: int = 100, rows: int = 0, **how: Any) -> Iterator[str]:
        """Draw one text per step, to be shown one after the other."""
        from .text import moving

        return moving(self.picture(columns=max(len(self), 1), rows=rows, **how), width)

    def _repr_html_(self) -> str:
        """Show it in a notebook: the heat map and the summary."""
        from html import escape

        summary = self.summary_report()._repr_html_()
        return f"<pre>{escape(self.to_ascii_animation(rows=40))}</pre>{summary}"


def _ratio(entry: Mapping[str, Any]) -> float | None:
    norm, weight = entry["grad_norm"], entry["weight_norm"]
    return norm / weight if norm is not None and weight else None
