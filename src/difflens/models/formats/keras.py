"""Keras 3 models: a zip of a config and of weights.

metadata.json       the version of Keras, the date
config.json         the layers, as text: nothing of it is made or run
model.weights.h5    HDF5, as `hdf5` reads it
assets/             not read
"""

from __future__ import annotations

from typing import Any

from difflens.core.addresses import Location
from difflens.core.errors import CorruptFile, DifflensError
from difflens.core.escape import for_terminal, visible
from difflens.core.protocols import ModelFile

from .. import strict_json
from ..containers.zip import Member, members, open_member
from . import source
from .hdf5 import LARGEST_CONFIG, Hdf5, list_code_layers, shortened

_WEIGHTS, _CONFIG, _METADATA = "model.weights.h5", "config.json", "metadata.json"
_OURS = {name.encode() for name in (_WEIGHTS, _CONFIG, _METADATA)}


def recognise(head: bytes, path: Location) -> bool:
    """Is this a zip that begins with the members Keras writes?"""
    names = _first_names(head)
    if not names or names[0] not in _OURS:
        return False
    # A config.json alone may be anybody's; with another of these members it is Keras's.
    return (
        names[0] == _WEIGHTS.encode()
        or len(_OURS.intersection(names)) > 1
        or b'"keras_version"' in head[:256]
        or path.suffix == ".keras"
    )


def _first_names(head: bytes) -> list[bytes]:
    """Return the names of the members whose local headers are in the head."""
    if not head.startswith(b"PK\x03\x04"):
        return []
    names, place = [], 0
    while 0 <= place <= len(head) - 30:
        length = int.from_bytes(head[place + 26 : place + 28], "little")
        names.append(head[place + 30 : place + 30 + length])
        place = head.find(b"PK\x03\x04", place + 30 + length)
    return names


@source(recognise=recognise, suffixes=(".keras",), child="difflens.models.hdf5.hdf5_child")
def keras(file: ModelFile) -> Hdf5:
    """Keras 3: a zip of config.json and HDF5 weights."""
    where = visible(str(file.path))
    found = members(file)
    weights = [name for name in found if name.endswith((".weights.h5", ".weights.npz"))]
    if weights != [_WEIGHTS]:
        names = ", ".join(f"'{for_terminal(name)}'" for name in weights[:5]) or "none"
        raise CorruptFile(where, f"one {_WEIGHTS} is wanted in the archive, found: {names}")
    if _CONFIG not in found:
        raise CorruptFile(where, f"the archive has no {_CONFIG}, a Keras model has one")
    warnings: list[str] = []
    config = _read_text(file, found[_CONFIG])
    metadata = {"config": shortened(config, found[_CONFIG].size)}
    refused = list_code_layers(config, found[_CONFIG].size, warnings)
    if _METADATA in found:
        metadata |= _read_metadata(_read_text(file, found[_METADATA]), file, warnings)
    model = Hdf5(open_member(file, found[_WEIGHTS]), "keras")
    model.opened.append(file)
    model.refused = refused
    model.warnings = [*warnings, *model.warnings]
    model.metadata = {**metadata, **model.metadata}
    return model


def _read_text(file: ModelFile, member: Member) -> str:
    """Read the beginning of a member as text; its end is not needed to show it."""
    opened = open_member(file, member)
    try:
        data = opened.read(0, min(member.size, LARGEST_CONFIG))
    finally:
        opened.close()
    return data.decode("utf-8", "backslashreplace")


def _read_metadata(raw: str, file: ModelFile, warnings: list[str]) -> dict[str, str]:
    """Read the version of Keras and the date; a warning if it is not JSON."""
    try:
        parsed: Any = strict_json.parse(
            raw.encode(), visible(str(file.path)), depth=file.limit("json_depth"), floats=True
        )
    except DifflensError as error:
        warnings.append(f"{_METADATA} was not read: {error.reason}")
        return {}
    values = parsed.items() if isinstance(parsed, dict) else ()
    return {key: shortened(text, len(text)) for key, text in values if isinstance(text, str)}
