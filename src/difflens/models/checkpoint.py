"""A checkpoint taken apart: the weights as a source of their own, and the state beside them."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from difflens.core.once import Call, as_call
from difflens.core.protocols import TensorSource
from difflens.core.records import TensorInfo

from .anatomy.state_hints import LIGHTNING, may_be_state
from .computed import WrappedSource

if TYPE_CHECKING:
    from .anatomy.state import State


class Checkpoint(NamedTuple):
    """An open model, its weights alone, and which of its tensors are state."""

    source: TensorSource
    weights: TensorSource
    state: dict[str, State]

    @property
    def state_infos(self) -> list[TensorInfo]:
        """The headers of the tensors that are state."""
        return [self.source.tensors[name] for name in self.state]

    @property
    def may_hold_state(self) -> bool:
        """Is there state among the tensors, or may the plain values beside them be some?"""
        values = self.source.metadata
        return bool(self.state) or LIGHTNING in values or any("." in name for name in values)


def open_checkpoint(source: TensorSource) -> Checkpoint:
    """Find the state in an open model; a model without any is its own weights."""
    if not may_be_state("\n".join(source.tensors)):
        return Checkpoint(source, source, {})
    from .anatomy.state import find_state  # its tables take 4 ms, and few models need them

    state = find_state(source.tensors, source.metadata)
    return Checkpoint(source, _Weights(source, state) if state else source, state)


class _Weights(WrappedSource):
    """A source without the tensors that are state."""

    def __init__(self, source: TensorSource, state: dict[str, State]) -> None:
        """Leave them out of the header; bytes are read as before."""
        from .anatomy.state import weights_of

        super().__init__(source)
        self.tensors = weights_of(source.tensors, state)
        self.aliases = {
            name: other
            for name, other in self.aliases.items()
            if name in self.tensors and other in self.tensors
        }

    def __reduce__(self) -> Call:
        """Take it apart again in another process."""
        return as_call(_weights_in, self._source)


def _weights_in(source: TensorSource) -> TensorSource:
    return open_checkpoint(source).weights
