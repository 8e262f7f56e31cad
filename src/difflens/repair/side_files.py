"""The settings and tokenizers beside the weights of a folder, to be shipped with a patch."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from difflens.core.errors import PatchError
from difflens.core.escape import for_terminal
from difflens.models.folders.listing import model_folder, neighbour
from difflens.models.formats.safetensors import Safetensors

_SUFFIXES = (".json", ".jinja", ".md", ".model", ".tiktoken", ".txt")
_MOST = 1 << 26  # bytes of all of them; they are in memory together


def side_files(path: Path, shards: Mapping[str, Safetensors]) -> dict[str, bytes]:
    """Read the side files of a folder, by name; not those in folders below it, and none hidden."""
    folder, files, total = model_folder(path), {}, 0
    weights = next(iter(shards.values())).file
    for each in sorted(folder.iterdir()):
        hidden = each.name.startswith(".") or each.name in shards
        if hidden or each.suffix not in _SUFFIXES or not each.is_file():
            continue
        file = neighbour(weights, each.name)  # a link may not lead out of the model
        try:
            total += file.size
            if total > _MOST:
                shown = for_terminal(each.name)
                raise PatchError(path, f"the files beside the weights take too much: '{shown}'")
            files[each.name] = file.read(0, file.size)
        finally:
            file.close()
    return files
