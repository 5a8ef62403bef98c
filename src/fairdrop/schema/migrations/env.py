"""How Alembic runs here: on the connection it is given, inside that connection's transaction."""

from alembic import context

context.configure(
    connection=context.config.attributes["connection"], transaction_per_migration=False
)
context.run_migrations()
