"""PyTorch's zip format: a pickle that names the tensors, and their storages beside it.

    name/data.pkl       a pickle; tensors are calls that name a storage, an offset, shape, strides
    name/byteorder      little or big
    name/data/0 ...     the storages, one file each
    name/version
    name/constants.pkl, name/constants/0 ..., name/code/   TorchScript: its program is never read

Nothing the pickle names is imported or called: see containers/pickles.py.
"""

from __future__ import annotations

import re
from typing import Any

from difflens.core.addresses import Location
from difflens.core.errors import CorruptFile
from difflens.core.escape import for_terminal, visible
from difflens.core.protocols import ModelFile

from ..containers.pickle_nodes import Dict, Global
from ..containers.pickles import unpickle
from ..containers.zip import STORED, Member, members, open_member, verify
from ..torch.make import Maker, dotted, is_known
from ..torch.read import Place
from ..torch.source import Named, TorchSource, name_all
from ..torch.tensors import Storages
from ..torch.walk import walk
from . import source

# The names that torch gives to files of its archives, below the one folder they are in.
_OURS = (
    rb"(?:data\.pkl|version|byteorder|\.format_version|\.storage_alignment|constants\.pkl"
    rb"|(?:data|constants)/[^/]+|\.data/[^/]+|code/.+|extra/.+|)"
)
_FIRST = re.compile(rb"[^/]+/" + _OURS, re.DOTALL)
_KEY = re.compile(r"(?:data|constants)/[0-9A-Za-z_][0-9A-Za-z_.-]{0,200}", re.ASCII)
_SMALL = 64  # bytes of `byteorder`


def recognise(head: bytes, _path: Location) -> bool:
    """Is this a zip whose first member torch would have written?"""
    if not head.startswith(b"PK\x03\x04") or len(head) < 30:
        return False
    end = 30 + int.from_bytes(head[26:28], "little")
    name = head[30:end]
    if not _FIRST.fullmatch(name):
        return False
    # Folders and constants may come first in other archives too: look for what only torch has.
    return not name.endswith(b"/") or b"/data.pkl" in head


@source(recognise=recognise, suffixes=(".pt", ".pth", ".bin", ".ckpt"))
def pytorch(file: ModelFile) -> TorchSource:
    """PyTorch checkpoints: the zip archives of torch.save and torch.jit.save."""
    return Archive(file).open("pytorch")


class Archive:
    """A torch archive whose members are known."""

    def __init__(self, file: ModelFile) -> None:
        """Read the directory of the zip."""
        self.file = file
        self.where = visible(str(file.path))
        self.members = members(file)
        self.top = self._top()
        self.big = self._is_big()
        # torch can be told to write no checksums; then all are zero
        self.checked = any(member.crc for member in self.members.values())
        self.places: dict[str, Place] = {}
        self.names: set[Global] = set()

    def open(self, format: str) -> TorchSource:  # noqa: A002  the name in TensorSource
        """Read the pickles, and return the tensors that they describe."""
        named, pickle = self._named()
        refused = [dotted(name) for name in self.names if not is_known(name)]
        if self._member("constants.pkl"):
            refused = [name for name in refused if not name.startswith("__torch__.")]
        return TorchSource(format, self.file, named, self.places, refused, pickle)

    def root(self, name: str = "data") -> tuple[Any, Storages, ModelFile]:
        """Read a pickle of the archive: what it holds, its storages found and checked."""
        member = self._member(f"{name}.pkl")
        if member is None:
            reason = f"there is no '{for_terminal(self.top)}/{name}.pkl' in the zip"
            raise CorruptFile(self.where, reason)
        pickle = open_member(self.file, member)
        if self.checked and member.method == STORED:
            verify(self.file, member)
        storages = Storages(pickle, f"{name}/")
        value, end, names = unpickle(pickle, 0, Maker(storages))
        if end != pickle.size:
            raise CorruptFile(self.where, f"bytes follow the end of {name}.pkl at byte {end}")
        self.names |= names
        return value, storages, pickle

    def _named(self) -> tuple[Named, ModelFile]:
        value, storages, pickle = self.root()
        found = walk(value, storages)
        absent = self._locate(storages)
        constants = self._member("constants.pkl")
        if constants:
            value, storages, _ = self.root("constants")
            more = walk(Dict(["constants", value]), storages)
            found.tensors += more.tensors
            found.unread += more.unread
            absent |= self._locate(storages)
        found.leave_out(absent)
        named = name_all(found, self.where)
        if constants:
            named.metadata["archive"] = "TorchScript"
        return named, pickle

    def _locate(self, storages: Storages) -> set[str]:
        """Find each storage among the members; return the keys of those without bytes."""
        for key, size in storages.sizes.items():
            member = self._member(key) if _KEY.fullmatch(key) else None
            if key in storages.absent or (member is None and not size):
                self.places[key] = Place(self.file, 0, 0)
                continue
            if member is None:
                raise CorruptFile(self.where, f"storage '{for_terminal(key)}' is not in the zip")
            if member.size != size:
                said = f"storage '{for_terminal(key)}' has {member.size} bytes"
                raise CorruptFile(self.where, f"{said}, the pickle says {size}")
            self.places[key] = self._place(member)
        return set(storages.absent)

    def _place(self, member: Member) -> Place:
        if member.method == STORED:
            checksum = member.crc if self.checked else None
            return Place(self.file, member.offset, member.size, self.big, checksum)
        return Place(open_member(self.file, member), 0, member.size, self.big)

    def _member(self, name: str) -> Member | None:
        return self.members.get(f"{self.top}/{name}")

    def _top(self) -> str:
        """Return the one folder that everything is in."""
        tops = {name.partition("/")[0] if "/" in name else "" for name in self.members}
        if len(tops) != 1 or "" in tops:
            reason = f"the zip has {len(tops)} top folders, a torch archive has one"
            raise CorruptFile(self.where, reason)
        return next(iter(tops))

    def _is_big(self) -> bool:
        member = self._member("byteorder")
        if member is None:
            return False
        opened = open_member(self.file, member)
        order = opened.read(0, opened.size) if opened.size <= _SMALL else b""
        if order not in (b"little", b"big"):
            shown = for_terminal(order.decode("latin-1"), 40)
            raise CorruptFile(self.where, f"the byte order is '{shown}', little or big is wanted")
        return order == b"big"
