"""Mails about orders, as durable jobs (O12, O13)."""

from fairdrop.schema.statements import run_file

revision = "0010"
down_revision = "0009"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Add the table of mails."""
    run_file("0010_mails")


def downgrade() -> None:
    """Migrations lead forwards only."""
    raise NotImplementedError("restore a backup instead")
