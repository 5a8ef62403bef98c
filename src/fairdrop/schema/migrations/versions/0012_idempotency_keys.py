"""Answers to requests that carry an Idempotency-Key (H3)."""

from fairdrop.schema.statements import run_file

revision = "0012"
down_revision = "0011"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Make the table."""
    run_file("0012_idempotency_keys")


def downgrade() -> None:
    """Migrations lead forwards only."""
    raise NotImplementedError("restore a backup instead")
