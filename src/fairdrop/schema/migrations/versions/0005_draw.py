"""The lobby and the draw that anyone can check: settings of a sale, its commitment, its files."""

from fairdrop.schema.statements import run_file

revision = "0005"
down_revision = "0004"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Add the draw. Sales that are there already have no lobby."""
    run_file("0005_draw")


def downgrade() -> None:
    """A sale whose entrants hold receipts cannot be brought back to where there was no draw."""
    raise NotImplementedError("restore a backup instead")
