"""The pace of the line, its length, and its restoration (W8, W10, W15, W16)."""

from fairdrop.schema.statements import run_file

revision = "0004"
down_revision = "0003"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Add the sale's settings and marks."""
    run_file("0004_line")


def downgrade() -> None:
    """Migrations lead forwards only."""
    raise NotImplementedError("restore a backup instead")
