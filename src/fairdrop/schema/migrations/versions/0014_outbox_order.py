"""The outbox has an order of its own, in which a relay publishes it."""

from fairdrop.schema.statements import run_file

revision = "0014"
down_revision = "0013"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Add the order."""
    run_file("0014_outbox_order")


def downgrade() -> None:
    """Migrations lead forwards only."""
    raise NotImplementedError("restore a backup instead")
