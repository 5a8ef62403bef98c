"""The first schema: sales, orders, units, payments, ledger, outbox, audit."""

from fairdrop.schema.statements import run_file

revision = "0001"
down_revision = None
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Make all tables."""
    run_file("0001_initial")


def downgrade() -> None:
    """There is nothing before the first schema."""
    raise NotImplementedError("drop the database instead")
