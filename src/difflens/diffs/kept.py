"""A model from far away whose tensors stay in memory for the analyses, as far as there is room."""

from __future__ import annotations

from difflens.core.encodings import encoding_of
from difflens.core.protocols import Encoding, TensorSource
from difflens.measure.held import Kept, KeptEncoding
from difflens.models.computed import WrappedSource


class KeptSource(WrappedSource):
    """A source whose tensors are fetched as a whole, and kept; large ones are read as before."""

    def __init__(self, source: TensorSource, kept: Kept) -> None:
        """Wrap a source; `kept` may be shared with another one."""
        super().__init__(source)
        self._kept = kept

    def encoding(self, name: str) -> Encoding:
        """Return how a tensor is stored, or kept."""
        encoding, size = encoding_of(self._source, name), self.tensors[name].size_bytes
        if not self._kept.fits(size):
            return encoding
        return KeptEncoding((id(self), name), encoding, size, self._kept)
