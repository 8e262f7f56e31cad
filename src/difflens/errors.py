"""Every error difflens raises on purpose.

DifflensError
├── ModelError             one model file or folder cannot be used
│   ├── UnreadableFile     the operating system would not give us the bytes
│   ├── UnknownFormat      no reader knows these bytes
│   ├── CorruptFile        a reader knows the format, and the file breaks its rules
│   ├── LimitExceeded      the file asks for more than a stated limit allows
│   └── ChangedWhileReading  the file is not the one that was opened
├── EvidenceError          what was handed in beside the models cannot be used
├── TooLarge               a tensor is larger than a measure may hold in memory
├── MissingExtra           an optional library is not installed
├── UnknownName            a plug-in, dtype or tensor of that name does not exist
│   └── UnknownModel       no snapshot of that name or version was recorded
├── SnapshotError          what was to be recorded of a model contradicts itself
│   └── InvalidConfig      a setting has no meaning
├── IncompatibleSnapshots  two snapshots cannot be compared
├── InsufficientData       too little was measured to answer
├── DisabledFeature        the configuration switches it off
├── StoreError             the store of snapshots cannot be used
├── RunError               a training run cannot be recorded or read
└── OutputError            the result could not be written
"""

from collections.abc import Iterable


class DifflensError(Exception):
    """Something difflens could not do, told in one line, with a hint where one helps."""

    def __init__(self, reason: str, *, where: str = "", hint: str = "") -> None:
        """Keep the parts; the text is made of them in one place."""
        self.where = where
        self.reason = reason
        self.hint = hint
        super().__init__(f"{where}: {reason}" if where else reason)


class ModelError(DifflensError):
    """A model file or folder cannot be used."""

    def __init__(self, where: object, reason: str, *, hint: str = "") -> None:
        """Name the file first: every model error is about one."""
        super().__init__(reason, where=str(where), hint=hint)


class UnreadableFile(ModelError):
    """The operating system would not give us the bytes."""


class UnknownFormat(ModelError):
    """No reader knows these bytes."""


class CorruptFile(ModelError):
    """The file breaks the rules of its own format."""


class LimitExceeded(ModelError):
    """The file asks for more than a stated limit allows."""


class ChangedWhileReading(ModelError):
    """The file is not the one that was opened."""

    def __init__(self, where: object, what: str) -> None:
        """Say what moved, and that nothing computed so far can be trusted."""
        super().__init__(
            where, f"changed while reading: {what}", hint="wait for its writer, then run again"
        )


class EvidenceError(DifflensError):
    """A file handed in as evidence or policy cannot be used."""

    def __init__(self, where: object, reason: str, *, hint: str = "") -> None:
        """Name the file first: every one of these is about one."""
        super().__init__(reason, where=str(where), hint=hint)


class TooLarge(DifflensError):
    """A tensor is larger than a measure may hold in memory."""

    def __init__(self, name: str, size: int, limit: int) -> None:
        """Say both sizes."""
        super().__init__(f"{size} bytes in memory, {limit} are allowed", where=name)


class MissingExtra(DifflensError):
    """An optional library is not installed."""

    def __init__(self, feature: str, extra: str) -> None:
        """Give the command that mends it."""
        super().__init__(f"{feature} needs an extra: pip install 'difflens[{extra}]'")


class UnknownName(DifflensError):
    """No plug-in, dtype or tensor has that name."""

    def __init__(self, kind: str, name: str, known: Iterable[str]) -> None:
        """Answer with the known names, nearest first where one is near."""
        from difflib import get_close_matches  # needed only to answer a mistake

        names = sorted(known)
        near = get_close_matches(name, names, 1)
        hint = f"did you mean {near[0]}?" if near else f"known: {', '.join(names[:40])}"
        super().__init__(f"no {kind} is called {name!r}", hint=hint)


class UnknownModel(UnknownName):
    """No snapshot of that name or version was recorded."""

    def __init__(self, name: str, known: Iterable[str]) -> None:
        """Answer with the known keys, nearest first where one is near."""
        super().__init__("snapshot", name, known)


class SnapshotError(DifflensError):
    """What was to be recorded of a model contradicts itself or cannot be a fact."""


class InvalidConfig(SnapshotError):
    """A setting has no meaning."""


class IncompatibleSnapshots(DifflensError):
    """Two snapshots cannot be compared: the same one twice, or measured on different data."""


class InsufficientData(DifflensError):
    """Too little was measured to answer."""


class DisabledFeature(DifflensError):
    """The configuration switches off what was asked for."""

    def __init__(self, feature: str, setting: str) -> None:
        """Name the setting that would allow it."""
        super().__init__(f"{feature} is switched off", hint=f"set {setting} to true")


class StoreError(DifflensError):
    """The store of snapshots cannot be used."""

    def __init__(self, where: object, reason: str, *, hint: str = "") -> None:
        """Name the store first: every one of these is about one."""
        super().__init__(reason, where=str(where), hint=hint)


class RunError(DifflensError):
    """A training run cannot be recorded or read."""

    def __init__(self, where: object, reason: str, *, hint: str = "") -> None:
        """Name the run first: every one of these is about one."""
        super().__init__(reason, where=str(where), hint=hint)


class OutputError(DifflensError):
    """The result could not be written."""
