"""Fingerprints in the tables of a store: bodies by the key of their snapshot."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..records.snapshots import AT
from . import lookups
from .tables import tables

if TYPE_CHECKING:
    from sqlalchemy import Connection


def put(connection: Connection, name: str, version: str, summary: bytes, body: bytes) -> None:
    """Keep the fingerprint of the version that stands."""
    row = lookups.by_key(connection, name, version)
    if row is None:
        return
    drop(connection, row.position)
    for table, data in ((tables().summaries, summary), (tables().fingerprints, body)):
        connection.execute(table.insert().values(position=row.position, body=data))


def drop(connection: Connection, position: int) -> None:
    """Remove the fingerprint of a snapshot, if it has one."""
    for table in (tables().summaries, tables().fingerprints):
        connection.execute(table.delete().where(table.c.position == position))


def body(connection: Connection, name: str, version: str) -> bytes | None:
    """Return the fingerprint of NAME@VERSION."""
    from sqlalchemy import select

    snapshots, table = tables().snapshots, tables().fingerprints
    wanted = (
        select(table.c.body)
        .join(snapshots, snapshots.c.position == table.c.position)
        .where(snapshots.c.current, snapshots.c.name == name, snapshots.c.version == version)
    )
    found = connection.execute(wanted).scalar()
    return None if found is None else bytes(found)


def summaries(connection: Connection) -> list[tuple[str, bytes]]:
    """Return the summaries of all snapshots that stand, the last recorded first."""
    from sqlalchemy import select

    snapshots, table = tables().snapshots, tables().summaries
    wanted = (
        select(snapshots.c.name, snapshots.c.version, table.c.body)
        .join(snapshots, snapshots.c.position == table.c.position)
        .where(snapshots.c.current)
        .order_by(snapshots.c.position.desc())
    )
    rows = connection.execute(wanted)
    return [(f"{name}{AT}{version}", bytes(data)) for name, version, data in rows]
