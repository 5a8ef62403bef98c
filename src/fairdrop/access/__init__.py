"""Who may come, and how often: rate limits, proofs of work, CAPTCHAs, invitations (SPEC W18, W19)."""

from .addresses import Addresses
from .limits import Exceeded, Limits, Policy

__all__ = ["Addresses", "Exceeded", "Limits", "Policy"]
