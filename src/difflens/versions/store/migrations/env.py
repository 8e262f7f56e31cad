"""Runs the migrations on the connection that `store.schema` hands over, in its transaction."""


def run() -> None:
    """Do what Alembic was called for."""
    from alembic import context

    from difflens.versions.store.tables import VERSION_TABLE

    connection = context.config.attributes["connection"]
    context.configure(connection=connection, version_table=VERSION_TABLE, transactional_ddl=True)
    context.run_migrations()


run()
