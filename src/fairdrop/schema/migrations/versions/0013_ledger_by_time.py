"""The books at a time (O10)."""

from fairdrop.schema.statements import run_file

revision = "0013"
down_revision = "0012"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Make the index."""
    run_file("0013_ledger_by_time")


def downgrade() -> None:
    """Migrations lead forwards only."""
    raise NotImplementedError("restore a backup instead")
