"""The first schema: snapshots, their figures, results."""

from typing import Any

revision = "0001"
down_revision = None


def upgrade() -> None:
    """Make the tables."""
    from alembic import op
    from sqlalchemy import Boolean, Column, Double, ForeignKey, Integer, String, Text, text

    exact = Text(collation="C").with_variant(String(), "sqlite")
    op.create_table(
        "difflens_snapshots",
        Column("position", Integer, primary_key=True),
        Column("id", exact, nullable=False),
        Column("name", exact, nullable=False),
        Column("version", exact, nullable=False),
        Column("current", Boolean, nullable=False),
        Column("timestamp", exact, nullable=False),
        Column("commit_hash", exact),
        Column("parameter_count", exact),
        Column("body", Text, nullable=False),
        Column("digest", exact, nullable=False),
    )
    current: dict[str, Any] = {
        "sqlite_where": text("current = 1"),
        "postgresql_where": text("current"),
    }
    op.create_index(
        "difflens_by_key", "difflens_snapshots", ["name", "version"], unique=True, **current
    )
    op.create_index(
        "difflens_by_time", "difflens_snapshots", ["name", "timestamp", "position"], **current
    )
    op.create_index("difflens_by_name", "difflens_snapshots", ["name", "position"], **current)
    op.create_index("difflens_by_position", "difflens_snapshots", ["position"], **current)
    at = ForeignKey("difflens_snapshots.position", ondelete="CASCADE")
    op.create_table(
        "difflens_figures",
        Column("position", Integer, at, primary_key=True),
        Column("metric", exact, primary_key=True),
        Column("name", exact, nullable=False),
        Column("timestamp", exact, nullable=False),
        Column("value", Double, nullable=False),
        Column("standard_error", Double),
        Column("n", Integer),
    )
    op.create_index("difflens_by_metric", "difflens_figures", ["metric", "value", "position"])
    op.create_index(
        "difflens_by_history", "difflens_figures", ["name", "metric", "timestamp", "position"]
    )
    op.create_table(
        "difflens_results",
        Column("position", Integer, primary_key=True),
        Column("kind", exact, nullable=False),
        Column("timestamp", exact, nullable=False),
        Column("body", Text, nullable=False),
        Column("digest", exact, nullable=False),
    )
    op.create_index("difflens_by_kind", "difflens_results", ["kind", "position"])
