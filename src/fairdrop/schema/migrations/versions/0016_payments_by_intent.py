"""Payments without an intent leave the index of intents."""

from fairdrop.schema.statements import run_file

revision = "0016"
down_revision = "0015"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Make the index anew, of the others alone."""
    run_file("0016_payments_by_intent")


def downgrade() -> None:
    """Migrations lead forwards only."""
    raise NotImplementedError("restore a backup instead")
