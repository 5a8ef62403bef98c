"""A sale remembers that its line has stopped because all is sold, and tells it once."""

from fairdrop.schema.statements import run_file

revision = "0015"
down_revision = "0014"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Add the mark."""
    run_file("0015_sold_out")


def downgrade() -> None:
    """Migrations lead forwards only."""
    raise NotImplementedError("restore a backup instead")
