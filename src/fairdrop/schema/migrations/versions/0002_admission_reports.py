"""How checkouts of the shop's own ended (W20)."""

from fairdrop.schema.statements import run_file

revision = "0002"
down_revision = "0001"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Make the table of reports."""
    run_file("0002_admission_reports")


def downgrade() -> None:
    """Migrations lead forwards only."""
    raise NotImplementedError("restore a backup instead")
