"""What is said of a patch: its size, what it changes, how it is coded."""

from difflens.core.record import Record


class PatchSummary(Record, frozen=True):
    """A patch in figures.

    `chunks` counts the chunks by how they are coded: identical, sparse, dense, alone, raw. `added`
    tensors have no counterpart in the base, `removed` ones none in the target.
    """

    path: str
    size_bytes: int
    target_bytes: int | None
    tensors: int
    changed: int | None
    added: int
    removed: int | None
    reversible: bool
    chunks: dict[str, int]
    base: str | None = None
    target: str | None = None
    largest: dict[str, int] = {}
