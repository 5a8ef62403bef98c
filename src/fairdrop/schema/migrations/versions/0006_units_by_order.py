"""The units of an order are found by the order."""

from fairdrop.schema.statements import run_file

revision = "0006"
down_revision = "0005"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Add the index."""
    run_file("0006_units_by_order")


def downgrade() -> None:
    """Nothing needs the index to be gone."""
