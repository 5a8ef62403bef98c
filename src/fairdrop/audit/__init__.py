"""The audit: store, orders, units, ledger and gateways compared with one another (SPEC O11)."""

from .model import Difference, Kind, Report
from .service import audit, figures

__all__ = ["Difference", "Kind", "Report", "audit", "figures"]
