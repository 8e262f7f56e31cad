"""Which settings and tokenizer files are a model's own."""

from __future__ import annotations

from collections.abc import Mapping

from difflens.core.addresses import Location, locate
from difflens.models.folders.listing import BESIDE, describe_folder_files, files_called
from difflens.models.folders.together import read_together
from difflens.storage.places import is_folder

Files = dict[str, Location]

_CONFIG = "config.json"


def own_files(
    left: Location | None, right: Location | None, *, discovery: bool = True
) -> tuple[Files, Files]:
    """List the files of both models by name.

    A folder owns what lies in it. A single file owns what lies beside it where no other model does,
    and of that only what the other side has too: the rest would be news about the folder.
    """
    sides = left, right
    found = [_around(side, discovery=discovery) for side in sides]
    for at, side in enumerate(sides):
        if side and not is_folder(side):
            found[at] = {name: path for name, path in found[at].items() if name in found[1 - at]}
    for at, side in enumerate(sides):
        if side and found[at] and not is_folder(side):
            from ..evidence.discovery import is_owner  # asks every reader for its endings

            found[at] = found[at] if is_owner(side, sides[1 - at]) else {}
    read_together([*found[0].values(), *found[1].values()])
    return found[0], found[1]


def _around(place: Location | None, *, discovery: bool) -> Files:
    if place is None:
        return {}
    if is_folder(place):
        return describe_folder_files(place)
    return files_called(BESIDE, place.parent) if discovery else {}


def with_named_configs(
    files: tuple[Files, Files],
    models: tuple[Location | None, Location | None],
    configs: tuple[str | None, str | None],
    limits: Mapping[str, int] | None = None,
    *,
    discovery: bool = True,
) -> tuple[Files, Files]:
    """Let configs that a user names count like those that lie beside the models.

    A side of which none was named keeps its own; where it has none, nothing is compared.
    """
    from ..evidence.documents import config

    known = [_config(at, models, files[at], configs, discovery=discovery) for at in (0, 1)]
    for path in filter(None, configs):
        config(path, limits)  # one that cannot be read is trouble, not a change
    if not (known[0] and known[1]):
        return files
    return files[0] | {_CONFIG: known[0]}, files[1] | {_CONFIG: known[1]}


def _config(
    at: int,
    models: tuple[Location | None, Location | None],
    own: Files,
    configs: tuple[str | None, str | None],
    *,
    discovery: bool,
) -> Location | None:
    """Return the config of one side: named, its own, or the one that lies beside it."""
    from ..evidence.discovery import beside, inside

    named = configs[at]
    if named is not None:
        return locate(named)
    if _CONFIG in own or not discovery:
        return own.get(_CONFIG)
    return (inside(models[at]) | beside(models[at], models[1 - at])).get("config")
