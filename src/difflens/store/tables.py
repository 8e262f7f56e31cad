"""The tables of a store, as the newest migration leaves them."""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING:
    from sqlalchemy import Table

VERSION_TABLE = "difflens_version"
KNOWN = ("0001",)  # the revisions in migrations/versions, oldest first
CURRENT = KNOWN[-1]


class Tables(NamedTuple):
    """The three tables: snapshots, their figures one by one, and results."""

    snapshots: Table
    figures: Table
    results: Table


@cache
def tables() -> Tables:
    """Give the tables; they are prefixed, for a database may be shared with other programs."""
    from sqlalchemy import Boolean, Column, Double, ForeignKey, Integer, MetaData, Table, Text

    metadata = MetaData()
    text = exact_text()
    snapshots = Table(
        "difflens_snapshots",
        metadata,
        Column("position", Integer, primary_key=True),
        Column("id", text, nullable=False),
        Column("name", text, nullable=False),
        Column("version", text, nullable=False),
        Column("current", Boolean, nullable=False),  # False: another one stands in its place
        Column("timestamp", text, nullable=False),
        Column("commit_hash", text),
        Column("parameter_count", text),  # as text: 2^64 - 1 is no integer of a database
        Column("body", Text, nullable=False),
        Column("digest", text, nullable=False),
    )
    at = ForeignKey("difflens_snapshots.position", ondelete="CASCADE")
    figures = Table(
        "difflens_figures",
        metadata,
        Column("position", Integer, at, primary_key=True),
        Column("metric", text, primary_key=True),
        Column("name", text, nullable=False),
        Column("timestamp", text, nullable=False),
        Column("value", Double, nullable=False),
        Column("standard_error", Double),
        Column("n", Integer),
    )
    results = Table(
        "difflens_results",
        metadata,
        Column("position", Integer, primary_key=True),
        Column("kind", text, nullable=False),
        Column("timestamp", text, nullable=False),
        Column("body", Text, nullable=False),
        Column("digest", text, nullable=False),
    )
    return Tables(snapshots, figures, results)


def exact_text() -> Any:
    """Give text that compares byte by byte, whatever the language of the database."""
    from sqlalchemy import String, Text

    return Text(collation="C").with_variant(String(), "sqlite")
