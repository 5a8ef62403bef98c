"""The safety buffer, and marks of verified phones and payment methods (H6, H8, H9)."""

from fairdrop.schema.statements import run_file

revision = "0007"
down_revision = "0006"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Add the columns."""
    run_file("0007_holds")


def downgrade() -> None:
    """Migrations lead forwards only."""
    raise NotImplementedError("restore a backup instead")
