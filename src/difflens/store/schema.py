"""Is the schema of a database ours and current? If older it is migrated, if newer refused."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from ..errors import StoreError
from .places import Place
from .tables import CURRENT, KNOWN, VERSION_TABLE

if TYPE_CHECKING:
    from sqlalchemy import Connection

_MIGRATIONS = Path(__file__).parent / "migrations"


def revision(connection: Connection, place: Place) -> str | None:
    """Give the revision of the schema, None where there is no schema yet; refuse a foreign one."""
    if connection.dialect.name == "sqlite":
        known = _is_ours(connection, place)
    else:
        asked = f"SELECT to_regclass('{VERSION_TABLE}') IS NOT NULL"
        known = bool(connection.exec_driver_sql(asked).scalar())
    if not known:
        return None
    found = connection.exec_driver_sql(f"SELECT version_num FROM {VERSION_TABLE}").scalar()  # noqa: S608  our own constant
    if found in KNOWN or found is None:
        return found
    raise StoreError(
        place.shown,
        f"its schema is {found!r}, this difflens knows up to {CURRENT}",
        hint="it was made by a newer difflens: upgrade this one",
    )


def _is_ours(connection: Connection, place: Place) -> bool:
    """Look through a file for what we did not make: it may come from anywhere."""
    listed = connection.exec_driver_sql("SELECT type, name FROM sqlite_master").all()
    for kind, name in listed:
        if kind not in ("table", "index"):
            raise StoreError(place.shown, f"holds the {kind} {name!r}, which difflens never makes")
    tables = {name for kind, name in listed if kind == "table" and not name.startswith("sqlite_")}
    if tables and VERSION_TABLE not in tables:
        raise StoreError(place.shown, "is the database of another program")
    return VERSION_TABLE in tables


def upgrade(connection: Connection) -> None:
    """Bring the schema up to date, within the transaction the connection is in."""
    from alembic import command
    from alembic.config import Config

    config = Config()
    config.set_main_option("script_location", str(_MIGRATIONS).replace("%", "%%"))
    config.attributes["connection"] = connection
    command.upgrade(config, "head")
