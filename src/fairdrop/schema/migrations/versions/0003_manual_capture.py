"""Payments that are authorised before they are taken (O4)."""

from fairdrop.schema.statements import run_file

revision = "0003"
down_revision = "0002"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Add the sale's setting and the payment's state."""
    run_file("0003_manual_capture")


def downgrade() -> None:
    """Migrations lead forwards only."""
    raise NotImplementedError("restore a backup instead")
