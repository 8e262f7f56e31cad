"""The two sides of a comparison by fingerprints: recorded in a file, or to be made of a model."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from os import PathLike, fspath

from difflens.core.addresses import locate
from difflens.core.errors import ModelError
from difflens.core.escape import visible
from difflens.core.protocols import Engine, TensorSource
from difflens.core.records import ModelInfo, TensorInfo
from difflens.engines import start_engine
from difflens.measure.pairs import Progress
from difflens.models.checkpoint import open_checkpoint
from difflens.models.describe import ALREADY_OPEN, IN_MEMORY, describe, metadata
from difflens.models.opening import Model, open_input, place_of, resolve_weights

from .file import read_fingerprint
from .identity import full_path, identity_of
from .make import fingerprint_tensors
from .recognise import is_fingerprint
from .records import Fingerprint

_HINT = "make the fingerprint again, or name the model itself"


class Recorded:
    """A side that is a fingerprint: nothing of its model is read."""

    def __init__(self, path: str, limits: Mapping[str, int] | None) -> None:
        """Read the file."""
        self.fingerprint = read_fingerprint(path, limits)
        recorded = self.fingerprint.model
        self.path, self.info = path, describe_as(recorded, path)
        self.metadata = self.fingerprint.metadata
        self.tensors: Mapping[str, TensorInfo] = self.fingerprint.infos
        self.warnings: list[str] = []
        self.unread_bytes = 0

    def read(self, engine: Engine, progress: Progress | None = None) -> Fingerprint:  # noqa: ARG002
        """Return what was read."""
        return self.fingerprint

    def model(self) -> Model:
        """Return the path of the model that it was made of; raise if that is not there any more."""
        recorded = self.fingerprint
        where = visible(recorded.model.path or self.path)
        if recorded.model.path in ("", ALREADY_OPEN, IN_MEMORY):
            raise ModelError(where, "the fingerprint does not say where its model is")
        place = locate(recorded.model.path)
        if not recorded.identity:
            raise ModelError(where, "whether it has changed cannot be told", hint=_HINT)
        if identity_of(place, recorded.model.format) != recorded.identity:
            reason = f"it is not there, or has changed since {visible(self.path)} was made"
            raise ModelError(where, reason, hint=_HINT)
        return recorded.model.path

    def confirm(self) -> None:
        """Do nothing: the file was read once."""

    def close(self) -> None:
        """Do nothing: the file is closed."""


class Unread:
    """A side that is a model: its fingerprint is made once somebody looks."""

    def __init__(self, model: Model, form: str | None, limits: Mapping[str, int] | None) -> None:
        """Open it; only headers are read."""
        self._model, self._place = model, place_of(model)
        self.path, self._source = open_input(model, form, limits)
        checkpoint = open_checkpoint(self._source)
        self.metadata: Mapping[str, str] = metadata(self._place, self._source)
        self.weights = decoded(checkpoint.weights, self.metadata)
        self.info = describe(self.path, self.weights, checkpoint.state_infos)
        self.tensors = self.weights.tensors
        self.warnings = self.weights.warnings
        self.unread_bytes = self.info.size_bytes

    def read(self, engine: Engine, progress: Progress | None = None) -> Fingerprint:
        """Read every byte, and make the fingerprint."""
        place = self._place
        path, identity = self.path, ""
        if place:
            path, identity = full_path(place), identity_of(place, self.info.format)
        if not path.isprintable():  # bytes that are no text: the file could not be found again
            path, identity = visible(path), ""
        made = fingerprint_tensors(self.weights, self.tensors.values(), engine, progress)
        tensors = {each.info.name: each for each in made}
        self.confirm()
        return Fingerprint(
            describe_as(self.info, path), tensors, metadata=self.metadata, identity=identity
        )

    def model(self) -> Model:
        """Return the model."""
        return self._model

    def confirm(self) -> None:
        """Raise `ChangedWhileReading` if the files are not the ones that were opened."""
        self.weights.confirm()

    def close(self) -> None:
        """Close the files."""
        with suppress(ModelError):
            self._source.close()


Side = Recorded | Unread


def open_side(
    model: Model, form: str | None = None, limits: Mapping[str, int] | None = None
) -> Side:
    """Open a side: the path of a fingerprint, or whatever is a model."""
    if isinstance(model, (str, PathLike)) and is_fingerprint(model):
        return Recorded(fspath(model), limits)
    return Unread(model, form, limits)


def fingerprint_of(side: Side, threads: int | None, progress: Progress | None) -> Fingerprint:
    """Return the fingerprint of a side, and close it."""
    engine = start_engine(None, threads)
    try:
        return side.read(engine, progress)
    finally:
        engine.close()
        side.close()


def decoded(weights: TensorSource, about: Mapping[str, str]) -> TensorSource:
    """Decode what is quantised: a fingerprint is about the numbers of a model."""
    return resolve_weights(weights, weights, (about, about))[0]


def describe_as(info: ModelInfo, path: str) -> ModelInfo:
    """Return the description with another path."""
    from msgspec.structs import replace

    return replace(info, path=path)
