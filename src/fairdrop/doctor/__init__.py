"""The doctor: what is wrong with an installation, and what to do about it (SPEC O13, S5)."""

from .model import Finding, Verdict, Waiting
from .records import waiting
from .service import examine

__all__ = ["Finding", "Verdict", "Waiting", "examine", "waiting"]
