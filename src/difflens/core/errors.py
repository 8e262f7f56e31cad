"""Every error difflens raises on purpose.

DifflensError
├── ModelError             one model file or folder cannot be used
│   ├── UnreadableFile     the operating system cannot read the bytes
│   ├── UnknownFormat      no reader recognises these bytes
│   ├── CorruptFile        the file breaks the rules of its format
│   ├── LimitExceeded      the file asks for more than a stated limit allows
│   └── ChangedWhileReading  the file is not the one that was opened
├── EvidenceError          a file passed beside the models cannot be used
├── TooLarge               a tensor is too large for a measure that needs it in memory
├── EngineError            the cluster that should do the work cannot
├── MissingExtra           an optional library is not installed
├── UnknownName            there is no plug-in, dtype or tensor of that name
│   └── UnknownModel       no snapshot of that name or version was recorded
├── SnapshotError          the facts of a model contradict each other
│   └── InvalidConfig      a setting is invalid
├── IncompatibleSnapshots  two snapshots cannot be compared
├── InsufficientData       too little was measured for an answer
├── DisabledFeature        the configuration disables it
├── StoreError             the store of snapshots cannot be used
├── GitError               a repository cannot be read, or a model of it is not there
├── RunError               a training run cannot be recorded or read
├── PatchError             a patch does not fit its model, or cannot do what is asked
├── BlameError             a check cannot run, or does not tell two models apart
└── OutputError            the result could not be written
"""

from collections.abc import Iterable

# The hint for a file that ends too early.
INCOMPLETE = "the download may be incomplete"


class DifflensError(Exception):
    """Something that difflens could not do: a reason in one line, and a hint if one helps."""

    def __init__(self, reason: str, *, where: str = "", hint: str = "") -> None:
        """Store the parts; the text is composed here."""
        self.where = where
        self.reason = reason
        self.hint = hint
        super().__init__(f"{where}: {reason}" if where else reason)

    def __reduce__(self) -> tuple[object, ...]:
        """Go to another process as what it says, not as what it was made of."""
        return _said_again, (type(self), self.args), self.__dict__


def _said_again(kind: type[DifflensError], said: tuple[str, ...]) -> DifflensError:
    error = kind.__new__(kind)
    error.args = said
    return error


class ModelError(DifflensError):
    """A model file or folder cannot be used."""

    def __init__(self, where: object, reason: str, *, hint: str = "") -> None:
        """Name the file first: every model error is about a file."""
        super().__init__(reason, where=str(where), hint=hint)


class UnreadableFile(ModelError):
    """The operating system cannot read the bytes."""


class UnknownFormat(ModelError):
    """No reader recognises these bytes."""


class CorruptFile(ModelError):
    """The file breaks the rules of its format."""


class LimitExceeded(ModelError):
    """The file asks for more than a stated limit allows."""


class ChangedWhileReading(ModelError):
    """The file is not the one that was opened."""

    def __init__(self, where: object, what: str) -> None:
        """Name what changed; all results so far are invalid."""
        super().__init__(
            where, f"changed while reading: {what}", hint="wait until it is written, then run again"
        )


class EvidenceError(DifflensError):
    """A file that is evidence or policy cannot be used."""

    def __init__(self, where: object, reason: str, *, hint: str = "") -> None:
        """Name the file first."""
        super().__init__(reason, where=str(where), hint=hint)


class TooLarge(DifflensError):
    """A tensor is too large for a measure that needs it in memory."""

    def __init__(self, name: str, size: int, limit: int) -> None:
        """State both sizes."""
        super().__init__(f"{size} bytes in memory, {limit} are allowed", where=name)


class EngineError(DifflensError):
    """The cluster that should do the work cannot."""


class MissingExtra(DifflensError):
    """An optional library is not installed."""

    def __init__(self, feature: str, extra: str) -> None:
        """State the command that installs it."""
        super().__init__(f"{feature} needs an extra: pip install 'difflens[{extra}]'")


class UnknownName(DifflensError):
    """There is no plug-in, dtype or tensor of that name."""

    def __init__(self, kind: str, name: str, known: Iterable[str]) -> None:
        """Hint at the nearest name, or list the known names."""
        from difflib import get_close_matches  # imported only for an error

        names = sorted(known)
        near = get_close_matches(name, names, 1)
        hint = f"did you mean {near[0]}?" if near else f"known: {', '.join(names[:40])}"
        super().__init__(f"no {kind} is called {name!r}", hint=hint)


class UnknownModel(UnknownName):
    """No snapshot of that name or version was recorded."""

    def __init__(self, name: str, known: Iterable[str]) -> None:
        """Hint at the nearest key, or list the known keys."""
        super().__init__("snapshot", name, known)


class SnapshotError(DifflensError):
    """The facts of a model contradict each other, or cannot be true."""


class InvalidConfig(SnapshotError):
    """A setting is invalid."""


class IncompatibleSnapshots(DifflensError):
    """Two snapshots cannot be compared: the same one twice, or measured on different data."""


class InsufficientData(DifflensError):
    """Too little was measured for an answer."""


class DisabledFeature(DifflensError):
    """The configuration disables what was requested."""

    def __init__(self, feature: str, setting: str) -> None:
        """Name the setting that enables it."""
        super().__init__(f"{feature} is switched off", hint=f"set {setting} to true")


class StoreError(DifflensError):
    """The store of snapshots cannot be used."""

    def __init__(self, where: object, reason: str, *, hint: str = "") -> None:
        """Name the store first."""
        super().__init__(reason, where=str(where), hint=hint)


class GitError(DifflensError):
    """A repository cannot be read, or a model of it is not there."""

    def __init__(self, where: object, reason: str, *, hint: str = "") -> None:
        """Name the revision, the path or the folder first."""
        super().__init__(reason, where=str(where), hint=hint)


class RunError(DifflensError):
    """A training run cannot be recorded or read."""

    def __init__(self, where: object, reason: str, *, hint: str = "") -> None:
        """Name the run first."""
        super().__init__(reason, where=str(where), hint=hint)


class PatchError(DifflensError):
    """A patch does not fit its model, or cannot do what is asked."""

    def __init__(self, where: object, reason: str, *, hint: str = "") -> None:
        """Name the patch or the model first."""
        super().__init__(reason, where=str(where), hint=hint)


class BlameError(DifflensError):
    """A check cannot run, or does not tell two models apart."""

    def __init__(self, where: object, reason: str, *, hint: str = "") -> None:
        """Name the command, the model or the file first."""
        super().__init__(reason, where=str(where), hint=hint)


class OutputError(DifflensError):
    """The result could not be written."""
