"""Fingerprints of models: a summary of each, and all of it apart from that."""

revision = "0002"
down_revision = "0001"


def upgrade() -> None:
    """Make the tables."""
    from alembic import op
    from sqlalchemy import Column, ForeignKey, Integer, LargeBinary

    for name in ("difflens_summaries", "difflens_fingerprints"):
        at = ForeignKey("difflens_snapshots.position", ondelete="CASCADE")
        op.create_table(
            name,
            Column("position", Integer, at, primary_key=True),
            Column("body", LargeBinary, nullable=False),
        )
