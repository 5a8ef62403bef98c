"""Changes of stock, each once, and stock from a warehouse (H9)."""

from fairdrop.schema.statements import run_file

revision = "0011"
down_revision = "0010"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Add the tables."""
    run_file("0011_stock")


def downgrade() -> None:
    """Migrations lead forwards only."""
    raise NotImplementedError("restore a backup instead")
