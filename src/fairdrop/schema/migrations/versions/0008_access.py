"""Who may join a sale: rules and invitations (W19)."""

from fairdrop.schema.statements import run_file

revision = "0008"
down_revision = "0007"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Make the tables of access."""
    run_file("0008_access")


def downgrade() -> None:
    """Migrations lead forwards only."""
    raise NotImplementedError("restore a backup instead")
