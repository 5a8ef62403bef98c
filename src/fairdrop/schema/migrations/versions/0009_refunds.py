"""Refunds of single units, and units that go back to the pool (O9)."""

from fairdrop.schema.statements import run_file

revision = "0009"
down_revision = "0008"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Add the columns, and the table of units whose money went back."""
    run_file("0009_refunds")


def downgrade() -> None:
    """Migrations lead forwards only."""
    raise NotImplementedError("restore a backup instead")
